from typing import Any

from sluicegate.engines.base import Engine

class Paged(Engine):
    error: Any
    faulted: bool
    sealed: int
    failures: int
    shift: int
    def attach(self, pager: Any, shift: int) -> None: ...
    def heal(self) -> None: ...
    def levels(self) -> list[tuple[int, bytes]]: ...
    def recover(self, head: int, tail: int, levels: list[tuple[int, bytes]]) -> None: ...
