from typing_extensions import disjoint_base

__pyx_capi__: dict[str, object]

@disjoint_base
class Engine:
    faulted: bool
