from typing import final

from sluicegate.engines.base import Engine

@final
class Pairs(Engine):
    merges: int
    def state(self) -> bytes: ...
    def load(self, data: bytes) -> None: ...
    @property
    def size(self) -> int: ...
