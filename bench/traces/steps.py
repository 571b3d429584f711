"""Memory that is reserved rather than used: it holds still, steps, and every night a job takes a lot for an hour.

What the A2MTA paper's max-like tables say of its trace: blocks of 10 to 1,000 make nearly every reading a candidate, so
most readings repeat the last; blocks of a day make one in 23 a candidate, so each day has a peak of about an hour; and
ten buckets are filled anew some twenty to two hundred times in two years, so a new maximum stands for weeks.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from bench.traces.counted import Ints, key, word, words
from bench.traces.memory import DAY, GIB, HOUR
from numpy.typing import NDArray


def steps(seed: int) -> Callable[[int, int], NDArray[np.float64]]:
    """The trace of that seed, whole KB between 8 and 64 GiB."""
    small, large, slow, jobs = (key(seed, f"steps {name}") for name in ("small", "large", "slow", "jobs"))

    def values(begin: int, end: int) -> NDArray[np.float64]:
        clock = np.arange(begin, end, dtype=np.int64)
        used = 24 * GIB + _held(small, clock, 1_021, GIB // 16) + _held(large, clock, 5 * HOUR + 7, 3 * GIB)
        used += _held(slow, clock, 23 * DAY + 11, 2 * GIB)
        _add_jobs(used, begin, end, jobs)
        return used.astype(np.float64)

    return values


def _held(start: int, clock: Ints, every: int, size: int) -> Ints:
    """A value within ± `size`, another one every so many seconds."""
    number = clock // every
    first = int(number[0])
    steps = words(start, np.arange(first, int(number[-1]) + 1)) >> np.uint64(33)
    return np.asarray((steps.astype(np.int64) % (2 * size + 1) - size)[number - first])


def _add_jobs(used: Ints, begin: int, end: int, start: int) -> None:
    """One a night, 50 to 75 minutes, 10 to 18 GiB at once."""
    for day in range(max(begin // DAY - 1, 0), (end - 1) // DAY + 1):
        bits = word(start, day)
        first = day * DAY + HOUR + bits % HOUR
        last = first + 3_000 + (bits >> 16) % 1_500
        if first < end and last > begin:
            used[max(first - begin, 0) : last - begin] += 10 * GIB + (bits >> 32) % (8 * GIB)
