"""Describes a window that left the memory: when time has to wake it, and what questions over all windows need of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import sluicegate as sg

#: Seconds without a reading after which a window is put away: twice reading its rows costs less than what it holds.
AWAY = 600.0


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


def asleep(window: sg.Window, length: int | None) -> Asleep:
    """What to know of one; `length`: of a window by time, in µs."""
    times = [bucket.t_first for bucket in window.buckets() if bucket.t_first is not None] if length else []
    due = min(times) + length if length and times else None
    return Asleep(window.now if length else None, len(window), window.limit, due)
