from collections.abc import Callable

from typing_extensions import disjoint_base

from sluicegate.core.state import State

@disjoint_base
class Eviction(State):
    def evict_oldest(self, count: int) -> None: ...
    def evict(self, leaves: Callable[[bytes, bytes], bool], monotone: bool) -> None: ...
