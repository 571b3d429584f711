"""Describes a window that left the memory: when time has to wake it, and what came since beside its rows."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    import sluicegate as sg

#: Seconds with few readings after which a window is put away: twice reading its rows costs less than what it holds.
AWAY = 600.0
#: Where the tables are written more often than that, in seconds, what is put away and takes readings stays in memory.
REST = 60.0
#: Readings that wait beside the rows, at most: with more the window takes as much as they do.
UNREAD_MOST = 64


class Asleep(NamedTuple):
    """Its time as it was told last, buckets, the most of them, and the time from which something may leave (µs)."""

    now: int | None
    held: int
    limit: int
    due: int | None

    def may_wait(self, time: int) -> bool:
        """Whether nothing leaves the window when it is told this time."""
        return self.due is None or time < self.due

    def told(self, time: int) -> Asleep:
        """It is at least this late."""
        if self.now is not None and time <= self.now:
            return self
        return Asleep(time, self.held, self.limit, self.due)  # `_replace` takes four times as long, each second

    def heard(self, oldest: int, newest: int, length: int) -> Asleep:
        """Readings of these times wait beside a window of this length in time."""
        due = oldest + length if self.due is None else min(self.due, oldest + length)
        return Asleep(newest if self.now is None else max(self.now, newest), self.held, self.limit, due)


class Unread:
    """Readings that wait for a window that is put away, and the times (µs) that it was told before, between and after.

    What is late depends on what the window was told when a reading came, so the order of both is kept.
    """

    __slots__ = ("_times", "_told", "_values")

    def __init__(self, was: Asleep) -> None:
        """Of a window that was as `was` says."""
        self._values, self._times = array("d"), array("q")
        self._told: tuple[tuple[int, int], ...] = () if was.now is None else ((0, was.now),)

    def has_room(self, readings: int) -> bool:
        """Whether so many more may wait."""
        return len(self._times) + readings <= UNREAD_MOST

    def add(self, values: array[float], times: array[int]) -> None:
        """They came; arrays of just this length take the least."""
        self._values, self._times = self._values + values, self._times + times

    def tell(self, time: int) -> None:
        """Time went on after the readings so far."""
        place = len(self._times)
        kept = self._told[:-1] if self._told and self._told[-1][0] == place else self._told
        self._told = (*kept, (place, time))

    def parts(self) -> Iterator[tuple[array[float], array[int], int | None]]:
        """Readings in their order, and what the window is told after them; None: nothing."""
        begin = 0
        for place, time in self._told:
            yield self._values[begin:place], self._times[begin:place], time
            begin = place
        yield self._values[begin:], self._times[begin:], None


def asleep(window: sg.Window, length: int | None) -> Asleep:
    """What to know of one; `length`: of a window by time, in µs."""
    times = [bucket.t_first for bucket in window.buckets() if bucket.t_first is not None] if length else []
    due = min(times) + length if length and times else None
    return Asleep(window.now if length else None, len(window), window.limit, due)
