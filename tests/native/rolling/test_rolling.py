"""A batch over a flat array against the definition: every window size, four kinds of gaps, late readings, too."""

from __future__ import annotations

import math
import random
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from thorough import some

import sluicegate as sg

STEP = 1_000
EPSILON = 2.0**-52


def even(rng: random.Random) -> int:
    """A step apart."""
    return STEP


def jittered(rng: random.Random) -> int:
    """A step, give or take."""
    return STEP + rng.randrange(-400, 401)


def independent(rng: random.Random) -> int:
    """As independent events come."""
    return int(rng.expovariate(1 / STEP))


def bursts(rng: random.Random) -> int:
    """Many at one time, then a pause."""
    return 0 if rng.random() < 0.9 else 10 * STEP


def stream(gap: Callable[[random.Random], int], rng: random.Random, count: int, late: bool) -> array[int]:
    """Times; where `late`, one in thirty comes up to twenty steps after its time."""
    now, times = 0, array("q")
    for _ in range(count):
        now += gap(rng)
        times.append(now - rng.randrange(20 * STEP) if late and rng.random() < 1 / 30 else now)
    return times


def inside_after_each(values: array[float], times: array[int], span: int) -> Iterator[array[float]]:
    """What the window holds after each reading, by the definition: newest − span < time ≤ newest."""
    newest = times[0]
    for i, time in enumerate(times):
        newest = max(newest, time)
        yield array("d", (values[k] for k in range(i + 1) if times[k] > newest - span))


def variance(inside: array[float]) -> float:
    """The population's, by its definition."""
    mean = math.fsum(inside) / len(inside)
    return math.fsum((x - mean) ** 2 for x in inside) / len(inside)


def variance_bound(inside: array[float], center: float) -> float:
    """Chan, Golub & LeVeque: relative error at most about n·ε·κ, κ² = Σ(x − center)² / Σ(x − mean)²."""
    squares = math.fsum((x - center) ** 2 for x in inside) / len(inside)
    rounding = 4 * (len(inside) + 4) * EPSILON
    return rounding * math.sqrt(variance(inside) * squares) + rounding**2 * squares


def check(question: Any, column: array[float], inside_after: Iterable[array[float]], values: array[float]) -> None:
    """Extremes to the bit, sums within the rounding of a sum in any order, squares within that of Welford's updates."""
    for i, inside in enumerate(inside_after):
        if question is sg.std:
            assert abs(column[i] ** 2 - variance(inside)) <= variance_bound(inside, values[0]), i
        elif question is sg.sum:
            bound = 2 * len(inside) * EPSILON * math.fsum(map(abs, inside))
            assert abs(column[i] - math.fsum(inside)) <= bound, i
        elif inside:
            assert column[i] == (max if question is sg.max else min)(inside), i
        else:
            assert math.isnan(column[i]), i


@pytest.mark.parametrize("question", [sg.sum, sg.max, sg.min, sg.std])
@pytest.mark.parametrize("late", [False, True], ids=["in order", "late"])
@pytest.mark.parametrize("gap", [even, jittered, independent, bursts])
def test_every_size_by_time(gap: Callable[[random.Random], int], late: bool, question: Any) -> None:
    """1 … 130 readings about, in batches long enough for a tile; the state is that of single readings."""
    for size in some(range(1, 131), 9):
        rng = random.Random(f"{gap.__name__} {late} {size}")
        times = stream(gap, rng, 3 * size + 160, late)
        values = array("d", (rng.uniform(-1, 1) for _ in times))
        window, single = (sg.Window(question(), policy=sg.policies.time(size * STEP), engine="amta") for _ in "ab")
        (column,) = window.insert_many(values, times).values()
        check(question, column, inside_after_each(values, times, size * STEP), values)
        if size % 10 == 0:
            for value, time in zip(values, times, strict=True):
                single.insert(value, time)
            assert window.snapshot() == single.snapshot()
            window.verify()


@pytest.mark.parametrize("question", [sg.sum, sg.max, sg.min, sg.std])
def test_every_size_by_count(question: Any) -> None:
    """1 … 130 readings, batch after batch."""
    for size in some(range(1, 131), 2):
        rng = random.Random(size)
        values = array("d", (rng.uniform(-1, 1) for _ in range(5 * size + 300)))
        window = sg.Window(question(), policy=sg.policies.count(size), engine="amta")
        cut = 2 * size + 140
        column = array("d")
        for part in (values[:cut], values[cut:]):
            column.extend(*window.insert_many(part).values())
        check(question, column, (values[max(0, i + 1 - size) : i + 1] for i in range(len(values))), values)
        window.verify()


def test_a_tile_after_another() -> None:
    """A batch of many tiles, whose windows grow and shrink with the rate, into a window that holds some."""
    rng = random.Random(5)
    now, times = 0, array("q")
    for i in range(40_000):
        now += rng.randrange(2 * STEP if i // 7_000 % 2 else STEP // 2)
        times.append(now)
    values = array("d", (float(rng.randrange(1_000)) for _ in times))
    window = sg.Window(sg.sum(), policy=sg.policies.time(500 * STEP), engine="amta")
    column = array("d")
    for first, end in ((0, 3_000), (3_000, 40_000)):
        column.extend(window.insert_many(values[first:end], times[first:end])["sum"])
    sums = [0.0]
    for value in values:
        sums.append(sums[-1] + value)
    expected = [sums[i + 1] - sums[bisect_right(times, time - 500 * STEP)] for i, time in enumerate(times)]
    assert column.tolist() == expected


@pytest.mark.parametrize("policy", [sg.policies.count(16), sg.policies.time(16 * STEP)], ids=["count", "time"])
def test_squares_about_a_far_center(policy: Any) -> None:
    """Deviations of 1 about a mean of 10^9, equal readings (exactly 0), and what has squares beyond float64."""
    rng = random.Random(3)
    far = array("d", (1e9 + rng.choice((-1.0, 1.0)) for _ in range(600)))
    values = array("d", [0.0] * 40) + far + array("d", [7e8] * 400) + array("d", [2.0**900] * 5 + [1.0] * 400)
    times = array("q", (i * STEP for i in range(len(values))))
    column = sg.Window(sg.std(), policy=policy, engine="amta").insert_many(values, times)["std"]
    for i in range(60, 630):
        inside = values[i - 15 : i + 1]
        assert math.isclose(column[i], math.sqrt(variance(inside)), rel_tol=1e-6), i
    assert set(column[660:1_040]) == {0.0}
    assert column[1_040] == math.inf
    assert set(column[1_065:]) == {0.0}
