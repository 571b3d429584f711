"""A seeded trace of a server's used memory in place of the paper's, which is not public: two years, a tenth as dense.

One reading every 10 s in whole KB of 64 GiB, so that sums are exact in float64. What is in it, each at its own time
scale: a working day and a working week; batch jobs that take memory for minutes to hours; caches that fill slowly and
leak until the server is restarted, some weeks apart; plateaus, where a monitor repeats its last value for up to hours;
noise of some MB.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Column = NDArray[np.float64]
READINGS = 6_220_800  # the paper's 62,208,000, a tenth
WINDOW = 259_200  # a month, as the paper's
DAY = 8_640
GIB = 1024 * 1024.0  # in KB
TOTAL = 64 * GIB


def memory(readings: int = READINGS, seed: int = 7) -> Column:
    """`readings` values in KB, whole numbers from 1 GiB to 64 GiB."""
    rng = np.random.default_rng(seed)
    clock = np.arange(readings)
    used = 20 * GIB + cycles(clock) + jobs(rng, readings) + leaks(rng, readings) + rng.normal(0, 4096, readings)
    return np.clip(np.rint(plateaus(rng, used)), GIB, TOTAL)


def cycles(clock: NDArray[np.int64]) -> Column:
    """Busier by day, quieter at the week's end: ± 3 GiB and 2 GiB."""
    day, week = clock / DAY, clock / (7 * DAY)
    weekend = np.where(week % 1 > 5 / 7, -2.0, 0.0)
    return GIB * (3.0 * np.sin(2 * np.pi * day) + weekend)


def jobs(rng: np.random.Generator, readings: int) -> Column:
    """About four batch jobs a day, of 0.2 to 8 GiB for 5 minutes to 5 hours."""
    count = max(1, 4 * readings // DAY)
    start, length = rng.integers(0, readings, count), np.exp(rng.uniform(np.log(30), np.log(1800), count)).astype(int)
    size = GIB * np.exp(rng.uniform(np.log(0.2), np.log(8), count))
    steps = np.zeros(readings + 1)
    np.add.at(steps, start, size)
    np.add.at(steps, np.minimum(start + length, readings), -size)
    return np.cumsum(steps)[:-1]


def leaks(rng: np.random.Generator, readings: int) -> Column:
    """Up to 12 GiB between two restarts, which are 3 to 60 days apart and free it all."""
    out, at = np.empty(readings), 0
    while at < readings:
        length = int(rng.uniform(3, 60) * DAY)
        ramp = rng.uniform(1, 12) * GIB * np.linspace(0, 1, length) ** rng.uniform(0.5, 1.5)
        out[at : at + length] = ramp[: readings - at]
        at += length
    return out


def plateaus(rng: np.random.Generator, used: Column) -> Column:
    """About once a day the monitor repeats a value, for 1 minute to 4 hours."""
    out = used.copy()
    count = max(1, len(used) // DAY)
    for start, length in zip(rng.integers(0, len(used), count), rng.integers(6, 1440, count), strict=True):
        out[start : start + length] = out[start]
    return out
