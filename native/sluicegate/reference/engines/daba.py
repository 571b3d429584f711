"""DABA (paper DABA, Figures 8 to 10) with one partial an element; compiled it is sluicegate.engines.queues.daba.

Fact card: FIFO; associative operation; O(1) worst case: at most 1 combine a query, 3 an insert, 2 an eviction (the
paper's bounds are 1, 4, 3); n leaves and n + 2 partials.

Pointers F (head) ≤ L ≤ R ≤ A ≤ B ≤ E (tail) cut the queue into sublists. Elements of R … A − 1 and B … E − 1 are
leaves, the others sums: p … B − 1 for p in F … L − 1 and A … B − 1, and p … R − 1 for p in L … R − 1.
"""

from __future__ import annotations

from sluicegate.reference.engines.engine import Combine, Engine
from sluicegate.reference.program import Partial


class Daba(Engine):
    """A FIFO of leaves head … tail − 1, and beside each its element: the leaf, or a sum that begins with it."""

    def __init__(self, combine: Combine) -> None:
        super().__init__(combine)
        self._leaves: dict[int, Partial] = {}
        self._elements: dict[int, Partial] = {}
        self._l = self._r = self._a = self._b = 0
        self._sum_ra: Partial | None = None
        self._sum_b: Partial | None = None

    def push(self, leaf: Partial) -> None:
        """Push on the back list, then one step of the reversal."""
        self._leaves[self.tail] = self._elements[self.tail] = leaf
        self.tail += 1
        self._sum_b = self._after(self._sum_b, leaf)
        self._fixup()

    def pop(self) -> None:
        """Pop from the front list, then one step of the reversal. Raises IndexError for an empty window."""
        if self.head == self.tail:
            raise IndexError("Daba: the window is empty, there is nothing to evict")
        del self._leaves[self.head], self._elements[self.head]
        self.head += 1
        self._fixup()

    def pop_to(self, head: int) -> None:
        """Evict the leaves before `head`; where most leave, as after a silence, those that stay are pushed anew."""
        if 2 * (self.tail - head) < head - self.head:
            self.load(head, [self._leaves[index] for index in range(head, self.tail)], None, None)
        super().pop_to(head)

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
        """The front list's sum and the back list's; None for an empty window."""
        return self._sum_b if self.head == self._b else self._before(self._elements[self.head], self._sum_b)

    def leaf(self, index: int) -> Partial:
        """A leaf of the window, head ≤ index < tail."""
        return self._leaves[index]

    def load(self, head: int, leaves: list[Partial], left: Partial | None, right: Partial | None) -> None:
        """Take over leaves in place of its own; everything else follows from them."""
        self._leaves, self._elements, self._sum_ra, self._sum_b = {}, {}, None, None
        self.head = self.tail = self._l = self._r = self._a = self._b = head
        for leaf in leaves:
            self.push(leaf)

    def verify(self) -> None:
        """Raise InvariantError where the sizes (Lemma 4.1) or the back list's sum are not what they should be."""
        f, left, r, a, b, e = self.head, self._l, self._r, self._a, self._b, self.tail
        self._insist(len(self._elements) == len(self._leaves) == e - f, "the queues differ in length")
        self._insist(f <= left <= r <= a <= b <= e, f"pointers {left}, {r}, {a}, {b}")
        balanced = (b - left) + 1 == (b - f) - (e - b) and r - left == a - r
        self._insist(balanced if f < e else left == r == a == b == e, f"sizes by {left}, {r}, {a}, {b}")
        back: Partial | None = None
        for p in range(b, e):
            back = self._after(back, self._elements[p])
        self._insist(back == self._sum_b, "the back list's sum is not its leaves'")
