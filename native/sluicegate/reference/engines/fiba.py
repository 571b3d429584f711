"""The readable twin of sluicegate.engines.fiba: a finger B-tree of leaves in order of time, late ones too.

Fact card: any order of arrival; associative operation; with d leaves after the new one, insert O(log d) amortised, O(1)
at the newest end; evict and query O(1) amortised; n leaves and about a sixth as many aggregates. Source: Tangwongsan,
Hirzel and Schneider, "Optimal and General Out-of-Order Sliding-Window Aggregation", VLDB 2019, and their bulk eviction,
VLDB 2023. Readings stand only in the tree's leaves here, and since they leave only at the oldest end, nodes on the two
spines may hold fewer than half: nothing is ever borrowed or merged.

An inner node's `up` is the partial of all its children. A spine's node leaves out the child on the spine, the root
those at both ends; `run` goes on from the root to the node: root's `up` ⊗ … ⊗ the right spine's, and the left spine's ⊗
… up to below the root. So the window's partial is suffix of the left leaf ⊗ left run ⊗ right run ⊗ right leaf's `up`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from enum import Enum
from functools import reduce
from typing import Any

from sluicegate.monoids.layout import Layout, Op
from sluicegate.reference.engines.engine import Combine, Engine
from sluicegate.reference.program import Partial

MOST = 16  # leaves or children of a node
COMMUTING = (Op.SUM, Op.MIN, Op.MAX, Op.COUNT, Op.T_FIRST, Op.T_LAST, Op.LOG_SUM, Op.MOMENTS)
APPENDED = 12  # of them stay in a node that splits at the newest end, so that a late one finds room


def commutes(layout: Layout) -> bool:
    """Whether the order of readings matters to nothing but rounding."""
    return all(component.op in COMMUTING for component in layout.components)


class Role(Enum):
    """Where a node stands."""

    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"
    ROOT = "root"


class Node:
    """Times and leaves, or children and the least time of each."""

    __slots__ = ("items", "level", "parent", "role", "run", "times", "up")

    def __init__(self, level: int, role: Role) -> None:
        self.level, self.role = level, role
        self.times: list[int] = []
        self.items: list[Any] = []
        self.parent: Node | None = None
        self.up: Partial | None = None
        self.run: Partial | None = None


class Fiba(Engine):
    """Leaves by time, equal ones by arrival; the index of a leaf is its place in that order."""

    ordered = False

    def __init__(self, combine: Combine, commutes: bool = False) -> None:
        """`commutes`: the order matters to nothing but rounding."""
        super().__init__(combine)
        self._commutes = commutes
        self._clear()

    def _clear(self) -> None:
        self._root = self._left = self._right = Node(0, Role.ROOT)
        self._suffix: list[Partial] = []  # of the left leaf: the partial of its leaves from each on, newest first

    # insertion

    def push(self, leaf: Partial) -> None:
        """Append a leaf at the newest time."""
        self.insert(self._right.times[-1] if self._right.times else 0, leaf)

    def insert(self, time: int, leaf: Partial) -> None:
        """Put a leaf after those of its time and earlier."""
        node, touched = self._place_of(time), list[Node]()
        if len(node.items) == MOST:
            node = self._split_for(node, time, touched)
        at = bisect_right(node.times, time)
        node.times.insert(at, time)
        node.items.insert(at, leaf)
        self.tail += 1
        if not touched and node is self._right and node is not self._left and at == len(node.items) - 1:
            node.up = self._either(node.up, leaf)
        elif touched or not self._commutes or node is self._left:
            self._repair(node, touched)
        else:
            self._add(node, leaf)

    def _place_of(self, time: int) -> Node:
        """The node a leaf belongs into: up from the newest end as far as needed, then down."""
        node = self._right
        while node.parent is not None and time < node.times[0]:
            node = node.parent
        while node.level:
            node = node.items[max(bisect_right(node.times, time) - 1, 0)]
        return node

    def _split_for(self, node: Node, time: int, touched: list[Node]) -> Node:
        sibling = self._split(node, touched)
        return sibling if time >= sibling.times[0] else node

    def _split(self, node: Node, touched: list[Node]) -> Node:
        """Move a full node's newer part into a new sibling; the parents make room first."""
        if node.parent is None:
            self._grow(node)
        elif len(node.parent.items) == MOST:
            self._split(node.parent, touched)
        parent, at = node.parent, APPENDED if node.role in (Role.RIGHT, Role.ROOT) else MOST // 2
        assert parent is not None  # noqa: S101  it has one now
        sibling = Node(node.level, node.role if node.role == Role.RIGHT else Role.INNER)
        if node.role == Role.ROOT:
            node.role, sibling.role = Role.LEFT, Role.RIGHT
        elif node.role == Role.RIGHT:
            node.role = Role.INNER
        sibling.times, sibling.items = node.times[at:], node.items[at:]
        del node.times[at:], node.items[at:]
        for child in sibling.items if sibling.level else ():
            child.parent = sibling
        sibling.parent = parent
        place = parent.items.index(node) + 1
        parent.items.insert(place, sibling)
        parent.times.insert(place, sibling.times[0])
        if node is self._right:
            self._right = sibling
        touched += [sibling, node] if touched else [parent, sibling, node]
        return sibling

    def _grow(self, node: Node) -> None:
        self._root = node.parent = Node(node.level + 1, Role.ROOT)
        self._root.items, self._root.times = [node], [node.times[0]]

    # aggregates

    def _repair(self, node: Node, touched: list[Node]) -> None:
        """After an insertion: the nodes that split, from below, then up to a spine, and down that again."""
        for each in reversed(touched or [node]):
            self._refresh(each)
        top = touched[0] if touched else node
        while top.role == Role.INNER and top.parent is not None:
            top = top.parent
            self._refresh(top)
        if top.level:
            self._run_down(top)

    def _add(self, node: Node, leaf: Partial) -> None:
        """`_repair` where any order will do: the leaf enters each aggregate on the way up as it is."""
        node.up = self._either(node.up, leaf)
        while node.role == Role.INNER and node.parent is not None:
            node = node.parent
            node.up = self._either(node.up, leaf)
        if node.level:
            self._run_down(node)

    def _refresh(self, node: Node) -> None:
        """A node's own aggregate, from its children's."""
        if node.level == 0:
            if node is self._left:
                self._stack_up()
                return
            node.up = self._fold(node.items)
            return
        first = 1 if node.role in (Role.LEFT, Role.ROOT) else 0
        end = len(node.items) - (1 if node.role in (Role.RIGHT, Role.ROOT) else 0)
        node.up = self._fold(child.up for child in node.items[first:end])

    def _stack_up(self) -> None:
        """The left leaf's suffixes."""
        self._suffix = []
        for leaf in reversed(self._left.items):
            self._suffix.append(self._combine(leaf, self._suffix[-1]) if self._suffix else leaf)

    def _run_down(self, top: Node) -> None:
        """The runs from a spine's node down to the last above the leaves."""
        if top.role != Role.LEFT:
            top.run = top.up if top.parent is None else self._either(top.parent.run, top.up)
            node = top
            while node.level > 1:
                above, node = node.run, node.items[-1]
                node.run = self._either(above, node.up)
        if top.role != Role.RIGHT:
            node = top
            while node.level:
                if node.role == Role.LEFT:
                    node.run = self._either(node.up, self._left_run(node.parent))
                node = node.items[0]

    def _left_run(self, node: Node | None) -> Partial | None:
        return node.run if node is not None and node.role == Role.LEFT else None

    # eviction

    def pop(self) -> None:
        """Evict the oldest leaf. Raises IndexError for an empty window."""
        if self.head == self.tail:
            raise IndexError("Fiba: the window is empty, there is nothing to evict")
        self.head += 1
        self._drop_oldest(1)
        if not self._left.items:
            self._repair_left(None)

    def _drop_oldest(self, count: int) -> None:
        del self._left.times[:count], self._left.items[:count]
        del self._suffix[len(self._suffix) - count :]

    def pop_to(self, head: int) -> None:
        """Evict the leaves before `head`."""
        while self.head < head:
            self.pop()

    def evict_through(self, cutoff: int) -> None:
        """Evict all leaves of this time or earlier: whole subtrees first."""
        if self._left.times and self._left.times[-1] > cutoff:
            count = bisect_right(self._left.times, cutoff)
            self.head += count
            self._drop_oldest(count)
            return
        if self._next_to_left_stays(cutoff):
            self.head += len(self._left.items)
            self._drop_oldest(len(self._left.items))
            self._repair_left(None)
            return
        node = self._root
        while node.level:
            count = max(bisect_right(node.times, cutoff) - 1, 0)
            self.head += sum(self._leaves_below(child) for child in node.items[:count])
            del node.items[:count], node.times[:count]
            node = node.items[0]
        count = bisect_right(node.times, cutoff)
        self.head += count
        del node.times[:count], node.items[:count]
        self._left = node
        self._repair_left(self._root)

    def _next_to_left_stays(self, cutoff: int) -> bool:
        """Whether of the leaf nodes the left one alone has left."""
        node: Node | None = self._left
        while node is not None and (node.parent is None or node.parent.items[-1] is node):
            node = node.parent
        return node is not None and node.parent is not None and node.parent.times[1] > cutoff

    def _leaves_below(self, node: Node) -> int:
        return sum(map(self._leaves_below, node.items)) if node.level else len(node.items)

    def _repair_left(self, top: Node | None) -> None:
        """Take out what is empty at the oldest end; then the left spine's roles and aggregates, from `top` down.

        None: from the lowest node that has lost a child; those above do not count the child on the spine.
        """
        node = self._left
        while not node.items and node.parent is not None:
            node = node.parent
            del node.items[0], node.times[0]
        if not self._root.items:
            self._clear()
            return
        node = top = top or node
        while self._root.level and len(self._root.items) == 1:
            node = self._root = top = self._root.items[0]
            self._root.parent, self._root.role = None, Role.ROOT
        while node.level:
            node = node.items[0]
            node.role = Role.LEFT
            self._refresh(node) if node.level else None
        self._left = node
        if node is self._root:
            node.role, self._right = Role.ROOT, node
        self._refresh(node)
        if top.level:
            self._refresh(top)
            self._run_down(top)

    # answers

    def total(self) -> Partial | None:
        """The partial of all leaves, None when there are none."""
        return self._from(0)

    def rest(self) -> Partial | None:
        """The partial of all leaves but the oldest, None when there are none."""
        return self._from(1)

    def _from(self, skipped: int) -> Partial | None:
        front = self._suffix[-1 - skipped] if len(self._suffix) > skipped else None
        if self._root.level == 0:
            return front
        front = self._either(front, self._left_run(self._left.parent))
        right = self._right.parent
        front = self._either(front, right.run if right is not None else None)
        return self._either(front, self._right.up)

    def leaf(self, index: int) -> Partial:
        """The leaf at a place, head ≤ index < tail."""
        return self._at(index)[1]

    def time_at(self, index: int) -> int:
        """Its time."""
        return self._at(index)[0]

    def _at(self, index: int) -> tuple[int, Partial]:
        for place, found in enumerate(self._walk(self._root), self.head):
            if place == index:
                return found
        raise IndexError(f"leaf {index}: the window holds {self.head} to {self.tail - 1}")

    def _walk(self, node: Node) -> Iterator[tuple[int, Partial]]:
        if node.level == 0:
            yield from zip(node.times, node.items, strict=True)
            return
        for child in node.items:
            yield from self._walk(child)

    def load(self, head: int, leaves: list[Partial], left: Partial | None, right: Partial | None) -> None:
        """Take over leaves that all have one time; `load_times` where they have their own."""
        self.load_times(head, [0] * len(leaves), leaves)

    def load_times(self, head: int, times: Iterable[int], leaves: Iterable[Partial]) -> None:
        """Take over leaves, an empty engine's first index being `head`."""
        self.head = self.tail = head
        self._clear()
        for time, leaf in zip(times, leaves, strict=True):
            self.insert(time, leaf)

    def _fold(self, partials: Iterable[Partial | None]) -> Partial | None:
        return reduce(self._either, partials, None)

    # invariants

    def verify(self) -> None:
        """Raise InvariantError where times, roles, sizes or aggregates are not what they should be."""
        held = list(self._walk(self._root))
        times = [time for time, _ in held]
        self._insist(len(held) == self.tail - self.head, f"{len(held)} leaves")
        self._insist(times == sorted(times), "leaves out of order")
        self._verify_node(self._root, Role.ROOT, None)
        node = self._root
        while node.level:
            node = node.items[0]
        self._insist(node is self._left, "the left finger")
        if held and not self._commutes:  # else sums depend on the order of arrival
            self._insist(self._total_of(held) == self.total(), "the runs do not add up to the leaves")

    def _total_of(self, held: list[tuple[int, Partial]]) -> Partial | None:
        """As the tree combines them, so that sums are rounded alike."""
        return self.total() if not held else self._sum_tree()

    def _sum_tree(self) -> Partial | None:
        """The total from the children's own aggregates, made anew."""
        if self._root.level == 0:
            return reduce(lambda a, b: self._either(b, a), reversed(self._root.items), None)
        left, node = list[Partial | None](), self._root.items[0]
        while node.level:
            left.append(self._fold(child.up for child in node.items[1:]))
            node = node.items[0]
        front = reduce(lambda a, b: self._either(b, a), left, None)
        suffix = reduce(lambda a, b: self._either(b, a), reversed(self._left.items), None)
        right, node = self._fold(child.up for child in self._root.items[1:-1]), self._root.items[-1]
        while node.level:
            right = self._either(right, self._fold(child.up for child in node.items[:-1]))
            node = node.items[-1]
        front = self._either(self._either(suffix, front), right)
        return self._either(front, self._fold(node.items))

    def _verify_node(self, node: Node, role: Role, parent: Node | None) -> None:
        self._insist(node.role == role and node.parent is parent, f"a node of level {node.level} is {node.role}")
        least = MOST // 2 if role == Role.INNER else 2 if role == Role.ROOT and node.level else 0
        self._insist(least <= len(node.items) <= MOST, f"{len(node.items)} items at level {node.level}")
        if node.level == 0:
            return
        if role == Role.INNER and not self._commutes:
            self._insist(node.up == self._fold(child.up for child in node.items), f"up at level {node.level}")
        last = len(node.items) - 1
        for k, child in enumerate(node.items):
            below = role
            if role == Role.ROOT:
                below = Role.LEFT if k == 0 else Role.RIGHT if k == last else Role.INNER
            elif (role == Role.LEFT and k) or (role == Role.RIGHT and k < last):
                below = Role.INNER
            self._verify_node(child, below, node)
            self._insist(below == Role.LEFT or child.times[0] == node.times[k], f"least time {k} at {node.level}")
