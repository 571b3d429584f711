"""Tumbling and sliding windows in order of arrival: Tables I and II. Source: SPL's windowing library, 3.3 and 4.2."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

from sluicegate.checks import is_number
from sluicegate.errors import InputError
from sluicegate.policies import Count, Delta, Punctuation, Time
from sluicegate.windowing.partitions import EVICT, FLUSH, FULL, TRIGGER, Partition
from sluicegate.windowing.reading import attribute
from sluicegate.windowing.triggers import CountTrigger, DeltaTrigger, TimeTrigger

if TYPE_CHECKING:
    from sluicegate.windowing.operator import WindowOperator

Marks = tuple[Any, Any]  # what eviction and trigger go by
KIND = {Count: "count", Delta: "delta", Time: "time", Punctuation: "punctuation"}
KIND_OF_TRIGGER = {CountTrigger: "count", DeltaTrigger: "delta", TimeTrigger: "time"}

# what a reading's arrival does, in which order; what time does happens independently of it
TABLE_1 = {
    "count": ("insert", "flush"),
    "delta": ("flush", "insert"),
    "time": ("insert",),
    "punctuation": ("insert",),
}
TABLE_2 = {
    ("count", "count"): ("evict", "insert", "trigger"),
    ("count", "delta"): ("trigger", "evict", "insert"),
    ("count", "time"): ("evict", "insert"),
    ("delta", "count"): ("evict", "insert", "trigger"),
    ("delta", "delta"): ("trigger", "evict", "insert"),
    ("delta", "time"): ("evict", "insert"),
    ("time", "count"): ("insert", "trigger"),
    ("time", "delta"): ("trigger", "insert"),
    ("time", "time"): ("insert",),
}


class _Arrivals:
    """What both kinds share: a reading's marks, and its insertion."""

    def __init__(self, window: WindowOperator) -> None:
        self.window = window
        evict = window.spec.evict
        self.evict: Any = evict
        self.by = KIND[type(evict)]

    def takes(self, key: Hashable, time: int) -> bool:
        """No reading comes late."""
        return True

    def read(self, key: Hashable, reading: Any) -> Marks:
        """What the policies read of it. Raises InputError for what is no number, or falls where it must not."""
        mark = None
        if isinstance(self.evict, Delta):
            mark = number(reading, self.evict.dimension)
            if self.evict.growing:
                self._refuse_falling(self.window.find(key), mark)
        return mark, None

    def _refuse_falling(self, partition: Partition | None, mark: Any) -> None:
        newest = None if partition is None else partition.newest
        if newest is not None and mark < newest:
            raise InputError(
                f"reading[{self.evict.dimension!r}]: {mark!r} after {newest!r}, but it is declared growing"
            )

    def _insert(self, partition: Partition, reading: Any, marks: Marks) -> None:
        window, key = self.window, partition.key
        self._summarized(partition)
        window.fire("before_insert", key, reading)
        mark = window.time if self.by == "time" else marks[0]
        partition.newest = mark
        if partition.summarizer is not None:
            partition.summarizer.insert(reading, window.time)
        self._hold(partition, mark, reading)
        window.resize(partition, 1)
        window.update(partition)
        window.fire("after_insert", key, reading)

    def _summarized(self, partition: Partition) -> None:
        made = self.window.summarizer_class
        if made is not None and partition.summarizer is None:
            partition.summarizer = made()
            partition.summarizer.open(partition.key)

    def _hold(self, partition: Partition, mark: Any, reading: Any) -> None:
        partition.held.append((mark, reading if self.window.keeps else None))


class Tumbling(_Arrivals):
    """Holds readings until it is full, is processed, and empty again (3.1.1)."""

    def __init__(self, window: WindowOperator) -> None:
        super().__init__(window)
        self.by_punctuation = self.by == "punctuation"
        full = {"count": self._full_by_count, "delta": self._full_by_delta}.get(self.by)
        steps = {"insert": self._insert, "flush": full}
        self._steps: list[Any] = [steps[name] for name in TABLE_1[self.by]]

    def opened(self, partition: Partition) -> None:
        """A partition is new: where it goes by time, its first period begins."""
        if self.by == "time":
            self.window.schedule(self.window.time + self.evict.span, FLUSH, partition)

    def enter(self, partition: Partition, reading: Any, marks: Marks, time: int) -> None:
        """A row of Table I. Where a handler raised when the window was full, it is flushed before the next reading."""
        if self.by == "count" and partition.size >= self.evict.limit:
            self._flush(partition)
        for step in self._steps:
            step(partition, reading, marks)

    def due(self, rank: int, partition: Partition, pane: object) -> None:
        """A period since the last flush is over. A partition in which nothing came since then is needed no more."""
        if not partition.size:
            self.window.discard(partition)
            return
        self.window.schedule(self.window.time + self.evict.span, FLUSH, partition)
        self._flush(partition)

    def flush_and_discard(self, partition: Partition) -> None:
        """After its processing it is needed no more (3.2.2)."""
        try:
            self._flush(partition)
        finally:
            self.window.discard(partition)

    def _full_by_count(self, partition: Partition, reading: Any, marks: Marks) -> None:
        if partition.size == self.evict.limit:
            self.flush_and_discard(partition)

    def _full_by_delta(self, partition: Partition, reading: Any, marks: Marks) -> None:
        if partition.size and abs(marks[0] - partition.base) > self.evict.width:
            self._flush(partition)

    def _flush(self, partition: Partition) -> None:
        """What is processed leaves, also where the handler raised."""
        window, key = self.window, partition.key
        try:
            window.fire("before_flush", key)
        finally:
            summarizer, partition.summarizer = partition.summarizer, None
            partition.held.clear()
            window.resize(partition, -partition.size)
            if summarizer is not None:
                summarizer.close()
        window.fire("after_flush", key)

    def _hold(self, partition: Partition, mark: Any, reading: Any) -> None:
        """No policy of a tumbling window needs more than the oldest reading's attribute."""
        if not partition.size:
            partition.base = mark
        if self.window.keeps:
            super()._hold(partition, mark, reading)


class Sliding(_Arrivals):
    """Holds the newest readings; what is older leaves one by one (3.1.2)."""

    def __init__(self, window: WindowOperator) -> None:
        super().__init__(window)
        self.trigger: Any = window.spec.trigger
        self.at = KIND_OF_TRIGGER[type(self.trigger)]
        evicts = {"count": self._evict_by_count, "delta": self._evict_by_delta}.get(self.by)
        triggers = {"count": self._trigger_by_count, "delta": self._trigger_by_delta}.get(self.at)
        steps = {"evict": evicts, "insert": self._insert, "trigger": triggers}
        self._steps: list[Any] = [steps[name] for name in TABLE_2[self.by, self.at]]
        if self.by == "delta":
            self._steps.insert(0, self._full_by_delta)

    def read(self, key: Hashable, reading: Any) -> Marks:
        """Beside what the eviction goes by, what the trigger does."""
        mark, _ = super().read(key, reading)
        return mark, number(reading, self.trigger.attribute) if self.at == "delta" else None

    def opened(self, partition: Partition) -> None:
        """A partition is new: its periods begin."""
        if self.by == "time":
            self.window.schedule(self.window.time + self.evict.span, FULL, partition)
        if self.at == "time":
            self.window.schedule(self.window.time + self.trigger.period, TRIGGER, partition)

    def enter(self, partition: Partition, reading: Any, marks: Marks, time: int) -> None:
        """A cell of Table II."""
        for step in self._steps:
            step(partition, reading, marks)

    def due(self, rank: int, partition: Partition, pane: object) -> None:
        """A cell's other part: what time does by itself."""
        if rank == FULL:
            self._full(partition)
        elif rank == TRIGGER:
            self.window.schedule(self.window.time + self.trigger.period, TRIGGER, partition)
            self._process(partition)
        else:
            self._evict_by_time(partition)

    # eviction

    def _evict_by_count(self, partition: Partition, reading: Any, marks: Marks) -> None:
        while len(partition.held) >= self.evict.limit:
            self._evict_oldest(partition)

    def _evict_by_delta(self, partition: Partition, reading: Any, marks: Marks) -> None:
        held = partition.held
        while held and abs(marks[0] - held[0][0]) > self.evict.width:
            self._evict_oldest(partition)

    def _evict_by_time(self, partition: Partition) -> None:
        """Those whose age is exceeding the span now."""
        held, span, now = partition.held, self.evict.span, self.window.time
        partition.evicting = False
        try:
            while held and held[0][0] + span <= now:
                self._evict_oldest(partition)
        finally:
            self._watch(partition)

    def _watch(self, partition: Partition) -> None:
        """The oldest reading's deadline is enough: the others' are later (4.2)."""
        if partition.held and not partition.evicting:
            partition.evicting = True
            self.window.schedule(partition.held[0][0] + self.evict.span, EVICT, partition)

    def _evict_oldest(self, partition: Partition) -> None:
        window, key, reading = self.window, partition.key, partition.held[0][1]
        window.fire("before_evict", key, reading)
        partition.held.popleft()
        window.resize(partition, -1)
        window.fire("after_evict", key, reading)

    # insertion and the first time it is full

    def _insert(self, partition: Partition, reading: Any, marks: Marks) -> None:
        super()._insert(partition, reading, marks)
        if self.by == "time":
            self._watch(partition)
        elif self.by == "count" and len(partition.held) == self.evict.limit:
            self._full(partition)

    def _full_by_delta(self, partition: Partition, reading: Any, marks: Marks) -> None:
        """It is full when the next reading would be too far away (3.3.2)."""
        if partition.held and abs(marks[0] - partition.held[0][0]) > self.evict.width:
            self._full(partition)

    def _full(self, partition: Partition) -> None:
        if not partition.full:
            partition.full = True
            self.window.fire("initial_full", partition.key)

    # trigger

    def _trigger_by_count(self, partition: Partition, reading: Any, marks: Marks) -> None:
        partition.seen += 1
        if partition.seen >= self.trigger.count:
            partition.seen = 0
            self._process(partition)

    def _trigger_by_delta(self, partition: Partition, reading: Any, marks: Marks) -> None:
        """By the last reading that triggered; the first of a partition has nothing to be processed before it."""
        first, mark = partition.base is None, marks[1]
        if first or abs(mark - partition.base) > self.trigger.width:
            partition.base = mark
            if not first:
                self._process(partition)

    def _process(self, partition: Partition) -> None:
        if partition.full or self.window.spec.partial:
            self.window.fire("trigger", partition.key)


def number(reading: Any, name: str | None) -> Any:
    """An attribute that policies calculate with. Raises InputError."""
    x = attribute(reading, name)
    if not is_number(x):
        raise InputError(f"reading[{name!r}]: {x!r}, expected a finite number, since a policy reads it")
    return x
