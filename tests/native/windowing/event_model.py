"""Windows by event time, literally: at every tick each window is looked up anew among all readings that were taken.

A window holds start ≤ time < end. It gives early results until its end has come, one at its end, a revised one for each
reading that comes later, and is final `lateness` after its end. What belongs to final windows alone is late.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Taken(NamedTuple):
    """Sorts by time, then by arrival."""

    time: int
    ordinal: int


class Extent(NamedTuple):
    """One window."""

    start: int
    end: int


class EventModel:
    """Windows of `length` each `hop`, or sessions with a pause of `gap`; early results by `period` or `count`."""

    def __init__(self, *, length: int = 0, hop: int = 0, gap: int = 0, lateness: int = 0, period: int = 0,
                 count: int = 0) -> None:  # fmt: skip
        self.length, self.hop, self.gap, self.lateness, self.period, self.count = (
            length,
            hop,
            gap,
            lateness,
            period,
            count,
        )
        self.now: int | None = None
        self.readings: dict[Any, list[Taken]] = {}
        self.final: dict[Any, list[Extent]] = {}
        self.told: set[tuple[Any, Extent, Taken]] = set()  # those whose window gave a result at its end or later
        self.fresh: set[tuple[Any, Any, Taken]] = set()  # those since the window's last early result by count
        self.results: dict[Any, list[tuple[Any, ...]]] = {}
        self.late = self.arrived = 0

    def extents(self, key: Any) -> list[Extent]:
        """The windows of a key that hold readings and are not final."""
        readings = sorted(self.readings.get(key, ()))
        if self.gap:
            found: list[Extent] = []
            for time, _ in readings:
                if found and time < found[-1].end:
                    found[-1] = Extent(found[-1].start, time + self.gap)
                else:
                    found.append(Extent(time, time + self.gap))
        else:
            found = sorted({each for time, _ in readings for each in self.covering(time)})
        return [each for each in found if each not in self.final.get(key, ())]

    def covering(self, time: int) -> list[Extent]:
        """All windows of fixed length that hold a time."""
        starts = [start for start in range(time - self.length, time + 1) if start % self.hop == 0]
        return [Extent(start, start + self.length) for start in starts if start <= time < start + self.length]

    def inside(self, key: Any, extent: Extent) -> list[Taken]:
        """By time and arrival."""
        return [each for each in sorted(self.readings[key]) if extent.start <= each.time < extent.end]

    def takes(self, key: Any, time: int) -> bool:
        """Whether a window that it belongs to is not final."""
        assert self.now is not None
        if not self.gap:
            return any(each.end + self.lateness > self.now for each in self.covering(time))
        if any(time < each.end for each in self.final.get(key, ())):
            return False
        touches = any(each.start < time + self.gap and time < each.end for each in self.extents(key))
        return touches or time + self.gap + self.lateness > self.now

    def arrive(self, key: Any, time: int) -> None:
        """A reading, whose time may be past."""
        self.until(time)
        assert self.now is not None
        if not self.takes(key, time):
            self.late += 1
            return
        self.arrived += 1
        taken = Taken(time, self.arrived)
        self.readings.setdefault(key, []).append(taken)
        for extent in self.extents(key):
            if extent.start <= time < extent.end and extent.end + self.lateness > self.now:
                of = extent if not self.gap else None
                self.fresh.add((key, of, taken))
                since = [each for each in self.inside(key, extent) if (key, of, each) in self.fresh]
                if extent.end <= self.now:
                    self.give(key, extent, "revised")
                elif self.count and len(since) >= self.count:
                    self.fresh -= {(key, of, each) for each in since}
                    self.give(key, extent, "early")

    def until(self, now: int) -> None:
        """One tick after the other."""
        self.now = now if self.now is None else self.now
        while self.now < now:
            self.now += 1
            for key in self.readings:
                extents = self.extents(key)
                for each in extents:
                    if self.period and each.start < self.now < each.end and (self.now - each.start) % self.period == 0:
                        self.give(key, each, "early")
                for each in extents:
                    if self.lateness and each.end == self.now:
                        ended = any((key, None, taken) in self.told for taken in self.inside(key, each))
                        self.give(key, each, "revised" if ended else "early")
                for each in extents:
                    if each.end + self.lateness == self.now:
                        self.give(key, each, "final")
                        self.final.setdefault(key, []).append(each)

    def give(self, key: Any, extent: Extent, stage: str) -> None:
        """A result."""
        inside = self.inside(key, extent)
        if self.gap and self.now is not None and extent.end <= self.now:
            self.told |= {(key, None, taken) for taken in inside}
        self.results.setdefault(key, []).append((self.now, *extent, stage, [tuple(each) for each in inside]))
