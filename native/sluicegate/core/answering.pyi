from typing_extensions import disjoint_base

from sluicegate.core.bounding import Bounding

@disjoint_base
class Answering(Bounding):
    @property
    def bounds_in_batches(self) -> bool: ...
