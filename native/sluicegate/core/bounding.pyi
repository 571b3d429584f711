from typing_extensions import disjoint_base

from sluicegate.core.bucketing import Bucketing

@disjoint_base
class Bounding(Bucketing): ...
