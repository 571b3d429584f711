"""The readable twin of sluicegate.engines.queues.two_stacks: a front and a back stack, flipped when the front is empty.

Fact card: FIFO; associative operation; insert, eviction and query O(1) amortised, an eviction O(n) where it flips;
2n partials. Source: paper DABA, Figure 1.

Here the flip follows the eviction that empties the front, so that a window that holds anything has a front.
"""

from __future__ import annotations

from sluicegate.reference.engines.engine import Combine
from twins.two_stacks_lite import TwoStacksLite


class TwoStacks(TwoStacksLite):
    """Two-Stacks Lite that keeps every leaf beside its partial."""

    def __init__(self, combine: Combine, keep: int | None = None) -> None:
        super().__init__(combine)

    def verify(self) -> None:
        """The front is folded from its end, the back from its beginning."""
        super().verify()
        for index in range(self.head, self._split - 1):
            folded = self._combine(self.leaf(index), self._elements[index + 1])
            self._insist(self._elements[index] == folded, f"front aggregate {index} is not what is below it")
