from typing_extensions import disjoint_base

from sluicegate.engines.bucketing import Bucketing

@disjoint_base
class Bounding(Bucketing): ...
