"""A run of numbers leaves the memory that its numbers leave one by one, and says what each of its messages says."""

from __future__ import annotations

from array import array
from contextlib import closing

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from hypothesis import given
from hypothesis import strategies as st
from memory_stores import empty

from sluicegate_agent.identity import Sequences
from sluicegate_agent.identity.epoch import Epoch
from sluicegate_agent.identity.verdict import content_of, contents_of
from sluicegate_agent.messages import Decoded, Message


def memory(epoch: Epoch) -> dict[str, object]:
    """All of an epoch."""
    return {name: getattr(epoch, name) for name in Epoch.__slots__}


@given(
    runs=st.lists(st.integers(1, 90), max_size=8),
    horizon=st.sampled_from([10, 64, 100, 130]),
    first=st.sampled_from([0, 5, 63, 2**40]),
    gap=st.integers(0, 3),
)
def test_a_run_is_remembered_as_its_numbers_are(runs: list[int], horizon: int, first: int, gap: int) -> None:
    """Few or many, around the ring's end, longer than it, with numbers missing before each."""
    together, one_by_one = Epoch(1, horizon, first), Epoch(1, horizon, first)
    said = 2
    for time, count in enumerate(runs):
        contents = array("I", range(said, said + count))
        said += count
        for epoch in (together, one_by_one):
            epoch.put(epoch.high + 1 + gap, 9, time)
        together.put_run(contents, time)
        for content in contents:
            one_by_one.put(one_by_one.high + 1, content, time)
        assert memory(together) == memory(one_by_one)


@pytest.mark.parametrize(("comes_again", "last"), [(True, 6), (False, 0)])
def test_a_run_is_kept_as_long_as_its_numbers_are(comes_again: bool, last: int) -> None:
    """Until the broker knows that the commit after it was acknowledged, where it sends again what was not."""
    with closing(empty()) as store:
        together, one_by_one = (Sequences(store, "s", 64) for _ in range(2))
        for each in (together, one_by_one):
            each.check(1, None, 7, 1_000, comes_again=False)
            each.committed(5)
        run = together.run_of(None)
        assert run is not None
        together.take_run(run, array("I", [8, 9, 10]), 1_004, comes_again=comes_again)
        for number, content in enumerate((8, 9, 10), 2):
            one_by_one.check(number, None, content, 1_004, comes_again=comes_again)
        alone = one_by_one.run_of(None)
        assert alone is not None
        assert memory(run) == memory(alone)
        assert run.last == last


@given(
    rows=st.lists(st.tuples(st.integers(-(2**60), 2**60), *[st.floats(allow_nan=False)] * 2), max_size=4),
    names=st.sampled_from([("a", "b"), ("temp#50%d", "it's")]),
)
def test_messages_of_a_run_say_what_they_say_alone(
    rows: list[tuple[int, float, float]], names: tuple[str, str]
) -> None:
    """The same four bytes: one that comes again is held against them, whichever way it is read."""
    times, columns = array("q", [row[0] for row in rows]), [array("d", [row[i] for row in rows]) for i in (1, 2)]
    alone = []
    for time, *values in rows:
        readings = [(name, time, value) for name, value in zip(names, values, strict=True)]
        alone.append(content_of(Message("t", b"", 0, 0), Decoded("t", 1, None, time, readings), timed=True))
    assert [*contents_of([(name, "") for name in names], times, columns)] == alone
