"""Partitions of a window: what is kept for each key, and which leave. Source: SPL's windowing library, 3.2 and 3.5."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any, Final

from sluicegate.checks import MAX_COUNT, MAX_SPAN, is_whole
from sluicegate.errors import ConfigurationError
from sluicegate.spans import micros

Select = str | Callable[[Iterable["Partition"]], Iterable[Hashable]]
SELECTIONS = ("lru", "lfu", "oldest", "user")

# What may be due in a partition, in the order in which it happens where deadlines are equal. First what is due when it
# is the deadline, since a period has passed; what ranks above DUE_AT is due only after it: a time was exceeded.
FULL: Final = 0
TRIGGER: Final = 1  # also the early results of a window by event time
ENDED: Final = 2
FINAL: Final = 3
DUE_AT: Final = 9
EVICT: Final = 10
FLUSH: Final = 11
AGE: Final = 12
FORGET: Final = 13


@dataclass(frozen=True, slots=True)
class PartitionEviction:
    """When partitions leave: more than `count` of them, more than `readings` in all, or none new for longer than `age`.

    `select`: which leave where there are too many: "lru" (least recently updated), "lfu" (least frequently updated),
    "oldest", "user" (the handler's `partition_selection`), or a callable that is given the partitions and returns keys.
    Raises ConfigurationError. Source: 3.5.1 and 3.5.2.
    """

    count: int | None = None
    readings: int | None = None
    age: int | None = None
    select: Select = "lru"

    def __post_init__(self) -> None:
        """Check the settings; a text for `age` becomes µs."""
        if self.count is None and self.readings is None and self.age is None:
            raise ConfigurationError("partitions: nothing is limited; expected count, readings or age")
        for name, value in (("count", self.count), ("readings", self.readings)):
            if value is not None and not is_whole(value, 1, MAX_COUNT):
                raise ConfigurationError(f"partitions.{name}: {value!r}, expected a whole number from 1 to 2^53")
        if self.age is not None:
            age = micros(self.age)
            if not is_whole(age, 1, MAX_SPAN):
                raise ConfigurationError(f"partitions.age: {self.age!r}, expected a length: µs, or a text like '24h'")
            object.__setattr__(self, "age", age)
        if not (callable(self.select) or self.select in SELECTIONS):
            raise ConfigurationError(
                f"partitions.select: {self.select!r}, expected one of {', '.join(SELECTIONS)}, or a callable"
            )
        if self.select != "lru" and self.count is None and self.readings is None:
            raise ConfigurationError(
                f"partitions.select: {self.select!r}, but age alone selects by itself; leave it out, or limit count"
            )


class Partition:
    """One key's part of a window. A handler may read it; only the window changes it."""

    __slots__ = (
        "base", "closed", "evicting", "full", "gone", "held", "key", "newest", "number", "panes", "seen", "size",
        "summarizer", "updated", "updates",
    )  # fmt: skip

    def __init__(self, key: Hashable, number: int, now: int) -> None:
        """`number`: how many partitions were made before this one."""
        self.key, self.number = key, number
        self.held: deque[tuple[Any, Any]] = deque()  # (what its eviction goes by, reading)
        self.size = 0  # of its readings, held or summarized; by event time each counts for each window it is in
        self.updates, self.updated = 0, now
        self.gone = False
        self.summarizer: Any = None
        self.newest: Any = None  # what the newest reading's eviction goes by
        self.base: Any = None  # what the next reading is measured by
        self.seen, self.full = 0, False  # readings since the last trigger; whether it has been full
        self.evicting = False  # whether it is scheduled when its oldest reading leaves
        self.panes: list[Any] = []  # by event time: its windows, by their beginning
        self.closed: int | None = None  # where the last of its sessions that are final ended

    def __len__(self) -> int:
        """How many readings it holds."""
        return self.size

    @property
    def readings(self) -> list[Any]:
        """What it holds, oldest first."""
        if self.panes:
            return [reading for pane in self.panes for reading in pane.readings]
        return [reading for _, reading in self.held]

    @property
    def summarizers(self) -> list[Any]:
        """What it keeps in place of readings."""
        found = [pane.summarizer for pane in self.panes] if self.panes else [self.summarizer]
        return [each for each in found if each is not None]


class PartitionStore:
    """Keeps partitions by key, and knows the least recently and the least frequently updated and the oldest of them.

    All in O(1), the least frequently updated in O(log n) amortised. Another store with these methods may take its
    place: `WindowOperator(..., store=...)`.
    """

    def __init__(self) -> None:
        self._by_key: OrderedDict[Hashable, Partition] = OrderedDict()  # the least recently updated first
        self._made: dict[int, Partition] = {}  # the oldest first
        self._by_updates: list[tuple[int, int]] | None = None  # (updates, number), some of them too low
        self._next = 0

    def __len__(self) -> int:
        """How many partitions there are."""
        return len(self._by_key)

    def __iter__(self) -> Iterator[Partition]:
        """All, the oldest first."""
        return iter(self._made.values())

    def by_update(self) -> Iterator[Partition]:
        """All, the least recently updated first."""
        return iter(self._by_key.values())

    @property
    def following(self) -> int:
        """How many were made."""
        return self._next

    def refill(self, partitions: Iterable[Partition], following: int) -> None:
        """These, the least recently updated first, in place of what is here."""
        self._by_key = OrderedDict((each.key, each) for each in partitions)
        self._made = {each.number: each for each in sorted(self._by_key.values(), key=lambda each: each.number)}
        self._by_updates, self._next = None, following

    def find(self, key: Hashable) -> Partition | None:
        """The partition of a key, if there is one."""
        return self._by_key.get(key)

    def add(self, key: Hashable, now: int) -> Partition:
        """A new one; there must be none of this key."""
        partition = Partition(key, self._next, now)
        self._next += 1
        self._by_key[key] = self._made[partition.number] = partition
        if self._by_updates is not None:
            heappush(self._by_updates, (0, partition.number))
        return partition

    def update(self, partition: Partition, now: int) -> None:
        """A reading has entered it."""
        partition.updates += 1
        partition.updated = now
        self._by_key.move_to_end(partition.key)

    def remove(self, partition: Partition) -> None:
        """It leaves; whoever still has it sees that it is gone."""
        partition.gone = True
        del self._by_key[partition.key], self._made[partition.number]

    def select(self, by: str) -> Partition:
        """The one that leaves next by "lru", "lfu" (of equals the oldest) or "oldest"."""
        if by == "lfu":
            return self._least_frequent()
        return next(iter((self._by_key if by == "lru" else self._made).values()))

    def _least_frequent(self) -> Partition:
        """Entries are corrected when they come up: updates only grow."""
        if self._by_updates is None or len(self._by_updates) > 2 * len(self._made) + 64:
            self._by_updates = sorted((each.updates, each.number) for each in self._made.values())
        heap = self._by_updates
        while True:
            updates, number = heap[0]
            partition = self._made.get(number)
            if partition is not None and partition.updates == updates:
                return partition
            heappop(heap)
            if partition is not None:
                heappush(heap, (partition.updates, number))
