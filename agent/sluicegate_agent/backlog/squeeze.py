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
#: No number of bytes is enough.
_NEVER = 1 << 62


class Budget(Protocol):
    """What an outbox holds, as its index changes."""

    lanes: Lanes
    behind: Behind
    carries: dict[int, tuple[str, ...]]
    merges: int

    @property
    def excess(self) -> tuple[int, int]:
        """So many rows, and bytes, there are too many; not more than 0 where there are not."""

    def cheaper(self, rows: int, cost: int) -> None:
        """So many rows and bytes fewer."""


class Largest:
    """The lane that is largest by a measure, while lanes shrink: a heap whose first entry is looked at again."""

    def __init__(self, lanes: Lanes, size: Callable[[Lane], int]) -> None:
        self._lanes, self._size = lanes, size
        self._heap = [(-size(lane), stream) for stream, lane in lanes.items()]
        heapify(self._heap)

    def find(self) -> tuple[int, Lane, int]:
        """Its stream, it, and the size down to which no other is as large; an empty one where there is none."""
        heap = self._heap
        while heap:
            size, stream = heap[0]
            lane = self._lanes[stream]
            if -self._size(lane) == size:
                rival, other = min(heap[1:3], default=(0, stream))  # it may be less by now, and is never more
                return stream, lane, -rival + (other < stream)
            heapreplace(heap, (-self._size(lane), stream))
        return 0, Lane(), 0


class Squeeze:
    """One round: `decide` changes the index, `apply` the rows."""

    def __init__(self, outbox: Budget) -> None:
        self._outbox = outbox
        self._by_rows, self._by_singles = Largest(outbox.lanes, len), Largest(outbox.lanes, lambda lane: lane.held)
        self.changed: dict[int, set[int]] = {}  # by stream, where rows begin that are others than in the table

    def decide(self, most: int) -> int:
        """At most so many steps; those taken. It ends early where no stream has two rows left."""
        steps = 0
        while steps < most:
            rows, cost = self._outbox.excess
            if rows > 0:
                taken = self._merge(min(most - steps, rows), _NEVER)
            elif cost > 0:
                taken = self._lighten(most - steps, cost)
            else:
                break
            if not taken:
                break
            steps += taken
        return steps

    def _lighten(self, most: int, enough: int) -> int:
        """Take single readings from the rows of one stream; where there are none, or few, merge. The steps taken."""
        stream, lane, floor = self._by_singles.find()
        if not lane.held:
            return self._merge(most, enough)
        least = lane.least if lane.least and self._may_merge else 0
        lightened, saved = lane.lighten(most, floor, least, enough)
        if not lightened:
            return self._merge(1, enough)
        self._outbox.cheaper(0, saved)
        self.changed.setdefault(stream, set()).update(lightened)
        return len(lightened)

    @property
    def _may_merge(self) -> bool:
        return len(self._by_rows.find()[1]) > 1

    def _merge(self, most: int, enough: int) -> int:
        """Merge rows of one stream; how often."""
        stream, lane, floor = self._by_rows.find()
        rows = len(lane)
        if rows < 2:
            return 0
        merged, gone, saved = lane.coarsen(min(most, rows - max(floor, 2) + 1), enough)
        changed = self.changed.setdefault(stream, set())
        changed.update(merged)
        changed.difference_update(gone)
        self._outbox.cheaper(len(gone), saved)
        self._outbox.merges += len(gone)
        return len(gone)

    def apply(self, connection: sqlite3.Connection) -> None:
        """Have the rows be as was decided, inside the caller's transaction."""
        for stream, changed in self.changed.items():
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
        ranges = self._ranges(stream, changed)
        rows = [row for ordinals in ranges for row in rows_of(connection, stream, *ordinals)]
        unpacked = self._outbox.behind.unpack(connection, stream, end)
        coarser = self._coarsened(stream, [*rows, *unpacked], {*changed})
        connection.executemany(DELETE, [(stream, *ordinals) for ordinals in ranges])
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
        place, begin, count = lane.place(items[0].first) if items else 0, 0, len(items)
        firsts, last = lane.firsts, len(lane) - 1
        while begin < count:
            item, following, end = items[begin], firsts[place + 1] if place < last else lane.end, begin + 1
            while end < count and items[end].first < following:
                end += 1
            if item.first in changed:
                item = one_of(items[begin:end], names, keeps=lane.singles[place] > 0, alone=len(lane) == 1)
                if names or lane.sections or len(item.bucket) > PACKED:
                    item = self._carrying(lane, place, item, items[begin:end])
            found.append(item)
            begin = end
            if begin < count:
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
