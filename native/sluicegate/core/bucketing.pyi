from typing_extensions import disjoint_base

from sluicegate.core.staging import Staging

@disjoint_base
class Bucketing(Staging):
    def limit_to(self, limit: int) -> None: ...
