"""The readable twin of sluicegate.engines.queues.foa: the Functional Okasaki Aggregator, a real-time queue.

Fact card: FIFO; associative operation; O(1) worst case: at most 1 combine a query, 4 an insert, 3 an eviction; a cell
of a partial and a tail for each element, and its leaf. Source: paper DABA, Figure 5, Theorems 3.2 and 3.3.

Cells never change but for a suspended tail, which is computed once, when it is first looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from sluicegate.reference.engines.engine import Combine, Engine
from sluicegate.reference.program import Partial


class LazyCell:
    """One element of a list: its leaf's index, the list's aggregate, and a tail that may be suspended."""

    __slots__ = ("agg", "index", "tail")

    def __init__(self, index: int, agg: Partial, tail: LazyCell | Suspended | None) -> None:
        self.index, self.agg, self.tail = index, agg, tail


class Suspended(NamedTuple):
    """A call of rot(left, right, done) that is still to be made."""

    left: LazyCell | None
    right: LazyCell | None
    done: LazyCell


def _agg(cells: LazyCell | None) -> Partial | None:
    return None if cells is None else cells.agg


def _walk(cells: LazyCell | Suspended | None) -> Iterator[int]:
    """The leaves of a list in its order; what is suspended stays so."""
    while isinstance(cells, LazyCell):
        yield cells.index
        cells = cells.tail
    if cells is not None:
        yield from [*_walk(cells.left), *reversed([*_walk(cells.right)]), *_walk(cells.done)]


class Foa(Engine):
    """Lists F (the oldest first), N (what of F is not yet rotated) and B (the newest first)."""

    def __init__(self, combine: Combine, keep: int | None = None) -> None:
        super().__init__(combine, keep)
        self._f: LazyCell | None = None
        self._n: LazyCell | None = None
        self._b: LazyCell | None = None

    def push(self, leaf: Partial) -> None:
        """insert(v, ⟨F, N, B⟩)."""
        self._append(leaf)
        self._makeq(self._f, self._n, LazyCell(self.tail - 1, self._after(_agg(self._b), leaf), self._b))

    def pop(self) -> None:
        """evict(⟨F, N, B⟩)."""
        self._drop()
        self._makeq(self._tail(self._f), self._n, self._b)

    def _makeq(self, f: LazyCell | None, n: LazyCell | None, b: LazyCell | None) -> None:
        if n is not None:
            self._f, self._n, self._b = f, self._tail(n), b
            return
        front = None if b is None else self._rot(f, b, None)
        self._f, self._n, self._b = front, front, None

    def _rot(self, left: LazyCell | None, right: LazyCell | None, done: LazyCell | None) -> LazyCell:
        """The list left, then right reversed, then done; |right| = |left| + 1."""
        assert right is not None  # noqa: S101  |right| = |left| + 1
        turned = LazyCell(right.index, self._before(self.leaf(right.index), _agg(done)), done)
        if left is None:
            return turned
        agg = self._combine(left.agg, self._before(right.agg, _agg(done)))
        return LazyCell(left.index, agg, Suspended(self._tail(left), self._tail(right), turned))

    def _tail(self, cell: LazyCell | None) -> LazyCell | None:
        """The list after its first element; where it is suspended, it is computed now, once."""
        if cell is None:
            return None
        if isinstance(cell.tail, Suspended):
            cell.tail = self._rot(*cell.tail)
        return cell.tail

    def total(self) -> Partial | None:
        """agg(F) ⊕ agg(B)."""
        return self._either(_agg(self._f), _agg(self._b))

    def rest(self) -> Partial | None:
        """agg(tail(F)) ⊕ agg(B)."""
        return self._either(_agg(self._tail(self._f)), _agg(self._b))

    def verify(self) -> None:
        """|N| = |F| − |B|; the leaves in order; B is folded from its end. What is suspended stays so."""
        front, back = list(_walk(self._f)), list(_walk(self._b))
        todo = len(list(_walk(self._n)))
        self._insist(todo == len(front) - len(back), f"|F|, |N|, |B| are {len(front)}, {todo}, {len(back)}")
        order = front + back[::-1]
        self._insist(order == list(range(self.head, self.tail)), f"its lists hold leaves {order}")
        cell = self._b
        while cell is not None:
            below = self._tail(cell)
            agg = self._after(_agg(below), self.leaf(cell.index))
            self._insist(cell.agg == agg, f"aggregate of {cell.index} in the back list")
            cell = below
