"""The readable twin of sluicegate.engines.soe: Subtract-on-Evict.

Fact card: FIFO; associative operation with an inverse (`deduct`); insert and query O(1), eviction O(1) amortised, O(n)
where digits were lost; n partials and a sum. Source: paper DABA, Figure 2.

What the paper leaves open is a total that drifts, or stays poisoned after a large value. Here:
* sums carry the exact error of each addition and subtraction beside them (TwoSum), as if they had twice the digits;
* where that is not enough the total is taken anew from the leaves: when the largest summand has left and the sum is
  smaller by 2⁻⁴⁰, when squared deviations have fallen below 2⁻¹⁶ of their greatest, and when what made them overflow
  has left. Each time the greatest falls by as much, so this is rare whatever comes;
* so it is where only one leaf is left: the total is that leaf;
* squared deviations have no such errors beside them: they are also taken anew in every fourth window turn
  (of small windows: after 512 evictions more). A reading that leaves right after another came is exchanged for it,
  which rounds less often than adding the one and deducting the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from sluicegate.constants import CANCELLED, FAR, LOST
from sluicegate.reference.engines.engine import Combine, Engine
from sluicegate.reference.program import Partial

TURNS = 4
FEWEST = 512  # evictions, however small the window


class Soe(Engine):
    """Leaves head … tail − 1 and their running total.

    `deduct(total, oldest)` is the inverse of combine(oldest, rest). `sums`: slots of plain sums; `totals`: of sums that
    carry their errors themselves; `deviations`: of sums of squared deviations.
    """

    def __init__(
        self,
        combine: Combine,
        keep: int | None = None,
        *,
        deduct: Combine,
        sums: Sequence[int] = (),
        totals: Sequence[int] = (),
        deviations: Sequence[int] = (),
    ) -> None:
        super().__init__(combine, keep)
        self._deduct, self._sums, self._deviations = deduct, tuple(sums), tuple(deviations)
        self._watched = (*self._sums, *totals)
        self._empty()

    def _empty(self) -> None:
        self._sum: Partial | None = None
        self._errors = [0.0] * len(self._sums)
        self._largest = [(0.0, -1)] * len(self._watched)  # summands since the total was taken, and where the last is
        self._greatest = [0.0] * len(self._deviations)
        self._overflow = -1  # the last leaf far enough to overflow deviations, or with which they did
        self._since = 0  # evictions since the total was taken
        self._former: tuple[Partial, list[float], int] | None = None  # total, greatest and overflow before the newest

    def push(self, leaf: Partial) -> None:
        """Add to the total."""
        self._former = None if self._sum is None else (self._sum, list(self._greatest), self._overflow)
        self._append(leaf)
        self._add(leaf, self.tail - 1)

    def pop(self) -> None:
        """Deduct from the total; take it anew where that lost digits."""
        oldest = self._leaves.get(self.head)
        self._drop()
        self._since += 1
        if self.head == self.tail:
            self._empty()
        elif oldest is not None and self._sum is not None:
            self._sum = self._apply(self._deduct, self._sum, oldest, -1.0, self._errors)
            if self._former is not None:
                self._exchange_deviations(self._sum, oldest, *self._former)
            if self._lost():
                self._take_anew()
        self._former = None

    def _add(self, leaf: Partial, index: int) -> None:
        if self._sum is None:
            self._sum = list(leaf)
        else:
            self._sum = self._apply(self._combine, self._sum, leaf, 1.0, self._errors)
        for k, slot in enumerate(self._watched):
            largest, _ = self._largest[k]
            if abs(leaf[slot]) >= 0.5 * largest:
                self._largest[k] = max(largest, abs(leaf[slot])), index
        for k, slot in enumerate(self._deviations):
            self._greatest[k] = max(self._greatest[k], self._sum[slot])
            if abs(leaf[slot - 1]) >= FAR or (self._sum[slot] == inf and self._overflow < self.head):
                self._overflow = index

    def _apply(self, operation: Combine, total: Partial, leaf: Partial, sign: float, errors: list[float]) -> Partial:
        out = operation(total, leaf)
        for k, slot in enumerate(self._sums):
            errors[k] += _error(total[slot], sign * leaf[slot], out[slot])
        return out

    def _exchange_deviations(
        self, total: Partial, oldest: Partial, former: Partial, greatest: list[float], overflow: int
    ) -> None:
        """The oldest leaf, which has left, for the newest, which came right before: from the total of before both."""
        newest = self.leaf(self.tail - 1)
        if inf in greatest or any(not abs(newest[slot - 1]) < FAR for slot in self._deviations):
            return
        for k, slot in enumerate(self._deviations):
            n, mean, m2 = former[slot - 2 : slot + 1]
            by = newest[slot - 1] - oldest[slot - 1]
            shifted = mean + by / n
            m2 += by * ((newest[slot - 1] - shifted) + (oldest[slot - 1] - mean))
            total[slot - 2 : slot + 1] = n, shifted, m2  # below 0 by its rounding: digits are lost then
            self._greatest[k] = max(greatest[k], total[slot])
        self._overflow = overflow

    def _lost(self) -> bool:
        """Whether the total has lost digits that the leaves still have."""
        if self.tail - self.head == 1:
            return True
        if self._deviations and self._since >= TURNS * (self.tail - self.head) + FEWEST:
            return True
        total = self._sum or []
        for slot, (largest, index) in zip(self._watched, self._largest, strict=True):
            if index < self.head and abs(total[slot]) < largest * CANCELLED:
                return True
        for slot, greatest in zip(self._deviations, self._greatest, strict=True):
            if (self._overflow < self.head) if greatest == inf else total[slot] < greatest * LOST:
                return True
        return False

    def _take_anew(self) -> None:
        self._empty()
        for index in range(self.head, self.tail):
            self._add(self.leaf(index), index)

    def total(self) -> Partial | None:
        """The running total."""
        return None if self._sum is None else self._rounded(self._sum, self._errors)

    def rest(self) -> Partial | None:
        """The running total less the oldest leaf."""
        if self._sum is None or self.tail - self.head < 2:
            return None
        errors = list(self._errors)
        return self._rounded(self._apply(self._deduct, self._sum, self.leaf(self.head), -1.0, errors), errors)

    def _rounded(self, total: Partial, errors: Sequence[float]) -> Partial:
        out = list(total)
        for slot, error in zip(self._sums, errors, strict=True):
            out[slot] += error
        return out

    def verify(self) -> None:
        """The total is there as the leaves are, and its sums are close to theirs."""
        self._insist((self._sum is None) == (self.head == self.tail), "a total without leaves, or leaves without one")
        total = self.total() or []
        for slot in self._sums:
            summands = [float(self._leaves[index][slot]) for index in range(self.head, self.tail)]
            slack = 2.0**-50 * (len(summands) + 1) * sum(map(abs, summands))
            near = not summands or abs(sum(summands) - total[slot]) <= slack
            self._insist(near, f"the sum in slot {slot} is not its leaves'")


def _error(a: float, b: float, total: float) -> float:
    """What rounding took from a + b = total, exactly (Knuth's TwoSum)."""
    part = total - a
    return (a - (total - part)) + (b - part)
