"""A message is counted when it is new, and known again when it is not, however often the process starts."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from durable_agent import timed
from hypothesis import given
from hypothesis import strategies as st
from memory_stores import empty

from sluicegate_agent.identity import EPOCHS_KEPT, Contents, Sequences, Verdict, tally
from sluicegate_agent.identity.epoch import RUNS

NEW, DUPLICATE, BEYOND = Verdict.NEW, Verdict.DUPLICATE, Verdict.BEYOND_HORIZON


@pytest.fixture
def store() -> Iterator[sqlite3.Connection]:
    """An empty store in memory."""
    connection = empty()
    yield connection
    connection.close()


def commit(store: sqlite3.Connection, *identities: Sequences | Contents) -> None:
    """What the pipeline does with identities in a commit."""
    for identity in identities:
        identity.save(store)
        identity.saved()


@given(
    numbers=st.lists(st.integers(0, 60), max_size=120),
    horizon=st.integers(1, 40),
    restarts=st.sets(st.integers(0, 120)),
)
def test_numbers_agree_with_a_set(numbers: list[int], horizon: int, restarts: set[int]) -> None:
    """Within the horizon every number is new once, each says the same whenever it comes; `missing` are those that were
    passed over, and one that comes late says the how manyth it was, as long as that is known.
    """
    store = empty()
    sequences = Sequences(store, "s", horizon)
    seen, passed = set[int](), list[int]()
    for i, number in enumerate(numbers):
        oldest = max(seen) - horizon if seen else -1
        if seen and (number <= oldest or number > max(seen) + horizon):
            continue
        expected = DUPLICATE if number in seen else NEW
        assert sequences.check(number, None, 2 + number).verdict is expected
        is_late = bool(seen) and number not in seen and min(seen) < number < max(seen)
        low, high = (min(seen), max(seen)) if seen else (number, number)
        passed += [*range(high + 1, number), *range(number + 1, low)]
        below = max(0, low - number - 1)
        seen.add(number)
        assert sequences.missing == len(passed)
        said = sequences.tally(number)
        assert (said < 0) == is_late
        if is_late and tally.is_known(said):
            assert passed[tally.lost(said) - 1] == number
        assert not is_late or tally.is_known(said) or len(passed) > RUNS, "nor does a restart forget it"
        assert tally.lost(said) == len(passed) - below or (is_late and tally.is_known(said))
        if i in restarts:
            commit(store, sequences)
            sequences = Sequences(store, "s", horizon)
    store.close()


def test_a_new_epoch_starts_afresh_and_the_old_one_is_still_known(store: sqlite3.Connection) -> None:
    """After a reboot number 1 is new again, while a redelivery from before the reboot is still a duplicate."""
    sequences = Sequences(store, "s", 16)
    assert [sequences.check(n, "before").verdict for n in (1, 2, 3)] == [NEW] * 3
    assert [sequences.check(n, "after").verdict for n in (1, 2)] == [NEW] * 2
    commit(store, sequences)
    again = Sequences(store, "s", 16)
    assert again.check(3, "before").verdict is DUPLICATE
    assert again.check(2, "after").verdict is DUPLICATE
    assert again.check(1, 1).verdict is NEW, "an epoch that is a number is not the text of the number"


def test_only_some_epochs_are_kept_and_what_they_miss_is_not_forgotten(store: sqlite3.Connection) -> None:
    """Rows are bounded by EPOCHS_KEPT a source; the losses of a dropped epoch stay counted, over a restart."""
    sequences = Sequences(store, "s", 16)
    for boot in range(3 * EPOCHS_KEPT):
        sequences.check(0, boot)
        sequences.check(3, boot)
        commit(store, sequences)
        sequences.confirmed(boot + 1)
    commit(store, sequences)
    assert sequences.missing == 2 * 3 * EPOCHS_KEPT
    assert store.execute("SELECT count(*) FROM sequence").fetchone() == (EPOCHS_KEPT,)
    assert Sequences(store, "s", 16).missing == sequences.missing


def test_what_a_forgotten_epoch_missed_is_kept_where_nothing_else_is_written(store: sqlite3.Connection) -> None:
    """The broker's answer comes after the last message: the epoch goes with a commit that has no message of it."""
    sequences = Sequences(store, "s", 4096)
    for boot in range(EPOCHS_KEPT + 1):
        for number in (0, 3):
            sequences.check(number, boot)
    sequences.save(store)
    sequences.saved()
    assert sequences.missing == 2 * (EPOCHS_KEPT + 1)
    sequences.confirmed(1)
    sequences.save(store)
    sequences.saved()
    assert store.execute("SELECT count(*) FROM sequence").fetchone() == (EPOCHS_KEPT,)
    assert Sequences(store, "s", 4096).missing == 2 * (EPOCHS_KEPT + 1)


@pytest.mark.parametrize(("before", "after"), [(16, 40), (40, 16), (16, 17), (9, 8)])
def test_another_horizon_never_counts_twice(store: sqlite3.Connection, before: int, after: int) -> None:
    """Whatever was seen is refused after the setting changed, whether longer or shorter, and what is ahead is new."""
    sequences = Sequences(store, "s", before)
    for number in range(0, 200, 3):
        sequences.check(number, None)
    commit(store, sequences)
    changed = Sequences(store, "s", after)
    assert all(changed.check(number, None).verdict is not NEW for number in range(0, 200, 3))
    assert changed.check(199, None).verdict is NEW


def test_contents_are_known_for_the_horizon_over_restarts(store: sqlite3.Connection) -> None:
    """The same time and payload counts once within the last `horizon` messages; another time is another message."""
    contents = Contents(store, "plant/timed", 10)
    for minute in range(25):
        assert contents.check(timed(minute, minute + 1)).verdict is NEW
        if minute % 4 == 3:
            commit(store, contents)
    commit(store, contents)
    again = Contents(store, "plant/timed", 10)
    assert [again.check(timed(minute, 99)).verdict for minute in range(15, 25)] == [DUPLICATE] * 10
    assert again.check(timed(14, 99)).verdict is NEW, "beyond the horizon, as documented"
    rows = store.execute("SELECT count(*), sum(length(entries)) FROM identity").fetchone()
    assert rows[1] <= 16 * (10 + 4)
