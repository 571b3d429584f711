"""Memory in use on a server of 64 GB, in KB, once a second: in place of the papers' trace, which is not public.

What is in it, each at its own time scale: a working day and a working week; batch jobs that start and end, minutes to
hours long; caches that fill within hours; leaks that grow until the server is restarted, 3 to 60 days apart, at another
load each time; plateaus, where the monitor repeats its last value for up to four hours; noise of some MB.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from bench.traces.counted import Ints, bell, key, word
from numpy.typing import NDArray

GIB = 1 << 20  # in KB
TOTAL = 64 * GIB
LEAST = GIB
HOUR, DAY = 3_600, 86_400
JOBS_EVERY = 6 * HOUR  # one or two begin in each
LONGEST_JOB = 5 * HOUR
FILLS = 4 * HOUR


class Life(NamedTuple):
    """From one restart to the next: first and last second, load, what leaks in all, and whether it leaks faster."""

    begin: int
    end: int
    load: int
    leak: int
    faster: bool


class Memory:
    """The trace of one seed; see the module."""

    def __init__(self, seed: int) -> None:
        self._noise, self._jobs, self._lives, self._stops = (
            key(seed, purpose) for purpose in ("noise", "jobs", "lives", "stops")
        )
        self._known = [self._life(0, 0)]

    def __call__(self, begin: int, end: int) -> NDArray[np.float64]:
        """The readings begin … end − 1, whole KB from 1 GiB to 64 GiB."""
        used = self._moving(begin, end)
        for first, last in self._plateaus(begin, end):
            held = used[first - begin] if first >= begin else self._moving(first, first + 1)[0]
            used[max(first - begin, 0) : last - begin] = held
        return np.clip(used, LEAST, TOTAL).astype(np.float64)

    def _moving(self, begin: int, end: int) -> Ints:
        """Without plateaus, and not held within the memory there is."""
        clock = np.arange(begin, end, dtype=np.int64)
        used = bell(self._noise, clock) + _cycles(clock)
        self._add_jobs(used, begin, end)
        for life in self._lives_of(begin, end):
            part = slice(max(life.begin - begin, 0), life.end - begin)
            used[part] += _grown(life, clock[part] - life.begin)
        return used

    def _add_jobs(self, used: Ints, begin: int, end: int) -> None:
        """Batch jobs of 0.2 to 6 GiB, 5 minutes to 5 hours, about six a day."""
        steps = np.zeros(end - begin + 1, dtype=np.int64)
        for slot in range(begin // JOBS_EVERY - 1, (end - 1) // JOBS_EVERY + 1):
            for which in range(1 + word(self._jobs, 4 * slot) % 2 if slot >= 0 else 0):
                bits = word(self._jobs, 4 * slot + 1 + which)
                start = slot * JOBS_EVERY + bits % JOBS_EVERY
                length = min((300 << (bits >> 16) % 6) + (bits >> 24) % 300 * ((bits >> 16) % 6 + 1), LONGEST_JOB)
                size = (GIB // 5 << (bits >> 40) % 5) + (bits >> 44) % GIB * ((bits >> 40) % 5 + 1) // 2
                if start < end and start + length > begin:
                    steps[max(start - begin, 0)] += size
                    steps[min(start + length, end) - begin] -= size
        used += np.cumsum(steps[:-1])

    def _lives_of(self, begin: int, end: int) -> Iterator[Life]:
        while self._known[-1].end < end:
            self._known.append(self._life(len(self._known), self._known[-1].end))
        yield from (life for life in self._known if life.begin < end and life.end > begin)

    def _life(self, number: int, begin: int) -> Life:
        bits = word(self._lives, number)
        length = 3 * DAY + bits % (57 * DAY)
        load, leak = 8 * GIB + (bits >> 24) % (12 * GIB), GIB + (bits >> 8) % (9 * GIB)
        return Life(begin, begin + length, load, leak, bool(bits >> 63))

    def _plateaus(self, begin: int, end: int) -> Iterator[tuple[int, int]]:
        """One a day, for a minute to four hours; where two overlap the later one holds."""
        for day in range(max(begin // DAY - 1, 0), (end - 1) // DAY + 1):
            bits = word(self._stops, day)
            first = day * DAY + bits % DAY
            last = min(first + 60 + (bits >> 32) % (1 << (8 + (bits >> 20) % 7)), first + 4 * HOUR)
            if first < end and last > begin:
                yield first, min(last, end)


def memory(seed: int) -> Memory:
    """The trace of that seed."""
    return Memory(seed)


def _cycles(clock: Ints) -> Ints:
    """Busier by day, ± 3 GiB, quieter at the week's end, 2 GiB; parabolas for waves, an hour's slope for an edge."""
    half = DAY // 2
    within = clock % half
    day = 3 * GIB * (within * (half - within)) // (half * half // 4)
    day = np.where(clock % DAY < half, day, -day)
    into = clock % (7 * DAY) - 5 * DAY
    weekend = np.clip(np.minimum(into, 2 * DAY - into), 0, HOUR) * (2 * GIB) // HOUR
    return np.asarray(day - weekend)


def _grown(life: Life, age: Ints) -> Ints:
    """The load, the cache that fills, and what has leaked at that age; no more than the whole at the end."""
    length = life.end - life.begin
    along = age * age // length if life.faster else age
    return life.load + np.minimum(age, FILLS) * (6 * GIB) // FILLS + life.leak * along // length
