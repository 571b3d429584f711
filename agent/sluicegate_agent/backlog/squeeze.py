"""Makes the outbox coarser: what is to change is decided on the index alone, then each row is read and written once.

Single readings go first, the oldest of the stream with most of them. Then neighbours are merged: the smallest pair of
the stream with most rows, the oldest of equals, so that all stay about equally coarse.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from heapq import heapify, heapreplace
from typing import Protocol

from sluicegate.format.bucket import PACKED
from sluicegate_agent.backlog.lanes import Lane
from sluicegate_agent.backlog.rows import DELETE, READING_COST, encoded, insert_rows, one_of, rows_of
from sluicegate_agent.behind import Behind
from sluicegate_agent.streams import Closed

Lanes = dict[int, Lane]


class Budget(Protocol):
    """What an outbox holds, as its index changes."""

    lanes: Lanes
    behind: Behind
    carries: dict[int, tuple[str, ...]]
    merges: int

    @property
    def needs(self) -> str:
        """What there is too much of: "rows", "bytes", or nothing."""

    def cheaper(self, rows: int, cost: int) -> None:
        """So many rows and bytes fewer."""


class Largest:
    """The lane that is largest by a measure, while lanes shrink: a heap whose first entry is looked at again."""

    def __init__(self, lanes: Lanes, size: Callable[[Lane], int]) -> None:
        self._lanes, self._size = lanes, size
        self._heap = [(-size(lane), stream) for stream, lane in lanes.items()]
        heapify(self._heap)

    def find(self) -> tuple[int, Lane]:
        """Its stream, and it; an empty one where there is none."""
        while self._heap:
            size, stream = self._heap[0]
            lane = self._lanes[stream]
            if -self._size(lane) == size:
                return stream, lane
            heapreplace(self._heap, (-self._size(lane), stream))
        return 0, Lane()


class Squeeze:
    """One round: `decide` changes the index, `apply` the rows."""

    def __init__(self, outbox: Budget) -> None:
        self._outbox = outbox
        self._by_rows, self._by_singles = Largest(outbox.lanes, len), Largest(outbox.lanes, lambda lane: lane.held)
        self._changed: dict[int, set[int]] = {}  # by stream, where rows begin that are others than in the table

    def decide(self, most: int) -> int:
        """At most so many steps; those taken. It ends early where no stream has two rows left."""
        steps = 0
        while steps < most and (needs := self._outbox.needs):
            if not (self._merge() if needs == "rows" else self._lighten()):
                break
            steps += 1
        return steps

    def _lighten(self) -> bool:
        stream, lane = self._by_singles.find()
        at = lane.first_with_singles()
        if at is None or (lane.singles[at] <= lane.least and self._may_merge):
            return self._merge()
        self._outbox.cheaper(0, lane.keeps(at, 0))
        self._changed.setdefault(stream, set()).add(lane.firsts[at])
        return True

    @property
    def _may_merge(self) -> bool:
        return len(self._by_rows.find()[1]) > 1

    def _merge(self) -> bool:
        stream, lane = self._by_rows.find()
        if len(lane) < 2:
            return False
        at = lane.finest_pair()
        changed = self._changed.setdefault(stream, set())
        changed.add(lane.firsts[at])
        changed.discard(lane.firsts[at + 1])
        self._outbox.cheaper(1, lane.merge(at))
        self._outbox.merges += 1
        return True

    def apply(self, connection: sqlite3.Connection) -> None:
        """Have the rows be as was decided, inside the caller's transaction."""
        for stream, changed in self._changed.items():
            self._apply(connection, stream, sorted(changed))

    def _apply(self, connection: sqlite3.Connection, stream: int, changed: list[int]) -> None:
        lane, behind = self._outbox.lanes[stream], self._outbox.behind
        waiting = behind.in_memory(stream)
        edge = waiting[0].first if waiting else lane.end
        stored = [first for first in changed if first < edge]
        end = lane.following(lane.place(stored[-1])) if stored else 0
        if len(stored) < len(changed) and end <= edge:  # else one that is stored takes in one that is not
            behind.recast(stream, self._coarsened(stream, waiting, {*changed}))
        if stored:
            self._store(connection, stream, stored if end <= edge else changed, lane.end if end > edge else end)

    def _store(self, connection: sqlite3.Connection, stream: int, changed: list[int], end: int) -> None:
        """Write rows that changed; those packed before `end` get rows of their own with it."""
        rows = [row for ordinals in self._ranges(stream, changed) for row in rows_of(connection, stream, *ordinals)]
        unpacked = self._outbox.behind.unpack(connection, stream, end)
        coarser = self._coarsened(stream, [*rows, *unpacked], {*changed})
        connection.executemany(DELETE, [(stream, row.first) for row in rows])
        insert_rows(connection, stream, coarser)

    def _ranges(self, stream: int, changed: Iterable[int]) -> list[tuple[int, int]]:
        """The ordinals of rows that changed, from … to before …; neighbours together."""
        lane, found = self._outbox.lanes[stream], list[tuple[int, int]]()
        for first in changed:
            begin, end = first, lane.following(lane.place(first))
            if found and found[-1][1] == first:
                begin, _ = found.pop()
            found.append((begin, end))
        return found

    def _coarsened(self, stream: int, items: list[Closed], changed: set[int]) -> list[Closed]:
        """The buckets as the index has them; what it could not know of them is noted there."""
        lane, names = self._outbox.lanes[stream], self._outbox.carries.get(stream, ())
        found: list[Closed] = []
        place, begin = lane.place(items[0].first) if items else 0, 0
        while begin < len(items):
            item, following, end = items[begin], lane.following(place), begin + 1
            while end < len(items) and items[end].first < following:
                end += 1
            if item.first in changed:
                item = one_of(items[begin:end], names, keeps=lane.singles[place] > 0, alone=len(lane) == 1)
                if names or lane.sections or len(item.bucket) > PACKED:
                    item = self._carrying(lane, place, item, items[begin:end])
            found.append(item)
            begin = end
            if begin < len(items):
                place = place + 1 if items[begin].first == following else lane.place(items[begin].first)
        return found

    def _carrying(self, lane: Lane, at: int, item: Closed, items: list[Closed]) -> Closed:
        """Note what a row carries now; what it was where that is the lighter one."""
        before = encoded(lane.carried)
        if len(items) == 1 and self._is_heavier(item, items[0]):
            item = items[0]
            lane.least = max(lane.least, len(item.readings or b"") // 16)
            self._outbox.cheaper(0, lane.keeps(at, len(item.readings or b"") // 16))
        lane.carries(at, len(item.bucket) - PACKED)
        self._outbox.cheaper(0, before - encoded(lane.carried))
        return item

    def _is_heavier(self, light: Closed, whole: Closed) -> bool:
        """Whether it takes more room without its single readings, and something else can be done."""
        section = encoded(len(light.bucket) - PACKED)
        return light.readings is None and section >= len(whole.readings or b"") // 16 * READING_COST and self._may_merge
