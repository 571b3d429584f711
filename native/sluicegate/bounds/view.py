"""What the answers of a window of buckets are taken from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from sluicegate.monoids.layout import COUNT, T_FIRST, Layout, Op
from sluicegate.records import Cut

Slots = tuple[Any, ...]


class View(NamedTuple):
    """A window of buckets, not empty: its partials, and where its edge cuts the oldest bucket."""

    layout: Layout
    total: Slots
    rest: Slots | None
    oldest: Slots
    cut: Cut
    cutoff: int | None  # readings of this time or earlier have left, where the policy tells
    centers: tuple[float, ...]
    late: bool = False  # readings that came late are in total and rest, or in the oldest bucket

    @property
    def whole(self) -> bool:
        """Whether the edge cuts no bucket."""
        return bool(self.cut.least == self.oldest[COUNT])

    @property
    def begin(self) -> int:
        """No reading of the oldest bucket that is inside has an earlier time."""
        first = int(self.oldest[T_FIRST])
        return first if self.cutoff is None else max(first, self.cutoff + 1)

    def extremes(self, slots: Sequence[Any], dimension: int) -> tuple[float, float]:
        """The least and the greatest value of a dimension that a partial tells."""
        return slots[self.layout.slot(Op.LOW, dimension)], slots[self.layout.slot(Op.HIGH, dimension)]
