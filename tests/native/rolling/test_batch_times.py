"""Batches by time: whatever the gaps between readings, what leaves and the results are those of single readings."""

from __future__ import annotations

import math
import random
from array import array
from collections.abc import Callable, Iterator

import pytest

import sluicegate as sg
from sluicegate.core import LARGEST, LATEST, first_late, first_refused

COUNT = 2_600
BATCHES = (1_300, 511, 512, 513, 7, 64)


def even(rng: random.Random) -> Iterator[int]:
    """As a sensor sends."""
    while True:
        yield 1_000


def lost(rng: random.Random) -> Iterator[int]:
    """The same, but for readings that never came."""
    while True:
        yield rng.choice((1_000,) * 30 + (2_000,))


def jitter(rng: random.Random) -> Iterator[int]:
    """Nearly so."""
    while True:
        yield rng.randrange(700, 1_300)


def geometric(rng: random.Random) -> Iterator[int]:
    """As independent events come: none or many leave at once."""
    while True:
        yield int(rng.expovariate(0.001))


def bursts(rng: random.Random) -> Iterator[int]:
    """Hundreds at one time, and gaps in which most or all of a window goes."""
    while True:
        yield from [0] * rng.randrange(700)
        yield rng.choice((1, 1_000, 30_000, 10_000_000))


def late(rng: random.Random) -> Iterator[int]:
    """Mostly even; now and then one comes late and stands in the way of those behind it."""
    while True:
        yield from [1_000] * rng.randrange(400)
        yield from (-rng.randrange(1, 90_000), 3_000)


@pytest.mark.parametrize("size", [1, 3, 16, 100, 700, 1_500])
@pytest.mark.parametrize("gaps", [even, lost, jitter, geometric, bursts, late])
def test_what_leaves_by_time_is_what_leaves_one_by_one(
    gaps: Callable[[random.Random], Iterator[int]], size: int
) -> None:
    """Counts, sums and extremes after each reading, in batches of several lengths."""
    rng = random.Random(f"{gaps.__name__} {size}")
    asked = {"count": sg.count(), "sum": sg.sum(), "max": sg.max()}
    whole, single = (sg.Window(asked, policy=sg.policies.time(size * 1_000)) for _ in range(2))
    times, gap = array("q", [0]), gaps(rng)
    while len(times) < COUNT:
        times.append(times[-1] + next(gap))
    values = array("d", (rng.uniform(-9, 9) for _ in times))
    begin = 0
    while begin < COUNT:
        end = min(begin + rng.choice(BATCHES), COUNT)
        found = whole.insert_many(values[begin:end], times[begin:end])
        for i in range(begin, end):
            single.insert(values[i], times[i])
            assert [found[name][i - begin] for name in asked] == [as_number(x) for x in single.query().values()], i
        whole.verify()
        begin = end


def as_number(x: float | None) -> float:
    """A result as a column has it; no window here is ever empty."""
    assert x is not None
    return float(x)


def refused(values: array[float]) -> int:
    """The first value that may not enter."""
    return first_refused(memoryview(values))


def outside(times: array[int]) -> int:
    """The first time that may not."""
    return first_late(memoryview(times))


@pytest.mark.parametrize("count", [1, 2, 511, 512, 513, 1_500])
def test_what_may_not_enter_is_found_wherever_it_stands(count: int) -> None:
    """First, in the middle, last; the greatest magnitude and the outermost times may."""
    values = (array("d", [LARGEST, -LARGEST, 0.0, -0.0, 5e-324, 1.5]) * count)[:count]
    times = (array("q", [LATEST, -LATEST, 0, -1]) * count)[:count]
    assert refused(values) == outside(times) == -1
    for place in {0, count // 2, count - 1}:
        for bad in (math.inf, -math.inf, math.nan, -math.nan, math.nextafter(LARGEST, math.inf), -2 * LARGEST):
            assert refused(values[:place] + array("d", [bad]) + values[place + 1 :]) == place
        for moment in (LATEST + 1, -LATEST - 1, 2**63 - 1, -(2**63), 2**62):
            assert outside(times[:place] + array("q", [moment]) + times[place + 1 :]) == place
