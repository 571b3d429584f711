from typing_extensions import disjoint_base

@disjoint_base
class State:
    accepted: int
    newest: int
    edge: int
    created: int
    engine_name: str
    late: int
    def require_leaves(self) -> None: ...
