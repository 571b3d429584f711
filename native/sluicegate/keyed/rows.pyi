from typing_extensions import disjoint_base

from sluicegate.keyed.definition import Totals
from sluicegate.keyed.directory import Directory

@disjoint_base
class PartitionRows(Directory):
    clock: int
    readings: int
    def totals(self, i: int) -> Totals: ...
    def rows(self, i: int) -> list[tuple[int | float, ...]]: ...
