"""Windows by event time: tumbling, hopping and session windows, with early, revised and final results.

A window holds start ≤ time < end, whatever order readings come in. Event time is the greatest time that a reading
brought or `advance` said, one for all keys. A window's end has come when event time reaches it; it is final `lateness`
later, when no reading that is still allowed can change it. What comes for final windows alone is counted `late`.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Hashable, Iterable
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any

from sluicegate.constants import NEVER
from sluicegate.windowing.partitions import ENDED, FINAL, FORGET, TRIGGER, Partition
from sluicegate.windowing.triggers import CountTrigger, TimeTrigger

if TYPE_CHECKING:
    from sluicegate.windowing.operator import WindowOperator

Extent = tuple[int, int]


class Pane:
    """One window of one key, from `start` to before `end`.

    `stage` says what its result is: "early" (until its end has come), "revised" (after that, corrected by a late
    reading) or "final". `complete`: whether its end has come. `revision` counts the results given before. `replaces`:
    the windows whose results this one replaces, where sessions have grown or joined.
    """

    __slots__ = (
        "complete", "early", "end", "ended", "entries", "given", "gone", "replaces", "revision", "seen", "size",
        "stage", "start", "summarizer", "waiting",
    )  # fmt: skip

    def __init__(self, start: int, end: int) -> None:
        self.start, self.end = start, end
        self.entries: list[tuple[int, int, Any]] = []  # (time, ordinal of arrival, reading), in that order
        self.size = self.seen = 0
        self.stage, self.complete, self.revision = "early", False, 0
        self.given: list[Extent] = []  # under which extents results have been given
        self.replaces: tuple[Extent, ...] = ()
        self.summarizer: Any = None
        self.ended = False  # whether a result has been given at its end or later
        self.waiting = False  # whether its end is scheduled
        self.early = NEVER  # when its next period ends; none is watched that is past
        self.gone = False

    def __len__(self) -> int:
        """How many readings it holds."""
        return self.size

    @property
    def readings(self) -> list[Any]:
        """What it holds, by time and then by arrival."""
        return [reading for _, _, reading in self.entries]


class EventTimeWindows:
    """The windows of all keys that are not final yet."""

    def __init__(self, window: WindowOperator) -> None:
        self.window, spec = window, window.spec
        self.lateness = spec.lateness or 0
        self.gap = spec.pause
        self.covering: Any = None if self.gap else spec.covering()
        self.count = spec.trigger.count if isinstance(spec.trigger, CountTrigger) else None
        self.period = spec.trigger.period if isinstance(spec.trigger, TimeTrigger) else None
        self.arrived = 0

    def read(self, key: Hashable, reading: Any) -> None:
        """No policy reads it: it counts by its time."""

    def opened(self, partition: Partition) -> None:
        """A partition has no window before its reading enters."""

    def takes(self, key: Hashable, time: int) -> bool:
        """Whether any window that it belongs to is not final."""
        partition = self.window.find(key)
        if not self.gap:
            return bool(self._open(time))
        if partition is not None and partition.closed is not None and time < partition.closed:
            return False
        if time + self.gap + self.lateness > self.window.time:
            return True
        return partition is not None and bool(self._touched(partition, time))

    def enter(self, partition: Partition, reading: Any, marks: None, time: int) -> None:
        """Into each window that it belongs to; one whose end has come gives a revised result."""
        window = self.window
        window.update(partition)
        self.arrived += 1
        for pane in [self._session(partition, time)] if self.gap else self._panes(partition, time):
            self._insert(partition, pane, reading, time)
            if pane.end <= window.time:
                self._give(partition, pane, "revised")
            elif self.count is not None and pane.seen >= self.count:
                pane.seen = 0
                self._give(partition, pane, "early")

    def due(self, rank: int, partition: Partition, pane: Pane | None) -> None:
        """A period is over, a window's end has come, it is final, or nothing can come for it any more."""
        if pane is None:
            self._forget(partition)
        elif rank == TRIGGER:
            self._early(partition, pane)
        elif not pane.gone:
            until = pane.end + (self.lateness if rank == FINAL else 0)
            if until > self.window.time:  # the session has grown since
                self.window.schedule(until, rank, partition, pane)
            elif rank == FINAL:
                self._finish(partition, pane)
            else:
                pane.waiting = False
                self._give(partition, pane, "revised" if pane.ended else "early")

    # which windows

    def _open(self, time: int) -> list[Extent]:
        return [(start, end) for start, end in self.covering(time) if end + self.lateness > self.window.time]

    def _panes(self, partition: Partition, time: int) -> list[Pane]:
        known = {pane.start: pane for pane in partition.panes}
        return [known.get(start) or self._begin(partition, Pane(start, end)) for start, end in self._open(time)]

    def _begin(self, partition: Partition, pane: Pane) -> Pane:
        insort(partition.panes, pane, key=attrgetter("start"))
        made = self.window.summarizer_class
        if made is not None:
            pane.summarizer = made()
            pane.summarizer.open(partition.key)
        self._schedule_early(partition, pane)
        self._schedule_end(partition, pane)
        self.window.schedule(pane.end + self.lateness, FINAL, partition, pane)
        return pane

    def _touched(self, partition: Partition, time: int) -> list[Pane]:
        """The sessions that a reading of this time is a part of: two where it fills the pause between them."""
        return [pane for pane in partition.panes if pane.start < time + self.gap and time < pane.end]

    def _session(self, partition: Partition, time: int) -> Pane:
        touched = self._touched(partition, time)
        if not touched:
            return self._begin(partition, Pane(time, time + self.gap))
        first = touched[0]
        for other in touched[1:]:
            self._join(partition, first, other)
        first.start = min(first.start, time)
        first.end = max(first.end, time + self.gap)
        if self.period is not None and (first.early <= self.window.time or (first.early - first.start) % self.period):
            self._schedule_early(partition, first)  # it goes on after its end, or has begun earlier
        self._schedule_end(partition, first)
        return first

    def _join(self, partition: Partition, first: Pane, other: Pane) -> None:
        """The later session becomes a part of the earlier one."""
        first.end = max(first.end, other.end)
        first.entries = first.entries + other.entries  # all later
        first.size, first.seen = first.size + other.size, first.seen + other.seen
        first.given += other.given
        first.revision = max(first.revision, other.revision)
        other.gone = True
        partition.panes.remove(other)
        self._tell("joined", partition, first, other)

    # what a window does

    def _insert(self, partition: Partition, pane: Pane, reading: Any, time: int) -> None:
        self._tell("before_insert", partition, pane, reading)
        if pane.summarizer is not None:
            pane.summarizer.insert(reading, time)
        if self.window.keeps:
            insort(pane.entries, (time, self.arrived, reading), key=itemgetter(0, 1))
        pane.size += 1
        pane.seen += 1
        self.window.resize(partition, 1)
        self._tell("after_insert", partition, pane, reading)

    def _schedule_end(self, partition: Partition, pane: Pane) -> None:
        """Where its end is to come, and comes before it is final, it gives a result."""
        if self.lateness and not pane.waiting and pane.end > self.window.time:
            pane.waiting = True
            self.window.schedule(pane.end, ENDED, partition, pane)

    def _schedule_early(self, partition: Partition, pane: Pane) -> None:
        """The end of the window's next period."""
        if self.period is not None:
            passed = max(0, self.window.time - pane.start) // self.period
            pane.early = pane.start + (passed + 1) * self.period
            self.window.schedule(pane.early, TRIGGER, partition, pane)

    def _early(self, partition: Partition, pane: Pane) -> None:
        """A period is over; none is of interest from the window's end on, which gives a result by itself."""
        if not pane.gone and pane.end > self.window.time == pane.early:
            self._schedule_early(partition, pane)
            self._give(partition, pane, "early")

    def take_up(self, arrived: int, due: Iterable[tuple[int, int, Pane | None]]) -> None:
        """Go on after so many readings, with what will be due: (deadline, rank, pane)."""
        self.arrived = arrived
        for deadline, rank, pane in due:
            if rank == TRIGGER and pane is not None and self.period and not (deadline - pane.start) % self.period:
                pane.early = deadline

    def _give(self, partition: Partition, pane: Pane, stage: str) -> None:
        """A result; none of a window whose only reading the handler refused."""
        if not pane.size:
            return
        pane.stage, pane.complete = stage, pane.end <= self.window.time
        pane.ended |= pane.complete
        extent = (pane.start, pane.end)
        pane.replaces = tuple(dict.fromkeys(each for each in pane.given if each != extent))
        pane.given = [extent]
        try:
            self._tell("result", partition, pane)
        finally:
            pane.revision += 1

    def _finish(self, partition: Partition, pane: Pane) -> None:
        """No reading can change it any more: its final result, then it is flushed as a tumbling window is."""
        try:
            self._give(partition, pane, "final")
            if pane.size:
                self._tell("before_flush", partition, pane)
        finally:
            pane.gone = True
            partition.panes.remove(pane)
            held = pane.size
            self.window.resize(partition, -held)
            pane.entries, pane.size = [], 0
            if pane.summarizer is not None:
                pane.summarizer.close()
        if held:
            self._tell("after_flush", partition, pane)
        if self.gap:
            partition.closed = pane.end if partition.closed is None else max(pane.end, partition.closed)
            self.window.schedule(self._forgotten(partition), FORGET, partition)
        elif not partition.panes:
            self.window.discard(partition)

    def _forget(self, partition: Partition) -> None:
        """What comes for its last final session is late by its own time: nothing need be known of it."""
        if self._forgotten(partition) <= self.window.time and not partition.panes:
            self.window.discard(partition)

    def _forgotten(self, partition: Partition) -> int:
        """From when on a reading of its last final session touches none that may still come."""
        return (partition.closed or 0) + 2 * self.gap + self.lateness

    def _tell(self, event: str, partition: Partition, pane: Pane, *told: Any) -> None:
        self.window.pane = pane
        self.window.fire(event, partition.key, *told)
        self.window.pane = None
