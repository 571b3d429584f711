"""Two traces that the methods must not be tuned against: calm, and near zero with both signs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from bench.traces.counted import bell, key, knots
from bench.traces.memory import DAY, GIB
from numpy.typing import NDArray


def calm(seed: int) -> Callable[[int, int], NDArray[np.float64]]:
    """Half the memory in use, a daily wave of a tenth, little noise: nothing ever happens."""
    noise, slow = key(seed, "calm noise"), key(seed, "calm slow")
    half = DAY // 2

    def values(begin: int, end: int) -> NDArray[np.float64]:
        clock = np.arange(begin, end, dtype=np.int64)
        within = clock % half
        wave = 3 * GIB * (within * (half - within)) // (half * half // 4)
        used = 32 * GIB + np.where(clock % DAY < half, wave, -wave) + knots(slow, clock, 900, GIB // 16)
        return np.asarray(used + bell(noise, clock) * 8, dtype=np.float64)

    return values


def near_zero(seed: int) -> Callable[[int, int], NDArray[np.float64]]:
    """Noise about 0 on four time scales, from a reading to three weeks: a month's mean changes its sign."""
    noise = key(seed, "near zero")
    scales = [(key(seed, f"near zero {every}"), every, size) for every, size in ((61, 4_000), (7_919, 9_000))]
    scales.append((key(seed, "near zero weeks"), 21 * DAY, 6_000))

    def values(begin: int, end: int) -> NDArray[np.float64]:
        clock = np.arange(begin, end, dtype=np.int64)
        total = bell(noise, clock)
        for start, every, size in scales:
            total += knots(start, clock, every, size)
        return total.astype(np.float64)

    return values
