"""The readable twin of sluicegate.engines.queues.daba_lite: DABA with one partial an element.

Fact card: FIFO; associative operation; O(1) worst case: at most 1 combine a query, 3 an insert, 2 an eviction (DABA's
own bounds are 1, 4, 3); n + 2 partials. Source: paper DABA, Figure 10, where sublists R and B keep their leaves and
two sums stand beside them: of R and A together, which the reversal adds to L, and of B.
"""

from __future__ import annotations

from sluicegate.reference.engines.engine import Combine
from sluicegate.reference.program import Partial
from twins.lite import Lite


class DabaLite(Lite):
    """Pointers F (head) ≤ L ≤ R ≤ A ≤ B ≤ E (tail); elements of R … A − 1 and B … E − 1 are leaves, the others sums

    p … B − 1 for p in F … L − 1 and A … B − 1, and p … R − 1 for p in L … R − 1.
    """

    def __init__(self, combine: Combine, keep: int | None = None) -> None:
        super().__init__(combine, keep)
        self._l = self._r = self._a = self._b = 0
        self._sum_ra: Partial | None = None
        self._sum_b: Partial | None = None

    def push(self, leaf: Partial) -> None:
        """Push on the back list, then one step of the reversal."""
        self._append(leaf)
        self._sum_b = self._after(self._sum_b, leaf)
        self._fixup()

    def pop(self) -> None:
        """Pop from the front list, then one step of the reversal."""
        self._drop()
        self._fixup()

    def _fixup(self) -> None:
        if self.head == self._b:  # singleton, or empty
            self._l = self._r = self._a = self._b = self.tail
            self._sum_ra = self._sum_b = None
            return
        if self._l == self._b:  # flip
            self._l, self._a, self._b = self.head, self.tail, self.tail
            self._sum_ra, self._sum_b = self._sum_b, None
        if self._l == self._r:  # shift
            self._a, self._r, self._l = self._a + 1, self._r + 1, self._l + 1
        else:
            self._shrink()

    def _shrink(self) -> None:
        elements, after = self._elements, self._elements[self._a] if self._a < self._b else None
        elements[self._l] = self._before(elements[self._l], self._sum_ra)
        self._l += 1
        self._a -= 1
        elements[self._a] = self._before(elements[self._a], after)

    def total(self) -> Partial | None:
        """The front list's sum and the back list's."""
        return self._either(self._elements[self.head] if self.head < self._b else None, self._sum_b)

    def rest(self) -> Partial | None:
        """The same from the next element on, which may be the first of sublist L."""
        after = self.head + 1
        front = self._elements[after] if after < self._b else None
        if front is not None and after == self._l < self._r:
            front = self._before(front, self._sum_ra)
        return self._either(front, self._sum_b)

    def load(self, head: int, leaves: list[Partial], left: Partial | None, right: Partial | None) -> None:
        """Take over the leaves of a stored window."""
        self._l = self._r = self._a = self._b = head
        super().load(head, leaves, left, right)

    def verify(self) -> None:
        """The size invariants (Lemma 4.1), and the back list's sum."""
        super().verify()
        f, left, r, a, b, e = self.head, self._l, self._r, self._a, self._b, self.tail
        if f == e:
            self._insist(left == r == a == b == e, f"pointers {left}, {r}, {a}, {b} of an empty window")
            return
        self._insist(f <= left <= r <= a <= b <= e, f"pointers {left}, {r}, {a}, {b}")
        self._insist((b - left) + 1 == (b - f) - (e - b) and r - left == a - r, f"sizes by {left}, {r}, {a}, {b}")
        back: Partial | None = None
        for p in range(b, e):
            back = self._after(back, self._elements[p])
        self._insist(back == self._sum_b, "the back list's sum is not its leaves'")
