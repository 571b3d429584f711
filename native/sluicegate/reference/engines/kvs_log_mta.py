"""The readable twin of sluicegate.engines.paged.kvs_log_mta: the logarithmic tree with nodes in pages, see `Paged`.

Level l holds nodes head >> l … (tail − 1) >> l, up to the topmost, which is one pair. The pages of higher levels are
begun all the same, so that every page before the newest of its tier is in the store; their nodes are set when they
come into use.
"""

from __future__ import annotations

from sluicegate.reference.engines.log_mta import LogMta
from sluicegate.reference.engines.paged import Paged
from sluicegate.reference.program import Partial


class KvsLogMta(Paged, LogMta):
    """See `LogMta` and `Paged`."""

    def end(self, level: int) -> int:
        """Index after the level's last node."""
        return ((self.tail - 1) >> level) + 1

    def _complete(self, level: int) -> int:
        """Index after the level's last node that all its leaves are in; `_mend` sees to the one after."""
        return self.tail >> level

    def _parent_made_by(self, level: int, index: int) -> int | None:
        """A leaf begins a page only where all bits below it are 0, or where a level begins."""
        if level == 0 and index & ((1 << self.shift) - 1) and index & (index - 1):
            return None
        return index >> 1 if index > 0 else None

    def _append(self, leaf: Partial) -> None:
        """The leaf, and the pages that begin with it; a node of theirs has a value before it comes into use."""
        for tier, page in self._begun():
            self._begin((tier, page))
            self._store(tier * self.shift, self.tail >> tier * self.shift, leaf)
        self._store(0, self.tail, leaf)

    def join(self, reading: Partial) -> None:
        """Fold a reading into the newest leaf, then combine the pairs above it."""
        self._noting(lambda: LogMta.join(self, reading))

    def _set(self, level: int, index: int) -> None:
        if self.faulted:
            self._lost = True
        else:
            super()._set(level, index)

    def _mend(self) -> None:
        """Both sides of the tree, from the leaves up."""
        for level in range(1, self._top() + 1 if self.head < self.tail else 0):
            self._set(level, self.head >> level)
            self._set(level, (self.tail - 1) >> level)

    def load(self, head: int, leaves: list[Partial], left: Partial | None, right: Partial | None) -> None:
        """Fetch what is needed around head and tail; all follows from that. Raises StoreError."""
        self._take_over(head)
        self._mend()
