"""Long batches whose times are not a step apart, read where they lie: single readings' bits (sums: of many)."""

from __future__ import annotations

import itertools
import random
from array import array
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from batch_twins import Twins, backwards, bursts, geometric, jitter, readings, walk
from hypothesis import given, settings
from hypothesis import strategies as st
from test_batch_steady import QUESTIONS
from thorough import some

import sluicegate as sg
from sluicegate import core as engines

pytestmark = pytest.mark.skipif(engines.Core.__module__ != "sluicegate.core.core", reason="of the compiled core")
SIZES = (
    14,
    15,
    16,
    17,
    18,
    22,
    23,
    24,
    31,
    32,
    33,
    47,
    48,
    63,
    64,
    65,
    100,
    127,
    128,
    129,
    255,
    256,
    257,
    511,
    513,
    1_025,
)


@pytest.mark.parametrize("gaps", [jitter, walk, geometric, bursts, backwards])
@pytest.mark.parametrize("question", QUESTIONS)
def test_uneven_batches_give_the_bits_of_single_readings(
    question: str, gaps: Callable[[random.Random, int], Iterator[int]]
) -> None:
    """The leftmost tree grows and falls wherever the times say; the batch begins and ends anywhere, another follows."""
    for size in some(SIZES[:: 1 if question == "sum" else 3], 3):
        twins = Twins(QUESTIONS[question], sg.policies.time(size * 1_000 - 300), f"{question} {gaps.__name__} {size}")
        come = gaps(twins.rng, size)
        twins.take(2 * size + 300 + twins.rng.randrange(3 * size), come)
        twins.take(twins.rng.randrange(1, 40), come)
        twins.take(size + 300, come)
        twins.whole.verify()


@pytest.mark.parametrize("seed", [706, 843, 994, 1_117, 1_134, 2_061, 2_368])
def test_a_batch_ends_where_the_window_has_become_too_large(seed: int) -> None:
    """The rate changes once a batch; where trees of that height do no more, all the times held are kept."""
    rng = random.Random(seed)
    span = rng.randrange(165, 600) * 1_000 + rng.randrange(1_000)
    ones = sg.Window(sg.sum(), policy=sg.policies.time(span), engine="amta")
    now, times, head = 0, array("q"), 0
    for _ in range(3):
        count, gaps = rng.choice((300, 520, 1_100, 1_500)), [rng.choice((400, 700, 1_000, 1_500)) for _ in range(2)]
        change, before = rng.randrange(count), len(times)
        for i in range(count):
            now += gaps[i >= change] + rng.randrange(-200, 201)
            times.append(now)
        sums = ones.insert_many([1.0] * count, times[before:])["sum"]
        for i in range(before, len(times)):
            while times[head] <= times[i] - span:
                head += 1
            assert sums[i - before] == i + 1 - head, i


@pytest.mark.parametrize("late", [6_000, 6_143, 6_144, 6_145, 6_151, 6_152, 6_656, 11_999])
def test_one_is_late_further_on_than_was_looked_beforehand(late: int) -> None:
    """Anywhere in a tile of the loop, or behind one: those before it and those after it go on as they lie."""
    for gaps in (jitter, geometric):
        twins = Twins(sg.sum(), sg.policies.time(800_000), f"{gaps.__name__} {late}")
        come = gaps(twins.rng, 800)
        twins.take(12_000, itertools.chain(itertools.islice(come, late), [-3_000, 7_000], come))
        twins.take(2_000, come)
        twins.whole.verify()


def test_windows_of_many_readings() -> None:
    """Several tiles between two changes of the leftmost tree, and heads far apart where many leave."""
    for size, gaps in ((1_500, jitter), (2_047, bursts), (3_000, walk), (4_096, geometric)):
        twins = Twins(sg.sum(), sg.policies.time(size * 1_000), f"{gaps.__name__} {size}")
        twins.take(4 * size, gaps(twins.rng, size))
        twins.whole.verify()


@pytest.mark.parametrize("gaps", [jitter, geometric, bursts])
def test_without_results_the_state_is_the_same(gaps: Callable[[random.Random, int], Iterator[int]]) -> None:
    """Batches with and without results take turns."""
    for size in (16, 40, 64, 200, 513):
        twins = Twins(sg.sum(), sg.policies.time(size * 1_000), f"{gaps.__name__} {size}")
        come = gaps(twins.rng, size)
        for results in (False, True, False):
            twins.take(3 * size + 300, come, results)
        twins.whole.verify()


@pytest.mark.parametrize("names", [("sum", "mean", "count"), ("count", "mean"), ("mean",), ("count",)])
def test_answers_that_depend_on_how_many_there_are(names: tuple[str, ...]) -> None:
    """Means and counts beside the sum, from the same heads."""
    for gaps in (jitter, geometric):
        twins = Twins({name: getattr(sg, name)() for name in names}, sg.policies.time(200_000), f"{names}")
        twins.take(3_000, gaps(twins.rng, 200))
        twins.take(1_333, gaps(twins.rng, 200))


def test_times_are_kept_for_what_the_window_holds() -> None:
    """Of a long batch those of the last window, whatever stood there before; single readings go on from them."""
    for size in (20, 300, 5_000):
        window = sg.Window(sg.sum(), policy=sg.policies.time(size * 1_000), engine="amta")
        rng = random.Random(size)
        times = array("q", (1_000 * i + rng.randrange(900) for i in range(40_000)))
        window.insert_many(array("d", [1.0]) * 40_000, times)
        assert window.footprint.held == sum(t > times[-1] - size * 1_000 for t in times)
        assert window.footprint.bytes <= (2.5 * 8 + 4.25) * size + 4_000
        for i in range(3 * size):
            window.insert(1.0, times[-1] + 1_000 * i)
        assert window.query() == {"sum": size}


@pytest.mark.parametrize("gaps", [jitter, walk, geometric, bursts])
@pytest.mark.parametrize("question", [sg.sum, sg.max, sg.min, sg.std])
def test_two_stacks_give_the_bits_of_single_readings(
    question: Callable[[], Any], gaps: Callable[[random.Random, int], Iterator[int]]
) -> None:
    """Stretches in which the front is looked up end with it, with a chunk, and where a reading empties it."""
    for size in (1, 4, 5, 17, 64, 200, 1_500):
        rng = random.Random(f"{question.__name__} {gaps.__name__} {size}")
        whole, single = (
            sg.Window(question(), policy=sg.policies.time(size * 1_000), engine="two_stacks_lite") for _ in range(2)
        )
        come, now = gaps(rng, max(size, 2)), 0
        for count in (3 * size + 40, 7, size + 3, 900):
            values, times = readings(rng, count), array("q")
            for _ in range(count):
                now += next(come)
                times.append(now)
            (column,) = whole.insert_many(values, times).values()
            expected = [single.slide(x, t) for x, t in zip(values, times, strict=True)]
            assert column.tobytes() == array("d", expected).tobytes(), (size, count)
        whole.verify()


@settings(max_examples=60)
@given(
    span=st.integers(15, 120),
    gaps=st.lists(st.one_of(st.integers(0, 3), st.integers(0, 40), st.just(1)), min_size=1, max_size=60),
    count=st.integers(300, 900),
)
def test_any_gaps(span: int, gaps: list[int], count: int) -> None:
    """Equal times, steps, and gaps up to a third of the window and more."""
    twins = Twins(sg.sum(), sg.policies.time(span), f"{span}")
    twins.take(count, itertools.cycle(gaps))
    twins.whole.verify()
