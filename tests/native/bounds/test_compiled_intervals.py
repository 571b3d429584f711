"""A compiled window's intervals are, to the bit, what `intervals_twin` says of its partials."""

from __future__ import annotations

import math
import random
from typing import Any

import intervals_twin as intervals
import pytest
from exact_windows import CLOCKS, SHAPES, readings
from thorough import WHOLE, number
from twins import estimate

import sluicegate as sg
from sluicegate.bounds.view import View
from sluicegate.constants import BY_COUNT, BY_TIME, CUSTOM
from sluicegate.policies import Count, Time
from sluicegate.records import Bounded

EDGES = (-10.0, 0.0, 10.0, 25.0)
PLAIN = {
    "count": sg.count(), "sum": sg.sum(), "mean": sg.mean(), "min": sg.min(), "max": sg.max(), "range": sg.range(),
    "argmin": sg.argmin(), "argmax": sg.argmax(), "min_count": sg.min_count(), "max_count": sg.max_count(),
    "first": sg.first(), "last": sg.last(), "variance": sg.variance(), "sample": sg.std(ddof=1),
    "bins": sg.histogram(EDGES),
}  # fmt: skip
POSITIVE = {"geometric": sg.geometric_mean(), "mean": sg.mean(), "std": sg.std()}
POLICIES: dict[str, Any] = {
    "count": sg.policies.count(40),
    "count, hopping": sg.policies.count(40, hop=7),
    "time": sg.policies.time(120),
    "time, hopping": sg.policies.time(120, hop=11),
    "own": sg.policies.custom(lambda total, old: total.count - old.count >= 40, monotone=True, remaining=True),
}
HISTOGRAMS: dict[str, list[Any]] = {
    "levels": [sg.Constrained(6)],
    "pairs": [sg.Constrained(7, merge="pairs")],
    "sums": [sg.SumLike(0.2, of="mean"), sg.Constrained(12)],
}


def bits(answer: Bounded) -> str:
    """With the sign of a zero, and the kind of a number."""
    return repr(tuple(answer))


def defined(window: sg.Window) -> list[Bounded]:
    """What the definition says of a window that is not empty."""
    core, layout = window._core, window._layout
    unpack, rest, oldest = layout.format.unpack, core.rest(), layout.format.unpack(core.leaf(core.head))
    kind = BY_TIME if isinstance(window._policy, Time) else BY_COUNT if isinstance(window._policy, Count) else CUSTOM
    cut = estimate.cut(layout, oldest, estimate.Edge(kind, core.cutoff, core.edge))
    cutoff = core.cutoff if kind == BY_TIME else None
    pieces = unpack(core.total()), unpack(rest) if rest else None, oldest
    seen = View(layout, *pieces, cut, cutoff, tuple(core.centers or ()))
    return intervals.bounded(seen, core.results())


def hold_to_the_definition(window: sg.Window, rng: random.Random, scale: float, positive: bool) -> None:
    """After each reading in order of time, over every such clock and shape."""
    start = 0
    for clock in CLOCKS[:-1]:
        for shape in SHAPES:
            start += 5_000
            for value, time in readings(rng, shape, clock, number(25, 8)):
                x = value * scale
                window.insert(math.exp(min(abs(x), 600.0)) if positive else x, time=start + time)
                found = window.query(bounds=True)
                assert [*map(bits, found.values())] == [*map(bits, defined(window))], (clock, shape, time)


#: Every policy with every histogram; at the other scales each policy, and each histogram once or twice.
PRODUCT = [(policy, histograms, 1.0) for policy in POLICIES for histograms in HISTOGRAMS]
SCALED = [
    (policy, histograms, scale)
    for i, scale in enumerate((2.0**900, 2.0**-1060, 0.0))
    for j, policy in enumerate(POLICIES)
    for k, histograms in enumerate(HISTOGRAMS)
    if WHOLE or (i + j + k) % 3 == 0
]


@pytest.mark.parametrize(("policy", "histograms", "scale"), PRODUCT + SCALED)
def test_each_answer_is_the_definitions(policy: str, histograms: str, scale: float) -> None:
    """Every aggregate that buckets keep, with bits, types and `exact`; sums that overflow and that vanish too."""
    rng = random.Random(policy + histograms)
    window = sg.Window(PLAIN, policy=POLICIES[policy], histograms=HISTOGRAMS[histograms])
    hold_to_the_definition(window, rng, scale, positive=False)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_geometric_mean_is_the_definitions(policy: str) -> None:
    """Of values from the least to nearly the greatest."""
    window = sg.Window(POSITIVE, policy=POLICIES[policy], histograms=[sg.Constrained(6)])
    hold_to_the_definition(window, random.Random(policy), 1.0, positive=True)


def test_two_dimensions_are_each_by_itself() -> None:
    """Each aggregate is around the center of its own dimension."""
    aggregates = {"a": sg.mean("a"), "b": sg.variance("b"), "top": sg.max("a"), "n": sg.count()}
    window = sg.Window(aggregates, policy=sg.policies.count(50), histograms=[sg.Constrained(6)])
    rng = random.Random(2)
    for _ in range(500):
        window.insert({"a": rng.gauss(5, 1), "b": rng.gauss(-1e6, 3)})
        assert [*map(bits, window.query(bounds=True).values())] == [*map(bits, defined(window))]


@pytest.mark.usefixtures("implementation_of_window")
def test_an_empty_window_and_one_reading() -> None:
    """Nothing is certain and exact of nothing; of one reading all but a sample's deviation is known."""
    window = sg.Window(PLAIN, policy=sg.policies.time(10), histograms=[sg.Constrained(4)])
    assert all(answer.exact and answer.low == answer.value for answer in window.query(bounds=True).values())
    window.insert(3.0, time=1)
    found = window.query(bounds=True)
    assert found["sample"] == Bounded(None, None, None, True)
    assert found["max"] == found["min"] == (3.0, 3.0, 3.0, True)
    assert found["sum"].exact
    assert found["sum"].low < 3.0 < found["sum"].high


@pytest.mark.parametrize("kind", ["count", "time"])
@pytest.mark.usefixtures("implementation_of_window")
def test_shorter_windows_are_the_definitions(kind: str) -> None:
    """Of windows that share their buckets: what the definition says of the buckets inside."""
    make = getattr(sg.policies, kind)
    policies = {"long": make(400), "mid": make(130, hop=9), "short": make(33)}
    windows = sg.Windows(PLAIN, policies=policies, histograms=[sg.Constrained(12, merge="pairs")])
    rng, seen = random.Random(kind), 0
    for i, (value, time) in enumerate(readings(rng, SHAPES[0], "gaps", 900)):
        windows.insert(value, time=time)
        if i % 3:
            continue
        for name in ("mid", "short"):
            found = [*map(bits, windows.answer(name, bounds=True).values())]
            assert found == [*map(bits, folded(windows, name, policies[name]))], (i, name)
            seen += 1
    assert seen == 600


def folded(windows: sg.Windows, name: str, policy: Count | Time) -> list[Bounded]:
    """The definition, over the buckets of a shorter window that has just been asked: its edge is up to date."""
    core, layout, part = windows.longest._core, windows.longest._layout, windows._parts[name]
    cutoff = part.cutoff(core.accepted, core.newest)
    first = core.tail - windows.held(name)
    newer = windows._newer(part, first)
    total = core.leaf(first) if newer is None else core.combine(core.leaf(first), newer)
    unpack = layout.format.unpack
    leaf, rest = unpack(core.leaf(first)), None if newer is None else unpack(newer)
    cut = estimate.cut(layout, leaf, estimate.Edge(part.kind, cutoff, part.edge))
    centers = tuple(core.centers or ())
    values = estimate.results(layout, unpack(total), rest, leaf, cut, centers, core.limit)
    timed = cutoff if isinstance(policy, Time) else None
    return intervals.bounded(View(layout, unpack(total), rest, leaf, cut, timed, centers), values)
