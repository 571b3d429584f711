"""Small windows by time straight from a batch: what any processor does, and what this one does."""

from __future__ import annotations

import ctypes
import functools
import math
import random
from array import array
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from compiled_code import compiled

ENGINES = Path(__file__).parents[2] / "native/sluicegate/engines"
SOURCE = """
#include "directly.h"

#define BY_TIME(OP) \\
int64_t by_time_##OP( \\
    const double *x, const int64_t *t, int64_t span, int64_t held, int64_t before, int64_t n, double *out) \\
{ \\
    return sluicegate_directly_by_time_##OP(x, t, span, held, before, n, out); \\
}
BY_TIME(add)
BY_TIME(least)
BY_TIME(greatest)
"""
OPERATORS: dict[str, Callable[[float, float], float]] = {
    "add": lambda a, b: a + b,
    "least": lambda a, b: b if b < a else a,
    "greatest": lambda a, b: b if b > a else a,
}
GAPS: dict[str, Callable[[random.Random, int], int]] = {
    "independent": lambda rng, i: int(rng.expovariate(0.001)),
    "jitter": lambda rng, i: rng.randrange(500, 1_500),
    "bursts": lambda rng, i: rng.choice((0,) * 9 + (9_000,)),
    "crowds": lambda rng, i: 30 if i // 700 % 2 else 1_500,
    "pauses": lambda rng, i: rng.choice((900, 1_100) * 40 + (200_000,)),
}
BEFORE = 80


@functools.cache
def library(anywhere: bool) -> Any:
    """The header, compiled for any processor, or with all that some have."""
    plain = ["-D__SANITIZE_ADDRESS__"] * anywhere  # as sanitizers have it: without any choice of functions
    return compiled(SOURCE, "-fwrapv", "-ffp-contract=off", f"-I{ENGINES}", *plain)


def address(column: array[Any], index: int) -> ctypes.c_void_p:
    """Where one of its numbers lies."""
    return ctypes.c_void_p(column.buffer_info()[0] + column.itemsize * index)


def one_by_one(name: str, values: array[float], times: array[int], span: int) -> list[float]:
    """Each window from its own readings, oldest first."""
    held: deque[int] = deque()
    results = []
    for i, time in enumerate(times):
        held.append(i)
        while times[held[0]] <= time - span:
            held.popleft()
        results.append(functools.reduce(OPERATORS[name], (values[k] for k in held)))
    return results


@pytest.mark.parametrize("anywhere", [True, False])
@pytest.mark.parametrize("gaps", GAPS)
@pytest.mark.parametrize("name", OPERATORS)
def test_it_is_what_single_readings_give(name: str, gaps: str, anywhere: bool) -> None:
    """To the bit, zeros of either sign too: the values are such that every sum is exact."""
    by_time = getattr(library(anywhere), f"by_time_{name}")
    by_time.restype = ctypes.c_int64
    rng = random.Random(f"{name} {gaps}")
    for steps in (0.5, 1, 2, 3, 5, 8, 13, 20, 34, 60):
        n, span, now, times = BEFORE + rng.choice((100, 300, 1_900)), int(steps * 1_000), 0, array("q")
        for i in range(n):
            now += GAPS[gaps](rng, i)
            times.append(now)
        values = array("d", (rng.choice((-0.0, 0.0, float(rng.randrange(-9, 10)))) for _ in range(n)))
        expected = one_by_one(name, values, times, span)
        out = array("d", bytes(8 * n))
        first = BEFORE
        held = sum(times[k] > times[first - 1] - span for k in range(first))
        if held + 8 > first:  # the window lies in what came before
            continue
        left = ctypes.c_int64(n - first)
        taken = by_time(
            address(values, first), address(times, first), ctypes.c_int64(span), ctypes.c_int64(held),
            ctypes.c_int64(first), left, address(out, first),
        )  # fmt: skip
        assert taken >= (n - first if max_held(times, span) < 160 else 0), steps
        for i in range(first, first + taken):
            same = out[i] == expected[i] and (
                name == "add" or math.copysign(1.0, out[i]) == math.copysign(1.0, expected[i])
            )
            assert same, (steps, i, out[i], expected[i])


def max_held(times: array[int], span: int) -> int:
    """The most that a window holds."""
    first, most = 0, 0
    for i, time in enumerate(times):
        while times[first] <= time - span:
            first += 1
        most = max(most, i + 1 - first)
    return most


@pytest.mark.parametrize("anywhere", [True, False])
def test_a_time_that_goes_back_ends_it(anywhere: bool) -> None:
    """Not before the tile in which it does, and what was taken is right."""
    by_time = library(anywhere).by_time_add
    by_time.restype = ctypes.c_int64
    rng = random.Random(3)
    for late in (80, 81, 335, 336, 700, 1_099):
        times, now = array("q"), 0
        for _ in range(1_100):
            now += int(rng.expovariate(0.001))
            times.append(now)
        times[late] = times[late - 1] - 1
        values, out = array("d", [1.0] * 1_100), array("d", bytes(8 * 1_100))
        held = sum(times[k] > times[79] - 6_000 for k in range(80))
        counts = [ctypes.c_int64(k) for k in (6_000, held, 80, 1_020)]
        taken = by_time(address(values, 80), address(times, 80), *counts, address(out, 80))
        assert late - 80 - 512 < taken <= late - 80
        assert out[80 : 80 + taken].tolist() == one_by_one("add", values, times, 6_000)[80 : 80 + taken]


@pytest.mark.parametrize("anywhere", [True, False])
def test_what_lies_behind_the_batch_is_not_looked_at(anywhere: bool) -> None:
    """Where so many leave at once that windows hold one reading each, up to the last."""
    by_time = library(anywhere).by_time_add
    by_time.restype = ctypes.c_int64
    for crowd in range(400, 520):
        for few in (32, 33, 64):
            times, now = array("q"), 0
            for i in range(80 + crowd + few):
                now += 10 if i < 80 + crowd else 5_000
                times.append(now)
            n = len(times)
            times.extend([-(2**60)] * 16)
            values, out = array("d", [1.0] * len(times)), array("d", bytes(8 * len(times)))
            counts = [ctypes.c_int64(k) for k in (600, 60, 80, n - 80)]
            assert by_time(address(values, 80), address(times, 80), *counts, address(out, 80)) == n - 80
            assert out[80 + crowd : n].tolist() == [1.0] * few, (crowd, few)
