from array import array
from collections.abc import Callable, Sequence
from typing import Any

from typing_extensions import disjoint_base

from sluicegate.core.batching import Batching

@disjoint_base
class Ingesting(Batching):
    def serve(
        self,
        names: tuple[str, ...],
        row: Callable[[Any], tuple[float, ...]],
        when: Callable[[Any], int],
        positive: bool,
    ) -> None: ...
    def insert_one(self, value: Any, time: int | None = None) -> None: ...
    def slide(self, value: Any, time: int | None = None) -> Any: ...
    def named(self) -> dict[str, Any]: ...
    def insert(self, values: Sequence[float], time: int) -> None: ...
    def columns_after(self, values: object, times: object, results: bool) -> dict[str, array[float]] | None: ...
    def insert_many(
        self,
        values: memoryview[float],
        times: memoryview[int] | None,
        count: int,
        out: list[array[float]] | None,
        step: int = -1,
    ) -> None: ...
