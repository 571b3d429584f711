"""The readable twin of sluicegate.core.checks: whether numbers may enter a window."""

from __future__ import annotations

from array import array
from math import nan

from sluicegate.constants import LARGEST, LATEST


def first_refused(values: memoryview[float]) -> int:
    """Index of the first value that is not finite or whose magnitude exceeds 2^960; −1 where all may enter."""
    return next((i for i, x in enumerate(values) if not abs(x) <= LARGEST), -1)


def first_not_positive(values: memoryview[float], dimensions: int, dimension: int) -> int:
    """Index of the first row whose value of this dimension is not greater than 0; −1 where there is none."""
    return next((i for i, x in enumerate(values[dimension::dimensions]) if not x > 0.0), -1)


def first_late(times: memoryview[int]) -> int:
    """Index of the first time beyond ±2^61 µs; −1 where all may enter."""
    return next((i for i, time in enumerate(times) if not -LATEST <= time <= LATEST), -1)


def withhold(value: array[float], low: array[float], high: array[float], error: float, atol: float) -> None:
    """NaN in place of each value that is not certainly within error · |exact| + atol of an exact one in low … high."""
    for i, x in enumerate(value):
        ends = [low[i], high[i]] + ([0.0] if low[i] < 0.0 < high[i] else [])
        if any(abs(x - exact) > error * abs(exact) + atol for exact in ends):
            value[i] = nan
