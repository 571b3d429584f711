"""The oracle: keeps the leaves and recalculates every answer from them, oldest first. Slow on purpose, and plain."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from sluicegate.reference.program import Partial


class Recalc:
    """A FIFO of leaves head … tail − 1. Fact card: evicts one by one; any associative operation; a query is O(n)."""

    def __init__(self, combine: Callable[[Partial, Partial], Partial]) -> None:
        self._combine = combine
        self._leaves: dict[int, Partial] = {}
        self.head = self.tail = 0

    def push(self, leaf: Partial) -> None:
        self._leaves[self.tail] = leaf
        self.tail += 1

    def join(self, reading: Partial) -> None:
        self._leaves[self.tail - 1] = self._combine(self._leaves[self.tail - 1], reading)

    def pop(self) -> None:
        del self._leaves[self.head]
        self.head += 1

    def bulk(self, leaves: Callable[[Partial], bool]) -> None:
        while self.head < self.tail and leaves(self._leaves[self.head]):
            self.pop()

    def coarsen(self) -> None:
        fine, self._leaves = self._leaves, {}
        for index, leaf in fine.items():
            pair = self._leaves.get(index >> 1)
            self._leaves[index >> 1] = leaf if pair is None else self._combine(pair, leaf)
        self.head, self.tail = self.head >> 1, (self.tail + 1) >> 1

    def total(self) -> Partial | None:
        return reduce(self._combine, self._leaves.values()) if self._leaves else None

    def rest(self) -> Partial | None:
        return reduce(self._combine, list(self._leaves.values())[1:]) if len(self._leaves) > 1 else None

    def leaf(self, index: int) -> Partial:
        return self._leaves[index]
