"""The readable twin of sluicegate.engines.queues.ioa: the Imperative Okasaki Aggregator, FOA relinked in place.

Fact card: FIFO; associative operation; O(1) worst case: at most 1 combine a query, 4 an insert, 3 an eviction; a cell
of a partial and a link for each element, and its leaf. Source: paper DABA, 3.2.

At most one rotation is suspended (Lemma 3.1), so its three lists are kept beside; since no older version of the queue
is ever asked for, a rotated element stays in its cell: it gets a new aggregate and, from the back list, a new link.
"""

from __future__ import annotations

from collections.abc import Iterator

from sluicegate.reference.engines.engine import Combine, Engine
from sluicegate.reference.program import Partial


class Cell:
    """One element of a list: its leaf's index, the list's aggregate, and the next cell."""

    __slots__ = ("agg", "index", "next")

    def __init__(self, index: int, agg: Partial, after: Cell | None) -> None:
        self.index, self.agg, self.next = index, agg, after


def _agg(cells: Cell | None) -> Partial | None:
    return None if cells is None else cells.agg


def _cells(cells: Cell | None) -> Iterator[Cell]:
    while cells is not None:
        yield cells
        cells = cells.next


def _walk(cells: Cell | None) -> list[int]:
    return [cell.index for cell in _cells(cells)]


class Ioa(Engine):
    """Lists F and B, N within F; while `_last` is there, F goes on after it with the lists left, right, done."""

    def __init__(self, combine: Combine, keep: int | None = None) -> None:
        super().__init__(combine, keep)
        self._f: Cell | None = None
        self._n: Cell | None = None
        self._b: Cell | None = None
        self._last: Cell | None = None
        self._left: Cell | None = None
        self._right: Cell | None = None
        self._done: Cell | None = None

    def push(self, leaf: Partial) -> None:
        """Push on the back list, then one step of the rotation."""
        self._append(leaf)
        self._b = Cell(self.tail - 1, self._after(_agg(self._b), leaf), self._b)
        self._makeq()

    def pop(self) -> None:
        """Pop from the front list, then one step of the rotation."""
        self._drop()
        assert self._f is not None  # noqa: S101  a window that holds anything has a front
        self._f = self._tail(self._f)
        self._makeq()

    def _tail(self, cell: Cell) -> Cell | None:
        if cell is self._last:
            self._rotate()
        return cell.next

    def _makeq(self) -> None:
        if self._n is not None:
            self._n = self._tail(self._n)
            return
        if self._b is not None:
            self._left, self._right, self._done, self._b = self._f, self._b, None, None
            self._last = None
            self._f = self._rotate()
        self._n = self._f

    def _rotate(self) -> Cell:
        """Move one element of `right` to `done`, and the first of `left`, or `done` itself, to the end of F."""
        left, right, before = self._left, self._right, _agg(self._done)
        assert right is not None  # noqa: S101  |right| = |left| + 1
        agg = None if left is None else self._combine(left.agg, self._before(right.agg, before))
        self._right, right.next = right.next, self._done
        right.agg = self._before(self.leaf(right.index), before)
        self._done = right
        if left is None or agg is None:
            return self._link(right, None)
        left.agg, self._left = agg, left.next
        return self._link(left, left)

    def _link(self, cell: Cell, last: Cell | None) -> Cell:
        if self._last is not None:
            self._last.next = cell
        self._last = last
        return cell

    def total(self) -> Partial | None:
        """agg(F) ⊕ agg(B)."""
        return self._either(_agg(self._f), _agg(self._b))

    def rest(self) -> Partial | None:
        """agg(tail(F)) ⊕ agg(B)."""
        return self._either(_agg(None if self._f is None else self._tail(self._f)), _agg(self._b))

    def verify(self) -> None:
        """|N| = |F| − |B|; the leaves in order; B is folded from its end. A suspended rotation stays so."""
        front, todo, back = self._front(self._f), self._front(self._n), _walk(self._b)
        sizes = f"|F|, |N|, |B| are {len(front)}, {len(todo)}, {len(back)}"
        self._insist(len(todo) == len(front) - len(back), sizes)
        order = front + back[::-1]
        self._insist(order == list(range(self.head, self.tail)), f"its lists hold leaves {order}")
        for cell in _cells(self._b):
            agg = self._after(_agg(cell.next), self.leaf(cell.index))
            self._insist(cell.agg == agg, f"aggregate of {cell.index} in the back list")

    def _front(self, cells: Cell | None) -> list[int]:
        found = []
        for cell in _cells(cells):
            found.append(cell.index)
            if cell is self._last:
                return [*found, *_walk(self._left), *reversed(_walk(self._right)), *_walk(self._done)]
        return found
