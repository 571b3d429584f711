"""What the twins of queues have in common: their leaves stand in a dictionary, and they tell the rest of a window."""

from __future__ import annotations

from sluicegate.reference.engines import engine
from sluicegate.reference.engines.engine import Combine
from sluicegate.reference.program import Partial


class Engine(engine.Engine):
    """A FIFO of leaves head … tail − 1 under absolute indices."""

    def __init__(self, combine: Combine) -> None:
        super().__init__(combine)
        self._leaves: dict[int, Partial] = {}

    def push(self, leaf: Partial) -> None:
        """Append a leaf."""
        self._append(leaf)

    def pop(self) -> None:
        """Evict the oldest leaf. Raises IndexError for an empty window."""
        self._drop()

    def rest(self) -> Partial | None:
        """The partial of all leaves but the oldest, None when there are none."""
        raise NotImplementedError

    def leaf(self, index: int) -> Partial:
        """A leaf, head ≤ index < tail."""
        return self._leaves[index]

    def result(self) -> tuple[Partial | None, Partial | None]:
        """What the answers depend on besides the leaves and their indices; nothing by default."""
        return None, None

    def load(self, head: int, leaves: list[Partial], left: Partial | None, right: Partial | None) -> None:
        """Take over the leaves of a stored window, an empty engine's first index being `head`."""
        self.head = self.tail = head
        for leaf in leaves:
            self.push(leaf)

    def verify(self) -> None:
        """Nothing can contradict itself, unless overridden."""

    def _append(self, leaf: Partial) -> None:
        self._leaves[self.tail] = leaf
        self.tail += 1

    def _drop(self) -> None:
        if self.head == self.tail:
            raise IndexError(f"{type(self).__name__}: the window is empty, there is nothing to evict")
        del self._leaves[self.head]
        self.head += 1

    def _either(self, a: Partial | None, b: Partial | None) -> Partial | None:
        return b if a is None else self._before(a, b)
