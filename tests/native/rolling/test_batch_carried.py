"""Batches by time that go directly from their first reading on, what a window of few holds laid before them."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator

import pytest
from batch_twins import Twins, backwards, bursts, even, geometric, jitter, readings, walk, wild
from test_batch_few import QUESTIONS
from thorough import some

import sluicegate as sg
from sluicegate import core as engines

pytestmark = pytest.mark.skipif(engines.Core.__module__ != "sluicegate.core.core", reason="of the compiled core")
SIZES = (
    1,
    2,
    7,
    12,
    50,
    160,
    168,
    400,
    620,
    630,
    720,
)  # readings a window holds about; from 627 on batches go in blocks first
Gaps = Callable[[random.Random, int], Iterator[int]]


@pytest.mark.parametrize("gaps", [even, jitter, walk, geometric, bursts, backwards])
@pytest.mark.parametrize("question", QUESTIONS)
def test_from_an_empty_window(question: str, gaps: Gaps) -> None:
    """The window fills in the batch: in one that ends before it is full, soon after it, and long after it."""
    for size in some(SIZES, 3):
        for count in (size + 5, 3 * size + 130, 3_000):
            twins = Twins(
                QUESTIONS[question], sg.policies.time(1_000 * size), f"{question} {gaps.__name__} {size} {count}"
            )
            come = gaps(twins.rng, size)
            twins.take(count, come)
            twins.take(5, come)
            twins.whole.verify()


@pytest.mark.parametrize("gaps", [even, jitter, walk, geometric, bursts, backwards])
@pytest.mark.parametrize("question", QUESTIONS)
def test_batch_after_batch(question: str, gaps: Gaps) -> None:
    """What the window holds came in other batches, or one by one; huge numbers; without results, too."""
    for size in (1, 12, 100, 168, 300):
        twins = Twins(QUESTIONS[question], sg.policies.time(1_000 * size), f"{question} {gaps.__name__} {size}")
        come = gaps(twins.rng, size)
        for count, numbers, results in (
            (700, readings, True),
            (1_000, wild, True),
            (1, readings, True),
            (900, readings, False),
            (130, wild, True),
            (4_000, readings, True),
        ):
            twins.take(count, come, results, numbers)
        twins.whole.verify()


@pytest.mark.parametrize("gaps", [jitter, geometric])
def test_every_length(gaps: Gaps) -> None:
    """Around the shortest batch that goes so, and the longest that is copied as a whole."""
    for size in (3, 40, 170):
        twins = Twins(sg.sum(), sg.policies.time(1_000 * size), f"{gaps.__name__} {size}")
        come = gaps(twins.rng, size)
        for count in (191, 192, 193, 690, 691, 692, 693, 2_047, 2_048, 2_049, size + 2_048):
            twins.take(count, come)
        twins.whole.verify()


@pytest.mark.parametrize("evicted", [1, 5, None])
def test_after_evictions_by_hand(evicted: int | None) -> None:
    """None: all of the window; what comes may be before the newest reading there was, and leave at once."""
    for size, lengths in itertools.product((20, 168), (0.0, 0.4, 1.5)):
        twins = Twins(sg.max(), sg.policies.time(1_000 * size), f"{size} {lengths}")
        come = jitter(twins.rng, size)
        for _ in range(3):
            twins.take(900, come)
            for window in (twins.whole, twins.single):
                window.evict(len(window) if evicted is None else evicted)
            twins.now -= int(lengths * 1_000 * size)
        twins.whole.verify()


def test_another_step_than_before() -> None:
    """A batch a step apart after readings with other gaps: several leave at a time, or none."""
    for size, before in itertools.product((5, 60, 160), (300, 1_000, 1_700, 90_000)):
        twins = Twins({"sum": sg.sum(), "count": sg.count()}, sg.policies.time(1_000 * size), f"{size} {before}")
        for step in (1_000, before, 1_000, 1_000):
            twins.take(600, itertools.repeat(step))
        twins.take(1, itertools.repeat(before))
        twins.take(600, itertools.repeat(1_000))
        twins.whole.verify()


def test_what_is_held_is_late() -> None:
    """A clock is set back within what the window holds, and at the first reading of a batch."""
    twins = Twins(sg.sum(), sg.policies.time(100_000), "late")
    for _ in range(4):
        twins.take(600, even(twins.rng, 100))
        twins.take(3, (-30_000, 1_000, 1_000))
        twins.take(700, itertools.chain((40_000,), jitter(twins.rng, 100)))
        twins.now -= 20_000
    twins.whole.verify()


def test_dense_readings_after_sparse_ones() -> None:
    """More than few are held before the oldest leave: sums are those of single readings to the bit."""
    twins = Twins(sg.sum(), sg.policies.time(1_000_000), "dense")
    for _ in range(3):
        twins.take(1_000, (2_200 + i % 2 for i in range(1_000)))
        twins.take(1_700, (5 if i < 300 else 4_000 + i % 2 for i in range(1_700)))
    twins.whole.verify()
