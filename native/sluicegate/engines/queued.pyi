from typing_extensions import disjoint_base

from sluicegate.engines.base import Engine

@disjoint_base
class Queued(Engine): ...
