"""The readable twin of sluicegate.joining.placing: which reading joins a bucket or opens one, and how room is made."""

from __future__ import annotations

from collections.abc import Sequence

from rules_together import Together

from sluicegate.constants import BY_COUNT, FINER, KEPT_LEVELS
from sluicegate.monoids.layout import COUNT, O_FIRST, T_FIRST, T_LAST, Op
from sluicegate.records import Cut
from sluicegate.reference.core import ExactCore
from sluicegate.reference.program import Moments, Partial
from twins import estimate
from twins.late import Late
from twins.pairs import Pairs
from twins.staged import Staged, Verdict


class Bucketing(ExactCore):
    """A window whose readings are folded into buckets; `core` sets it up."""

    mark: int
    heads: list[int]
    level: int
    held: int
    _up_to: int
    _bucketed: bool
    _extreme_slot: int
    _rules: Together | None
    _pairs: Pairs | None
    _staged: Staged | None
    _late: Late | None  # of a window of buckets by time

    def cut(self, leaf: Partial) -> Cut:
        """Where the edge cuts the oldest leaf of a window of buckets."""
        return estimate.cut(self._layout, leaf, estimate.Edge(self._policy, self.cutoff, self.edge))

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
        """Whether the newest bucket takes a reading; why so: `joining/placing.pyx`."""
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

    def _refresh(self, rules: Together) -> None:
        """Give the sum-like histogram the current results and their sample, which the buckets carry; 0, where empty."""
        total = self._engine.total()
        if rules.sums is not None:
            rules.sums.results = [self._raw(control.dimension, total) for control in rules.sums.controls]
            slots = [self._layout.slot(Op.SAMPLE, j) for j in range(rules.controls)]
            rules.sums.samples = [Moments(*total[slot : slot + 3]) if total else Moments() for slot in slots]
        rules.refresh(self.accepted)

    def _raw(self, dimension: int, total: Partial | None) -> float:
        if total is None:
            return 0.0
        if dimension < 0:
            return float(total[COUNT])
        return (self.centers or ())[dimension] * total[COUNT] + total[self._layout.slot(Op.PREFIX, dimension)]

    def _carry(self, rules: Together, reading: Partial) -> None:
        for j, result in enumerate(rules.sums.results if rules.sums else ()):
            slot = self._layout.slot(Op.SAMPLE, j)
            reading[slot : slot + 3] = 1.0, result, 0.0

    # room for one bucket more

    def limit_to(self, limit: int) -> None:
        """From now on at most `limit` buckets; neighbours are merged until no more are there."""
        self._refuse_evicting()
        self.limit = limit
        while self._constrained() > limit:
            self._make_room()

    def _constrained(self) -> int:
        """How many buckets the limit counts: all but what is staged."""
        return self._engine.tail - self._engine.head if self._staged is None else self._staged.kept

    def _make_room(self) -> None:
        """One bucket less at least: by the pair that adds least, or by a level."""
        if self._pairs is None:
            self._evict_level()
            return
        leaf = self._engine.leaf(self._engine.head)
        out = int(leaf[O_FIRST] + leaf[COUNT]) - 1 - self.cut(leaf).most
        merged = self._pairs.merge() if self._staged is None else self._staged.merge_stored()
        if merged.oldest:
            self.edge = max(self.edge, out)
        if merged.newest and self._rules is not None:
            self._rules.coarsened()

    def _evict_level(self) -> None:
        engine, leaf = self._engine, self._engine.leaf(self._engine.head)
        self.edge = max(self.edge, int(leaf[O_FIRST] + leaf[COUNT]) - 1 - self.cut(leaf).most)
        self.heads.append(engine.head)
        engine.coarsen()
        if self._rules is not None:
            self._rules.coarsened()
        self.level += 1
        self.mark >>= 1
        if self.level % KEPT_LEVELS == 0:  # every leaf is given out again: rows of lower levels can be forgotten
            self.mark, self.heads = 0, []

    # with a staging tail

    def _place_staged(self, staged: Staged, values: Sequence[float], reading: Partial) -> None:
        """The newest bucket takes the reading that hides it; else the reading is staged, after room was made."""
        joined = staged.takes(reading)
        if joined:
            staged.join(reading)
            self._collapse(staged)
        else:
            if len(staged.staged) == staged.most:
                self._spill(staged)
            staged.push(reading)
        if self._rules is not None:
            self._rules.took(values, self.accepted, joined)

    def _collapse(self, staged: Staged) -> None:
        """The newest bucket and those that it hides become one."""
        while staged.tail - staged.head > 1 and staged.hides(staged.staged[-1], staged.leaf(staged.tail - 2)):
            if staged.tail - staged.head == 2:
                self._note_oldest()
            if len(staged.staged) > 1:
                staged.collapse()
            else:
                staged.take_back()

    def _spill(self, staged: Staged) -> None:
        """The oldest staged bucket leaves the tail: into the next, into the newest stored, or as a stored one."""
        verdict = self._verdict(staged)
        while verdict == Verdict.OPEN and self.limit and staged.kept >= self.limit:
            self._make_room()
            verdict = self._verdict(staged)
        if verdict != Verdict.OPEN and staged.kept < 2:
            self._note_oldest()
        staged.spill(verdict)
        self.created += verdict == Verdict.OPEN

    def _verdict(self, staged: Staged) -> Verdict:
        if staged.irrelevant():
            return Verdict.FORWARD
        old, stored = staged.staged[0], staged.stored
        if not staged.kept or stored.leaf(stored.tail - 1)[T_LAST] > old[T_FIRST]:
            return Verdict.OPEN
        newest = stored.leaf(stored.tail - 1)
        if staged.hides(old, newest) or not staged.candidate(old):
            return Verdict.JOIN
        full = self.limit and staged.kept >= self.limit
        return Verdict.JOIN if full and stored.wants(old, staged.staged[1:]) else Verdict.OPEN

    @property
    def _fewest_cut(self) -> int:
        """The readings that a window up to an extreme holds at least when its edge cuts a bucket, 0: not known.

        Before, what leaves is irrelevant: buckets need not be finer than they will be then.
        """
        return self._value if self._up_to and self._policy == BY_COUNT else 0

    def _note_oldest(self) -> None:
        """The oldest bucket takes over another: what has left of it stays known."""
        leaf = self._engine.leaf(self._engine.head)
        self.edge = max(self.edge, int(leaf[O_FIRST] + leaf[COUNT]) - 1 - self.cut(leaf).most)
