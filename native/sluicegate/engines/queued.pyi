from typing_extensions import disjoint_base

from sluicegate.engines.base import Engine

__pyx_capi__: dict[str, object]

@disjoint_base
class Queued(Engine): ...
