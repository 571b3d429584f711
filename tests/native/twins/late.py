"""The readable twin of sluicegate.joining.late: late readings of a window of buckets, in a few buckets of their own.

The buckets that came in order stay as they are: contiguous, and in order inside. A late reading joins a late bucket
whose times it lies between, or opens one; of too many the two neighbours of fewest readings become one. All that lie
wholly inside are combined into what the window has inside; the one that the edge cuts is united with the oldest bucket,
if that is cut too, and of such a bucket no place of any reading is known, only its times.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from math import log

from sluicegate.constants import MOST_LATE
from sluicegate.errors import SnapshotError
from sluicegate.monoids.layout import COUNT, O_FIRST, T_FIRST, T_LAST, Component, Layout, Op
from sluicegate.records import Cut
from sluicegate.reference.program import Partial
from twins.program import log_of

_JOINED = struct.Struct("=q")


@dataclass
class LateView:
    """A window of buckets, not empty, as its answers see it."""

    total: Partial
    rest: Partial | None
    leaf: Partial
    where: Cut
    cutoff: int | None
    late: bool = False  # readings that came late are in total and rest, or in the leaf

    @property
    def whole(self) -> bool:
        """Whether the edge cuts no bucket."""
        return bool(self.where.least == self.leaf[COUNT])


class Late:
    """At most MOST_LATE buckets, the oldest first, which do not overlap in time."""

    def __init__(self, layout: Layout, combine: Callable[[Partial, Partial], Partial]) -> None:
        self._layout, self._combine = layout, combine
        self.centers: tuple[float, ...] = ()
        self.buckets: list[Partial] = []
        self.joined = 0

    def add(self, reading: Partial, time: int, cutoff: int) -> None:
        """Take a reading that belongs to the window."""
        self.evict(cutoff)
        self.joined += 1
        at = next((k for k, bucket in enumerate(self.buckets) if bucket[T_LAST] >= time), len(self.buckets))
        if at < len(self.buckets) and self.buckets[at][T_FIRST] <= time:
            self.buckets[at] = self._unite(self.buckets[at], reading)
            return
        self.buckets.insert(at, reading)
        if len(self.buckets) > MOST_LATE:
            sizes = [a[COUNT] + b[COUNT] for a, b in zip(self.buckets, self.buckets[1:], strict=False)]
            best = sizes.index(min(sizes))
            self.buckets[best : best + 2] = [self._combine(*self.buckets[best : best + 2])]

    def evict(self, cutoff: int) -> None:
        """What lies wholly at `cutoff` or earlier leaves."""
        while self.buckets and self.buckets[0][T_LAST] <= cutoff:
            del self.buckets[0]

    @property
    def readings(self) -> int:
        """How many readings the buckets hold."""
        return sum(int(bucket[COUNT]) for bucket in self.buckets)

    def add_to(self, view: LateView) -> None:
        """What is inside of the late ones enters the view of a window by time."""
        cutoff = view.cutoff
        found = [] if cutoff is None else [bucket for bucket in self.buckets if bucket[T_LAST] > cutoff]
        if not found or cutoff is None:
            return
        view.late = True
        cut = found.pop(0) if found[0][T_FIRST] <= cutoff else None
        inside = reduce(self._combine, found) if found else None
        whole = view.whole
        if inside is not None:
            view.total = self._unite(view.total, inside)
        if cut is not None and whole:
            view.rest = view.total
        elif inside is not None:
            view.rest = inside if view.rest is None else self._unite(view.rest, inside)
        if cut is not None:
            view.total = self._unite(view.total, cut)
            self._cut_beside(view, cut, cutoff, whole)

    def _unite(self, a: Partial, b: Partial) -> Partial:
        """Two that may overlap in time: first and last by time, a's before b's equals."""
        out = self._combine(a, b)
        for component in self._layout.components:
            if component.op == Op.FIRST:
                out[component.slot] = (b if b[T_FIRST] < a[T_FIRST] else a)[component.slot]
            elif component.op == Op.LAST:
                out[component.slot] = (b if b[T_LAST] >= a[T_LAST] else a)[component.slot]
        return out

    def _cut_beside(self, view: LateView, cut: Partial, cutoff: int, whole: bool) -> None:
        """The edge cuts a late bucket, and perhaps the oldest of the others: both are one, no place in it is known."""
        n, where = int(cut[COUNT]), view.where
        share = float(cut[T_LAST] - cutoff) / float(cut[T_LAST] - cut[T_FIRST])
        taken = min(max(int(n * share + 0.5), 1), n)
        if whole:
            out, view.where = list(cut), Cut(1, n, taken)
        else:
            out = self._unite(view.leaf, cut)
            view.where = Cut(where.least, where.most + n, where.taken + taken)
        self._forget_places(out, int(out[O_FIRST] + out[COUNT]) - view.where.most)
        view.leaf = out

    def _forget_places(self, bucket: Partial, place: int) -> None:
        """A reading's ordinal says no more whether it is inside: extremes are where nothing follows from it."""
        for component in self._layout.components:
            if component.op in (Op.LOW, Op.HIGH):
                bucket[component.slot + 3] = bucket[component.slot + 4] = place
            elif component.op in (Op.PREFIX, Op.LOG_PREFIX):
                self._widen(bucket, component)

    def _widen(self, bucket: Partial, component: Component) -> None:
        """Any one to all but one of a cut bucket's readings may be outside: between which sums theirs lies."""
        low, high = (bucket[self._layout.slot(op, component.dimension)] for op in (Op.LOW, Op.HIGH))
        center, others, at = self.centers[component.dimension], bucket[COUNT] - 1, component.slot
        if component.op == Op.LOG_PREFIX:
            low, high, center = log(low), log(high), log_of(center)
        low, high = low - center, high - center
        bucket[at + 1], bucket[at + 2] = min(low, others * low), max(high, others * high)

    def save(self, pack: Callable[[Partial], bytes]) -> bytes:
        """How many joined, then the buckets; nothing where none ever did."""
        return _JOINED.pack(self.joined) + b"".join(map(pack, self.buckets)) if self.joined else b""

    def load(self, saved: bytes, unpack: Callable[[bytes], Partial]) -> None:
        """Take over saved buckets. Raises SnapshotError for what cannot be such."""
        size = 8 * self._layout.width
        held = len(saved) - _JOINED.size
        if saved and (held < 0 or held % size or held > MOST_LATE * size):
            raise SnapshotError(f"window state: {held} bytes of late buckets, expected at most {MOST_LATE} of {size}")
        self.joined = _JOINED.unpack_from(saved)[0] if saved else 0
        self.buckets = [unpack(saved[at : at + size]) for at in range(_JOINED.size, len(saved), size)]
