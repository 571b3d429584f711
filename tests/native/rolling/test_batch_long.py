"""Batches by time into windows longer than they are, uneven times among them: the bits of single readings."""

from __future__ import annotations

import random
from array import array
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import pytest
from batch_twins import readings
from hypothesis import given, settings
from hypothesis import strategies as st

import sluicegate as sg
from sluicegate import core as engines

pytestmark = pytest.mark.skipif(engines.Core.__module__ != "sluicegate.core.core", reason="of the compiled core")
STEP = 1_000
BLOCK = 128  # times are kept in blocks of so many
BASE = 1 << 30  # µs: blocks count from one time for so long


def jitter(rng: random.Random) -> Iterator[int]:
    """Each up to 0.4 of a step early or late: one leaves for each that comes, give or take one."""
    before = 0
    while True:
        late = rng.randrange(-400, 401)
        yield STEP + late - before
        before = late


def drift(rng: random.Random) -> Iterator[int]:
    """The rate goes up and down: guesses hold for some readings, and not for many."""
    while True:
        gap = rng.choice((850, 1_000, 1_150, 2_000))
        yield from (gap + rng.randrange(-200, 201) for _ in range(rng.randrange(1_200)))


def pauses(rng: random.Random) -> Iterator[int]:
    """Blocks that are even among others, equal times, and gaps with which hundreds leave."""
    while True:
        yield from (900 + rng.randrange(200) for _ in range(rng.randrange(3_000)))
        yield from [STEP] * rng.randrange(3 * BLOCK)
        yield from [0] * rng.randrange(12)
        yield STEP * rng.choice((1, 3, 300))


def geometric(rng: random.Random) -> Iterator[int]:
    """Independent events."""
    while True:
        yield int(rng.expovariate(1 / STEP))


def backwards(rng: random.Random) -> Iterator[int]:
    """Now and then a time goes back, wherever that is in a block or in a stretch whose heads are guessed together."""
    while True:
        yield from (900 + rng.randrange(200) for _ in range(rng.randrange(9_000)))
        yield -rng.choice((1, 150, 40_000, 3_000_000))


def bursts(rng: random.Random) -> Iterator[int]:
    """Up to forty at one time, so many leave at once, among readings that come one by one."""
    while True:
        yield from [0] * rng.randrange(40)
        yield from (rng.randrange(2 * STEP) for _ in range(rng.randrange(60)))


def untidy(rng: random.Random) -> Iterator[int]:
    """Independent events of which one now and then comes too late, where no guess has looked at their order."""
    while True:
        yield from (int(rng.expovariate(1 / STEP)) for _ in range(rng.randrange(12_000)))
        yield -rng.choice((1, 150, 40_000))


def often_late(rng: random.Random) -> Iterator[int]:
    """A step apart, or independent, and time and again back by dozens of steps, wherever in a stretch that is."""
    while True:
        apart = rng.random() < 0.5
        yield from (STEP if apart else int(rng.expovariate(1 / STEP)) for _ in range(rng.randrange(40, 600)))
        yield -rng.choice((5_000, 40_000, 90_000))


class Pair:
    """A window that takes batches, and one that takes the same readings one by one; `scale`: how many µs a µs is."""

    def __init__(self, question: Any, size: int, engine: str, scale: int, seed: str) -> None:
        self.rng, self.scale, self.now = random.Random(seed), scale, 0
        self.keeps_leaves = engine == "amta"
        policy = sg.policies.time(size * STEP * scale)
        self.whole, self.single = (sg.Window(question, policy=policy, engine=engine) for _ in range(2))

    def take(self, count: int, gaps: Iterator[int]) -> None:
        """A batch into both, which give the same bits."""
        values, times = readings(self.rng, count), array("q")
        for _ in range(count):
            self.now += next(gaps) * self.scale
            times.append(self.now)
        (found,) = self.whole.insert_many(values, times).values()
        expected = array("d", (self.single.slide(x, t) for x, t in zip(values, times, strict=True)))
        assert found.tobytes() == expected.tobytes(), count
        if self.keeps_leaves:
            assert self.whole.snapshot() == self.single.snapshot(), count


IN_ORDER, LATE = (jitter, drift, pauses, geometric, bursts), (backwards, untidy)


@pytest.mark.parametrize(
    ("engine", "gaps"),
    [*product(["amta", "two_stacks_lite"], IN_ORDER), *product(["amta", "two_stacks"], LATE)],
)
@pytest.mark.parametrize("scale", [1, 300, 9_000, 30_000])
def test_windows_longer_than_their_batches(
    engine: str, gaps: Callable[[random.Random], Iterator[int]], scale: int
) -> None:
    """Offsets that count from one time for all, for thousands of readings, for a block; and times that are none."""
    for question, size in ((sg.sum, 20_011), (sg.max, 9_000)):
        pair = Pair(question(), size, engine, scale, f"{engine} {gaps.__name__} {scale} {size}")
        come = gaps(pair.rng)
        for count in (size + 500, 8_192, 33, 5_000, 700, 12_000):
            pair.take(count, come)
        pair.whole.verify()


@pytest.mark.parametrize("gaps", [geometric, bursts, pauses])
def test_offsets_of_thousands_that_lie_together(gaps: Callable[[random.Random], Iterator[int]]) -> None:
    """So large a window that its offsets are in long chunks: heads are found there, over the ends of chunks, too."""
    pair = Pair(sg.sum(), 280_000, "two_stacks_lite", 1, gaps.__name__)
    come = gaps(pair.rng)
    pair.take(330_000, come)
    for count in (20_000, 8_192, 9_001, 1_023):
        pair.take(count, come)
    pair.whole.verify()


def test_batches_that_begin_and_end_anywhere_in_a_block() -> None:
    """Single readings between them, and a window that begins anew from its snapshot."""
    pair = Pair(sg.sum(), 3_000, "amta", 1, "anywhere")
    come = jitter(pair.rng)
    pair.take(3_100, come)
    for _ in range(60):
        pair.take(pair.rng.choice((1, 2, 31, 32, 33, 127, 128, 129, 511, 640, 900)), come)
        if pair.rng.random() < 0.2:
            pair.whole = sg.Window.restore(
                pair.whole.snapshot(), sg.sum(), policy=sg.policies.time(3_000 * STEP), engine="amta"
            )


@settings(max_examples=40)
@given(
    size=st.integers(900, 3_000),
    early=st.integers(0, 999),
    scale=st.sampled_from([1, 1_000, 30_000, 10**6]),
    counts=st.lists(st.integers(1, 2_000), min_size=1, max_size=6),
    odd=st.lists(st.tuples(st.integers(0, 6_000), st.integers(-3_000, 9_000)), max_size=4),
)
def test_any_jitter(size: int, early: int, scale: int, counts: list[int], odd: list[tuple[int, int]]) -> None:
    """Readings early by up to a step, a few of them by something else."""
    pair = Pair(sg.sum(), size, "amta", scale, f"{size} {early}")
    other = dict(odd)

    def come() -> Iterator[int]:
        last, i = 0, 0
        while True:
            at = STEP * i - pair.rng.randrange(early + 1) + other.get(i, 0)
            yield at - last
            last, i = at, i + 1

    gaps = come()
    pair.take(size + 100, gaps)
    for count in counts:
        pair.take(count, gaps)


@pytest.mark.parametrize("step", [1_000, 300_000, 4_000_000, 14_000_000, 1 << 25])
def test_times_of_any_scale_are_kept(step: int) -> None:
    """In batches that begin anywhere, some of them late, by time; four bytes each where 32 bits do for a block."""
    rng, times = random.Random(step), array("q")
    window = sg.Window(sg.sum(), policy=sg.policies.time(1 << 55), engine="amta")
    while len(times) < 9_000:
        at, count = len(times), rng.choice((1, 128, 129, 400, 2_000))
        batch = array("q", (step * i + rng.randrange(step // 2) for i in range(at, at + count)))
        if rng.random() < 0.3:
            batch[rng.randrange(count)] -= rng.choice((step, BASE, 1 << 33))
        window.insert_many(readings(rng, count), batch, results=False)
        times.extend(batch)
    core: Any = window._core
    kept = [int.from_bytes(core.leaf(i)[:8], "little", signed=True) for i in range(core.head, core.tail)]
    assert kept == sorted(times)


@pytest.mark.parametrize("size", [300, 900, 10_000])
def test_late_readings_wherever_a_stretch_begins(size: int) -> None:
    """What is merged is in order: a stretch that begins late would have its window begin too early."""
    for seed in range(30):
        rng, now = random.Random(f"{size} {seed}"), 0
        whole, single = (sg.Window(sg.sum(), policy=sg.policies.time(size * STEP), engine="amta") for _ in range(2))
        gaps = often_late(rng)
        for count in (size + 100, 3_000, 9_000, 1_024):
            values, times = array("d", (float(rng.randrange(1_000)) for _ in range(count))), array("q")
            for _ in range(count):
                now += next(gaps)
                times.append(now)
            (found,) = whole.insert_many(values, times).values()
            assert found == array("d", (single.slide(x, t) for x, t in zip(values, times, strict=True))), seed
