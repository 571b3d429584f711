"""The readable twin of sluicegate.engines.paged.kvs_amta: AMTA whose nodes are in pages, most of them in a store."""

from __future__ import annotations

from sluicegate.reference.engines.amta import Amta
from sluicegate.reference.engines.paged import Paged
from sluicegate.reference.program import Partial


class KvsAmta(Paged, Amta):
    """See `Amta` and `Paged`."""

    def end(self, level: int) -> int:
        """Index after the level's last node."""
        return Amta.end(self, level)

    def _parent_made_by(self, level: int, index: int) -> int | None:
        """A pair gets its parent when the next pair of its level begins."""
        pair = (index >> 1) - 1
        return None if index & 1 or pair < self.first(level + 1) else pair

    def _store(self, level: int, index: int, node: Partial) -> None:
        page, _ = self._place(level, index)
        if level % self.shift == 0 and self._tails.get(page[0], -1) < page[1]:
            self._begin(page)
        super()._store(level, index, node)

    def _mend(self) -> None:
        self._rebuild()

    def load(self, head: int, leaves: list[Partial], left: Partial | None, base: Partial | None) -> None:
        """Fetch what is needed around head and tail, and take over the result pair. Raises StoreError."""
        self._take_over(head)
        self._rebuild()
        if left is not None:
            self.left, self.base = left, base
            if self.right is not None:
                self.right = self._after(base, self._node(0, self.tail - 1))
