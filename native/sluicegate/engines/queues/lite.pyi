from typing_extensions import disjoint_base

from sluicegate.engines.queued import Queued

@disjoint_base
class Lite(Queued): ...
