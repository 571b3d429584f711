"""The readable twin of sluicegate.engines.soe: Subtract-on-Evict.

Fact card: FIFO; associative operation with an inverse (`deduct`); insert and query O(1) worst case, eviction O(1), and
O(n) now and then where squared deviations cancel; n partials and two sums. Source: paper DABA, Figure 2.

What the paper leaves open, a total that drifts or stays poisoned after a large value:
* sums carry the exact error of each addition and subtraction beside them (TwoSum);
* the leaves that came since the last turn are summed afresh beside the total, and when all older ones have left, that
  sum is the total: no error lives longer than two window turns;
* where squared deviations fall below 2⁻¹⁶ of the greatest since, their digits are lost: the total is taken anew from
  the leaves, at most once in as many evictions as there are leaves.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from sluicegate.reference.program import Partial
from sluicegate.reference.queued import Combine, Queued

LOST = 2.0**-16


class Sum:
    """A partial that leaves are added to and deducted from, the errors of its sums, the peaks of its deviations."""

    def __init__(self, sums: int, deviations: int) -> None:
        self.partial: Partial | None = None
        self.errors = [0.0] * sums
        self.peaks = [0.0] * deviations


class Soe(Queued):
    """`deduct(total, oldest)` is the inverse of combine(oldest, rest); `sums`: slots of plain sums; `deviations`: of

    sums of squared deviations.
    """

    def __init__(
        self,
        combine: Combine,
        keep: int | None = None,
        *,
        deduct: Combine,
        sums: Sequence[int] = (),
        deviations: Sequence[int] = (),
    ) -> None:
        super().__init__(combine, keep)
        self._deduct, self._sums, self._deviations = deduct, tuple(sums), tuple(deviations)
        self._empty()
        self._since = 0

    def _empty(self) -> None:
        self._total = Sum(len(self._sums), len(self._deviations))
        self._fresh = Sum(len(self._sums), len(self._deviations))
        self._turn, self._lost = self.tail, False

    def push(self, leaf: Partial) -> None:
        """Add to the total, and to what came since the last turn."""
        self._append(leaf)
        self._add(self._total, leaf)
        if self.tail - self.head == 1:
            self._turn, self._since = self.tail, 0
        else:
            self._add(self._fresh, leaf)

    def pop(self) -> None:
        """Deduct from the total; at a turn, take over what came since the last."""
        oldest = self._leaves.get(self.head)
        self._drop()
        self._since += 1
        if self.head == self.tail:
            self._empty()
        elif self.head == self._turn:
            self._total, self._fresh = self._fresh, Sum(len(self._sums), len(self._deviations))
            self._turn, self._lost = self.tail, False
        elif oldest is not None:
            self._take_away(oldest)

    def _add(self, total: Sum, leaf: Partial) -> None:
        if total.partial is None:
            total.partial = list(leaf)
        else:
            self._apply(self._combine, total, leaf, 1.0)
        for k, slot in enumerate(self._deviations):
            total.peaks[k] = max(total.peaks[k], total.partial[slot])

    def _take_away(self, oldest: Partial) -> None:
        self._apply(self._deduct, self._total, oldest, -1.0)
        partial = self._total.partial or []
        for slot, peak in zip(self._deviations, self._total.peaks, strict=True):
            if peak > 0.0 and not peak * LOST < partial[slot] < inf:
                self._lost = True
        if self._lost and self._since >= self.tail - self.head:
            self._take_anew()

    def _apply(self, operation: Combine, total: Sum, leaf: Partial, sign: float) -> None:
        assert total.partial is not None  # noqa: S101  it has been added to
        before, total.partial = total.partial, operation(total.partial, leaf)
        for k, slot in enumerate(self._sums):
            total.errors[k] += _error(before[slot], sign * leaf[slot], total.partial[slot])

    def _take_anew(self) -> None:
        self._total = Sum(len(self._sums), len(self._deviations))
        for index in range(self.head, self.tail):
            self._add(self._total, self.leaf(index))
        self._lost, self._since = False, 0

    def load(self, head: int, leaves: list[Partial], left: Partial | None, right: Partial | None) -> None:
        """Take over the leaves of a stored window."""
        self._turn = head
        super().load(head, leaves, left, right)

    def total(self) -> Partial | None:
        """The running total."""
        return self._rounded(self._total)

    def rest(self) -> Partial | None:
        """The running total less the oldest leaf."""
        if self.tail - self.head < 2:
            return None
        kept = Sum(len(self._sums), len(self._deviations))
        kept.partial, kept.errors = self._total.partial, list(self._total.errors)
        self._apply(self._deduct, kept, self.leaf(self.head), -1.0)
        return self._rounded(kept)

    def _rounded(self, total: Sum) -> Partial | None:
        if total.partial is None:
            return None
        out = list(total.partial)
        for slot, error in zip(self._sums, total.errors, strict=True):
            out[slot] += error
        return out

    def verify(self) -> None:
        """What came since the last turn is the sum of those leaves, errors and all."""
        turned = self.head == self.tail or self.head < self._turn <= self.tail
        self._insist(turned, f"the last turn was at {self._turn}")
        again = Sum(len(self._sums), len(self._deviations))
        for index in range(self._turn, self.tail):
            self._add(again, self.leaf(index))
        same = (again.partial, again.errors) == (self._fresh.partial, self._fresh.errors)
        self._insist(same, f"the sum since {self._turn} is not its leaves'")


def _error(a: float, b: float, total: float) -> float:
    """What rounding took from a + b = total, exactly (Knuth's TwoSum)."""
    part = total - a
    return (a - (total - part)) + (b - part)
