"""The readable twin of sluicegate.engines.queues.two_stacks: a front and a back stack, flipped when the front is empty.

Fact card: FIFO; associative operation; insert, eviction and query O(1) amortised, an eviction O(n) where it flips;
2n partials. Source: paper DABA, Figure 1.

Here the flip follows the eviction that empties the front, so that a window that holds anything has a front.
"""

from __future__ import annotations

from sluicegate.reference.engines.engine import Combine, Engine
from sluicegate.reference.program import Partial


class TwoStacks(Engine):
    """Leaves head … split − 1 are the front: each knows the partial up to split. The others are the back."""

    def __init__(self, combine: Combine, keep: int | None = None) -> None:
        super().__init__(combine, keep)
        self._front: dict[int, Partial] = {}
        self._back: Partial | None = None
        self._split = 0

    def push(self, leaf: Partial) -> None:
        """Push on the back; into an empty window, on the front."""
        if self.head == self.tail:
            self._front[self.tail] = leaf
            self._split = self.tail + 1
        else:
            self._back = self._after(self._back, leaf)
        self._append(leaf)

    def pop(self) -> None:
        """Pop from the front, and flip where it is empty."""
        self._drop()
        del self._front[self.head - 1]
        if self.head == self._split and self.head < self.tail:
            self._flip()

    def _flip(self) -> None:
        """Move the back onto the front, newest first."""
        agg: Partial | None = None
        for index in reversed(range(self.head, self.tail)):
            agg = self._front[index] = self._before(self.leaf(index), agg)
        self._split, self._back = self.tail, None

    def total(self) -> Partial | None:
        """The front's top and the back's."""
        return self._either(self._front.get(self.head), self._back)

    def rest(self) -> Partial | None:
        """The front below its top, and the back."""
        return self._either(self._front.get(self.head + 1), self._back)

    def verify(self) -> None:
        """The front is folded from its end, the back from its beginning."""
        self._insist(self.head <= self._split <= self.tail or self.head == self.tail, f"front ends at {self._split}")
        self._insist((self.head < self._split) == (self.head < self.tail), f"no front before {self._split}")
        for index in range(self.head, self._split - 1):
            folded = self._combine(self.leaf(index), self._front[index + 1])
            self._insist(self._front[index] == folded, f"front aggregate {index} is not what is below it")
        back: Partial | None = None
        for index in range(max(self._split, self.head), self.tail):
            back = self._after(back, self.leaf(index))
        self._insist(back == self._back, "the back's aggregate is not its leaves'")
