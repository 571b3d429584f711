"""`Dedup`: lets a reading pass where its window holds none that equals it. Source: SPL's windowing library, 2.2."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from sluicegate.windowing.events import Clock
from sluicegate.windowing.operator import WindowOperator
from sluicegate.windowing.operators.base import Operator
from sluicegate.windowing.partitions import Partition
from sluicegate.windowing.reading import check_key, value_reader
from sluicegate.windowing.saving import key_of, key_table
from sluicegate.windowing.spec import WindowSpec


class Dedup(Operator):
    """Emits the readings that are new in the window they enter: no two of equal `by` pass within one window.

    `by`: an attribute, several, a callable, or None for the reading itself. Every reading enters, so one that is
    repeated again and again passes once. Of a count of n the window that a reading enters has the n − 1 before it.
    """

    def __init__(self, spec: WindowSpec, by: Any, *, clock: Clock | None = None) -> None:
        self._by: Callable[[Any], Hashable] = value_reader(by)
        self.keeps_readings = spec.kind == "sliding"
        self._held: dict[Hashable, Counter[Hashable]] = {}
        super().__init__(spec, clock=clock)

    def unsupported(self, spec: WindowSpec) -> str:
        """A reading passes when it arrives or never."""
        return "by event time a reading may come before what it repeats; take a window by arrival" * spec.by_event_time

    def insert(self, reading: Any, time: int | None = None) -> list[Any]:
        """The reading, if it is new. Raises InputError, before anything changes, where `by` cannot be read."""
        check_key(self._by(reading))
        return super().insert(reading, time)

    def state(self) -> list[Any]:
        """How many of each kind its windows hold, by key."""
        counts = ((key, [(key_table(kind), n) for kind, n in held.items()]) for key, held in self._held.items())
        return [(key_table(key), each) for key, each in counts]

    def take_up(self, state: list[Any]) -> None:
        """They hold them again."""
        self._held = {key_of(key): Counter({key_of(kind): n for kind, n in held}) for key, held in state}

    def before_insert(self, window: WindowOperator, key: Hashable, reading: Any) -> None:
        """What had to leave has left: is there an equal one?"""
        held, identity = self._held.setdefault(key, Counter()), self._by(reading)
        if not held[identity]:
            self.emit(reading)
        held[identity] += 1

    def before_evict(self, window: WindowOperator, key: Hashable, reading: Any) -> None:
        """One less of its kind."""
        held, identity = self._held[key], self._by(reading)
        held[identity] -= 1
        if not held[identity]:
            del held[identity]

    def after_flush(self, window: WindowOperator, key: Hashable) -> None:
        """All may pass again."""
        self._held.pop(key, None)

    def partition_eviction(self, window: WindowOperator, partitions: Sequence[Partition]) -> None:
        """The same for a key that leaves."""
        for each in partitions:
            self._held.pop(each.key, None)
