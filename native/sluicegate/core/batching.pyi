from typing_extensions import disjoint_base

from sluicegate.core.answering import Answering

@disjoint_base
class Batching(Answering): ...
