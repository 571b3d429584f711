"""The readable twin of sluicegate.engines.queues.two_stacks_lite: Two-Stacks with one partial an element.

Fact card: FIFO; associative operation; insert, eviction and query O(1) amortised, an eviction O(n) where it flips;
n + 2 partials. Source: paper DABA, Figure 1, with the leaf of a front element given up for its aggregate.
"""

from __future__ import annotations

from sluicegate.reference.engines.engine import Combine
from sluicegate.reference.program import Partial
from twins.lite import Lite


class TwoStacksLite(Lite):
    """Elements head … split − 1 are the front, each the partial up to split; the others are leaves."""

    def __init__(self, combine: Combine, keep: int | None = None) -> None:
        super().__init__(combine, keep)
        self._back: Partial | None = None
        self._split = 0

    def push(self, leaf: Partial) -> None:
        """Push on the back; into an empty window, on the front."""
        if self.head == self.tail:
            self._split = self.tail + 1
        else:
            self._back = self._after(self._back, leaf)
        self._append(leaf)

    def pop(self) -> None:
        """Pop from the front, and flip where it is empty."""
        self._drop()
        if self.head == self._split and self.head < self.tail:
            for index in reversed(range(self.head, self.tail - 1)):
                self._elements[index] = self._combine(self._elements[index], self._elements[index + 1])
            self._split, self._back = self.tail, None

    def total(self) -> Partial | None:
        """The front's top and the back's."""
        return self._either(self._elements.get(self.head), self._back)

    def rest(self) -> Partial | None:
        """The front below its top, and the back."""
        below = self._elements[self.head + 1] if self.head + 1 < self._split else None
        return self._either(below, self._back)

    def verify(self) -> None:
        """A window that holds anything has a front; the back is folded from its leaves."""
        super().verify()
        self._insist(self.head <= self._split <= self.tail or self.head == self.tail, f"front ends at {self._split}")
        self._insist((self.head < self._split) == (self.head < self.tail), f"no front before {self._split}")
        back: Partial | None = None
        for index in range(max(self._split, self.head), self.tail):
            back = self._after(back, self._elements[index])
        self._insist(back == self._back, "the back's aggregate is not its leaves'")
