"""The readable twin of sluicegate.joining.placing: which reading joins the newest bucket and which opens one."""

from __future__ import annotations

from collections.abc import Sequence

from sluicegate.constants import FINER
from sluicegate.monoids.layout import COUNT, O_FIRST, T_LAST, Op
from sluicegate.reference.histograms.rules import Rules
from sluicegate.reference.histograms.statistics import Moments
from sluicegate.reference.program import Partial
from sluicegate.reference.staging import Staging


class Bucketing(Staging):
    """A window whose readings are folded into buckets."""

    def _place(self, values: Sequence[float], reading: Partial, time: int) -> None:
        engine = self._engine
        if self._staged is not None:
            self._place_staged(self._staged, values, reading)
            return
        while True:
            joined = self._bucketed and engine.head < engine.tail and self._joins(values, time)
            if joined:
                engine.join(reading)
            elif not self.limit or engine.tail - engine.head < self.limit:
                engine.push(reading)
                self.created += 1
            else:
                self._make_room()
                continue
            if self._rules is not None:
                self._rules.took(values, self.accepted, joined)
            return

    def _joins(self, values: Sequence[float], time: int) -> bool:
        """Whether the newest bucket takes a reading: as the histograms say, or because of the limit.

        Up to an extreme, the reading that hides all of it joins: that costs nothing. The limit forces it only after a
        level eviction, while the bucket is not full, and, where histograms decide, while more than half of the limit is
        in use. A late reading opens a bucket of its own while levels are in proportion to what the window holds;
        beyond, many late readings would evict a level each few of them, for ever.
        """
        newest, oldest = self._engine.leaf(self._engine.tail - 1), self._engine.leaf(self._engine.head)
        late, slot = time < newest[T_LAST], self._extreme_slot
        if self._up_to and self._rules is None and not late and self._up_to * values[0] >= self._up_to * newest[slot]:
            return True
        if self._rules is not None:
            if not late and self._rules.joins(values, self.accepted):
                return True
            if 2 * (self._engine.tail - self._engine.head) <= self.limit:
                return False
        inside = self.accepted - int(oldest[O_FIRST]) + 1
        wanted, size = max(inside, self._fewest_cut), newest[COUNT]
        if self._up_to and self._rules is None:  # what stands before the extreme is irrelevant
            size = self.accepted - newest[slot + 4]
        if self._pairs is not None:
            return not late and self._pairs.merges > 0 and size * (FINER * (self.limit - 2)) < wanted
        if not self.level or (late and (4 * inside) >> min(self.level, 62) >= self.limit):
            return False
        return size * (self.limit - 2) < wanted

    def _refresh(self, rules: Rules) -> None:
        """Give the sum-like histogram the current results and their sample, which the buckets carry."""
        total = self._engine.total()
        if rules.sums is not None and total is not None:
            rules.sums.results = [self._raw(control.dimension, total) for control in rules.sums.controls]
            slots = [self._layout.slot(Op.SAMPLE, j) for j in range(rules.controls)]
            rules.sums.samples = [Moments(*total[slot : slot + 3]) for slot in slots]
        rules.refresh(self.accepted)

    def _raw(self, dimension: int, total: Partial) -> float:
        if dimension < 0:
            return float(total[COUNT])
        return (self.centers or ())[dimension] * total[COUNT] + total[self._layout.slot(Op.PREFIX, dimension)]

    def _carry(self, rules: Rules, reading: Partial) -> None:
        for j, result in enumerate(rules.sums.results if rules.sums else ()):
            slot = self._layout.slot(Op.SAMPLE, j)
            reading[slot : slot + 3] = 1.0, result, 0.0
