"""`Sort`: the readings of each tumbling window in order, or a stream in order as far as a sliding window reaches.

Source: SPL's windowing library, 6.1.3 (batch and progressive).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from heapq import heappop, heappush
from typing import Any

from sluicegate.windowing.events import Clock
from sluicegate.windowing.operator import WindowOperator
from sluicegate.windowing.operators.base import Operator
from sluicegate.windowing.partitions import Partition
from sluicegate.windowing.reading import value_reader
from sluicegate.windowing.saving import key_of, key_table
from sluicegate.windowing.spec import WindowSpec
from sluicegate.windowing.triggers import CountTrigger


class _Last:
    """Sorts what it wraps the other way round."""

    __slots__ = ("of",)

    def __init__(self, of: Any) -> None:
        self.of = of

    def __lt__(self, other: _Last) -> bool:
        return bool(other.of < self.of)


class Sort(Operator):
    """Emits readings in the order of `by`: an attribute, several, a callable, None for the readings themselves.

    Equal ones stay in order of arrival. Over a window that is flushed: all of its readings at once. Over a sliding
    window, whose trigger has to be `sg.triggers.count(1)`, progressively: each reading that leaves the window makes
    room for the next one in order, which puts a stream in order whose readings are displaced by less than the window.
    `drain` gives the rest.
    """

    def __init__(self, spec: WindowSpec, by: Any, *, descending: bool = False, clock: Clock | None = None) -> None:
        read: Callable[[Any], Any] = value_reader(by)
        self._by = (lambda reading: _Last(read(reading))) if descending else read
        self._progressive = spec.kind == "sliding"
        self.keeps_readings = not self._progressive
        self._heaps: dict[Hashable, list[tuple[Any, int, Any]]] = {}
        self._arrived = 0
        super().__init__(spec, clock=clock)

    def unsupported(self, spec: WindowSpec) -> str:
        """A progressive sort answers each reading with one: its trigger counts by one."""
        if spec.kind == "sliding" and spec.trigger != CountTrigger(1):
            return "a progressive sort goes reading by reading; its trigger must be sg.triggers.count(1)"
        if spec.kind == "hopping":
            return "a reading is in several hopping windows and would come as often; take tumbling or sliding"
        return ""

    def insert(self, reading: Any, time: int | None = None) -> list[Any]:
        """What comes next in order. Raises InputError, before anything changes, where `by` cannot be read."""
        self._by(reading)
        return super().insert(reading, time)

    def state(self) -> list[Any]:
        """How many arrived, and of a progressive sort what waits, by key, as its heap stands."""
        waiting = ((key, [each[1:] for each in heap]) for key, heap in self._heaps.items())
        return [self._arrived, [(key_table(key), each) for key, each in waiting]]

    def take_up(self, state: list[Any]) -> None:
        """It waits again. A heap that is saved as it stands is one."""
        self._arrived, waiting = state
        self._heaps = {
            key_of(key): [(self._by(reading), ordinal, reading) for ordinal, reading in heap] for key, heap in waiting
        }

    def after_insert(self, window: WindowOperator, key: Hashable, reading: Any) -> None:
        """Sorted in, where it goes progressively."""
        if self._progressive:
            heappush(self._heaps.setdefault(key, []), (self._by(reading), self._arrived, reading))
            self._arrived += 1

    def before_evict(self, window: WindowOperator, key: Hashable, reading: Any) -> None:
        """The next in order, which need not be the one that leaves the window."""
        self.emit(heappop(self._heaps[key])[2])

    def before_flush(self, window: WindowOperator, key: Hashable) -> None:
        """All of a tumbling window."""
        for reading in sorted(window.readings(key), key=self._by):
            self.emit(reading)

    def partition_eviction(self, window: WindowOperator, partitions: Sequence[Partition]) -> None:
        """What a partition still holds comes before it leaves."""
        for each in partitions:
            self._empty(each.key, each.readings)

    def drain(self) -> list[Any]:
        """What windows still hold, each partition's in order, at the end of a stream. They go on without it."""
        for each in self.window.partitions():
            self._empty(each.key, [])
        return self.taken()

    def _empty(self, key: Hashable, held: list[Any]) -> None:
        rest = [reading for _, _, reading in sorted(self._heaps.pop(key, []))]
        for reading in rest if self._progressive else sorted(held, key=self._by):
            self.emit(reading)
