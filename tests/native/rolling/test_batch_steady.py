"""Long batches, read where they lie once the window is all of the batch: single readings' bits (sums: of many)."""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Iterator
from typing import Any

import pytest
from batch_twins import Twins
from thorough import some

import sluicegate as sg
from sluicegate import core as engines

pytestmark = pytest.mark.skipif(engines.Core.__module__ != "sluicegate.core.core", reason="of the compiled core")
QUESTIONS = {"sum": sg.sum(), "max": sg.max(), "min": sg.min()}
SIZES = (
    31,
    32,
    33,
    40,
    47,
    48,
    50,
    62,
    63,
    64,
    65,
    96,
    100,
    126,
    127,
    128,
    129,
    191,
    192,
    250,
    255,
    256,
    257,
    383,
    384,
    511,
    512,
    513,
    700,
    767,
)
LARGE = (1_023, 1_024, 1_025, 1_535, 1_536, 2_047, 3_000, 4_096, 5_000)


def by(kind: str, size: int) -> Any:
    """A window of so many readings 1,000 µs apart; by time its length is no multiple of that."""
    return sg.policies.count(size) if kind == "count" else sg.policies.time(size * 1_000 - 999)


def steps(gap: int = 1_000) -> Iterator[int]:
    """A step apart."""
    return itertools.repeat(gap)


@pytest.mark.parametrize("kind", ["count", "time"])
@pytest.mark.parametrize("question", QUESTIONS)
def test_long_batches_give_the_bits_of_single_readings(question: str, kind: str) -> None:
    """Every shape of the leftmost tree's changes; the batch begins and ends anywhere among them, another follows."""
    for size in SIZES:
        twins = Twins(QUESTIONS[question], by(kind, size), f"{question} {kind} {size}")
        for _ in range(2):
            twins.take(2 * size + 1_040 + twins.rng.randrange(3 * size), steps())
            twins.take(twins.rng.randrange(1, 40), steps())
        twins.whole.verify()


@pytest.mark.parametrize("kind", ["count", "time"])
@pytest.mark.parametrize("question", QUESTIONS)
def test_long_batches_into_larger_windows(question: str, kind: str) -> None:
    """The same where rings are longer and tiles many."""
    for size in some(LARGE[:: 1 if question == "sum" else 3], 4):
        twins = Twins(QUESTIONS[question], by(kind, size), f"{question} {kind} {size}")
        twins.take(4 * size + 1_040 + twins.rng.randrange(size), steps())
        twins.whole.verify()


@pytest.mark.parametrize("kind", ["count", "time"])
def test_without_results_only_the_end_is_worked_out(kind: str) -> None:
    """From the last change of the leftmost tree on: the state has the same bits, whatever the length."""
    for size in (63, 64, 100, 127, 170, 191, 200, 255, 300, 513, 767, 1_100):
        twins = Twins(sg.sum(), by(kind, size), f"{kind} {size}")
        for _ in range(3):
            twins.take(2 * size + 1_040 + twins.rng.randrange(4 * size), steps(), results=False)
        twins.whole.verify()


@pytest.mark.parametrize("kind", ["count", "time"])
def test_several_answers_from_the_same_totals(kind: str) -> None:
    """A mean and a count beside the sum, in whichever order they are asked for."""
    for names in (("sum", "mean", "count"), ("count", "mean"), ("mean",)):
        twins = Twins({name: getattr(sg, name)() for name in names}, by(kind, 200), f"{kind} {names}")
        twins.take(5_000, steps())
        twins.take(3_333, steps())


def test_times_that_are_not_steady_go_another_way() -> None:
    """Batches of another step, which overlap with the newest or stand still, between steady ones."""
    twins = Twins(sg.sum(), sg.policies.time(100_000), "steps")
    for step in (1_000, 999, 1_001, 500, 1, 1_000):
        twins.take(4_000, steps(step))
    twins.now -= 2_000_000  # half of it is late, the rest is not
    twins.take(4_000, steps())
    twins.take(2_500, steps(0))
    twins.take(4_000, steps())
    twins.take(4_000, steps(100_000))  # the newest only
    twins.take(4_000, steps())
    twins.whole.verify()


def test_late_readings_leave_at_once_until_the_batch_has_caught_up() -> None:
    """At a block's end few of a late batch are held, whose number grows: none leaves for those that come."""
    for late in (1_100_000, 1_150_000, 1_150_400, 1_224_000, 2_200_600):
        twins = Twins(sg.sum(), sg.policies.time(200_000), f"{late}")
        twins.take(2_000, steps())
        twins.now -= late
        twins.take(4_000, steps())
        twins.take(3_000, steps())


def test_what_was_evicted_by_hand_is_not_there() -> None:
    """A window by count that holds fewer than its policy says fills first."""
    twins = Twins(sg.max(), sg.policies.count(150), "by hand")
    twins.take(2_000, steps())
    for window in (twins.whole, twins.single):
        window.evict(100)
    twins.take(2_000, steps())
    twins.whole.verify()


def test_a_long_batch_leaves_no_more_memory_than_a_short_one() -> None:
    """Chunks for the readings that are held; what the batch alone needed is not the window's."""
    for size in (64, 200, 1_024, 4_000, 16_000):
        window = sg.Window(sg.sum(), policy=sg.policies.count(size), engine="amta")
        window.insert_many(array("d", [1.0]) * 60_000)
        assert window.footprint.bytes <= 2.5 * 8 * size + 2_500
        assert window.footprint.held == size
