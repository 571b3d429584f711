from typing_extensions import disjoint_base

@disjoint_base
class State:
    accepted: int
    newest: int
    edge: int
    created: int
    level: int
    mark: int
    limit: int
    engine_name: str
    def require_leaves(self) -> None: ...
