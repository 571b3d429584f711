"""What every engine of the readable twins promises; the compiled contract is sluicegate/engines/base.pxd."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from sluicegate.reference.program import Partial


class Engine(Protocol):
    """A FIFO of leaves head … tail − 1 under absolute indices, and the partial of all of them."""

    head: int
    tail: int

    def push(self, leaf: Partial) -> None:
        """Append a leaf."""

    def join(self, reading: Partial) -> None:
        """Fold a reading into the newest leaf."""

    def pop(self) -> None:
        """Evict the oldest leaf. Raises IndexError for an empty window."""

    def pop_to(self, head: int) -> None:
        """Evict what lies before `head` where the engine does that at once; what it leaves is evicted one by one."""

    def bulk(self, leaves: Callable[[Partial], bool]) -> None:
        """Evict the longest prefix for which `leaves(prefix)` holds."""

    def coarsen(self) -> None:
        """Level eviction: leaf i becomes part of leaf i >> 1."""

    def total(self) -> Partial | None:
        """The partial of all leaves, None when there are none."""

    def rest(self) -> Partial | None:
        """The partial of all leaves but the oldest, None when there are none."""

    def leaf(self, index: int) -> Partial:
        """A leaf, head ≤ index < tail."""

    def result(self) -> tuple[Partial | None, Partial | None]:
        """What the answers depend on besides the leaves and their indices, for a stored window."""

    def load(self, head: int, leaves: list[Partial], left: Partial | None, right: Partial | None) -> None:
        """Take over leaves head … and the `result` of a stored window."""

    def verify(self) -> None:
        """Raise InvariantError where the structure contradicts itself."""
