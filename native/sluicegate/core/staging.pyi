from typing_extensions import disjoint_base

from sluicegate.core.ruling import Ruling

@disjoint_base
class Staging(Ruling): ...
