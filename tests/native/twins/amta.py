"""The readable twin of AMTA as buckets and stored windows need it: joins, level eviction, its result pair."""

from __future__ import annotations

from sluicegate.reference.engines import amta
from sluicegate.reference.program import Partial


class Amta(amta.Amta):
    """A FIFO whose newest leaf readings may join, and whose leaves become pairs."""

    def join(self, reading: Partial) -> None:
        """Fold a reading into the newest leaf, which has no parent yet."""
        newest = self.tail - 1
        self._store(0, newest, self._combine(self._node(0, newest), reading))
        if self.depth() == 1:
            self._compute_left()
        else:
            self.right = self._after(self.base, self._node(0, newest))

    def coarsen(self) -> None:
        """Evict the lowest level: pairs become leaves, a lone first or last leaf becomes a leaf of its own."""
        self._refresh_spine()
        leaves, last = self._levels.pop(0), self.tail - 1
        newest = self._combine(leaves[last - 1], leaves[last]) if last & 1 and last - 1 >= self.head else leaves[last]
        if not self._levels:
            self._levels.append({})
        self.head, self.tail = self.head >> 1, last >> 1
        self._raise(newest)
        self._rebuild()

    def rest(self) -> Partial | None:
        """The partial of all leaves but the oldest, None when there are none."""
        if not self.stack:
            return self.right
        return self._before(self.stack[-1], self.right)

    def result(self) -> tuple[Partial | None, Partial | None]:
        """R0, and R1 without the newest leaf: they depend on how the window came to be."""
        return self.left, self.base

    def load(self, head: int, leaves: list[Partial], left: Partial | None, base: Partial | None) -> None:
        """Take over leaves head … and the result pair of a stored window; everything else follows from them."""
        super().load(head, leaves, None, None)
        if left is None:
            return
        self.left, self.base = left, base
        if self.right is not None:
            self.right = self._after(base, self._node(0, self.tail - 1))
