"""The readable twin of sluicegate.engines.queues.daba: the De-Amortized Banker's Aggregator.

Fact card: FIFO; associative operation; O(1) worst case: at most 1 combine a query, 4 an insert, 3 an eviction;
2n partials in one queue. Source: paper DABA, Figures 8 to 10, Theorems 4.2 and 4.3.
"""

from __future__ import annotations

from sluicegate.reference.engines.engine import Combine, Engine
from sluicegate.reference.program import Partial


class Daba(Engine):
    """Pointers F (head) ≤ L ≤ R ≤ A ≤ B ≤ E (tail) cut the queue into sublists; `_aggs[p]` holds

    leaves p … B − 1 for p in F … L − 1; p … R − 1 in L … R − 1; R … p in R … A − 1; p … B − 1 in A … B − 1; B … p in
    B … E − 1.
    """

    def __init__(self, combine: Combine, keep: int | None = None) -> None:
        super().__init__(combine, keep)
        self._aggs: dict[int, Partial] = {}
        self._l = self._r = self._a = self._b = 0

    def push(self, leaf: Partial) -> None:
        """Push on the back list, then one step of the reversal."""
        self._aggs[self.tail] = self._after(self._sum_b(), leaf)
        self._append(leaf)
        self._fixup()

    def pop(self) -> None:
        """Pop from the front list, then one step of the reversal."""
        self._drop()
        del self._aggs[self.head - 1]
        self._fixup()

    def _fixup(self) -> None:
        if self.head == self._b:  # singleton, or empty
            self._l = self._r = self._a = self._b = self.tail
            return
        if self._l == self._b:  # flip
            self._l, self._a, self._b = self.head, self.tail, self.tail
        if self._l == self._r:  # shift
            self._a, self._r, self._l = self._a + 1, self._r + 1, self._l + 1
        else:
            self._shrink()

    def _shrink(self) -> None:
        beyond = self._either(self._aggs[self._a - 1] if self._r < self._a else None, self._sum_a())
        before = self._sum_a()
        self._aggs[self._l] = self._before(self._aggs[self._l], beyond)
        self._l += 1
        self._a -= 1
        self._aggs[self._a] = self._before(self.leaf(self._a), before)

    def _sum_a(self) -> Partial | None:
        return self._aggs[self._a] if self._a < self._b else None

    def _sum_b(self) -> Partial | None:
        return self._aggs[self.tail - 1] if self._b < self.tail else None

    def total(self) -> Partial | None:
        """The front list's sum and the back list's."""
        return self._either(self._aggs[self.head] if self.head < self._b else None, self._sum_b())

    def rest(self) -> Partial | None:
        """The same from the next element on, which may be the first of sublist L."""
        after = self.head + 1
        front = self._aggs[after] if after < self._b else None
        if front is not None and after == self._l < self._r:
            beyond = self._either(self._aggs[self._a - 1] if self._r < self._a else None, self._sum_a())
            front = self._before(front, beyond)
        return self._either(front, self._sum_b())

    def load(self, head: int, leaves: list[Partial], left: Partial | None, right: Partial | None) -> None:
        """Take over the leaves of a stored window."""
        self._l = self._r = self._a = self._b = head
        super().load(head, leaves, left, right)

    def verify(self) -> None:
        """The size invariants (Lemma 4.1), and the aggregates that are folds of their neighbours."""
        f, left, r, a, b, e = self.head, self._l, self._r, self._a, self._b, self.tail
        if f == e:
            self._insist(left == r == a == b == e, f"pointers {left}, {r}, {a}, {b} of an empty window")
            return
        self._insist(f <= left <= r <= a <= b <= e, f"pointers {left}, {r}, {a}, {b}")
        self._insist((b - left) + 1 == (b - f) - (e - b) and r - left == a - r, f"sizes by {left}, {r}, {a}, {b}")
        for p in [*range(r + 1, a), *range(b + 1, e)]:
            self._insist(self._aggs[p] == self._combine(self._aggs[p - 1], self.leaf(p)), f"aggregate {p}")
        for p in range(a, b - 1):
            self._insist(self._aggs[p] == self._combine(self.leaf(p), self._aggs[p + 1]), f"aggregate {p}")
