"""The readable twin of sluicegate.engines.queues.daba as the tests need it: it keeps of a leaf what is asked for."""

from __future__ import annotations

from sluicegate.errors import ConfigurationError
from sluicegate.reference.engines.daba import Daba
from sluicegate.reference.engines.engine import Combine, Engine
from sluicegate.reference.program import Partial


class DabaLite(Daba):
    """DABA, asked for the first `keep` slots of a leaf; None: for all."""

    def __init__(self, combine: Combine, keep: int | None = None) -> None:
        super().__init__(combine)
        self._keep = keep

    pop_to = Engine.pop_to  # one by one, as the compiled one

    def leaf(self, index: int) -> Partial:
        """What is kept of a leaf. Raises ConfigurationError where nothing is."""
        if self._keep == 0:
            raise ConfigurationError("DabaLite: keeps no leaves beside its aggregates")
        return super().leaf(index)[: self._keep]

    def rest(self) -> Partial | None:
        """The total from the next element on, which may be the first of sublist L."""
        after = self.head + 1
        if after >= self._b:
            return self._sum_b
        front = self._elements[after]
        if after == self._l < self._r:
            front = self._before(front, self._sum_ra)
        return self._before(front, self._sum_b)

    def result(self) -> tuple[Partial | None, Partial | None]:
        """What the answers depend on besides the leaves and their indices: nothing that is stored."""
        return None, None
