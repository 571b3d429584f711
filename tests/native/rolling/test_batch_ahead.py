"""Long batches as sensors send them: even for long, gaps, late readings, a clock set back; the bits of single ones."""

from __future__ import annotations

import random
from array import array
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from batch_twins import Twins
from engine_windows import LITE
from test_batch_steady import QUESTIONS
from thorough import some

import sluicegate as sg
from sluicegate import core as engines
from sluicegate.errors import InputError

pytestmark = pytest.mark.skipif(engines.Core.__module__ != "sluicegate.core.core", reason="of the compiled core")
STEPS = {"5 minutes": 300_000_000, "a millisecond": 1_000}  # offsets of 32 bits reach half an hour
Gaps = Callable[[random.Random, int, int], Iterator[int]]


def with_gaps(rng: random.Random, size: int, step: int) -> Iterator[int]:
    """A step apart, but for gaps with which a part of the window, or all of it, goes."""
    while True:
        yield from [step] * rng.randrange(1, 6_000)
        yield step * rng.choice((2, 3, size // 2 + 1, size, size + 1, 3 * size)) + rng.choice((0, 0, -1, 1))


def set_back(rng: random.Random, size: int, step: int) -> Iterator[int]:
    """The clock goes back once in a while, and goes on from there."""
    while True:
        yield from [step] * rng.randrange(1, 6_000)
        yield -step * rng.choice((1, 11, size // 3 + 1, size, 2 * size + 3)) + rng.choice((0, 0, 7))


def late(rng: random.Random, size: int, step: int) -> Iterator[int]:
    """One in a hundred comes late, by a little or by more than the window's length; the others as if nothing was."""
    behind = 0
    while True:
        lag = rng.choice((1, step, 5 * step, size * step // 2, 2 * size * step)) if rng.random() < 0.01 else 0
        yield step + behind - lag
        behind = lag


def in_no_order(rng: random.Random, size: int, step: int) -> Iterator[int]:
    """Every other is late: each up to three steps."""
    behind = 0
    while True:
        lag = rng.randrange(3 * step)
        yield step + behind - lag
        behind = lag


def changing(rng: random.Random, size: int, step: int) -> Iterator[int]:
    """Two rates in turns, for long: windows hold more, then fewer."""
    while True:
        yield from [step] * rng.randrange(2_000, 6_000)
        yield from [step // 2] * rng.randrange(2_000, 6_000)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("gaps", [with_gaps, set_back, late, in_no_order, changing])
@pytest.mark.parametrize("question", QUESTIONS)
def test_batches_of_a_sensor_give_the_bits_of_single_readings(question: str, gaps: Gaps, step: str) -> None:
    """Wherever a stretch begins and ends in a batch; results, states, and the times that are kept."""
    for size in (1, 12, 24, 168, 288, 750, 2_016) if question == "sum" else (12, 288, 1_025):
        twins = Twins(QUESTIONS[question], sg.policies.time(size * STEPS[step]), f"{question} {gaps.__name__} {size}")
        come = gaps(twins.rng, size, STEPS[step])
        for count in some((3 * size, twins.rng.randrange(1, 600), 10_000, 6_000), 2):
            twins.take(count, come, results=twins.rng.random() < 0.8)
        twins.whole.verify()


@pytest.mark.parametrize("engine", ["amta", "two_stacks_lite", "soe", "daba_lite", "recalc"])
@pytest.mark.parametrize("gaps", [with_gaps, set_back, late, in_no_order])
def test_so_does_every_engine_in_batches_of_any_size(gaps: Gaps, engine: str) -> None:
    """Whole numbers, so that sums are exact in any order; now and then some readings are evicted by hand.

    What has to be in order is given so: of a batch that it refuses nothing is in.
    """
    rng = random.Random(f"{gaps.__name__} {engine}")
    refused = 0
    for size in (1, 12, 168) if engine == "recalc" else (1, 12, 168, 2_016):
        step = rng.choice(list(STEPS.values()))
        whole, single = (sg.Window(sg.sum(), policy=sg.policies.time(size * step), engine=engine) for _ in range(2))
        come, now, newest = gaps(rng, size, step), 0, -(10**18)
        for _ in range(12):
            values, times = array("d"), array("q")
            for _ in range(rng.choice((1, 3, 20, 100, 700, 3_000))):
                now += next(come)
                values.append(float(rng.randrange(1_000)))
                times.append(now)
            try:
                found = whole.insert_many(values, times)["sum"]
            except InputError:
                assert engine in LITE
                assert comes_late(newest, size * step, times)
                assert (whole.query(), len(whole), whole.late) == (single.query(), len(single), single.late)
                refused += 1
                times = array("q", sorted(max(newest, time) for time in times))
                found = whole.insert_many(values, times)["sum"]
            assert found.tolist() == [single.slide(x, time) for x, time in zip(values, times, strict=True)]
            assert whole.late == single.late
            newest = max(newest, *times)
            if rng.random() < 0.2:
                gone = rng.randrange(len(whole) + 1)
                whole.evict(gone)
                single.evict(gone)
        whole.verify()
        assert len(whole) == len(single)
    assert (refused > 0) == (engine in LITE and gaps is not with_gaps)


def comes_late(newest: int, span: int, times: array[int]) -> bool:
    """Whether one of these readings comes late, and yet into the window."""
    for time in times:
        if newest - span < time < newest:
            return True
        newest = max(newest, time)
    return False


def test_a_window_goes_by_the_greatest_time_even_if_that_reading_was_evicted_by_hand() -> None:
    """A reading from the future, taken out again: what comes is late for long, and leaves as it comes or in order."""
    span, results = 50_000, []
    for many in (True, False):
        window = sg.Window(sg.sum(), policy=sg.policies.time(span))
        window.insert_many(array("d", range(300)), array("q", range(0, 300_000, 1_000)))
        window.insert(7.0, time=5_000_000)
        window.evict(len(window))
        times = array("q", range(300_000, 9_000_000, 1_000))
        values = array("d", (float(i % 10) for i in range(len(times))))
        found: Any = window.insert_many(values, times)["sum"] if many else array("d", map(window.slide, values, times))
        results.append((found.tolist(), window.snapshot()))
    assert results[0] == results[1]
