"""The readable twin of sluicegate.engines.log_mta: the logarithmic Monoid Tree Aggregator.

Fact card: FIFO; associative operation; insert, eviction of any length O(log n), query O(1): one combine; 2n partials in
a queue a level. Source: paper AMTA, Algorithms 1 and 2, with these slips of theirs mended: a node is there by its
absolute index, never by its value; a new root gets the old root pair too; a policy that holds for the whole window
empties it; a level is dropped when its pair is.

Leaf i's ancestor at level l is node i >> l. Level l holds nodes head >> l … (tail − 1) >> l; the topmost is one pair.
"""

from __future__ import annotations

from collections.abc import Callable

from sluicegate.reference.engines.engine import Combine
from sluicegate.reference.program import Partial
from twins.engine import Engine


class LogMta(Engine):
    """Every node is its children combined, the first and the last of a level included."""

    def __init__(self, combine: Combine) -> None:
        super().__init__(combine)
        self._levels: list[dict[int, Partial]] = [{}]

    def _top(self) -> int:
        """The lowest level that is one pair: the oldest and the newest leaf differ in its last bit, and not above."""
        return max((self.head ^ (self.tail - 1)).bit_length() - 1, 0)

    def leaf(self, index: int) -> Partial:
        """A leaf, head ≤ index < tail."""
        return self._node(0, index)

    def push(self, leaf: Partial) -> None:
        """Algorithm 1: append a leaf, then combine the pairs above it up to the root; a new root gets both sides."""
        self._append(leaf)
        before, self.tail = self._top() if self.head < self.tail else 0, self.tail + 1
        for level in range(1, self._top() + 1):
            if level > before:
                self._set(level, self.head >> level)
            self._set(level, (self.tail - 1) >> level)

    def join(self, reading: Partial) -> None:
        """Fold a reading into the newest leaf, then combine the pairs above it."""
        self._store(0, self.tail - 1, self._combine(self._node(0, self.tail - 1), reading))
        for level in range(1, self._top() + 1):
            self._set(level, (self.tail - 1) >> level)

    def _set(self, level: int, index: int) -> None:
        self._store(level, index, self._pair(level, index))

    def _pair(self, level: int, index: int) -> Partial:
        """A node from those of its children that are in the window, one of them at least."""
        first, last = self.head >> (level - 1), (self.tail - 1) >> (level - 1)
        children = [self._node(level - 1, child) for child in (2 * index, 2 * index + 1) if first <= child <= last]
        return children[0] if len(children) == 1 else self._combine(*children)

    def pop(self) -> None:
        """Evict the oldest leaf as a bulk of one."""
        if self.head == self.tail:
            raise IndexError("LogMta: the window is empty, there is nothing to evict")
        self._evict_to(self.head + 1)

    def pop_to(self, head: int) -> None:
        """Evict what lies before `head` at once."""
        if head > self.head:
            self._evict_to(head)

    def bulk(self, leaves: Callable[[Partial], bool]) -> None:
        """Algorithm 2: from the root down, what leaves goes whole; then combine the first pairs from the leaves up."""
        total = self.total()
        if total is None:
            return
        self._evict_to(self.tail if leaves(total) else self._first_kept(leaves))

    def _first_kept(self, leaves: Callable[[Partial], bool]) -> int:
        """The first leaf that stays, where the window as a whole does not leave."""
        level = self._top()
        index, last = self.head >> level, (self.tail - 1) >> level
        old: Partial | None = None
        while True:
            if index < last:
                longer = self._after(old, self._node(level, index))
                if leaves(longer):
                    old, index = longer, index + 1
            if level == 0:
                return index
            level -= 1
            last = min(2 * index + 1, (self.tail - 1) >> level)
            index = max(2 * index, self.head >> level)

    def _evict_to(self, head: int) -> None:
        """Drop what lies before, then set the first node of each level anew."""
        self._drop_to(head)
        for level in range(1, self._top() + 1 if head < self.tail else 0):
            self._set(level, head >> level)

    def _drop_to(self, head: int) -> None:
        """Move the head; nodes that are before it, or above the root then, go."""
        for level, nodes in enumerate(self._levels):
            until = head >> level if head < self.tail else ((self.tail - 1) >> level) + 1
            for index in range(self.head >> level, until):
                nodes.pop(index, None)
        self.head = head
        for nodes in self._levels[self._top() + 1 :] if head < self.tail else []:
            nodes.clear()

    def coarsen(self) -> None:
        """Level eviction: the level above the leaves becomes the leaves."""
        for index in {self.head >> 1, (self.tail - 1) >> 1}:
            self._set(1, index)
        self._levels.pop(0)
        self.head, self.tail = self.head >> 1, ((self.tail - 1) >> 1) + 1

    def total(self) -> Partial | None:
        """The root pair, combined."""
        if self.head == self.tail:
            return None
        level = self._top()
        first, last = self._node(level, self.head >> level), self._node(level, (self.tail - 1) >> level)
        return first if self.head >> level == (self.tail - 1) >> level else self._combine(first, last)

    def rest(self) -> Partial | None:
        """The right siblings of the oldest leaf's ancestors, from the lowest up."""
        out: Partial | None = None
        for level in range(self._top() + 1 if self.head < self.tail else 0):
            index = self.head >> level
            if not index & 1 and index < (self.tail - 1) >> level:
                out = self._after(out, self._node(level, index + 1))
        return out

    def load(self, head: int, leaves: list[Partial], left: Partial | None, right: Partial | None) -> None:
        """Take over the leaves of a stored window."""
        self._levels, self.head, self.tail = [{}], head, head
        for leaf in leaves:
            self.push(leaf)

    def verify(self) -> None:
        """Each node above the leaves is its children combined."""
        for level in range(1, self._top() + 1 if self.head < self.tail else 0):
            for index in range(self.head >> level, ((self.tail - 1) >> level) + 1):
                good = self._node(level, index) == self._pair(level, index)
                self._insist(good, f"node {index} of level {level} is not its children combined")

    # nodes

    def _append(self, leaf: Partial) -> None:
        self._store(0, self.tail, leaf)

    def _node(self, level: int, index: int) -> Partial:
        return self._levels[level][index]

    def _store(self, level: int, index: int, node: Partial) -> None:
        if level == len(self._levels):
            self._levels.append({})
        self._levels[level][index] = node
