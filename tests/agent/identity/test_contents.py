"""What has a time and no number: an honest equal of a coarse clock counts, a repeat does not, doubt is told."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from memory_stores import empty

from sluicegate_agent.identity import Contents, Found, Verdict
from sluicegate_agent.messages import Message

SECOND = 1_000_000


@pytest.fixture
def store() -> Iterator[sqlite3.Connection]:
    """An empty store in memory."""
    connection = empty()
    yield connection
    connection.close()


def take(contents: Contents, time: int, packet: int, value: float = 20.5, **flags: bool) -> Found:
    """A message of this time."""
    return contents.check(Message("t", f"{time} {value}".encode(), packet, 1, **flags), time)


def commit(store: sqlite3.Connection, contents: Contents) -> None:
    """Make it durable."""
    contents.save(store)
    contents.saved()


@pytest.mark.parametrize(("resolution", "doubt"), [(None, 8), (SECOND, 0)])
def test_ten_equal_in_two_seconds(store: sqlite3.Connection, resolution: int | None, doubt: int) -> None:
    """All ten count; in doubt, since a publisher may have sent one twice, unless the resolution was told."""
    contents = Contents(store, "t", 100, resolution)
    found = [take(contents, (1000 + number // 5) * SECOND, number + 1) for number in range(10)]
    assert [each.verdict for each in found] == [Verdict.NEW] * 10
    assert sum(each.doubt for each in found) == doubt


def test_two_that_come_again_are_both_in_doubt(store: sqlite3.Connection) -> None:
    """Of a broker that sends again without DUP: the second of the new connection is no surer than the first."""
    contents = Contents(store, "t", 100, SECOND)
    assert [take(contents, 1000 * SECOND, number).doubt for number in (1, 2)] == [0, 0]
    contents.connected()
    assert [take(contents, 1000 * SECOND, number).doubt for number in (3, 4)] == [1, 1]


def test_a_repeat_of_an_older_time_is_one(store: sqlite3.Connection) -> None:
    """A publisher that repeats up to 500 messages later: once the time has gone on, each counts once for certain."""
    rng = random.Random(3)
    contents = Contents(store, "t", 4096)
    sent = sorted([(n, n) for n in range(2000)] + [(n + rng.randrange(1, 500) + 0.5, n) for n in range(1500)])
    found = [take(contents, number * SECOND, at % 60_000 + 1) for at, (_, number) in enumerate(sent)]
    assert sum(each.verdict is Verdict.NEW for each in found) == 2000
    assert not any(each.doubt for each in found)


def test_a_clock_with_fractions_says_nothing_twice(store: sqlite3.Connection) -> None:
    """Once a fraction of a second was seen, also before a restart, equal content and time is a repeat."""
    contents = Contents(store, "t", 100, None)
    take(contents, 1000 * SECOND + 250_000, 1)
    commit(store, contents)
    contents = Contents(store, "t", 100, None)
    take(contents, 1001 * SECOND, 2)
    assert take(contents, 1001 * SECOND, 3).verdict is Verdict.DUPLICATE
    assert Contents(store, "u", 100, 0).resolution == 0


def test_what_the_broker_sends_again_is_a_repeat(store: sqlite3.Connection) -> None:
    """With DUP, kept at the broker, or under a packet id that waits for its commit; else in doubt after a reconnect."""
    contents = Contents(store, "t", 100, SECOND)
    take(contents, 1000 * SECOND, 1)
    assert take(contents, 1000 * SECOND, 1).verdict is Verdict.DUPLICATE
    assert take(contents, 1000 * SECOND, 2, dup=True).verdict is Verdict.DUPLICATE
    assert take(contents, 1000 * SECOND, 3, retain=True).verdict is Verdict.DUPLICATE
    commit(store, contents)
    for later in (contents, Contents(store, "t", 100, SECOND)):
        later.connected()
        assert take(later, 1000 * SECOND, 1, dup=True).verdict is Verdict.DUPLICATE
        assert take(later, 1000 * SECOND, 4) == Found(Verdict.NEW, 1)


def test_what_was_taken_back_is_new_also_after_a_restart(store: sqlite3.Connection) -> None:
    """Refused for its time when it had waited: not known as seen, whether its row was written or not."""
    contents = Contents(store, "t", 100)
    for second in range(3):
        take(contents, second * SECOND, second + 1)
    commit(store, contents)
    take(contents, 3 * SECOND, 4)
    for second in (1, 3):
        contents.take_back(Message("t", f"{second * SECOND} 20.5".encode(), 0, 0))
    commit(store, contents)
    contents = Contents(store, "t", 100)
    found = [take(contents, second * SECOND, second + 9).verdict for second in range(4)]
    assert found == [Verdict.DUPLICATE, Verdict.NEW, Verdict.DUPLICATE, Verdict.NEW]


def test_of_a_sensor_that_says_the_same_twice_what_comes_with_dup_is_in_doubt(store: sqlite3.Connection) -> None:
    """The second of two equal readings never arrived and is sent again with DUP, or the first is: either may be."""
    contents = Contents(store, "t", 100, None)
    take(contents, 1000 * SECOND, 1)
    take(contents, 1000 * SECOND, 2)
    take(contents, 1001 * SECOND, 3)
    commit(store, contents)
    contents = Contents(store, "t", 100, None)
    contents.connected()
    assert take(contents, 1001 * SECOND, 4, dup=True) == Found(Verdict.NEW, 1)
    assert take(contents, 1000 * SECOND, 2, dup=True).verdict is Verdict.DUPLICATE


def test_a_damaged_row_of_the_clock_is_damage(store: sqlite3.Connection) -> None:
    """It is told as damage of the store, which sets it aside, not as an error of the program."""
    contents = Contents(store, "t", 100)
    take(contents, 1000 * SECOND, 1)
    commit(store, contents)
    store.execute("UPDATE meta SET value = x'00' WHERE key = 'clock t'")
    with pytest.raises(sqlite3.DatabaseError, match="malformed"):
        Contents(store, "t", 100)


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("retain", [False, True])
def test_what_comes_again_when_it_is_forgotten_is_in_doubt(
    store: sqlite3.Connection, *, restarted: bool, retain: bool
) -> None:
    """A logger that sends its whole log again, a broker restored from a backup: never silently twice."""
    contents = Contents(store, "t", 100)
    for number in range(1000):
        assert take(contents, number * SECOND, number % 60 + 1) == Found(Verdict.NEW)
        if number % 7 == 0:
            commit(store, contents)
    commit(store, contents)
    contents = Contents(store, "t", 100) if restarted else contents
    again = [take(contents, number * SECOND, 7, retain=retain) for number in range(1000)]
    counted = [each for each in again if each.verdict is Verdict.NEW]
    assert all(each.doubt for each in counted)
    assert [take(contents, number * SECOND, 7).doubt for number in range(1000, 1100)] == [0] * 100


def test_what_is_late_within_the_horizon_is_in_no_doubt(store: sqlite3.Connection) -> None:
    """By up to 80 of 100 messages, over restarts: a backlog comes behind newer ones."""
    contents = Contents(store, "t", 100)
    for begin in range(0, 2000, 80):
        for number in (begin + 79, *range(begin, begin + 79)):
            assert take(contents, number * SECOND, number % 60 + 1) == Found(Verdict.NEW)
        commit(store, contents)
        contents = Contents(store, "t", 100)


def test_a_state_that_kept_no_times_is_read(store: sqlite3.Connection) -> None:
    """Of an older Sluicegate: what it forgot is no later than its newest time."""
    contents = Contents(store, "t", 10)
    for number in range(50):
        take(contents, number * SECOND, number + 1)
    commit(store, contents)
    store.execute("UPDATE meta SET value = substr(value, 1, 16) WHERE key = 'clock t'")
    contents = Contents(store, "t", 10)
    assert take(contents, 60 * SECOND, 1) == Found(Verdict.NEW)
    assert take(contents, 3 * SECOND, 2) == Found(Verdict.NEW, 1)
