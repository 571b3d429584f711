"""An operator that goes on from a snapshot tells the same events; what cannot be written down is refused by name."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

import sluicegate as sg
from sluicegate.errors import ConfigurationError, ForeignSnapshotError, InputError, SnapshotError

count, delta, time = sg.policies.count(7), sg.policies.delta("x", 9), sg.policies.time(20)
after, away, every = sg.triggers.count(3), sg.triggers.delta("x", 4), sg.triggers.time(8)
SPECS: list[dict[str, Any]] = [
    *({"kind": "tumbling", "evict": evict} for evict in (count, delta, time, sg.policies.punctuation())),
    *({"kind": "sliding", "evict": e, "trigger": t} for e in (count, delta, time) for t in (after, away, every)),
    {"kind": "tumbling", "evict": time, "lateness": 15, "trigger": every},
    {"kind": "hopping", "evict": sg.policies.time(20, hop=5), "lateness": 12, "trigger": after},
    {"kind": "session", "evict": sg.policies.time(6), "lateness": 25},
]
LIMITS = [None, {"count": 3}, {"readings": 15, "select": "lfu"}, {"age": 30}]


class Heard(sg.WindowHandler):
    """Every event, with what the window then held."""

    def __init__(self) -> None:
        self.events: list[Any] = []

    def __getattribute__(self, name: str) -> Any:
        if name not in sg.WindowHandler.__dict__ or name.startswith("_") or name == "keeps_readings":
            return super().__getattribute__(name)

        def heard(window: Any, *told: Any) -> None:
            pane = window.pane
            extent = () if pane is None else (pane.start, pane.end, pane.stage, pane.revision, pane.replaces)
            shown = [str(each) if not isinstance(each, list) else [p.key for p in each] for each in told[1:]]
            key = told[0] if not isinstance(told[0], list) else [each.key for each in told[0]]
            self.events.append((name, window.now, key, name != "joined" and shown, extent, len(window)))

        return heard


def steps(seed: str, by_event_time: bool) -> list[tuple[int, Any, int]]:
    """(clock, reading or None, its time): keys of any rank, silence, late readings where they may be."""
    rng, now, x, found = random.Random(seed), 0, 0, list[Any]()
    for _ in range(260):
        now += rng.choice((0, 1, 1, 2, 9 if rng.random() < 0.2 else 1))
        x += rng.choice((0, 1, 2))
        late = rng.randrange(30) if by_event_time and rng.random() < 0.3 else 0
        reading = None if rng.random() < 0.15 else {"key": rng.choice("aaabcde"), "x": x, "late": late}
        found.append((now, reading, now - late))
    return found


def feed(operator: Any, clock: list[int], each: tuple[int, Any, int], spec: sg.WindowSpec) -> Any:
    """One step."""
    clock[0], reading, at = each
    by_punctuation = type(spec.evict).__name__ == "Punctuation"
    if reading is None:
        return operator.punctuate() if by_punctuation else operator.advance(clock[0])
    return operator.insert(reading, at) if spec.by_event_time else operator.insert(reading)


@pytest.mark.parametrize("limits", LIMITS, ids=str)
@pytest.mark.parametrize("given", SPECS, ids=lambda each: f"{each['kind']}-{each['evict']}-{each.get('trigger')}"[:60])
def test_events_go_on_as_if_nothing_had_been(given: dict[str, Any], limits: dict[str, Any] | None) -> None:
    """Saved and taken up anew at twenty places: the events are those of the operator that was never saved."""
    partitions = sg.PartitionEviction(**limits) if limits else None
    spec, clock = sg.WindowSpec(**given, key="key", partitions=partitions), [0]
    told: dict[str, Any] = {} if spec.by_event_time else {"clock": lambda: clock[0]}
    plain, saved = Heard(), Heard()
    one, other = sg.WindowOperator(spec, plain, **told), sg.WindowOperator(spec, saved, **told)
    for i, each in enumerate(steps(str(given), spec.by_event_time)):
        if i % 13 == 12:
            kept, other = other.snapshot(), sg.WindowOperator(spec, saved, **told)
            other.restore(kept)
        feed(one, clock, each, spec)
        feed(other, clock, each, spec)
    assert saved.events == plain.events
    assert len(plain.events) > 20
    assert (other.late, len(other), other.now) == (one.late, len(one), one.now)


@pytest.mark.parametrize("given", SPECS, ids=lambda each: f"{each['kind']}-{each['evict']}-{each.get('trigger')}"[:60])
def test_aggregates_go_on_to_the_bit(given: dict[str, Any]) -> None:
    """Summarizers, sessions that join, and the windows that follow sliding ones."""
    spec, clock = sg.WindowSpec(**given, key="key"), [0]
    told: dict[str, Any] = {} if spec.by_event_time else {"clock": lambda: clock[0]}
    asked = {"mean": sg.mean("x"), "last": sg.last("x"), "n": sg.count()}
    one, other = (sg.operators.Aggregate(spec, asked, **told) for _ in range(2))
    results = 0
    for i, each in enumerate(steps(str(given), spec.by_event_time)):
        if i % 13 == 12:
            kept, other = other.snapshot(), sg.operators.Aggregate(spec, asked, **told)
            other.restore(kept)
        expected = feed(one, clock, each, spec)
        assert feed(other, clock, each, spec) == expected
        results += len(expected)
    assert results > 10


ORDERLY = [given for given in SPECS if given["kind"] == "tumbling"]
ORDERLY += [{"kind": "sliding", "evict": evict, "trigger": sg.triggers.count(1)} for evict in (count, delta, time)]
MADE: dict[str, Callable[..., Any]] = {
    "sort": lambda spec, **told: sg.operators.Sort(spec, "x", **told),
    "descending": lambda spec, **told: sg.operators.Sort(spec, ["x", "key"], descending=True, **told),
    "dedup": lambda spec, **told: sg.operators.Dedup(spec, ["x", "key"], **told),
}


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("given", ORDERLY, ids=lambda each: f"{each['kind']}-{each['evict']}"[:60])
def test_sorted_and_distinct_readings_go_on(given: dict[str, Any], made: str) -> None:
    """What waits in order, and what has passed, is known again: the readings come as without a snapshot."""
    spec, clock = sg.WindowSpec(**given, key="key"), [0]
    told: dict[str, Any] = {} if spec.by_event_time else {"clock": lambda: clock[0]}
    if made == "dedup" and spec.by_event_time:
        return
    make, passed = MADE[made], 0
    one, other = make(spec, **told), make(spec, **told)
    for i, each in enumerate(steps(str(given), spec.by_event_time)):
        if i % 13 == 12:
            kept, other = other.snapshot(), make(spec, **told)
            other.restore(kept)
        expected = feed(one, clock, each, spec)
        assert feed(other, clock, each, spec) == expected
        passed += len(expected)
    assert passed > 10


SIDES = [
    *({"kind": "sliding", "evict": evict, "trigger": sg.triggers.count(1)} for evict in (count, delta, time)),
    None,
]  # fmt: skip


@pytest.mark.parametrize("limits", LIMITS, ids=str)
@pytest.mark.parametrize("how", ["inner", "left", "right", "full"])
@pytest.mark.parametrize("other", range(len(SIDES)))
def test_a_join_goes_on(how: str, other: int, limits: dict[str, Any] | None) -> None:
    """Windows of both sides, what has been matched and what has not: the pairs are those without a snapshot."""
    partitions, clock = sg.PartitionEviction(**limits) if limits else None, [0]
    specs = [given and sg.WindowSpec(**given, key="key", partitions=partitions) for given in (SIDES[0], SIDES[other])]

    def join() -> sg.operators.Join:
        where = lambda a, b: (a["x"] + b["x"]) % 3  # noqa: E731
        return sg.operators.Join(*specs, on="key", where=where, how=how, clock=lambda: clock[0])

    one, again, pairs = join(), join(), 0
    for i, (now, reading, _) in enumerate(steps(f"{how} {other}", False)):
        clock[0] = now
        if i % 13 == 12:
            kept, again = again.snapshot(), join()
            again.restore(kept)
        if reading is None:
            expected, found = one.advance(), again.advance()
        else:
            side = "left" if i % 2 else "right"
            expected, found = getattr(one, side)(reading), getattr(again, side)(reading)
        assert found == expected
        pairs += len(expected)
    assert again.drain() == one.drain()
    assert pairs > 10


def test_a_snapshot_of_another_join_is_refused() -> None:
    """Another way to join, other windows, damage: named, and the join is as it was."""
    spec = sg.WindowSpec(kind="sliding", evict=count, trigger=sg.triggers.count(1))
    join = sg.operators.Join(spec, spec, on="x", how="full")
    join.left({"x": 1})
    saved = join.snapshot()
    with pytest.raises(ForeignSnapshotError, match="of how='full', this join is 'inner'"):
        sg.operators.Join(spec, spec, on="x").restore(saved)
    with pytest.raises(ForeignSnapshotError, match="other windows"):
        sg.operators.Join(spec, None, on="x", how="full").restore(saved)
    other = sg.WindowSpec(kind="sliding", evict=time, trigger=sg.triggers.count(1))
    with pytest.raises(ForeignSnapshotError, match="this window is"):
        sg.operators.Join(spec, other, on="x", how="full").restore(saved)
    for bad in (b"", saved[:-1], saved[:20] + b"x" + saved[21:]):
        with pytest.raises(SnapshotError):
            join.restore(bad)
    assert join.right({"x": 1}) == [({"x": 1}, {"x": 1})]
    join.left({"x": 2, "y": object()})
    with pytest.raises(ConfigurationError, match="have to be what JSON has"):
        join.snapshot()


def test_what_cannot_be_saved_or_taken_up_is_refused() -> None:
    """Readings that JSON has not, summarizers and operators that say nothing; damage, and another definition."""
    spec = sg.WindowSpec(kind="tumbling", evict=sg.policies.count(3))
    window = sg.WindowOperator(spec)
    window.insert(object())
    with pytest.raises(ConfigurationError, match=r"^snapshot: .* have to be what JSON has"):
        window.snapshot()
    summarized = sg.WindowOperator(spec, summarizer=sg.WindowSummarizer)
    summarized.insert(1)
    with pytest.raises(ConfigurationError, match="WindowSummarizer does not say what to keep"):
        summarized.snapshot()
    with pytest.raises(ConfigurationError, match="Operator does not say what it keeps"):
        sg.operators.Operator(sg.WindowSpec(kind="sliding", evict=count, trigger=after)).snapshot()
    window = sg.WindowOperator(spec)
    window.insert(1.5)
    saved = window.snapshot()
    for bad in (b"", saved[:-1], saved[:20] + b"x" + saved[21:]):
        with pytest.raises(SnapshotError):
            window.restore(bad)
    with pytest.raises(ForeignSnapshotError, match="this window is"):
        sg.WindowOperator(sg.WindowSpec(kind="tumbling", evict=count)).restore(saved)
    assert window.readings() == [1.5]


CHANGED: list[tuple[Any, str]] = [
    ((1, 2), r"\(1, 2\) would not come back"),
    ({"x": 1, "at": [1, (2, 3)]}, r"'at': \(2, 3\) would not come back"),
    ({"x": 1, "of": {7: "a"}}, r"'of': 7 in .* would come back as a text"),
]


@pytest.mark.parametrize(("reading", "place"), CHANGED, ids=["tuple", "inside", "key"])
def test_what_would_come_back_as_something_else_is_refused(reading: Any, place: str) -> None:
    """JSON makes a tuple a list and a number that is a key a text: the place is named, and nothing is lost."""
    by_time = sg.WindowOperator(sg.WindowSpec(kind="tumbling", evict=sg.policies.time(10), lateness=0))
    by_count = sg.WindowOperator(sg.WindowSpec(kind="tumbling", evict=count))
    by_time.insert(reading, 5)
    by_count.insert(reading)
    for window, where in ((by_time, "time 5"), (by_count, "partition None")):
        with pytest.raises(ConfigurationError, match=f"^snapshot: {where}: .*{place}|^snapshot: {where}: {place}"):
            window.snapshot()
        assert window.readings() == [reading]
    keyed = sg.WindowOperator(sg.WindowSpec(kind="tumbling", evict=count, key=("a", "b")))
    keyed.insert({"a": "x", "b": 1})
    again = sg.WindowOperator(keyed.spec)
    again.restore(keyed.snapshot())
    assert again.readings(("x", 1)) == [{"a": "x", "b": 1}], "a key may be a tuple"


def test_the_future_is_refused_and_nothing_changes() -> None:
    """A time beyond the clock by more than `future` would make all windows final."""
    clock = [100]
    spec = sg.WindowSpec(kind="tumbling", evict=sg.policies.time(10), lateness=0)
    window = sg.WindowOperator(spec, clock=lambda: clock[0], future=5)
    window.insert(1.0, 105)
    with pytest.raises(InputError, match=r"time: 106 is later than the clock by more than `future` \(5 µs\)"):
        window.insert(2.0, 106)
    assert (window.now, window.readings(), window.late) == (105, [1.0], 0)
    clock[0] = 101
    window.insert(2.0, 106)
    assert window.readings() == [1.0, 2.0]
    for bad in (-1, "soon", True):
        with pytest.raises(ConfigurationError, match="future: "):
            sg.WindowOperator(spec, future=bad)
    with pytest.raises(ConfigurationError, match="future: the window goes by arrival"):
        sg.WindowOperator(sg.WindowSpec(kind="tumbling", evict=count), future=5)
