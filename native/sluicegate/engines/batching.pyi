from typing_extensions import disjoint_base

from sluicegate.engines.answering import Answering

@disjoint_base
class Batching(Answering): ...
