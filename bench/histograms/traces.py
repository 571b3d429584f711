"""Seeded traces in place of the paper's, which is not public; all values are multiples of 2⁻¹⁰, so that sums are exact.

memory: a server's used memory, as the paper's (memory_trace.py). calm: a daily wave and slow noise. regimes: a level
that jumps every 20,000 readings. signs: slow noise about zero, so that a window's mean changes its sign.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from bench.histograms.memory_trace import WINDOW as WINDOW
from bench.histograms.memory_trace import Column, memory


def calm(n: int) -> Column:
    """About 32 GB in KB, a daily wave of a tenth, noise whose mean wanders."""
    wave = 32e6 + 3e6 * np.sin(2 * np.pi * np.arange(n) / 86_400)
    return exact(wave + wandering(np.random.default_rng(1), n, 2e5, 0.999))


def regimes(n: int) -> Column:
    """A level that jumps every 20,000 readings."""
    rng = np.random.default_rng(2)
    levels = rng.uniform(5e6, 60e6, n // 20_000 + 1)
    return exact(np.repeat(levels, 20_000)[:n] + rng.normal(0, 3e5, n))


def signs(n: int) -> Column:
    """Slow noise about zero."""
    return exact(wandering(np.random.default_rng(3), n, 1.0, 0.9999))


def wandering(rng: np.random.Generator, n: int, deviation: float, kept: float) -> Column:
    """Each value is so much of the one before, and a normal step."""
    out, last = np.empty(n), 0.0
    for i, step in enumerate(rng.normal(0, deviation, n).tolist()):
        last = kept * last + step
        out[i] = last
    return out


def exact(values: Column) -> Column:
    """Rounded to multiples of 2⁻¹⁰."""
    return np.rint(values * 1024) / 1024


TRACES: dict[str, Callable[[int], Column]] = {"memory": memory, "calm": calm, "regimes": regimes, "signs": signs}
