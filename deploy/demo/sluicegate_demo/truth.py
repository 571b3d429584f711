"""The independent path: every window recomputed from the raw rows in plain Python, sharing no code with the product.

Sums are `math.fsum` (correctly rounded), extremes and counts come from slices of sorted lists. Nothing here imports
`sluicegate`, the agent or the cloud; a test holds it to that.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import exp, fsum, log, nan, sqrt

from sluicegate_demo.readings import Feed

Key = tuple[str | None, str]
AGGREGATES = (
    "count", "sum", "mean", "min", "max",
    "variance", "std", "range", "geometric_mean", "min_count", "max_count",
)  # fmt: skip


@dataclass(frozen=True)
class Truth:
    """What a window really holds."""

    count: int
    sum: float
    mean: float
    min: float
    max: float
    variance: float = nan
    std: float = nan
    range: float = nan
    geometric_mean: float = nan
    min_count: int = 0
    max_count: int = 0

    @classmethod
    def of(cls, values: list[float]) -> Truth:
        """The truth about the readings `values`, perhaps none."""
        if not values:
            return cls(0, 0.0, nan, nan, nan)
        count, total, least, greatest = len(values), fsum(values), min(values), max(values)
        mean = total / count
        variance = fsum([(value - mean) ** 2 for value in values]) / count
        logarithm = fsum(map(log, values)) / count if least > 0 else nan
        more = variance, sqrt(variance), greatest - least, exp(logarithm)
        return cls(count, total, mean, least, greatest, *more, values.count(least), values.count(greatest))


class Streams:
    """All published readings, each once: by stream as published, and by stream and fleet in order of time."""

    def __init__(self, feeds: Iterable[Feed]) -> None:
        self.published: dict[tuple[str, str], tuple[list[int], list[float]]] = {}
        for feed in feeds:
            for metric in feed.metrics:
                self.published[feed.device, metric] = feed.series(metric)
        self._sorted: dict[Key, tuple[list[int], list[float]]] = {}
        self._reach: dict[Key, float] = {}
        self._positive: dict[Key, bool] = {}
        for metric in {metric for _, metric in self.published}:
            self._sort(metric)

    def _sort(self, metric: str) -> None:
        fleet: list[tuple[int, float]] = []
        for (device, name), (times, values) in self.published.items():
            if name == metric:
                pairs = sorted(zip(times, values, strict=True))
                fleet += pairs
                self._sorted[device, metric] = [time for time, _ in pairs], [value for _, value in pairs]
        fleet.sort()
        self._sorted[None, metric] = [time for time, _ in fleet], [value for _, value in fleet]
        for key in [key for key in self._sorted if key[1] == metric]:
            self._reach[key] = max((abs(value) for value in self._sorted[key][1]), default=0.0)
            self._positive[key] = min(self._sorted[key][1], default=1.0) > 0

    @property
    def readings(self) -> int:
        """Readings of all streams."""
        return sum(len(times) for times, _ in self.published.values())

    def reach(self, key: Key) -> float:
        """The greatest magnitude of a reading of a stream, or of the fleet's."""
        return self._reach[key]

    def positive(self, key: Key) -> bool:
        """Whether every reading of a stream is above 0, so that each window has a geometric mean."""
        return self._positive[key]

    def between(self, key: Key, start: int, end: int) -> Truth:
        """The truth about the readings of a stream (device None: the fleet) with start ≤ time < end."""
        times, values = self._sorted[key]
        return Truth.of(values[bisect_left(times, start) : bisect_left(times, end)])

    def occupied(self, length: int, slide: int) -> dict[Key, set[int]]:
        """Start of every window [a, a + length), a a multiple of `slide`, that holds a reading; by stream and fleet."""
        found: dict[Key, set[int]] = {}
        for key, (times, _) in self._sorted.items():
            starts: set[int] = set()
            for frame in {time // slide for time in times}:
                first = (frame * slide - length) // slide * slide
                starts.update(a for a in range(first, (frame + 1) * slide, slide))
            found[key] = {a for a in starts if self._any(times, a, a + length)}
        return found

    @staticmethod
    def _any(times: list[int], start: int, end: int) -> bool:
        at = bisect_left(times, start)
        return at < len(times) and times[at] < end

    def arrived(self, stream: tuple[str, str], first: int, end: int) -> tuple[list[int], list[float]]:
        """The readings with ordinals first … end − 1, in order of publication."""
        times, values = self.published[stream]
        return times[first:end], values[first:end]


class Sliding:
    """A device's own window by event time, looked up among all readings that it had by then, in order of time.

    It holds those with now − length < time, now the greatest time so far, or a later one in silence. What came too late
    for it is not in it, then or later: now never goes back.
    """

    def __init__(self, times: list[int], values: list[float], length: int) -> None:
        self._times, self._values, self._length = times, values, length
        self._known: list[tuple[int, int]] = []  # (time, ordinal)

    def after(self, ordinal: int, now: int) -> tuple[int, list[float]]:
        """The newest time once the reading `ordinal` has come, and the values inside; quick where ordinals ascend.

        `now` counts where it is later than the newest time.
        """
        if ordinal < len(self._known) - 1:
            self._known = []
        for one in range(len(self._known), ordinal + 1):
            insort(self._known, (self._times[one], one))
        newest = self._known[-1][0]
        begin = bisect_left(self._known, (max(newest, now) - self._length + 1, -1))
        return newest, [self._values[one] for _, one in self._known[begin:]]


def by_device(streams: Streams) -> Mapping[str, int]:
    """Readings by device."""
    found: dict[str, int] = {}
    for (device, _), (times, _) in streams.published.items():
        found[device] = found.get(device, 0) + len(times)
    return found
