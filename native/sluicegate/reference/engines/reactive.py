"""The readable twin of sluicegate.engines.reactive: the Reactive Aggregator over FlatFAT, a flat, fixed-size tree.

Fact card: FIFO as used here; associative operation; insert, eviction and query O(log n), O(n) where the tree is
resized; up to 8n partials in one array. Source: paper DABA, Section 5 (its [27]: Tangwongsan et al., General
Incremental Sliding-Window Aggregation, 2015).

The leaves stand in a ring at index & (capacity − 1) in the lower half of an array; node k's children are 2k and 2k + 1.
A node is there where a leaf below it is. Where the ring wraps, the answer is the suffix from the oldest leaf on, then
the prefix up to the newest. The capacity doubles when it is full and halves when a quarter is in use.
"""

from __future__ import annotations

from sluicegate.reference.engines.engine import Combine, Engine
from sluicegate.reference.program import Partial

LEAST = 4


class Reactive(Engine):
    """`_nodes[k]`, 1 ≤ k < 2 · capacity; None where no leaf is below."""

    def __init__(self, combine: Combine, keep: int | None = None) -> None:
        super().__init__(combine, keep)
        self._capacity = LEAST
        self._nodes: list[Partial | None] = [None] * (2 * LEAST)

    def _place(self, index: int) -> int:
        return self._capacity + (index & (self._capacity - 1))

    def leaf(self, index: int) -> Partial:
        """A leaf, head ≤ index < tail."""
        leaf = self._nodes[self._place(index)]
        assert leaf is not None  # noqa: S101  it is in the window
        return leaf

    def push(self, leaf: Partial) -> None:
        """Set the next leaf, then its ancestors."""
        if self.tail - self.head == self._capacity:
            self._resize(2 * self._capacity)
        self._set(self.tail, leaf)
        self.tail += 1

    def pop(self) -> None:
        """Clear the oldest leaf, then set its ancestors."""
        if self.head == self.tail:
            raise IndexError("Reactive: the window is empty, there is nothing to evict")
        self._set(self.head, None)
        self.head += 1
        if self._capacity > LEAST and 4 * (self.tail - self.head) <= self._capacity:
            self._resize(self._capacity // 2)

    def join(self, reading: Partial) -> None:
        """Fold a reading into the newest leaf."""
        self._set(self.tail - 1, self._combine(self.leaf(self.tail - 1), reading))

    def _set(self, index: int, leaf: Partial | None) -> None:
        node = self._place(index)
        self._nodes[node] = leaf
        while node > 1:
            node >>= 1
            self._nodes[node] = self._either(self._nodes[2 * node], self._nodes[2 * node + 1])

    def _resize(self, capacity: int) -> None:
        self._fill(capacity, self.head, [self.leaf(index) for index in range(self.head, self.tail)])

    def _fill(self, capacity: int, head: int, leaves: list[Partial]) -> None:
        self._capacity, self._nodes = capacity, [None] * (2 * capacity)
        self.head, self.tail = head, head + len(leaves)
        for index, leaf in enumerate(leaves, head):
            self._nodes[self._place(index)] = leaf
        for node in reversed(range(1, capacity)):
            self._nodes[node] = self._either(self._nodes[2 * node], self._nodes[2 * node + 1])

    def coarsen(self) -> None:
        """Level eviction: pairs become leaves, and the tree is filled anew."""
        pairs: dict[int, Partial] = {}
        for index in range(self.head, self.tail):
            pairs[index >> 1] = self._after(pairs.get(index >> 1), self.leaf(index))
        self._fill(self._capacity, self.head >> 1, list(pairs.values()))

    def total(self) -> Partial | None:
        """The root, or suffix and prefix where the ring wraps."""
        if self.head == self.tail:
            return None
        if self._place(self.head) <= self._place(self.tail - 1):
            return self._nodes[1]
        return self._combine(self._suffix(self.head), self._prefix(self.tail - 1))

    def rest(self) -> Partial | None:
        """The suffix after the oldest leaf, and the prefix where the ring wraps."""
        after, last = self.head + 1, self.tail - 1
        if after > last:
            return None
        if self._place(self.head) <= self._place(last):
            return self._suffix(after)
        if self._place(after) <= self._place(last):
            return self._prefix(last)
        return self._combine(self._suffix(after), self._prefix(last))

    def _suffix(self, index: int) -> Partial:
        node = self._place(index)
        out = self.leaf(index)
        while node > 1:
            if not node & 1:
                out = self._before(out, self._nodes[node + 1])
            node >>= 1
        return out

    def _prefix(self, index: int) -> Partial:
        node = self._place(index)
        out = self.leaf(index)
        while node > 1:
            if node & 1:
                out = self._after(self._nodes[node - 1], out)
            node >>= 1
        return out

    def load(self, head: int, leaves: list[Partial], left: Partial | None, right: Partial | None) -> None:
        """Take over the leaves of a stored window."""
        capacity = LEAST
        while capacity < len(leaves):
            capacity *= 2
        self._fill(capacity, head, leaves)

    def verify(self) -> None:
        """Every node is its children combined; leaves are there exactly where the window is."""
        self._insist(self.tail - self.head <= self._capacity, f"capacity {self._capacity}")
        places = {self._place(index) for index in range(self.head, self.tail)}
        for node in range(self._capacity, 2 * self._capacity):
            self._insist((self._nodes[node] is not None) == (node in places), f"leaf at {node}")
        for node in range(1, self._capacity):
            children = self._either(self._nodes[2 * node], self._nodes[2 * node + 1])
            self._insist(self._nodes[node] == children, f"node {node} is not its children combined")
