from typing_extensions import disjoint_base

from sluicegate.core.event_time import EventTime

@disjoint_base
class Batching(EventTime): ...
