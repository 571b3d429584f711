"""What the readable twins of the Lite engines have in common: one partial an element, and of its leaf what is asked.

An element is a leaf at first and an aggregate later. `keep` slots of each leaf stand in a queue beside: none for a
count window, the time for a time window, all where a callable judges the oldest leaf.
"""

from __future__ import annotations

from sluicegate.errors import ConfigurationError
from sluicegate.reference.engines.engine import Combine
from sluicegate.reference.program import Partial
from twins.engine import Engine


class Lite(Engine):
    """Elements head … tail − 1, and what is kept of their leaves."""

    def __init__(self, combine: Combine, keep: int | None = None) -> None:
        super().__init__(combine)
        self._keep = keep
        self._elements: dict[int, Partial] = {}

    def leaf(self, index: int) -> Partial:
        """What is kept of a leaf. Raises ConfigurationError where nothing is."""
        if self._keep == 0:
            raise ConfigurationError(f"{type(self).__name__}: keeps no leaves beside its aggregates")
        return self._leaves[index]

    def _append(self, leaf: Partial) -> None:
        self._elements[self.tail] = leaf
        super()._append(leaf[: self._keep])

    def _drop(self) -> None:
        super()._drop()
        del self._elements[self.head - 1]

    def verify(self) -> None:
        """The queues are as long as the window."""
        self._insist(len(self._elements) == len(self._leaves) == self.tail - self.head, "the queues differ in length")
