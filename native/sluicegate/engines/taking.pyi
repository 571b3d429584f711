from array import array
from collections.abc import Sequence

from sluicegate.engines.bucketing import Bucketing

class Taking(Bucketing):
    def insert(self, values: Sequence[float], time: int) -> None: ...
    def insert_many(
        self, values: memoryview[float], times: memoryview[int] | None, count: int, out: list[array[float]] | None
    ) -> None: ...
