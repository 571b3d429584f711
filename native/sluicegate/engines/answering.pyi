from typing_extensions import disjoint_base

from sluicegate.engines.bucketing import Bucketing

@disjoint_base
class Answering(Bucketing):
    @property
    def bounds_in_batches(self) -> bool: ...
