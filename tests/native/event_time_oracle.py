"""The oracle of windows by event time, written from the definition: each window is looked up among all readings.

A window of length s holds, at event time now, the readings with now − s < time ≤ now, in whatever order they came; now
is the greatest time seen, or what `advance` said where that is later. A reading that belongs to no window any more when
it comes is late and changes nothing. What depends on order goes by (time, ordinal), the ordinal being that of arrival.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Any, NamedTuple


class Reading(NamedTuple):
    """Sorts by time, then by arrival."""

    time: int
    ordinal: int
    value: float


class EventTime:
    """The window of length `length` that moves on by `hop`, literally."""

    def __init__(self, length: int, hop: int = 1) -> None:
        self.length, self.hop = length, hop
        self.now: int | None = None
        self.all: list[Reading] = []
        self.came = self.late = 0

    @property
    def cutoff(self) -> int:
        """Readings of this time or earlier are out."""
        assert self.now is not None
        return self.now // self.hop * self.hop - self.length

    def insert(self, value: float, time: int) -> None:
        """A reading arrives."""
        if self.now is not None and time <= self.cutoff:
            self.late += 1
            return
        self.all.append(Reading(time, self.came, value))
        self.came += 1
        self.advance(time)

    def advance(self, time: int) -> None:
        """It is at least this late now."""
        self.now = time if self.now is None else max(self.now, time)

    def inside(self) -> list[Reading]:
        """The window's readings by (time, ordinal)."""
        return sorted(reading for reading in self.all if reading.time > self.cutoff) if self.all else []

    def evict(self, count: int) -> None:
        """So many of the oldest leave by hand."""
        self.all = self.inside()[count:]

    def answers(self) -> dict[str, Any]:
        """Each aggregate by the name of its function in `sluicegate`."""
        inside = self.inside()
        x = [reading.value for reading in inside]
        if not x:
            return {"count": 0, "sum": 0.0} | dict.fromkeys(("mean", "min", "max", "first", "last", "argmax", "std"))
        mean = math.fsum(x) / len(x)
        return {
            "count": len(x),
            "sum": math.fsum(x),
            "mean": mean,
            "min": min(x),
            "max": max(x),
            "first": x[0],
            "last": x[-1],
            "argmax": min(reading.time for reading in inside if reading.value == max(x)),
            "std": math.sqrt(math.fsum((each - mean) ** 2 for each in x) / len(x)),
        }

    def longest_run(self) -> int:
        """Readings of the longest strictly increasing run."""
        best = here = 0
        before = math.inf
        for reading in self.inside():
            here = here + 1 if reading.value > before else 1
            best, before = max(best, here), reading.value
        return best


def agrees(found: Any, exact: Any, magnitude: float) -> bool:
    """Whether an answer is the exact one, rounding aside; what is no sum has none."""
    if exact is None or found is None or not isinstance(exact, float):
        return bool(found == exact)
    return abs(found - exact) <= 1e-12 * (abs(exact) + magnitude)


# streams of (value, time)

Stream = Iterator[tuple[float, int]]
KINDS = ("in order", "equal times", "shuffled", "late", "clock set back", "far future")


def stream(kind: str, n: int, length: int, seed: int = 0) -> Stream:
    """Readings of one kind of arrival, about 40 to a window; values repeat, so that extremes tie."""
    rng = random.Random(seed)
    step = max(length // 40, 1)
    time = 1_700_000_000_000_000
    held: list[tuple[float, int]] = []
    for i in range(n):
        time += rng.randrange(2 * step) if kind != "equal times" else rng.choice((0, 0, step))
        if kind == "clock set back" and i % 97 == 96:
            time -= rng.randrange(2 * length)
        if kind == "far future" and i % 113 == 112:
            time += rng.randrange(3 * length)
        reading = float(rng.randrange(-50, 51)), time
        if kind == "late" and rng.random() < 0.05:
            reading = reading[0], time - rng.randrange(3 * length)
        if kind != "shuffled":
            yield reading
            continue
        held.append(reading)
        if len(held) == 16:
            rng.shuffle(held)
            yield from held
            held = []
    yield from held
