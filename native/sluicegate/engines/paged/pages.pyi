from typing import Any

from typing_extensions import disjoint_base

from sluicegate.engines.base import Engine

@disjoint_base
class Paged(Engine):
    error: Any
    sealed: int
    failures: int
    shift: int
    def attach(self, pager: Any, shift: int) -> None: ...
    def heal(self) -> None: ...
    def levels(self) -> list[tuple[int, bytes]]: ...
    def recover(self, head: int, tail: int, levels: list[tuple[int, bytes]]) -> None: ...
