"""The oracle: keeps the leaves and recalculates every answer from them, oldest first. Slow on purpose, and plain.

Fact card: FIFO; associative operation; insert and eviction O(1), a query O(n); n partials.
Source: paper DABA, Figure 3.
"""

from __future__ import annotations

from functools import reduce

from sluicegate.reference.program import Partial
from twins.engine import Engine


class Recalc(Engine):
    """A FIFO of leaves head … tail − 1 and nothing else."""

    def join(self, reading: Partial) -> None:
        """Fold a reading into the newest leaf."""
        self._leaves[self.tail - 1] = self._combine(self._leaves[self.tail - 1], reading)

    def coarsen(self) -> None:
        """Level eviction: leaf i becomes part of leaf i >> 1."""
        fine, self._leaves = self._leaves, {}
        for index, leaf in fine.items():
            self._leaves[index >> 1] = self._after(self._leaves.get(index >> 1), leaf)
        self.head, self.tail = self.head >> 1, (self.tail + 1) >> 1

    def total(self) -> Partial | None:
        """Fold all leaves."""
        return reduce(self._combine, self._leaves.values()) if self._leaves else None

    def rest(self) -> Partial | None:
        """Fold all leaves but the oldest."""
        return reduce(self._combine, list(self._leaves.values())[1:]) if len(self._leaves) > 1 else None
