"""Aggregate, sort, join and de-duplication over windows, each against a walk over what the window holds."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sluicegate as sg
from sluicegate.errors import ConfigurationError, InputError
from sluicegate.windowing.operators import Aggregate, Dedup, Join, Operator, Sort

AGGREGATES = {"n": sg.count(), "sum": sg.sum("v"), "max": sg.max("v"), "last": sg.last("v"), "mean": sg.mean("v")}
ONE = sg.triggers.count(1)


def expected(readings: list[Any]) -> dict[str, Any]:
    """The aggregates by a walk; values are whole, so that sums are exact."""
    v = [reading["v"] for reading in readings]
    some = bool(v)
    return {
        "n": len(v), "sum": sum(v), "max": max(v) if some else None, "last": v[-1] if some else None,
        "mean": sum(v) / len(v) if some else None,
    }  # fmt: skip


def rounded(values: dict[str, Any]) -> dict[str, Any]:
    """Means of buckets may differ in the last bit."""
    return values | {"mean": None if values["mean"] is None else round(values["mean"], 12)}


class Walks(sg.WindowHandler):
    """What an aggregate should say, at the events at which it says it."""

    def __init__(self, by_event_time: bool) -> None:
        self.said: list[Any] = []
        self.by_event_time = by_event_time

    def trigger(self, window: Any, key: Any) -> None:
        self.said.append((key, expected(window.readings(key)), window.now, "final", None))

    def before_flush(self, window: Any, key: Any) -> None:
        if not self.by_event_time:
            self.trigger(window, key)

    def result(self, window: Any, key: Any) -> None:
        pane = window.pane
        self.said.append((key, expected(window.readings(key)), window.now, pane.stage, pane.start))


count, time, delta = sg.policies.count(3), sg.policies.time(6), sg.policies.delta("x", 4)
WINDOWS: list[dict[str, Any]] = [
    *({"kind": "tumbling", "evict": evict} for evict in (count, time, delta)),
    *(
        {"kind": "sliding", "evict": evict, "trigger": trigger}
        for evict in (count, time, delta)
        for trigger in (sg.triggers.count(2), sg.triggers.time(4), sg.triggers.delta("x", 2))
    ),
    {"kind": "tumbling", "evict": time, "lateness": 5, "trigger": ONE},
    {"kind": "hopping", "evict": sg.policies.time(6, hop=2), "lateness": 3},
    {"kind": "session", "evict": sg.policies.time(3), "lateness": 9},
]


@pytest.mark.parametrize("given", WINDOWS, ids=lambda w: f"{w['kind']}-{w['evict'].name}")
def test_an_aggregate_of_every_window(given: dict[str, Any]) -> None:
    """Without a walk over its readings it says what a walk says; partitions leave in between."""
    for seed in range(4):
        rng, now = random.Random(seed), [0]
        limits = sg.PartitionEviction(count=2) if seed % 2 else None
        spec = sg.WindowSpec(**given, key="k", partitions=limits)
        walks = Walks(spec.by_event_time)
        clock = None if spec.by_event_time else lambda now=now: now[0]
        aggregate = Aggregate(spec, AGGREGATES, clock=clock)
        window = sg.WindowOperator(spec, walks, clock)
        said: list[Any] = []
        for i in range(300):
            now[0] += rng.randrange(3)
            reading = {"k": rng.choice("abc"), "v": rng.randrange(-9, 9), "x": i}
            at = now[0] - rng.choice([0, 0, 1, 7]) if spec.by_event_time else None
            said += aggregate.insert(reading, at)
            window.insert(reading, at)
        said += aggregate.advance(now[0] + 50)
        window.advance(now[0] + 50)
        found = [(each.key, rounded(each.values), each.time, each.stage, each.start) for each in said]
        assert found == [(each[0], rounded(each[1]), *each[2:]) for each in walks.said]
        assert len(said) > 20


def test_an_aggregate_keeps_no_readings() -> None:
    """A tumbling one a few buckets, a sliding one what its policy goes by."""
    spec = sg.WindowSpec(kind="tumbling", evict=sg.policies.count(2000))
    tumbling = Aggregate(spec, {"sum": sg.sum(), "last": sg.last()})
    sliding = Aggregate(sg.WindowSpec(kind="sliding", evict=sg.policies.count(1000), trigger=ONE), sg.sum())
    for x in range(1999):
        assert tumbling.insert(x) == []
        (result,) = sliding.insert(x)
        assert result.values == {"sum": sum(range(max(0, x - 999), x + 1))}
    (partition,) = tumbling.window.partitions()
    assert partition.readings == []
    assert partition.summarizer._window.footprint.held <= 8
    assert set(sliding.window.readings()) == {None}
    (result,) = tumbling.insert(1999)
    assert result.values == {"sum": sum(range(2000)), "last": 1999}


def test_an_aggregate_that_buckets_do_not_carry() -> None:
    """It is exact all the same, over single partials."""
    spec = sg.WindowSpec(kind="tumbling", evict=sg.policies.punctuation())
    aggregate = Aggregate(spec, {"run": sg.longest_run(), "d": sg.distinct_count()})
    for x in (1, 2, 3, 1):
        aggregate.insert(x)
    (result,) = aggregate.punctuate()
    assert result.values["run"].length == 3
    assert round(result.values["d"].estimate) == 3


def test_an_aggregate_refuses_what_it_cannot_read() -> None:
    """Nothing changes, and nothing is due earlier for it."""
    aggregate = Aggregate(sg.WindowSpec(kind="tumbling", evict=sg.policies.count(2)), sg.sum("v"))
    aggregate.insert({"v": 1})
    with pytest.raises(InputError):
        aggregate.insert({"w": 1})
    (result,) = aggregate.insert({"v": 2})
    assert result.values == {"sum": 3.0}
    with pytest.raises(ConfigurationError):
        Aggregate(sg.WindowSpec(kind="tumbling", evict=sg.policies.count(2)), {"x": 3})  # type: ignore[dict-item]


# sort


def test_a_batch_is_sorted_when_it_is_flushed() -> None:
    """Equal ones in order of arrival; descending too."""
    spec = sg.WindowSpec(kind="tumbling", evict=sg.policies.count(4))
    readings = [(2, "a"), (1, "b"), (2, "c"), (0, "d")]
    for descending, order in ((False, "dbac"), (True, "acbd")):
        sort = Sort(spec, lambda reading: reading[0], descending=descending)
        emitted = [sort.insert(reading) for reading in readings]
        assert emitted[:3] == [[], [], []]
        assert "".join(letter for _, letter in emitted[3]) == order


def test_a_batch_by_event_time_has_the_late_ones() -> None:
    """Its final result is what is sorted."""
    sort = Sort(sg.WindowSpec(kind="tumbling", evict=sg.policies.time(10), lateness=5), None)
    emitted = [each for x in (7, 3, 12, 5, 30) for each in sort.insert(x, x)]
    assert emitted == [3, 5, 7, 12]


@given(displaced=st.lists(st.integers(0, 4), min_size=1, max_size=60), window=st.integers(4, 6))
@settings(max_examples=40)
def test_a_stream_that_is_displaced_by_less_than_the_window_comes_in_order(displaced: list[int], window: int) -> None:
    """6.1.3: "useful for ordering streams that are unordered with a bound"."""
    stream = [i for _, i in sorted((i + by, i) for i, by in enumerate(displaced))]
    spec = sg.WindowSpec(kind="sliding", evict=sg.policies.count(window), trigger=ONE)
    sort = Sort(spec, None)
    emitted = [sort.insert(x) for x in stream]
    assert [len(each) for each in emitted] == [0] * min(window, len(stream)) + [1] * max(0, len(stream) - window)
    assert [x for each in emitted for x in each] + sort.drain() == sorted(stream)


def test_what_a_sort_gives_is_the_first_of_what_it_has() -> None:
    """Also where the stream is farther out of order; a partition that leaves gives the rest."""
    spec = sg.WindowSpec(
        kind="sliding", evict=sg.policies.count(2), trigger=ONE, key="k", partitions=sg.PartitionEviction(count=1)
    )
    sort = Sort(spec, "x")
    emitted = [
        [each["x"] for each in sort.insert({"k": k, "x": x})] for k, x in (("a", 9), ("a", 5), ("a", 1), ("b", 3))
    ]
    assert emitted == [[], [], [5], [1, 9]]
    assert sort.drain() == [{"k": "b", "x": 3}]


# de-duplication


def test_no_two_equal_readings_pass_within_a_window() -> None:
    """Those that pass are those that a walk finds new."""
    for window_of in (WINDOWS[0], WINDOWS[1], WINDOWS[2], *WINDOWS[3:12:3]):
        rng, now = random.Random(3), [0]
        spec, seen = sg.WindowSpec(**window_of), []

        class New(sg.WindowHandler):
            def before_insert(self, window: Any, key: Any, reading: Any) -> None:
                if all(each["v"] != reading["v"] for each in window.readings()):
                    seen.append(reading)  # noqa: B023  called in this turn

        clock = lambda now=now: now[0]  # noqa: E731
        dedup, window = Dedup(spec, "v", clock=clock), sg.WindowOperator(spec, New(), clock)
        passed = []
        for x in range(200):
            now[0] += rng.randrange(3)
            reading = {"v": rng.randrange(4), "x": x}
            passed += dedup.insert(reading)
            window.insert(reading)
        assert passed == seen
        assert 20 < len(passed) < 180


# join


def naive(left: int, right: int, how: str, steps: list[tuple[str, int, int]]) -> list[Any]:
    """Two lists: time windows of these lengths, matched by nested loops."""
    windows: dict[str, list[list[Any]]] = {"l": [], "r": []}
    lengths, outer = {"l": left, "r": right}, {"l": how in ("left", "full"), "r": how in ("right", "full")}
    out: list[Any] = []
    for i, (side, now, x) in enumerate(steps):
        gone = []
        for name in "lr":
            for entry in [each for each in windows[name] if now - each[0] > lengths[name]]:
                windows[name].remove(entry)
                if outer[name] and not entry[2]:
                    gone.append((entry[1], None) if name == "l" else (None, entry[1]))
        out += gone
        reading, other = (x, i), "r" if side == "l" else "l"
        entry = [now, reading, False]
        windows[side].append(entry)
        for each in windows[other]:
            if each[1][0] == x and (each[1][1] + i) % 3:
                each[2] = entry[2] = True
                out.append((reading, each[1]) if side == "l" else (each[1], reading))
    return out


@given(
    how=st.sampled_from(["inner", "left", "right", "full"]),
    left=st.integers(1, 6),
    right=st.integers(1, 6),
    rows=st.lists(st.tuples(st.sampled_from("lr"), st.integers(0, 3), st.integers(0, 2)), min_size=5, max_size=40),
)
@settings(max_examples=60)
def test_a_join_of_two_time_windows(how: str, left: int, right: int, rows: list[tuple[str, int, int]]) -> None:
    """Matches, and what leaves unmatched, are those of nested loops."""
    now, total, steps = [0], 0, []
    for side, on, x in rows:
        total += on
        steps.append((side, total, x))
    specs = [sg.WindowSpec(kind="sliding", evict=sg.policies.time(n), trigger=ONE) for n in (left, right)]
    join = Join(*specs, on=lambda reading: reading[0], where=lambda l, r: (l[1] + r[1]) % 3, how=how,  # noqa: E741
                clock=lambda: now[0])  # fmt: skip
    out: list[Any] = []
    for i, (side, at, x) in enumerate(steps):
        now[0] = at
        out += (join.left if side == "l" else join.right)((x, i))
    assert [tuple(each) for each in out] == naive(left, right, how, steps)


SMALL = sg.WindowSpec(kind="sliding", evict=sg.policies.count(2), trigger=ONE)


def test_an_outer_join_gives_what_leaves_unmatched() -> None:
    """By count: the third reading pushes the first out; the rest at the end of the stream."""
    join = Join(SMALL, SMALL, on="id", how="full")
    a, b, c, d = ({"id": i, "left": True} for i in (1, 2, 3, 4))
    assert join.left(a) == join.left(b) == []
    assert join.right({"id": 2}) == [(b, {"id": 2})]
    assert join.left(c) == [(a, None)]
    assert join.left(d) == [], "b was matched"
    assert join.right({"id": 7}) == []
    assert join.drain() == [(c, None), (d, None), (None, {"id": 7})]
    assert join.drain() == []


def test_a_join_with_one_window() -> None:
    """6.1.2: the other side's window has size 0: a look-up."""
    names = {"id": 1, "name": "one"}
    join = Join(None, SMALL, left_on="key", right_on="id", how="left")
    assert join.left({"key": 1}) == [({"key": 1}, None)]
    assert join.right(names) == []
    assert join.left({"key": 1}) == [({"key": 1}, names)]
    assert join.left({"key": None}) == [({"key": None}, None)]


def test_partitions_of_both_sides_are_matched() -> None:
    """Each has its own window, and matches the other's of the same key."""
    spec = sg.WindowSpec(
        kind="sliding", evict=sg.policies.count(1), trigger=ONE, key="k", partitions=sg.PartitionEviction(count=2)
    )
    join = Join(spec, spec, where=lambda left, right: left["x"] < right["x"], how="left")
    for k in "ab":
        join.left({"k": k, "x": 1})
    assert [tuple(each) for each in join.right({"k": "a", "x": 2})] == [({"k": "a", "x": 1}, {"k": "a", "x": 2})]
    assert join.right({"k": "b", "x": 0}) == []
    assert join.left({"k": "c", "x": 1}) == [], "a leaves, which was matched"
    assert join.left({"k": "d", "x": 1}) == [({"k": "b", "x": 1}, None)]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Join(None, None), "neither side has a window"),
        (lambda: Join(SMALL, sg.WindowSpec(kind="tumbling", evict=sg.policies.count(2))), "Join: right_window"),
        (lambda: Join(SMALL, SMALL, how="cross"), "how='cross', expected one of inner, left, right, full"),
        (lambda: Join(SMALL, SMALL, left_on="a"), "expected on, or left_on and right_on"),
        (lambda: Sort(sg.WindowSpec(**WINDOWS[4]), None), r"Sort: .* must be sg.triggers.count\(1\)"),
        (lambda: Sort(sg.WindowSpec(**WINDOWS[-2]), None), "Sort: a reading is in several hopping windows"),
        (lambda: Dedup(sg.WindowSpec(**WINDOWS[-1]), None), "Dedup: by event time a reading may come before"),
    ],
)
def test_windows_that_an_operator_does_not_take(make: Any, message: str) -> None:
    """Refused with the reason."""
    with pytest.raises(ConfigurationError, match=message):
        make()


def test_keys_are_read_before_anything_changes() -> None:
    """A reading that cannot be matched, compared or sorted."""
    for refuse in (Join(SMALL, SMALL, on="id").left, Sort(SMALL, "id").insert, Dedup(SMALL, "id").insert):
        with pytest.raises(InputError, match="'id' missing"):
            refuse({})
    with pytest.raises(InputError, match="cannot be a key"):
        Dedup(SMALL, "id").insert({"id": []})


def test_an_operator_of_the_users_own() -> None:
    """The contract: react to events, emit results."""

    class Longest(Operator):
        def before_flush(self, window: Any, key: Any) -> None:
            self.emit(max(window.readings(key), key=len))

        def unsupported(self, spec: sg.WindowSpec) -> str:
            return "" if spec.kind == "tumbling" else "it needs an end"

    longest = Longest(sg.WindowSpec(kind="tumbling", evict=sg.policies.count(3)))
    assert [longest.insert(word) for word in ("a", "bcd", "ef")] == [[], [], ["bcd"]]
    with pytest.raises(ConfigurationError, match="Longest: it needs an end"):
        Longest(SMALL)
