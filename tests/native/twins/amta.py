"""The readable twin of sluicegate.engines.amta and of all that share its forest (paper AMTA, Algorithms 3 to 7).

Fact card: FIFO; associative operation; insert, single eviction and query O(1) amortised, O(log n) worst; bulk eviction
O(log n); 2n partials and a stack of log n.

Every leaf has an absolute index: leaves head … tail − 1 are present. So all else of the forest follows from head and
tail:
* the parent of node i is node i >> 1 of the level above, and exists as soon as its pair is not the last of its level:
  level l holds the nodes head >> l … ((tail + 1) >> l) − 2. A value never tells whether a node is there.
* the last pair of each level is the root of its own tree; the topmost level is one pair, the leftmost tree.
* the leftmost node of a level keeps leaves that have left ("stale") until the spine is refreshed; only a bulk eviction
  (or one of a level) reads it, and refreshes it first.
`left` (the paper's R0) is the leftmost tree, `right` (R1) the others, `stack` what is left of the leftmost tree when
the first element of a level has gone.
"""

from __future__ import annotations

from collections.abc import Callable

from sluicegate.errors import InvariantError
from sluicegate.reference.engines.engine import Combine, Engine
from sluicegate.reference.program import Partial


class Amta(Engine):
    """A FIFO of leaves head … tail − 1 and the partial of all of them."""

    def __init__(self, combine: Combine) -> None:
        super().__init__(combine)
        self._levels: list[dict[int, Partial]] = [{}]
        self.left: Partial | None = None
        self.right: Partial | None = None
        self.base: Partial | None = None
        self.stack: list[Partial] = []

    # the shape, from head and tail alone

    def first(self, level: int) -> int:
        """Index of the level's first node."""
        return self.head >> level

    def end(self, level: int) -> int:
        """Index after the level's last node."""
        return ((self.tail + 1) >> level) - 1

    def depth(self) -> int:
        """Number of levels that hold a node."""
        level = 0
        while self.first(level) < self.end(level):
            level += 1
        return level

    # Algorithms 3 to 5: insertion

    def push(self, leaf: Partial) -> None:
        """Insert a leaf (Algorithm 3): a pair gets its parent when the next pair of its level begins."""
        before, level = self.depth(), self._raise(leaf)
        if before == 0:
            self._compute_left()
            return
        if self.depth() == before and level == before - 1:  # the leftmost tree has grown
            self._compute_left()
            self._compute_right()
            return
        self.base = self.right
        self.right = self._after(self.base, leaf)

    def _raise(self, node: Partial) -> int:
        """Append a node to the leaves and the parents this completes; the highest level that grew."""
        level, index = 0, self.tail
        self.tail += 1
        while True:
            self._store(level, index, node)
            pair, start = (index >> 1) - 1, index - 2
            if index & 1 or pair < self.first(level + 1):
                return level
            whole = start >= self.first(level)
            node = (
                self._combine(self._node(level, start), self._node(level, start + 1))
                if whole
                else self._node(level, start + 1)
            )
            level, index = level + 1, pair

    def _compute_left(self) -> None:
        """R0 and the stack (Algorithm 4)."""
        self.stack = []
        for level in reversed(range(self.depth())):
            self._stack_head(level)
        self.left = self._before(self._node(0, self.head), self.stack[-1] if self.stack else None)

    def _compute_right(self) -> None:
        """R1 from the last pair of each level but the topmost, the leftmost tree (Algorithm 5, R1 reset first)."""
        self.base = self.right = None
        if self.depth() < 2:
            return
        newest = self.tail - 1
        self.base = self._node(0, newest - 1) if newest & 1 else None
        for level in range(1, self.depth() - 1):
            last = self.end(level) - 1
            pair = (
                self._combine(self._node(level, last - 1), self._node(level, last))
                if last & 1
                else self._node(level, last)
            )
            self.base = self._before(pair, self.base)
        self.right = self._after(self.base, self._node(0, newest))

    def _stack_head(self, level: int) -> None:
        index = self.first(level)
        if not index & 1 and index + 1 < self.end(level):
            self.stack.append(self._before(self._node(level, index + 1), self.stack[-1] if self.stack else None))

    def join(self, reading: Partial) -> None:
        """Fold a reading into the newest leaf, which has no parent yet."""
        newest = self.tail - 1
        self._store(0, newest, self._combine(self._node(0, newest), reading))
        if self.depth() == 1:
            self._compute_left()
        else:
            self.right = self._after(self.base, self._node(0, newest))

    # Algorithms 6 and 7: single eviction

    def pop(self) -> None:
        """Evict the oldest leaf (Algorithms 6 and 7). Raises IndexError for an empty window."""
        if self.head == self.tail:
            raise IndexError("Amta: the window is empty, there is nothing to evict")
        before = self.depth()
        self._drop_to(self.head + 1)
        if self.depth() < before:
            self._rebuild()
            return
        self.left = self.stack.pop()
        for level in reversed(range(min(before, (self.head & -self.head).bit_length() - 1))):
            self._stack_head(level)

    def pop_to(self, head: int) -> None:
        """Evict the leaves before `head`: one by one, or, where more than about log n leave, at once."""
        if head - self.head > (self.tail - self.head).bit_length() + 1:
            self._drop_to(head)
            self._rebuild()
        while self.head < head:
            self.pop()

    def _rebuild(self) -> None:
        if self.head == self.tail:
            self.left, self.right, self.base, self.stack = None, None, None, []
            return
        self._compute_left()
        self._compute_right()

    # Algorithm 2 on each tree of the forest: bulk eviction

    def bulk(self, leaves: Callable[[Partial], bool]) -> None:
        """Evict the longest prefix for which `leaves(prefix)` holds: whole trees, then down the first that stays."""
        self._refresh_spine()
        head = self._first_kept(leaves)
        if head > self.head:
            self._drop_to(head)
            self._rebuild()

    def _first_kept(self, leaves: Callable[[Partial], bool]) -> int:
        old: Partial | None = None
        for level in reversed(range(self.depth())):
            for index in range(max(self.first(level), (self.end(level) - 1) & ~1), self.end(level)):
                longer = self._after(old, self._node(level, index))
                if not leaves(longer):
                    return self._descend(level, index, old, leaves)
                old = longer
        return self.tail

    def _descend(self, level: int, index: int, old: Partial | None, leaves: Callable[[Partial], bool]) -> int:
        """The first leaf that stays, below a node that cannot leave as a whole."""
        while level > 0:
            level, index = level - 1, 2 * index
            if index < self.first(level):
                index += 1
                continue
            longer = self._after(old, self._node(level, index))
            if leaves(longer):
                old, index = longer, index + 1
        return index

    def _refresh_spine(self) -> None:
        """Recompute the first node of each level from the leaves that are still there."""
        for level in range(1, self.depth()):
            child = self.first(level - 1)
            node = self._node(level - 1, child)
            self._store(level, child >> 1, node if child & 1 else self._combine(node, self._node(level - 1, child + 1)))

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

    # answers

    def total(self) -> Partial | None:
        """The partial of the whole window, None when it is empty."""
        return None if self.left is None else self._before(self.left, self.right)

    def rest(self) -> Partial | None:
        """The partial of all leaves but the oldest, None when there are none."""
        if not self.stack:
            return self.right
        return self._before(self.stack[-1], self.right)

    def result(self) -> tuple[Partial | None, Partial | None]:
        """R0, and R1 without the newest leaf: they depend on how the window came to be."""
        return self.left, self.base

    def leaf(self, index: int) -> Partial:
        """A leaf of the window, head ≤ index < tail."""
        return self._node(0, index)

    def load(self, head: int, leaves: list[Partial], left: Partial | None, base: Partial | None) -> None:
        """Take over leaves head … and the result pair of a stored window; everything else follows from them."""
        self._levels, self.head, self.tail = [{}], head, head
        for leaf in leaves:
            self._raise(leaf)
        self._rebuild()
        if left is None:
            return
        self.left, self.base = left, base
        if self.right is not None:
            self.right = self._after(base, self._node(0, self.tail - 1))

    def verify(self) -> None:
        """Raise InvariantError where a node that may be read, or the stack, is not what the leaves give."""
        if (self.left is None) != (self.head == self.tail):
            raise InvariantError(f"R0 is {self.left!r} with leaves {self.head} … {self.tail - 1}")
        for level in range(1, self.depth()):
            for index in range(self.first(level) + 1, self.end(level)):
                if self._node(level, index) != self._combine(
                    self._node(level - 1, 2 * index), self._node(level - 1, 2 * index + 1)
                ):
                    raise InvariantError(f"node {index} of level {level} is not its children combined")
        kept, self.stack = self.stack, []
        for level in reversed(range(self.depth())):
            self._stack_head(level)
        fresh, self.stack = self.stack, kept
        if fresh != kept:
            raise InvariantError("the stack is not what the heads of the levels give")

    # nodes

    def _node(self, level: int, index: int) -> Partial:
        return self._levels[level][index]

    def _store(self, level: int, index: int, node: Partial) -> None:
        while level >= len(self._levels):
            self._levels.append({})
        self._levels[level][index] = node

    def _drop_to(self, head: int) -> None:
        for level, nodes in enumerate(self._levels):
            for index in range(self.head >> level, min(head >> level, self.end(level))):
                nodes.pop(index, None)
        self.head = head
