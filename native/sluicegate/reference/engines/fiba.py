"""The twin of sluicegate.engines.fiba by its definition: leaves in order of time, late ones too, and their partial.

Fact card: any order of arrival; associative operation; insert and an eviction of any length O(log n) expected, a query
O(1); n leaves and n aggregates. The compiled engine is a finger B-tree, which takes O(1) amortised at both ends; here
the leaves stand in a treap (Seidel & Aragon 1996): by time from left to right, each above those of lesser priority. A
priority is a hash of how many leaves came before, so the same readings give the same tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sluicegate.errors import InvariantError
from sluicegate.reference.engines.engine import Combine, Engine
from sluicegate.reference.program import Partial

_MASK = 2**64 - 1


def priority(ordinal: int) -> int:
    """A hash that gives every ordinal another number: splitmix64's finisher (Steele, Lea & Flood 2014)."""
    z = (ordinal + 0x9E3779B97F4A7C15) & _MASK
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & _MASK
    return z ^ z >> 31


class Node:
    """A leaf, its time, and the partial and number of all leaves of its subtree."""

    __slots__ = ("leaf", "left", "priority", "right", "size", "time", "total")

    def __init__(self, time: int, leaf: Partial, priority: int) -> None:
        self.time, self.leaf, self.priority = time, leaf, priority
        self.left: Node | None = None
        self.right: Node | None = None
        self.size, self.total = 1, leaf


def _size(node: Node | None) -> int:
    return 0 if node is None else node.size


class Fiba(Engine):
    """Leaves by time, equal ones by arrival; the index of a leaf is its place in that order."""

    def __init__(self, combine: Combine) -> None:
        super().__init__(combine)
        self._root: Node | None = None
        self._made = 0

    # insertion

    def push(self, leaf: Partial) -> None:
        """Append a leaf at the newest time."""
        self.insert(self.time_at(self.tail - 1) if self.head < self.tail else 0, leaf)

    def insert(self, time: int, leaf: Partial) -> None:
        """Put a leaf after those of its time and earlier."""
        self._made += 1
        before, after = self._split(self._root, time)
        self._root = self._merged(self._merged(before, Node(time, leaf, priority(self._made))), after)
        self.tail += 1

    def _split(self, node: Node | None, time: int) -> tuple[Node | None, Node | None]:
        """The leaves of this time or earlier, and the later ones."""
        if node is None or (node.right is None and node.left is None):
            return (node, None) if node is None or node.time <= time else (None, node)
        if node.time <= time:
            kept, later = self._split(node.right, time)
            return (self._with(node, node.left, kept) if later is not None else node), later
        earlier, kept = self._split(node.left, time)
        return earlier, self._with(node, kept, node.right) if earlier is not None else node

    def _merged(self, a: Node | None, b: Node | None) -> Node | None:
        """All of a's leaves, then all of b's."""
        if a is None or b is None:
            return b if a is None else a
        if a.priority > b.priority:
            return self._with(a, a.left, self._merged(a.right, b))
        return self._with(b, self._merged(a, b.left), b.right)

    def _with(self, node: Node, left: Node | None, right: Node | None) -> Node:
        node.left, node.right, node.size = left, right, _size(left) + 1 + _size(right)
        node.total = node.leaf if left is None else self._combine(left.total, node.leaf)
        if right is not None:
            node.total = self._combine(node.total, right.total)
        return node

    # eviction

    def pop(self) -> None:
        """Evict the oldest leaf. Raises IndexError for an empty window."""
        if self._root is None:
            raise IndexError("Fiba: the window is empty, there is nothing to evict")
        self._root = self._without_oldest(self._root)
        self.head += 1

    def _without_oldest(self, node: Node) -> Node | None:
        return node.right if node.left is None else self._with(node, self._without_oldest(node.left), node.right)

    def evict_through(self, cutoff: int) -> None:
        """Evict all leaves of this time or earlier."""
        gone, self._root = self._split(self._root, cutoff)
        self.head += _size(gone)

    # answers

    def total(self) -> Partial | None:
        """The partial of all leaves, None when there are none."""
        return None if self._root is None else self._root.total

    def leaf(self, index: int) -> Partial:
        """The leaf at a place, head ≤ index < tail."""
        return self._at(index).leaf

    def time_at(self, index: int) -> int:
        """Its time."""
        return self._at(index).time

    def _at(self, index: int) -> Node:
        node, place = self._root, index - self.head
        while node is not None:
            before = _size(node.left)
            if place == before:
                return node
            node, place = (node.left, place) if place < before else (node.right, place - before - 1)
        raise IndexError(f"leaf {index}: the window holds {self.head} to {self.tail - 1}")

    def load(self, head: int, leaves: list[Partial], left: Partial | None, right: Partial | None) -> None:
        """Take over leaves that all have one time; `load_times` where they have their own."""
        self.load_times(head, [0] * len(leaves), leaves)

    def load_times(self, head: int, times: Iterable[int], leaves: Iterable[Partial]) -> None:
        """Take over leaves, an empty engine's first index being `head`."""
        self.head = self.tail = head
        self._root = None
        for time, leaf in zip(times, leaves, strict=True):
            self.insert(time, leaf)

    def verify(self) -> None:
        """Raise InvariantError where times, priorities, sizes or aggregates are not what they should be."""
        times = [node.time for node in self._walk(self._root)]
        if times != sorted(times) or len(times) != self.tail - self.head:
            raise InvariantError(f"Fiba: {len(times)} leaves at {times}, expected {self.tail - self.head} in order")
        for node in self._walk(self._root):
            total, size, below = node.total, node.size, [each for each in (node.left, node.right) if each is not None]
            self._with(node, node.left, node.right)
            self._insist((total, size) == (node.total, node.size), f"the subtree of a leaf at {node.time}")
            self._insist(all(each.priority < node.priority for each in below), f"a leaf at {node.time} stands too low")

    def _walk(self, node: Node | None) -> Iterator[Node]:
        if node is not None:
            yield from self._walk(node.left)
            yield node
            yield from self._walk(node.right)
