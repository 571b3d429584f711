"""Long batches into windows of few readings: results from the readings themselves, the state of single readings."""

from __future__ import annotations

import itertools
import random
from array import array
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from batch_twins import Twins, backwards, bursts, even, geometric, jitter, readings, walk, wild
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import some

import sluicegate as sg
from sluicegate import core as engines

pytestmark = pytest.mark.skipif(engines.Core.__module__ != "sluicegate.core.core", reason="of the compiled core")
QUESTIONS: dict[str, Any] = {
    "sum": sg.sum(),
    "max": sg.max(),
    "min": sg.min(),
    "mean": {"mean": sg.mean(), "count": sg.count()},
}
COUNTS = (*range(1, 41), 63, 64, 65, 100, 127, 129, 159, 200, 257, 319, 320, 321)
SPANS = (
    1,
    999,
    1_000,
    1_001,
    1_999,
    2_001,
    3_500,
    4_000,
    7_700,
    8_000,
    12_300,
    16_000,
    31_999,
    50_000,
    64_000,
    100_100,
)
LENGTHS = (127, 128, 135, 136, 137, 191, 192, 193, 255, 256, 257, 383, 384, 385, 511, 512, 513, 1_025)
Gaps = Callable[[random.Random, int], Iterator[int]]


@pytest.mark.parametrize("question", QUESTIONS)
def test_every_count(question: str) -> None:
    """Windows by count of every small size, of ordinary numbers and of wild ones."""
    for size in COUNTS:
        twins = Twins(QUESTIONS[question], sg.policies.count(size), f"{question} {size}")
        for count, numbers in ((3 * size + 700, readings), (13, readings), (2 * size + 600, wild)):
            twins.take(count, itertools.repeat(1_000), numbers=numbers)
        twins.whole.verify()


@pytest.mark.parametrize("gaps", [even, jitter, walk, geometric, bursts, backwards])
@pytest.mark.parametrize("question", QUESTIONS)
def test_every_span(question: str, gaps: Gaps) -> None:
    """Spans around steps, whatever the gaps: equal times, gaps that empty the window, times that go back."""
    for span in SPANS:
        twins = Twins(QUESTIONS[question], sg.policies.time(span), f"{question} {gaps.__name__} {span}")
        come = gaps(twins.rng, max(span // 1_000, 2))
        for count, numbers in ((900, readings), (7, readings), (1_100, wild)):
            twins.take(count, come, numbers=numbers)
        twins.whole.verify()


@pytest.mark.parametrize("gaps", [jitter, walk, geometric, bursts, backwards])
@pytest.mark.parametrize("question", QUESTIONS)
def test_windows_put_together_from_blocks(question: str, gaps: Gaps) -> None:
    """More than side by side are taken, up to those that trees take sooner; without results, too."""
    for size in some((161, 250, 400, 560, 625, 690, 720), 4):
        twins = Twins(QUESTIONS[question], sg.policies.time(1_000 * size), f"{question} {gaps.__name__} {size}")
        come = gaps(twins.rng, size)
        for count, numbers, results in (
            (4 * size + 1_100, readings, True),
            (4 * size, wild, False),
            (3_000, wild, True),
        ):
            twins.take(count, come, results, numbers)
        twins.whole.verify()


def test_blocks_become_larger_and_smaller() -> None:
    """Rates a hundred times apart within a batch: windows of one reading beside those of hundreds, of any block."""
    rng = random.Random(11)
    for scale in (30, 100, 300, 700):
        twins = Twins(sg.max(), sg.policies.time(scale), f"{scale}")
        sums = Twins(sg.sum(), sg.policies.time(scale), f"{scale}")
        gaps = [
            int(rng.expovariate(1 / mean))
            for _ in range(12)
            for mean in [rng.choice((1, 2, 5, 20, scale))]
            for _ in range(600)
        ]
        for pair in (twins, sums):
            pair.take(len(gaps), gaps)
            pair.whole.verify()


@pytest.mark.parametrize("gaps", [even, jitter, geometric])
def test_every_length_of_a_batch(gaps: Gaps) -> None:
    """Lengths around tiles and around the shortest that is taken so; single readings go on after each."""
    for size in (1, 2, 5, 16, 50):
        for policy in (sg.policies.time(1_000 * size), sg.policies.count(size)):
            twins = Twins(sg.sum(), policy, f"{gaps.__name__} {size}")
            come = gaps(twins.rng, size)
            for count in LENGTHS:
                twins.take(count, come)
                twins.take(1, come)
            twins.whole.verify()


@pytest.mark.parametrize("gaps", [even, jitter, geometric, bursts, backwards])
def test_without_results_the_state_is_the_same(gaps: Gaps) -> None:
    """Batches with and without results take turns."""
    for size in (1, 3, 8, 20, 64, 150):
        for policy in (sg.policies.time(1_000 * size), sg.policies.count(size)):
            twins = Twins(sg.sum(), policy, f"{gaps.__name__} {size}")
            come = gaps(twins.rng, size)
            for results in (False, True, False):
                twins.take(3 * size + 700, come, results)
            twins.whole.verify()


def test_a_large_value_leaves_with_its_reading() -> None:
    """No sum after it is other than if it had never come."""
    rng = random.Random(3)
    values = array("d", (rng.uniform(-1, 1) for _ in range(3_000)))
    spoilt = array("d", values)
    spoilt[1_000] = 1e288
    for size in (1, 2, 3, 8, 17, 64, 100):
        clean, other = (
            sg.Window(sg.sum(), policy=sg.policies.count(size)).insert_many(column)["sum"]
            for column in (values, spoilt)
        )
        assert clean[:1_000] == other[:1_000]
        assert clean[1_000 + size :] == other[1_000 + size :]


def test_what_was_evicted_by_hand_is_not_there() -> None:
    """A window by count that holds fewer than its policy says fills first."""
    twins = Twins(sg.max(), sg.policies.count(30), "by hand")
    twins.take(700, itertools.repeat(1))
    for window in (twins.whole, twins.single):
        window.evict(20)
    twins.take(700, itertools.repeat(1))
    twins.whole.verify()


@pytest.mark.parametrize("size", [3, 16, 60, 400])
def test_what_comes_after_the_newest_was_evicted_by_hand_may_be_late(size: int) -> None:
    """Steady readings that are before it: none leaves for those that come until they have caught up."""
    for late in range(3_000, 2_000 * size, 1_700 * size // 8):
        twins = Twins(sg.sum(), sg.policies.time(1_000 * size), f"{size} {late}")
        twins.take(2 * size, itertools.repeat(1_000))
        for window in (twins.whole, twins.single):
            window.evict(len(window))
        twins.now -= late
        twins.take(4 * size + 1_000, itertools.repeat(1_000))
        twins.whole.verify()


@settings(max_examples=80, deadline=None)
@given(
    span=st.integers(1, 120),
    gaps=st.lists(
        st.one_of(st.integers(0, 3), st.integers(0, 40), st.just(1), st.integers(-30, 5)), min_size=1, max_size=60
    ),
    count=st.integers(130, 900),
    question=st.sampled_from(["sum", "max", "min"]),
)
def test_any_gaps(span: int, gaps: list[int], count: int, question: str) -> None:
    """Equal times, steps, late readings and gaps of any length."""
    twins = Twins(QUESTIONS[question], sg.policies.time(span), f"{span}")
    twins.take(count, itertools.cycle(gaps))
    twins.take(200, itertools.cycle(gaps), numbers=wild)
    twins.whole.verify()


@settings(max_examples=40, deadline=None)
@given(
    span=st.integers(100, 2_500),
    gaps=st.lists(st.one_of(st.integers(0, 3), st.integers(0, 9), st.integers(0, 40)), min_size=1, max_size=60),
    count=st.integers(1_000, 3_500),
    question=st.sampled_from(["sum", "max", "min"]),
)
def test_any_gaps_of_larger_windows(span: int, gaps: list[int], count: int, question: str) -> None:
    """Windows of some hundred readings, whatever the gaps."""
    twins = Twins(QUESTIONS[question], sg.policies.time(span), f"{span}")
    twins.take(count, itertools.cycle(gaps))
    twins.take(count, (twins.rng.choice(gaps) for _ in itertools.count()), numbers=wild)
    twins.whole.verify()
