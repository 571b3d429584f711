from typing import final

from sluicegate.engines.base import Engine
from sluicegate.engines.tree.pairs import Pairs

@final
class Staged(Engine):
    stored: Pairs
    def state(self) -> bytes: ...
    def load(self, data: bytes, count: int) -> None: ...
    @property
    def size(self) -> int: ...
