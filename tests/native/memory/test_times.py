"""The times of an exact window by time: whatever form a block of them takes, each leaf has the time it came with."""

from __future__ import annotations

import itertools
import random
from array import array
from collections.abc import Iterator

import pytest

import sluicegate as sg
from sluicegate.core import Core

BLOCK = 128


def stretches(rng: random.Random) -> Iterator[int]:
    """Gaps: even ones, uneven ones, too far apart for 32 bits, and late readings, each for up to three blocks."""
    while True:
        step = rng.choice((0, 1, 1_000, 10**6, 2**31 - 1, 2**31, 3_600 * 10**6))
        kind, count = rng.randrange(5), rng.randrange(1, 3 * BLOCK)
        for _ in range(count if kind < 3 else 3):
            if kind == 0:
                yield step
            elif kind == 1:
                yield rng.randrange(2_000)
            elif kind == 2:
                yield rng.choice((step, step, step + 1))
            else:
                yield rng.randrange(-(2**33), 2**34) if kind == 3 else -rng.randrange(5_000)


def times_of(window: sg.Window) -> list[int]:
    """The times of the leaves that are held, as a snapshot gets them."""
    core = window._core
    assert isinstance(core, Core)
    return [int.from_bytes(core.leaf(i)[:8], "little", signed=True) for i in range(core.head, core.tail)]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("batch", [1, 3, 200, 1_500])
def test_every_leaf_has_the_time_it_came_with(seed: int, batch: int) -> None:
    """In batches and one by one, while blocks turn from a step to times, and after a restart."""
    rng = random.Random(f"{seed} {batch}")
    times = array("q", itertools.accumulate(itertools.accumulate(itertools.islice(stretches(rng), 2_500)), max))
    span = rng.choice((50_000, 10**8, 2**34))
    newest = list(itertools.accumulate(times, max))
    window, begin, head = sg.Window(sg.sum(), policy=sg.policies.time(span)), 0, 0
    while begin < len(times):
        end = min(begin + rng.randint(1, batch), len(times))
        if end - begin < 4:
            for moment in times[begin:end]:
                window.insert(1.0, time=moment)
        else:
            window.insert_many(array("d", [1.0] * (end - begin)), times[begin:end], results=False)
        for i in range(begin, end):
            while times[head] <= newest[i] - span:
                head += 1
        if batch > 3 or rng.random() < 0.05:
            assert times_of(window) == list(times[head:end])
            assert window.query() == {"sum": float(end - head)}
        if rng.random() < 0.1:
            window = sg.Window.restore(window.snapshot(), sg.sum(), policy=sg.policies.time(span))
        begin = end
    assert times_of(window) == list(times[head:])


@pytest.mark.parametrize("step", [0, 1, 997, 2**31, 2**45])
def test_even_batches_are_kept_by_their_step(step: int) -> None:
    """Also where they follow another step within a block, and where the next reading is not even."""
    window, times, span = sg.Window(sg.sum(), policy=sg.policies.time(2**58)), array("q"), 2**58
    for count, gap in (
        (1, 0),
        (7, step),
        (300, step),
        (64, step + 3),
        (129, step),
        (1, 5),
        (500, step),
        (40, 2 * step),
    ):
        moments = array("q", [(times[-1] if times else 0) + 1 + gap * i for i in range(count)])
        window.insert_many(array("d", [1.0] * count), moments, results=False)
        times.extend(moments)
        assert times_of(window) == list(times)
    assert span > times[-1]


def bytes_by_time(times: array[int]) -> float:
    """What a window by time takes more than one by count with the same readings, a reading."""
    values, n = array("d", [1.0] * len(times)), len(times)
    windows = [sg.Window(sg.sum(), policy=policy) for policy in (sg.policies.time(2**60), sg.policies.count(n))]
    for window in windows:
        for begin in range(0, n, 1 << 14):
            window.insert_many(values[begin : begin + (1 << 14)], times[begin : begin + (1 << 14)], results=False)
    timed, counted = (window._core.allocated for window in windows)
    return (timed - counted) / n


def test_even_times_take_a_quarter_of_a_byte_and_others_eight() -> None:
    """A block's step, or its times; 0.3 and 9 with what is left of chunks at both ends."""
    rng, n = random.Random(1), 1 << 17
    assert bytes_by_time(array("q", range(0, 1_000 * n, 1_000))) < 0.3
    assert bytes_by_time(array("q", (1_000 * i + rng.randrange(900) for i in range(n)))) < 9
