"""Sums of batches: within the rounding that a sum of the window's readings may have, whatever was in it before."""

from __future__ import annotations

import math
import random
from array import array

import pytest

import sluicegate as sg

SIZES = (1, 5, 16, 17, 64, 200, 256, 257, 500, 1_024, 3_000)
EPSILON = 2.0**-52


def rounding(readings: array[float]) -> float:
    """How far a sum of these in any order may be from the exact one (error-algebra: 2·n·ε·Σ|x|)."""
    return 2 * len(readings) * EPSILON * math.fsum(map(abs, readings))


def checked(window: sg.Window, size: int, before: array[float], values: array[float]) -> None:
    """Each sum and extreme of a batch against those of the readings in the window, taken anew."""
    found = window.insert_many(values)
    all_of_them = before + values
    for i in range(0, len(values), 7):
        end = len(before) + i + 1
        inside = all_of_them[max(0, end - size) : end]
        assert abs(found["sum"][i] - math.fsum(inside)) <= rounding(inside), i
        assert found["max"][i] == max(inside)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("several", [True, False])
def test_a_large_value_that_has_left_leaves_no_trace(size: int, several: bool) -> None:
    """1e288 passes through; what is summed after it is as exact as if it had never been there."""
    rng = random.Random(size)
    asked = {"sum": sg.sum(), "max": sg.max()} if several else {"sum": sg.sum()}
    window = sg.Window(asked, policy=sg.policies.count(size))
    before = array("d", (rng.uniform(-1, 1) for _ in range(2 * size)))
    window.insert_many(before)
    values = array("d", [1e288]) + array("d", (rng.uniform(-1, 1) for _ in range(size + 1_500)))
    if several:
        checked(window, size, before, values)
        return
    sums = window.insert_many(values)["sum"]
    for i in range(size, len(values), 7):
        inside = values[i + 1 - size : i + 1]
        assert abs(sums[i] - math.fsum(inside)) <= rounding(inside), i


@pytest.mark.parametrize("size", [16, 1_024, 1 << 14])
def test_a_million_readings_do_not_drift(size: int) -> None:
    """The sum after them is that of the readings held, within rounding; in batches of any length."""
    rng = random.Random(size)
    window = sg.Window(sg.sum(), policy=sg.policies.count(size))
    piece = array("d", (rng.uniform(0, 1) * 10 ** rng.randrange(-6, 7) for _ in range(9_973)))
    fed = array("d")
    while len(fed) < 1_000_000:
        length = rng.choice((9_973, 4_096, 513, 5))
        window.insert_many(piece[:length], results=False)
        fed.extend(piece[:length])
    inside = fed[-size:]
    found = window.query()["sum"]
    assert found is not None
    assert abs(found - math.fsum(inside)) <= rounding(inside)
    window.verify()


def test_what_is_no_number_never_enters() -> None:
    """Infinities and NaN are refused before any reading of the batch is in."""
    window = sg.Window(sg.sum(), policy=sg.policies.count(3))
    for bad in (math.inf, -math.inf, math.nan):
        with pytest.raises(sg.errors.InputError, match=r"values\[700\]"):
            window.insert_many(array("d", [1.0] * 700 + [bad] + [1.0] * 700))
    assert len(window) == 0
