"""The readable twin of sluicegate.core.event_time: windows by time whose readings leave by their own time."""

from __future__ import annotations

from collections.abc import Iterable

from sluicegate.catalogue import needs_order_by
from sluicegate.constants import BY_TIME, NEVER
from sluicegate.errors import ConfigurationError, InputError
from sluicegate.reference.engines.fiba import Fiba
from sluicegate.reference.program import Partial
from sluicegate.reference.state import State


class EventTime(State):
    """A window whose late readings join where they belong in time, or are counted."""

    def advance(self, time: int) -> None:
        """It is at least this late now: what that makes too old leaves."""
        if self._policy != BY_TIME:
            raise ConfigurationError("advance: only a window with policies.time has a time that goes on")
        if time > self.newest:
            self.newest = time
            self._enforce()

    @property
    def _time_cutoff(self) -> int:
        """Readings of this time or earlier are out."""
        return self.newest // self._hop * self._hop - self._value

    def _belongs(self, time: int) -> bool:
        """Whether a reading of this time is inside; one that is not is counted."""
        inside = time > self._time_cutoff
        self.late += not inside
        return inside

    def _has_late_inside(self, times: Iterable[int]) -> bool:
        """Whether one of a batch would have to be put before a reading that is inside when it comes."""
        newest, engine = self.newest, self._engine
        last = engine.leaf(engine.tail - 1)[self._newest_slot] if engine.head < engine.tail else NEVER
        for time in times:
            if time >= newest:
                newest = last = time
            elif time > newest // self._hop * self._hop - self._value:
                if time < last:
                    return True
                last = time
        return False

    def _needs_order(self) -> bool:
        """Whether a window of single readings by time keeps none in memory to put a late one among."""
        leafless = self._kept < self._layout.width or not (self._facts.keeps_leaves or self._up_to)
        return self._timed and leafless

    def refuse_late(self, times: Iterable[int]) -> None:
        """Raise InputError, before any of a batch enters, where one comes late into a window that needs order."""
        if self._needs_order() and self._has_late_inside(times):
            self._refuse_late_leafless()

    def _refuse_late_leafless(self) -> None:
        """Refuse a late reading where there is nothing to put it among."""
        if self._needs_order():
            raise InputError(needs_order_by(self._name))

    def _insert_late(self, time: int, reading: Partial) -> None:
        """Put a reading where it belongs in time; an engine that needs order gives its leaves to one that does not."""
        engine = self._engine
        last = engine.leaf(engine.tail - 1)[self._newest_slot] if engine.head < engine.tail else NEVER
        if self._sorted is None:
            if time >= last:  # after `advance`
                engine.push(reading)
                return
            self._go_by_time()
        if time < last:
            self._late_since = min(self._late_since, time)
        assert self._sorted is not None  # noqa: S101  it is by now
        self._sorted.insert(time, reading)

    def _go_by_time(self) -> None:
        """From here on the leaves stand by their times."""
        self._refuse_late_leafless()
        self._sort([self._engine.leaf(index) for index in range(self._engine.head, self._engine.tail)])
        self.held = NEVER

    def _sort(self, leaves: list[Partial]) -> None:
        head, self._sorted = self._engine.head, Fiba(self._combine)
        self._sorted.load_times(head, [int(leaf[self._newest_slot]) for leaf in leaves], leaves)
        self._engine = self._sorted

    def first_changed(self) -> int:
        """The first closed leaf that `changes` has not given out as it is now: a late one moves all after it."""
        since, self._late_since = self._late_since, 2**63 - 1
        engine = self._engine
        index = engine.head
        while index < engine.tail and engine.leaf(index)[self._newest_slot] <= since:
            index += 1
        return min(self.mark, max(engine.head, index - 1) if index < engine.tail else self.mark)
