"""What every engine of the readable twins promises; the compiled contract is sluicegate/engines/base.pxd."""

from __future__ import annotations

from collections.abc import Callable

from sluicegate.errors import InvariantError
from sluicegate.reference.program import Partial

Combine = Callable[[Partial, Partial], Partial]


class Engine:
    """A FIFO of leaves head … tail − 1 under absolute indices, and the partial of all of them."""

    def __init__(self, combine: Combine) -> None:
        self._combine = combine
        self.head = self.tail = 0

    def push(self, leaf: Partial) -> None:
        """Append a leaf."""
        raise NotImplementedError

    def pop(self) -> None:
        """Evict the oldest leaf. Raises IndexError for an empty window."""
        raise NotImplementedError

    def pop_to(self, head: int) -> None:
        """Evict the leaves before `head`; default: one by one."""
        while self.head < head:
            self.pop()

    def bulk(self, leaves: Callable[[Partial], bool]) -> None:
        """Evict the longest prefix for which `leaves(prefix)` holds; default: one by one."""
        while self.head < self.tail and leaves(self.leaf(self.head)):
            self.pop()

    def total(self) -> Partial | None:
        """The partial of all leaves, None when there are none."""
        raise NotImplementedError

    def leaf(self, index: int) -> Partial:
        """A leaf, head ≤ index < tail."""
        raise NotImplementedError

    def load(self, head: int, leaves: list[Partial], left: Partial | None, right: Partial | None) -> None:
        """Take over the leaves of a stored window, an empty engine's first index being `head`."""
        raise NotImplementedError

    def verify(self) -> None:
        """Raise InvariantError where the structure contradicts itself."""
        raise NotImplementedError

    def _before(self, a: Partial, b: Partial | None) -> Partial:
        return a if b is None else self._combine(a, b)

    def _after(self, a: Partial | None, b: Partial) -> Partial:
        return b if a is None else self._combine(a, b)

    def _insist(self, holds: bool, what: str) -> None:
        if not holds:
            raise InvariantError(f"{type(self).__name__}: {what} (leaves {self.head} … {self.tail - 1})")
