"""Batches of any length into windows of any size: the answers and the state of single readings, whatever the gaps."""

from __future__ import annotations

import itertools
import random
from array import array
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from batch_twins import (
    Twins,
    backwards,
    bursts,
    even,
    geometric,
    in_no_order,
    jitter,
    readings,
    set_back,
    walk,
    wild,
)  # fmt: skip
from engine_windows import LITE
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import number, some

import sluicegate as sg
from sluicegate import core as engines
from sluicegate.errors import InputError

pytestmark = pytest.mark.skipif(engines.Core.__module__ != "sluicegate.core.core", reason="of the compiled core")
STEP = 1_000
BASE = 1 << 30  # µs: times are kept as offsets from one time for so long
QUESTIONS: dict[str, Any] = {
    "sum": sg.sum(),
    "max": sg.max(),
    "min": sg.min(),
    "mean": {"mean": sg.mean(), "count": sg.count()},
}
Gaps = Callable[[random.Random, int], Iterator[int]]
GAPS: list[Gaps] = [even, jitter, walk, geometric, bursts, backwards, set_back, in_no_order]
#: Around powers of two, the longest window that goes through the rolling kernels, and what lies in one block.
SIZES = (1, 2, 3, 5, 8, 9, 16, 17, 31, 64, 65, 100, 128, 200, 257, 321, 750, 1_025)
LARGE = (2_047, 4_095, 4_097, 9_000)
#: Around the shortest batch that the kernels take, and the tiles and blocks that a longer one is cut into.
LENGTHS = (1, 2, 11, 12, 13, 127, 128, 129, 191, 192, 257, 511, 513, 1_025)


def policies(size: int) -> Iterator[Any]:
    """By count, and by time: a multiple of the step, and less than that."""
    yield sg.policies.count(size)
    yield sg.policies.time(size * STEP)
    yield sg.policies.time(size * STEP - 300)


def check(twins: Twins, size: int, gaps: Gaps) -> None:
    """Batches that begin and end anywhere, one without results, some evicted by hand, wild numbers at the end."""
    come, rng = gaps(twins.rng, size), twins.rng
    twins.take(3 * size + 140 + rng.randrange(200), come)
    twins.take(rng.choice(LENGTHS), come)
    twins.take(size + rng.randrange(300), come, results=rng.random() < 0.5)
    gone = rng.choice((0, 1, len(twins.whole) // 3, len(twins.whole)))
    for window in (twins.whole, twins.single):
        window.evict(gone)
    twins.take(rng.choice(LENGTHS), come, numbers=wild)
    twins.take(2 * size + 200, come)
    twins.whole.verify()


@pytest.mark.parametrize("gaps", GAPS)
@pytest.mark.parametrize("question", QUESTIONS)
def test_answers_and_state_are_those_of_single_readings(question: str, gaps: Gaps) -> None:
    """Results, snapshots and the times that are kept; by count and by time."""
    for place, size in enumerate(some(SIZES, 2 if question in ("sum", "max") else 4)):
        for policy in some(list(policies(size)), 3) if place % 3 else policies(size):
            check(Twins(QUESTIONS[question], policy, f"{question} {gaps.__name__} {size}"), size, gaps)


@pytest.mark.parametrize("gaps", GAPS)
def test_larger_windows(gaps: Gaps) -> None:
    """Several tiles between two changes of the leftmost tree; windows too long for the kernels go through blocks."""
    for size in some(LARGE, 2):
        question = random.Random(f"{gaps.__name__} {size}").choice(list(QUESTIONS))
        check(Twins(QUESTIONS[question], sg.policies.time(size * STEP), f"{gaps.__name__} {size}"), size, gaps)


@pytest.mark.parametrize("engine", ["amta", "two_stacks", "two_stacks_lite"])
@pytest.mark.parametrize("gaps", GAPS)
def test_windows_longer_than_their_batches(engine: str, gaps: Gaps) -> None:
    """Offsets that count from one time for all, for thousands of readings, for a block; and times that are none."""
    if engine in LITE and gaps in (backwards, set_back, in_no_order):
        return  # it refuses what comes late: see below
    rng = random.Random(f"{engine} {gaps.__name__}")
    for scale in some((1, 300, 9_000, 30_000), 2):
        question, size = rng.choice(((sg.sum, 20_011), (sg.max, 9_000)))
        policy = sg.policies.time(size * STEP * scale)
        twins = Twins(question(), policy, f"{gaps.__name__} {scale}", engine, scale)
        come = gaps(twins.rng, size // 8)
        for count in (size + 500, 8_192, 33, 5_000, 700):
            twins.take(count, come)
        twins.whole.verify()


@pytest.mark.parametrize("engine", ["amta", "two_stacks_lite", "soe", "daba_lite", "recalc"])
@pytest.mark.parametrize("gaps", [jitter, set_back, backwards, in_no_order])
def test_so_does_every_engine(gaps: Gaps, engine: str) -> None:
    """Whole numbers, so that sums are exact in any order.

    What has to be in order is given so: of a batch that it refuses nothing is in.
    """
    rng, refused = random.Random(f"{gaps.__name__} {engine}"), 0
    for size in (1, 12, 168) if engine == "recalc" else (1, 12, 168, 2_016):
        whole, single = (sg.Window(sg.sum(), policy=sg.policies.time(size * STEP), engine=engine) for _ in range(2))
        come, now, newest = gaps(rng, size), 0, -(10**18)
        for _ in range(8):
            count = rng.choice((1, 3, 20, 100, 700, 3_000))
            values = array("d", (float(rng.randrange(1_000)) for _ in range(count)))
            times = array("q", itertools.islice(itertools.accumulate(come, initial=now + next(come)), count))
            now = times[-1]
            try:
                found = whole.insert_many(values, times)["sum"]
            except InputError:
                assert engine in LITE
                assert comes_late(newest, size * STEP, times)
                assert (whole.query(), len(whole), whole.late) == (single.query(), len(single), single.late)
                refused += 1
                times = array("q", sorted(max(newest, time) for time in times))
                found = whole.insert_many(values, times)["sum"]
            assert found.tolist() == [single.slide(x, time) for x, time in zip(values, times, strict=True)]
            assert whole.late == single.late
            newest = max(newest, *times)
        whole.verify()
        assert len(whole) == len(single)
    assert (refused > 0) == (engine in LITE and gaps is not jitter)


def comes_late(newest: int, span: int, times: array[int]) -> bool:
    """Whether one of these readings comes late, and yet into the window."""
    for time in times:
        if newest - span < time < newest:
            return True
        newest = max(newest, time)
    return False


@settings(max_examples=number(200, 60))
@given(
    size=st.integers(1, 400),
    gaps=st.lists(st.one_of(st.integers(-300, 3_000), st.just(STEP), st.integers(-90_000, 90_000)), min_size=1),
    counts=st.lists(st.integers(1, 900), min_size=1, max_size=4),
    scale=st.sampled_from([1, 1_000, 10**6]),
    question=st.sampled_from(sorted(QUESTIONS)),
)
def test_any_gaps(size: int, gaps: list[int], counts: list[int], scale: int, question: str) -> None:
    """Equal times, steps, late readings and gaps of any length, at any scale."""
    twins = Twins(QUESTIONS[question], sg.policies.time(size * STEP * scale), f"{size}", scale=scale)
    come = itertools.cycle(gaps)
    for count in (size + 150, *counts):
        twins.take(count, come)
    twins.whole.verify()


@pytest.mark.parametrize("late", some((6_000, 6_143, 6_144, 6_145, 6_151, 6_152, 6_656, 11_999), 3))
def test_one_is_late_anywhere_in_a_long_batch(late: int) -> None:
    """In a tile of the loop, or behind one: those before it and those after it go on as they lie."""
    twins = Twins(sg.sum(), sg.policies.time(800 * STEP), f"{late}")
    come = geometric(twins.rng, 800)
    twins.take(12_000, itertools.chain(itertools.islice(come, late), [-3_000, 7_000], come))
    twins.take(2_000, come)
    twins.whole.verify()


def test_batches_that_begin_and_end_anywhere_in_a_block() -> None:
    """Single readings between them, and a window that begins anew from its snapshot."""
    twins = Twins(sg.sum(), sg.policies.time(3_000 * STEP), "anywhere")
    come = jitter(twins.rng, 3_000)
    twins.take(3_100, come)
    for _ in range(30):
        twins.take(twins.rng.choice((1, 2, 31, 32, 33, 127, 128, 129, 511, 640, 900)), come)
        if twins.rng.random() < 0.2:
            stored, policy = twins.whole.snapshot(), sg.policies.time(3_000 * STEP)
            twins.whole = sg.Window.restore(stored, sg.sum(), policy=policy, engine="amta")


def test_a_window_goes_by_the_greatest_time_even_if_that_reading_was_evicted_by_hand() -> None:
    """A reading from the future, taken out again: what comes is late for long, and leaves as it comes or in order."""
    results = []
    for many in (True, False):
        window = sg.Window(sg.sum(), policy=sg.policies.time(50_000))
        window.insert_many(array("d", range(300)), array("q", range(0, 300_000, STEP)))
        window.insert(7.0, time=5_000_000)
        window.evict(len(window))
        times = array("q", range(300_000, 9_000_000, STEP))
        values = array("d", (float(i % 10) for i in range(len(times))))
        found: Any = window.insert_many(values, times)["sum"] if many else array("d", map(window.slide, values, times))
        results.append((found.tolist(), window.snapshot()))
    assert results[0] == results[1]


@pytest.mark.parametrize("step", [STEP, 300_000, 4_000_000, 14_000_000, 1 << 25])
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


def test_a_long_batch_leaves_no_more_memory_than_a_short_one() -> None:
    """Chunks and times for the readings that are held; what the batch alone needed is not the window's."""
    for size in (64, 200, 1_024, 4_000, 16_000):
        window = sg.Window(sg.sum(), policy=sg.policies.count(size), engine="amta")
        window.insert_many(array("d", [1.0]) * 60_000)
        assert window.footprint.bytes <= 2.5 * 8 * size + 2_500
        assert window.footprint.held == size
    for size in (20, 300, 5_000):
        window = sg.Window(sg.sum(), policy=sg.policies.time(size * STEP), engine="amta")
        rng = random.Random(size)
        times = array("q", (STEP * i + rng.randrange(900) for i in range(40_000)))
        window.insert_many(array("d", [1.0]) * 40_000, times)
        assert window.footprint.held == sum(t > times[-1] - size * STEP for t in times)
        assert window.footprint.bytes <= (2.5 * 8 + 8.25) * size + 6_000
        for i in range(3 * size):
            window.insert(1.0, times[-1] + STEP * i)
        assert window.query() == {"sum": size}
