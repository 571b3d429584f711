"""Partitions leave by count, readings, age and memory, in the order selected, and hand on what they held."""

from __future__ import annotations

import random
from array import array
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from keyed_oracle import ByKey
from twins import keyed

import sluicegate as sg
from sluicegate.keyed.core import KeyedCore
from sluicegate.keyed.definition import Definition, Left

STEP = st.one_of(
    st.tuples(st.one_of(st.integers(0, 8), st.sampled_from("abc")), st.integers(-40, 80), st.floats(-9, 9)),
    st.integers(0, 200),
)
STEPS = st.lists(STEP, max_size=50)


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    steps=STEPS, length=st.integers(1, 30), by_time=st.booleans(), shared=st.booleans(), count=st.integers(0, 5),
    readings=st.integers(0, 20), age=st.integers(0, 60), select=st.sampled_from(["lru", "lfu", "oldest"]),
)  # fmt: skip
def test_who_leaves_with_what(
    core: str, steps: list[Any], length: int, by_time: bool, shared: bool, count: int, readings: int, age: int,
    select: str,
) -> None:  # fmt: skip
    """The oracle's order, reasons and contents; all limits at once."""
    readings = 0 if shared else readings
    if not (count or readings):
        select = "lru"
    limits = {"count": count or None, "readings": readings or None, "age": age or None, "select": select}
    partitions = sg.PartitionEviction(**limits) if count or readings or age else None  # type: ignore[arg-type]
    left: list[Left] = []
    window = sg.KeyedWindows(
        sg.sum(), policy=sg.policies.time(length) if by_time else sg.policies.count(length), partitions=partitions,
        clock="shared" if shared else "key", on_leave=left.append,
    )  # fmt: skip
    oracle = ByKey(length, by_time, shared, count, readings, age, select)
    for step in steps:
        if isinstance(step, tuple):
            window.insert(step[0], step[2], step[1])
            oracle.insert(*step)
        elif by_time or age:
            window.advance(step)
            oracle.advance(step)
        assert {key for piece in window.query_all() for key in piece} == set(oracle.partitions)
    assert [tuple(each) for each in left] == oracle.left
    assert {why: number for why, number in window.left.items() if number} == {
        why: number for why in ("count", "readings", "age") if (number := sum(each[1] == why for each in oracle.left))
    }
    window.verify()


def two_busiest(held: Any) -> list[Any]:
    """A selection of the user's own: those of most readings so far, of equals the newest."""
    return [each.key for each in sorted(held, key=lambda each: (each.updates, each.number))[-2:]]


@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
@given(steps=STEPS, width=st.integers(0, 9), told=st.tuples(
    st.booleans(), st.integers(1, 30), st.integers(0, 4), st.integers(0, 20), st.integers(0, 60),
    st.sampled_from(["lru", "lfu", "oldest", two_busiest]), st.booleans(),
))  # fmt: skip
def test_the_twin_does_the_same(steps: list[Any], width: int, told: Any) -> None:
    """Who leaves with which rows, all that is saved, and what changed, to the byte; also after taking it up again."""
    by_time, length, count, readings, age, select, shared = told
    made = Definition(
        by_time, length, ("sum", "max"), width, count, 0 if shared else readings, age, select, 0, shared
    )  # fmt: skip
    left: list[list[Left]] = [[], []]
    cores: list[Any] = [KeyedCore(made, left[0].append), keyed.KeyedCore(made, left[1].append)]
    for i, step in enumerate(steps):
        for each in cores:
            if isinstance(step, tuple):
                each.insert_keys([step[0]], memoryview(array("d", [step[2]])), memoryview(array("q", [step[1]])))
            else:
                each.advance(step)
        assert cores[0].counters == cores[1].counters
        assert cores[0].readings == cores[1].readings
        if i % 7 == 6:
            saved = [each.save(i % 14 == 6) for each in cores]
            assert saved[0] == saved[1]
        if i % 20 == 19:
            whole, counters = cores[0].save(True), cores[0].counters
            cores[1].save(True)
            cores = [KeyedCore(made, left[0].append), keyed.KeyedCore(made, left[1].append)]
            for each in cores:
                each.load(whole)
                each.counters = counters
                each.verify()
                assert each.save(True) == whole
    assert left[0] == left[1]


def test_a_select_of_your_own() -> None:
    """By whatever a partition tells of itself; bytes are bounded and told as ever."""
    left: list[Left] = []
    window = sg.KeyedWindows(
        sg.sum(), policy=sg.policies.count(3), on_leave=left.append,
        partitions=sg.PartitionEviction(count=2, select=lambda held: [max(held, key=lambda each: each.updates).key]),
    )  # fmt: skip
    window.insert_many(list("aabbbc"), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    assert left == [Left("b", "count", [(0, 3.0), (0, 4.0), (0, 5.0)])]
    assert window.nbytes > 0
    with pytest.raises(sg.errors.PolicyError, match="chose"):
        sg.KeyedWindows(
            sg.sum(), policy=sg.policies.count(3), partitions=sg.PartitionEviction(count=1, select=lambda held: [])
        ).insert_many([1, 2], [1.0, 2.0])


@pytest.mark.parametrize("keys", [[3, 1, 2, 1, 4], list("cabad")], ids=["numbers", "texts"])
@pytest.mark.parametrize("limit", [{"count": 2}, {"readings": 3}], ids=str)
def test_a_select_that_raises_loses_no_reading(keys: list[Any], limit: dict[str, int]) -> None:
    """All readings of the batch are in; who was not chosen for leaves as the least recently updated one."""

    def select(held: Any) -> list[Any]:
        raise RuntimeError("no idea")

    failing, plain = (
        sg.KeyedWindows(sg.sum(), policy=sg.policies.count(9), partitions=sg.PartitionEviction(**limit, select=each))
        for each in (select, "lru")
    )
    values = [1.0, 2.0, 4.0, 8.0, 16.0]
    with pytest.raises(sg.errors.PolicyError, match=r"select: raised RuntimeError.*all readings are in") as caught:
        failing.insert_many(keys, values)
    assert isinstance(caught.value.__cause__, RuntimeError)
    plain.insert_many(keys, values)
    assert (failing.accepted, failing.left) == (5, plain.left)
    assert list(failing.query_all()) == list(plain.query_all())
    failing.verify()


def test_an_on_leave_that_raises_or_asks_back(core: str) -> None:
    """All readings are in, the partitions have left; the window refuses to be used meanwhile."""
    asked: list[Any] = []

    def leave(left: Left) -> None:
        asked.append(left.key)
        window.insert(9, 1.0)

    window = sg.KeyedWindows(
        sg.sum(), policy=sg.policies.count(3), partitions=sg.PartitionEviction(count=1), on_leave=leave
    )
    with pytest.raises(sg.errors.PolicyError, match="on_leave: raised BusyError") as caught:
        window.insert_many([1, 2, 3], [1.0, 2.0, 3.0])
    assert isinstance(caught.value.__cause__, sg.errors.BusyError)
    assert (asked, window.accepted, window.query(3)) == ([1, 2], 3, 3.0)
    window.verify()


@pytest.mark.parametrize("select", ["lru", "lfu", "oldest"])
def test_bytes_stay_within_memory(select: str) -> None:
    """After each batch of new keys, texts among them; what leaves is counted."""
    rng = random.Random(select)
    limit = 400_000
    window = sg.KeyedWindows(
        {"s": sg.sum(), "m": sg.max()}, policy=sg.policies.count(50), memory=limit,
        partitions=sg.PartitionEviction(count=10_000, select=select),
    )  # fmt: skip
    most = 0
    for batch in range(40):
        keys = [rng.choice((rng.randrange(3_000), f"sensor/{rng.randrange(3_000)}")) for _ in range(500)]
        window.insert_many(keys, [1.0] * 500, [batch] * 500)
        most = max(most, window.nbytes)
        window.verify()
    assert limit // 2 < most <= limit
    assert window.left["memory"] > 100
    assert len(window) > 100


def test_a_hundred_thousand_partitions_cost_little() -> None:
    """At most 200 bytes for each beside its readings; with a heap for ranks, too."""
    keys = array("q", (i * 1_000_003 for i in range(100_000)))
    for select in ("lru", "lfu"):
        window = sg.KeyedWindows(
            sg.sum(), policy=sg.policies.time(10), partitions=sg.PartitionEviction(count=100_000, select=select)
        )
        window.insert_many(keys, array("d", [1.0]) * len(keys), array("q", [5]) * len(keys))
        window.advance(100)  # no readings are left
        assert (len(window), window.readings) == (100_000, 0)
        assert window.nbytes / len(window) <= 200, window.nbytes / len(window)
        window.insert(-1, 1.0, 101)
        assert (len(window), window.left["count"]) == (100_000, 1)


def test_keys_come_and_go_for_ever() -> None:
    """Slots, texts and ranks are used again: memory does not grow."""
    window = sg.KeyedWindows(
        sg.sum(), policy=sg.policies.count(5), partitions=sg.PartitionEviction(count=100, select="lfu")
    )
    sizes = []
    for round_ in range(20):
        window.insert_many([f"{round_}/{i}" for i in range(2_000)], [1.0] * 2_000)
        sizes.append(window.nbytes)
        window.verify()
    assert sizes[-1] <= sizes[1] + 4_000
