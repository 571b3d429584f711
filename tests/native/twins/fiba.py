"""The readable twin of FIBA as the tests need it: it tells the rest of a window, too."""

from __future__ import annotations

from sluicegate.reference.engines import fiba
from sluicegate.reference.engines.fiba import Node
from sluicegate.reference.program import Partial


class Fiba(fiba.Fiba):
    """Leaves by time, in a treap."""

    def rest(self) -> Partial | None:
        """The partial of all leaves but the oldest, None when there are none."""
        return None if self._root is None else self._rest(self._root)

    def _rest(self, node: Node) -> Partial | None:
        found = None if node.left is None else self._after(self._rest(node.left), node.leaf)
        after = None if node.right is None else node.right.total
        return after if found is None else self._before(found, after)

    def result(self) -> tuple[Partial | None, Partial | None]:
        """All follows from the leaves."""
        return None, None
