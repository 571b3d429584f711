from typing_extensions import disjoint_base

from sluicegate.core.eviction import Eviction

@disjoint_base
class Ruling(Eviction): ...
