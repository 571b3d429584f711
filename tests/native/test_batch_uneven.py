"""Long batches whose times are not a step apart, read where they lie: the bits of single readings."""

from __future__ import annotations

import itertools
import random
from array import array
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.native.test_batch_steady import QUESTIONS, readings

import sluicegate as sg
from sluicegate import engines

pytestmark = pytest.mark.skipif(engines.Core.__module__ != "sluicegate.engines.core", reason="of the compiled core")
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


def jitter(rng: random.Random, size: int) -> Iterator[int]:
    """A step, give or take nearly half of it."""
    before = 0
    while True:
        late = rng.randrange(-400, 401)
        yield 1_000 + late - before
        before = late


def walk(rng: random.Random, size: int) -> Iterator[int]:
    """The rate itself goes up and down: windows hold more, then fewer."""
    while True:
        gap = rng.choice((400, 700, 1_000, 1_500))
        yield from (gap + rng.randrange(-200, 201) for _ in range(rng.randrange(2 * size)))


def geometric(rng: random.Random, size: int) -> Iterator[int]:
    """As independent events come: none or several leave at once, now and then more than are evicted one by one."""
    while True:
        yield int(rng.expovariate(0.001))


def bursts(rng: random.Random, size: int) -> Iterator[int]:
    """Many at one time, and gaps with which a part, most or all of a window goes."""
    while True:
        yield from [0] * rng.randrange(size // 2)
        yield from (900 + rng.randrange(200) for _ in range(rng.randrange(3 * size)))
        yield rng.choice((30_000, size * 300, size * 600, size * 950, size * 2_000))


def backwards(rng: random.Random, size: int) -> Iterator[int]:
    """Now and then one comes late, by little or by more than the window's length."""
    while True:
        yield from (900 + rng.randrange(200) for _ in range(rng.randrange(5 * size)))
        yield -rng.randrange(1, 2_000 * size)


class Twins:
    """A window that takes batches, and one that takes the same readings one by one."""

    def __init__(self, aggregates: Any, span: int, seed: str) -> None:
        self.rng = random.Random(seed)
        policy = sg.policies.time(span)
        self.whole, self.single = (sg.Window(aggregates, policy=policy, engine="amta") for _ in range(2))
        self.now = 0

    def take(self, count: int, gaps: Iterator[int], results: bool = True) -> None:
        """A batch into both: answers and states are the same, to the bit."""
        values, times = readings(self.rng, count), array("q")
        for _ in range(count):
            self.now += next(gaps)
            times.append(self.now)
        found = self.whole.insert_many(values, times, results=results)
        expected = {name: array("d") for name in found or {}}
        for i, x in enumerate(values):
            answer: Any = self.single.slide(x, times[i])
            for name, column in expected.items():
                column.append(answer[name] if isinstance(answer, dict) else answer)
        for name, column in (found or {}).items():
            assert column.tobytes() == expected[name].tobytes(), (name, count)
        assert self.whole.snapshot() == self.single.snapshot(), count
        assert self.whole.query() == self.single.query()


@pytest.mark.parametrize("gaps", [jitter, walk, geometric, bursts, backwards])
@pytest.mark.parametrize("question", QUESTIONS)
def test_uneven_batches_give_the_bits_of_single_readings(
    question: str, gaps: Callable[[random.Random, int], Iterator[int]]
) -> None:
    """The leftmost tree grows and falls wherever the times say; the batch begins and ends anywhere, another follows."""
    for size in SIZES[:: 1 if question == "sum" else 3]:
        twins = Twins(QUESTIONS[question], size * 1_000 - 300, f"{question} {gaps.__name__} {size}")
        come = gaps(twins.rng, size)
        twins.take(2 * size + 300 + twins.rng.randrange(3 * size), come)
        twins.take(twins.rng.randrange(1, 40), come)
        twins.take(size + 300, come)
        twins.whole.verify()


def test_windows_of_many_readings() -> None:
    """Several tiles between two changes of the leftmost tree, and heads far apart where many leave."""
    for size, gaps in ((1_500, jitter), (2_047, bursts), (3_000, walk), (4_096, geometric)):
        twins = Twins(sg.sum(), size * 1_000, f"{gaps.__name__} {size}")
        twins.take(4 * size, gaps(twins.rng, size))
        twins.whole.verify()


@pytest.mark.parametrize("gaps", [jitter, geometric, bursts])
def test_without_results_the_state_is_the_same(gaps: Callable[[random.Random, int], Iterator[int]]) -> None:
    """Batches with and without results take turns."""
    for size in (16, 40, 64, 200, 513):
        twins = Twins(sg.sum(), size * 1_000, f"{gaps.__name__} {size}")
        come = gaps(twins.rng, size)
        for results in (False, True, False):
            twins.take(3 * size + 300, come, results)
        twins.whole.verify()


@pytest.mark.parametrize("names", [("sum", "mean", "count"), ("count", "mean"), ("mean",), ("count",)])
def test_answers_that_depend_on_how_many_there_are(names: tuple[str, ...]) -> None:
    """Means and counts beside the sum, from the same heads."""
    for gaps in (jitter, geometric):
        twins = Twins({name: getattr(sg, name)() for name in names}, 200_000, f"{names}")
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


@pytest.mark.parametrize("gaps", [jitter, walk, geometric, bursts, backwards])
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
    twins = Twins(sg.sum(), span, f"{span}")
    twins.take(count, itertools.cycle(gaps))
    twins.whole.verify()
