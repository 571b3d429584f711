"""The readable twin of sluicegate.engines.tree.staged: a staging tail before the buckets that are stored.

What may become an extreme is decided late, when it leaves the tail: by then most readings are hidden by a later one.
The tail is a list of at most `most` buckets. Those before `pivot` keep what they and all up to the pivot fold to, the
others what all from the pivot on fold to; the pivot stands between both ends wherever there are two buckets or more.
So an answer is made in the same order here and there, to the bit. Source: paper A2MTA, II-B and III-A (its buffer of
512 buckets).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from enum import IntEnum

from max_like_twin import MaxRule

from sluicegate.errors import InvariantError
from sluicegate.histograms.max_like import Guard
from sluicegate.histograms.widths import Term
from sluicegate.monoids.layout import O_FIRST, T_FIRST, T_LAST
from sluicegate.reference.program import Partial
from twins.engine import Engine
from twins.pairs import LeafState, Merged, Pairs

_HEAD = struct.Struct("<3q")


class Verdict(IntEnum):
    """What becomes of the oldest staged bucket."""

    FORWARD = 0  # later ones hide it, not the next alone: the next takes it over
    JOIN = 1  # the newest stored one takes it
    OPEN = 2  # it is stored as a bucket of its own


class Staged(Engine):
    """The stored buckets, then the staged ones: head … tail − 1, counted from the oldest."""

    def __init__(
        self,
        combine: Callable[[Partial, Partial], Partial],
        most: int,
        guards: Sequence[Guard],
        rule: MaxRule | None,
        terms: Sequence[Term],
    ) -> None:
        """`most`: of the tail; `guards`: the extremes it watches; `rule`: its ranges tell candidates, None: all are."""
        super().__init__(combine)
        self.most, self._guards, self._rule = most, guards, rule
        self.stored = Pairs(combine, terms)
        self.staged: list[Partial] = []
        self._states: list[LeafState] = []
        self._pivot = 0
        self._to_store = self._pivot_after = 0

    # what hides what

    def hides(self, new: Partial, old: Partial) -> bool:
        """Whether no extreme of the older bucket can become the window's any more, and their times are in order."""
        return old[T_LAST] <= new[T_FIRST] and all(self._passes(guard, new, old) for guard in self._guards)

    def takes(self, reading: Partial) -> bool:
        """Whether the newest bucket takes a reading: it hides what is there."""
        return bool(self.staged) and self.hides(reading, self.staged[-1])

    @staticmethod
    def _passes(guard: Guard, new: Partial, old: Partial) -> bool:
        x, y = guard.sign * new[guard.slot], guard.sign * old[guard.slot]
        return x > y or (x == y and not guard.strict)

    def candidate(self, leaf: Partial) -> bool:
        """Whether block maxima say that the bucket may hold the window's extreme some day."""
        if self._rule is None:
            return True
        values = (guard.sign * leaf[guard.slot] for guard in self._guards)
        return any(low <= x <= high for x, (low, high) in zip(values, self._rule.ranges, strict=True))

    def irrelevant(self) -> bool:
        """Whether later staged buckets together hide the oldest; of one extreme the next would have."""
        if len(self._guards) < 2 or len(self.staged) < 2 or self.staged[0][T_LAST] > self.staged[1][T_FIRST]:
            return False
        later = self.staged[1:]
        return all(any(self._passes(guard, new, self.staged[0]) for new in later) for guard in self._guards)

    # the newest end

    def push(self, leaf: Partial) -> None:
        """Stage a bucket; there is room. Of a window that is being loaded, the first are stored."""
        self.tail += 1
        if self._to_store:
            self.stored.push(leaf)
            self._to_store -= 1
            return
        self.staged.append(leaf)
        self._states.append(LeafState.FRESH)
        self._settle()

    def join(self, reading: Partial) -> None:
        """Fold a reading into the newest bucket."""
        self.staged[-1] = self._combine(self.staged[-1], reading)

    def collapse(self) -> None:
        """The newest but one takes over the newest."""
        self.staged[-2:] = [self._combine(*self.staged[-2:])]
        self._states[-2:] = [LeafState.TOOK]
        self.tail -= 1
        self._settle()

    def take_back(self) -> None:
        """The only staged bucket takes over the newest stored one."""
        newest = self.stored.leaf(self.stored.tail - 1)
        self.stored.pop_newest()
        self.staged[0], self._states[0] = self._combine(newest, self.staged[0]), LeafState.TOOK
        self.tail -= 1

    # the oldest end

    def spill(self, verdict: Verdict) -> None:
        """The oldest staged bucket leaves the tail."""
        old, state = self._shift()
        if verdict == Verdict.OPEN:
            self.stored.push(old)
            self.stored.mark_newest(state)
        elif verdict == Verdict.JOIN:
            self.stored.join(old)
            self.stored.mark_newest(LeafState.TOOK)
            self.tail -= 1
        else:
            self.staged[0], self._states[0] = self._combine(old, self.staged[0]), LeafState.TOOK
            self.tail -= 1
        self._settle()

    def _shift(self) -> tuple[Partial, LeafState]:
        self._pivot -= 1
        return self.staged.pop(0), self._states.pop(0)

    def pop(self) -> None:
        """Evict the oldest bucket."""
        if self.stored.head < self.stored.tail:
            self.stored.pop()
        else:
            self._shift()
            self._settle()
        self.head += 1

    def merge_stored(self) -> Merged:
        """The stored pair that adds least becomes one."""
        self.tail -= 1
        return self.stored.merge(self.staged)

    def _settle(self) -> None:
        n = len(self.staged)
        if n < 2:
            self._pivot = 0
        elif not 0 < self._pivot < n:
            self._pivot = n // 2

    # answers

    def total(self) -> Partial | None:
        """The partial of all buckets, None when there are none."""
        if not self.staged:
            return None
        return self._together(self.stored.total(), self._front(0), self._back())

    def rest(self) -> Partial | None:
        """The partial of all buckets but the oldest, None when there are none."""
        if self.tail - self.head < 2:
            return None
        if self.stored.head == self.stored.tail:
            return self._together(None, self._front(1), self._back())
        return self._together(self.stored.rest(), self._front(0), self._back())

    def _front(self, first: int) -> Partial | None:
        """The staged buckets from `first` up to the pivot, folded from the pivot down."""
        folded: Partial | None = None
        for leaf in reversed(self.staged[first : self._pivot]):
            folded = leaf if folded is None else self._combine(leaf, folded)
        return folded

    def _back(self) -> Partial:
        folded = self.staged[self._pivot]
        for leaf in self.staged[self._pivot + 1 :]:
            folded = self._combine(folded, leaf)
        return folded

    def _together(self, stored: Partial | None, front: Partial | None, back: Partial) -> Partial:
        if stored is not None and front is not None:
            front = self._combine(stored, front)
        before = front if front is not None else stored
        return back if before is None else self._combine(before, back)

    def leaf(self, index: int) -> Partial:
        """A bucket, head ≤ index < tail."""
        place = index - self.head - self.kept
        return self.staged[place] if place >= 0 else self.stored.leaf(self.stored.tail + place)

    @property
    def kept(self) -> int:
        """How many are stored."""
        return self.stored.tail - self.stored.head

    def take_state(self, index: int) -> LeafState:
        """What became of a bucket since it was last given out; it counts as given from now on."""
        place = index - self.head - self.kept
        if place < 0:
            return self.stored.take_state(self.stored.tail + place)
        state, self._states[place] = self._states[place], LeafState.GIVEN
        return state

    # storage

    def state(self) -> bytes:
        """Ordinal of the oldest bucket, how many are staged, where they are parted (8 bytes each); the stored ones'."""
        first = int(self.leaf(self.head)[O_FIRST]) if self.head < self.tail else 0
        return _HEAD.pack(first, len(self.staged), self._pivot) + self.stored.state()

    def load_state(self, data: bytes, count: int) -> None:
        """Take over a state before the `count` buckets. Raises ValueError for another length, or what cannot be."""
        if len(data) != self.size:
            raise ValueError(f"state of a staging tail of {len(data)} bytes, expected {self.size}")
        _, staged, pivot = _HEAD.unpack_from(data)
        parted = 0 < pivot < staged if staged > 1 else pivot == 0
        if not (min(count, 1) <= staged <= min(self.most, count) and parted):
            raise ValueError(f"{staged} staged buckets of {count}, parted at {pivot}; expected at most {self.most}")
        self.stored.load_state(data[_HEAD.size :])
        self._to_store, self._pivot_after = count - staged, pivot

    def load(self, head: int, leaves: list[Partial], left: Partial | None, right: Partial | None) -> None:
        """Take over the buckets of a stored window, after its state."""
        self.head = self.tail = head
        self.staged, self._states = [], []
        self.stored.begin(0)
        for leaf in leaves:
            self.push(leaf)
        self.stored.finish()
        self._states = [LeafState.TOOK] * len(self.staged)
        self._pivot = self._pivot_after

    @property
    def size(self) -> int:
        """Bytes of a state."""
        return _HEAD.size + self.stored.size

    def verify(self) -> None:
        """Raise InvariantError where the tail is too long, or is not parted between its ends."""
        self.stored.verify()
        if len(self.staged) > self.most or self.kept + len(self.staged) != self.tail - self.head:
            raise InvariantError(
                f"{len(self.staged)} staged of {self.most}, {self.kept} stored, {self.tail - self.head}"
            )
        if len(self.staged) > 1 and not 0 < self._pivot < len(self.staged):
            raise InvariantError(f"{len(self.staged)} staged buckets are parted at {self._pivot}")
