"""`WindowOperator`: runs a window and tells a handler its events. Source: SPL's windowing library, section 4.

Windows without a key are one partition (4.2). There are no threads: time passes where the operator is told so, by
`advance` or by the next reading, and what was due meanwhile happens first, in order of its deadlines. A trigger that
fell behind fires in succession until it has caught up.
"""

from __future__ import annotations

import time as system
from collections.abc import Callable, Hashable, Iterator
from functools import partial
from heapq import heapify, heappop, heappush
from typing import Any

from sluicegate.errors import BusyError, ConfigurationError, InputError, PolicyError
from sluicegate.window.readings import in_range
from sluicegate.windowing.arrival import Sliding, Tumbling
from sluicegate.windowing.event_time import EventTimeWindows, Pane
from sluicegate.windowing.events import Clock, WindowHandler, registered
from sluicegate.windowing.partitions import AGE, DUE_AT, Partition, PartitionStore
from sluicegate.windowing.reading import check_key, key_reader
from sluicegate.windowing.spec import WindowSpec, length_of

EVENTS = [name for name in vars(WindowHandler) if not name.startswith("_") and name != "keeps_readings"]


def wall_clock() -> int:
    """µs since 1970 UTC."""
    return system.time_ns() // 1000


class WindowOperator:
    """One window, of as many partitions as it has keys, and the handler that hears of it.

    `handler`: a `WindowHandler`, or any object with some of its methods. `clock`: what time it is in µs, for windows by
    arrival; the machine's unless given. `summarizer`: a class of `WindowSummarizer`, made once for each tumbling
    window. `store`: where partitions are kept, a `PartitionStore` unless given. `future`: how far the time of a reading
    may be beyond the clock, by event time; later ones are refused. Raises ConfigurationError.

    What a handler raises reaches whoever inserted or advanced; what had happened stays, and the window goes on.
    """

    def __init__(
        self,
        spec: WindowSpec,
        handler: Any = None,
        clock: Clock | None = None,
        *,
        summarizer: Callable[[], Any] | None = None,
        store: PartitionStore | None = None,
        future: int | str | None = None,
    ) -> None:
        self.spec, self.handler = spec, handler
        self.now: int | None = None
        self.late = 0
        self.pane: Pane | None = None
        self.size = 0
        self._heap: list[tuple[int, int, int, int, int, Partition, Pane | None]] = []
        self._pushed, self._most_pushed = 0, 64
        self._inside = False
        self._store = self.store = PartitionStore() if store is None else store
        self._fire = {event: registered(handler, event) for event in EVENTS}
        self._key = key_reader(spec.key)
        self._future = None if future is None else length_of("future", future)
        self._check(clock, summarizer)
        self._clock = wall_clock if clock is None else clock
        self.summarizer_class = self.makes = summarizer
        self.keeps = summarizer is None and getattr(handler, "keeps_readings", True)
        kinds: dict[str, Any] = {"sliding": Sliding, "tumbling": Tumbling}
        self._moves = EventTimeWindows(self) if spec.by_event_time else kinds[spec.kind](self)
        limits = spec.partitions
        self._most, self._most_readings = (limits.count, limits.readings) if limits else (None, None)
        self._age = limits.age if limits else None

    def _check(self, clock: Clock | None, summarizer: Any) -> None:
        if self.spec.asked:
            raise ConfigurationError(
                "trigger: missing: an operator processes a sliding window when its trigger says so, such as "
                "sg.triggers.count(1); sg.Window and sg.KeyedWindows answer whenever they are asked"
            )
        if self._future is not None and not self.spec.by_event_time:
            raise ConfigurationError("future: the window goes by arrival: its clock says what time it is")
        if clock is not None and self.spec.by_event_time and self._future is None:
            raise ConfigurationError(
                "clock: the window goes by event time: readings and advance(to) say what time it is; with `future` the "
                "clock says which of them are too far ahead"
            )
        if summarizer is not None and self.spec.kind in ("sliding", "session"):
            why = "has to keep its readings until they leave" if self.spec.kind == "sliding" else "may join another"
            raise ConfigurationError(f"summarizer: a {self.spec.kind} window {why}; only others are summarized (4.1.8)")
        limits = self.spec.partitions
        if limits and limits.select == "user" and self._fire["partition_selection"] is None:
            raise ConfigurationError("partitions.select: 'user', but the handler has no partition_selection")

    # what a user calls

    def insert(self, reading: Any, time: int | None = None) -> None:
        """A reading arrives: now by the clock, or with its own `time` (µs) where the window goes by event time.

        What was due until then happens first. Raises InputError, and nothing changes, for a reading without what key
        or policies read; BusyError from inside an event.
        """
        key = self._key(reading)
        check_key(key)
        marks = self._moves.read(key, reading)
        time = self._time_of(time)
        self._enter()
        try:
            self._pass(time)
            if not self._moves.takes(key, time):
                self.late += 1
                return
            self._moves.enter(self._partition(key), reading, marks, time)
            while self._most_readings is not None and self.size > self._most_readings:
                self._drop(self._select())
        finally:
            self._leave()

    def advance(self, to: int | None = None) -> None:
        """Time passes, to `to` (µs) or to what the clock says: what is due happens. It never goes back."""
        if to is None and self.spec.by_event_time:
            raise InputError("advance: missing, expected the event time in µs that the stream has reached")
        self._enter()
        try:
            self._pass(self._clock() if to is None else in_range(to))
            while to is None and self._due(self._clock()):  # the handler took its time
                self._pass(self._clock())
        finally:
            self._leave()

    def punctuate(self) -> None:
        """The stream carries a punctuation: windows by punctuation are flushed, the oldest partition first (3.3.4)."""
        if not isinstance(self._moves, Tumbling) or not self._moves.by_punctuation:
            raise InputError("punctuate: the window's eviction policy is not sg.policies.punctuation()")
        self._enter()
        try:
            self._pass(self._clock())
            for partition in list(self._store):
                self._moves.flush_and_discard(partition)
        finally:
            self._leave()

    # what outlives the process

    def snapshot(self) -> bytes:
        """All that it holds, as bytes without code; `restore` goes on from them, with the same events.

        Raises ConfigurationError for readings, keys or summarizers that cannot be written down, and BusyError.
        """
        from sluicegate.windowing import saving

        self._enter()
        try:
            return saving.snapshot(self)
        finally:
            self._leave()

    def restore(self, saved: bytes) -> None:
        """Go on from a snapshot of the same definition. Raises SnapshotError, and nothing has changed."""
        from sluicegate.windowing import saving

        self._enter()
        try:
            saving.restore(self, saved)
        finally:
            self._leave()

    def due_events(self) -> list[tuple[int, int, int, int, int, Partition, Pane | None]]:
        """What will be due in what is still there."""
        return [each for each in self._heap if not (each[5].gone or (each[6] is not None and each[6].gone))]

    @property
    def arrived(self) -> int:
        """Readings that entered by event time: the next one's ordinal."""
        return self._moves.arrived if isinstance(self._moves, EventTimeWindows) else 0

    def take_over(self, now: int | None, late: int, size: int, arrived: int, due: list[Any]) -> None:
        """Time, counts and what will be due, from a snapshot."""
        self.now, self.late, self.size, self._heap = now, late, size, due
        if isinstance(self._moves, EventTimeWindows):
            self._moves.take_up(arrived, ((each[0], each[1], each[6]) for each in due))
        self._pushed = max((each[4] for each in due), default=0)
        self._most_pushed = 2 * len(due) + 64

    # what a handler may ask

    def readings(self, key: Hashable = None) -> list[Any]:
        """What a partition holds, oldest first; of windows by event time, inside an event: what that window holds."""
        partition = self._store.find(key)
        if self.pane is not None:
            return self.pane.readings
        return [] if partition is None else partition.readings

    def summarizer(self, key: Hashable = None) -> Any:
        """What a partition keeps in place of its readings; None where there is nothing yet."""
        partition = self._store.find(key)
        if self.pane is not None:
            return self.pane.summarizer
        return None if partition is None else partition.summarizer

    def partitions(self) -> Iterator[Partition]:
        """All partitions, the oldest first."""
        return iter(self._store)

    def __len__(self) -> int:
        """The readings in all partitions; in windows that overlap each counts once for each of them."""
        return self.size

    # what the kinds of windows call

    def fire(self, event: str, *told: Any) -> None:
        """Tell the handler, if it wants to hear."""
        method = self._fire[event]
        if method is not None:
            method(self, *told)

    def schedule(self, deadline: int, rank: int, partition: Partition, pane: Pane | None = None) -> None:
        """Something will be due; `partitions` has the ranks."""
        self._pushed += 1
        start = 0 if pane is None else pane.start
        heappush(self._heap, (deadline, rank, partition.number, start, self._pushed, partition, pane))
        if len(self._heap) > self._most_pushed:  # what has left is not kept until its deadlines
            self._heap[:] = self.due_events()
            heapify(self._heap)
            self._most_pushed = 2 * len(self._heap) + 64

    def update(self, partition: Partition) -> None:
        """A reading has entered."""
        self._store.update(partition, self.time)

    def resize(self, partition: Partition, by: int) -> None:
        """So many readings more."""
        partition.size += by
        self.size += by

    def discard(self, partition: Partition) -> None:
        """It holds nothing and is needed no more (3.2.2)."""
        if not partition.gone:
            self._store.remove(partition)

    def find(self, key: Hashable) -> Partition | None:
        """A key's partition."""
        return self._store.find(key)

    @property
    def time(self) -> int:
        """Now, inside of an event or an insertion."""
        return 0 if self.now is None else self.now

    # time

    def _time_of(self, time: int | None) -> int:
        if self.spec.by_event_time:
            if time is None:
                raise InputError("time: missing, expected microseconds as int64, since the window goes by event time")
            if self._future is not None and in_range(time) > self._clock() + self._future:
                raise InputError(
                    f"time: {time!r} is later than the clock by more than `future` ({self._future} µs): it would make "
                    "windows final; hold it back until its time is there, or set the clock"
                )
            return in_range(time)
        if time is not None:
            raise InputError("time: given, but the window goes by arrival: set its clock instead")
        return self._clock()

    def _due(self, now: int) -> bool:
        return bool(self._heap) and self._heap[0][:2] <= (now, DUE_AT)

    def _pass(self, now: int) -> None:
        """What is due happens, in order of deadlines; then it is now."""
        now = now if self.now is None else max(now, self.now)
        while self._due(now):
            deadline, rank, _, _, _, partition, pane = heappop(self._heap)
            if partition.gone:
                continue
            self.now = deadline
            if rank == AGE:
                self._check_age(partition, deadline)
            else:
                self._moves.due(rank, partition, pane)
        self.now = now

    def _check_age(self, partition: Partition, deadline: int) -> None:
        until = partition.updated + (self._age or 0)
        if until > deadline:
            self.schedule(until, AGE, partition)
        else:
            self._drop([partition])

    # partitions

    def _partition(self, key: Hashable) -> Partition:
        """The key's; a new one where there is none, for which another may have to make room (3.5.1)."""
        found = self._store.find(key)
        if found is not None:
            return found
        while self._most is not None and len(self._store) >= self._most:
            self._drop(self._select())
        partition = self._store.add(key, self.time)
        if self._age is not None:
            self.schedule(self.time + self._age, AGE, partition)
        self._moves.opened(partition)
        return partition

    def _select(self) -> list[Partition]:
        limits = self.spec.partitions
        by = "lru" if limits is None else limits.select
        if isinstance(by, str) and by != "user":
            return [self._store.select(by)]
        select = by if callable(by) else partial(self.handler.partition_selection, self)
        keys = list(select(iter(self._store)))
        chosen = [self._store.find(key) for key in dict.fromkeys(keys)]
        found = [partition for partition in chosen if partition is not None]
        if not found or len(found) < len(chosen):
            raise PolicyError(f"partition selection: chose {keys!r}, expected keys of one or more partitions held")
        return found

    def _drop(self, partitions: list[Partition]) -> None:
        """They leave; the handler sees them first."""
        self.fire("partition_eviction", partitions)
        for partition in partitions:
            for summarizer in partition.summarizers:
                summarizer.close()
            self.size -= partition.size
            self._store.remove(partition)

    def _enter(self) -> None:
        if self._inside:
            raise BusyError("WindowOperator: called from inside one of its own events; wait until it returns")
        self._inside = True

    def _leave(self) -> None:
        self._inside, self.pane = False, None
