"""The readable twin of sluicegate.engines.tree.pairs: a FIFO of buckets in which any neighbouring pair may be merged.

Fact card: FIFO and merging in the middle; associative operation; insert, eviction and merge O(log n) combines
expected, join O(1), total O(1), rest O(log n); 2n partials. The closed buckets stand in a treap (Seidel & Aragon 1996)
keyed by the ordinal of their first reading, whose priority is a hash of that ordinal: so the tree's shape follows from
the buckets that are there and from nothing else, and a window that was rebuilt from them answers to the bit as before.
The open bucket, which readings still join, stands beside it. Source: paper A2MTA, "constrained footprint", with the
neighbouring pair that adds least to the bound in place of a whole level.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from enum import IntEnum
from math import inf
from typing import NamedTuple

from sluicegate.errors import InvariantError
from sluicegate.histograms.widths import Term
from sluicegate.monoids.layout import COUNT, O_FIRST
from sluicegate.reference.engines.fiba import priority
from sluicegate.reference.program import Partial
from twins.engine import Engine
from twins.widths import Weights

Behind = Sequence[float | None]


class Merged(NamedTuple):
    """Whether a merge took in the oldest bucket, or the open one."""

    oldest: bool
    newest: bool


class LeafState(IntEnum):
    """Of a bucket since it was last given out: nothing, it is new, it took over others."""

    GIVEN = 0
    FRESH = 1
    TOOK = 2


class Pairs(Engine):
    """Buckets head … tail − 1, counted from the oldest: merging moves those behind by one."""

    def __init__(self, combine: Callable[[Partial, Partial], Partial], terms: Sequence[Term]) -> None:
        """`terms`: the widths that a merge is judged by."""
        super().__init__(combine)
        self._weights = Weights(terms)
        self._buckets: list[Partial] = []
        self._state: list[LeafState] = []
        self.merges = self._due = 0  # so far; from how many on the scales are taken anew

    # insertion and eviction

    def push(self, leaf: Partial) -> None:
        """Append a bucket; the one before it is closed now."""
        self._buckets.append(leaf)
        self.tail += 1
        self._state.append(LeafState.FRESH)

    def join(self, reading: Partial) -> None:
        """Fold a reading into the newest bucket."""
        self._buckets[-1] = self._combine(self._buckets[-1], reading)

    def pop(self) -> None:
        """Evict the oldest bucket."""
        del self._buckets[0], self._state[0]
        self.head += 1

    def pop_newest(self) -> None:
        """Take the newest bucket out; the one before it is open again."""
        del self._buckets[-1], self._state[-1]
        self.tail -= 1

    def mark_newest(self, state: LeafState) -> None:
        """What is to be told of the newest bucket."""
        self._state[-1] = state

    # merging

    def merge(self, later: Sequence[Partial] = ()) -> Merged:
        """Merge the neighbouring pair that adds least to the bound; of equals the fewest readings, then the oldest.

        What a pair adds: the weight of both as one bucket, less their own, so the interval's width, by how much it
        grows on average over the readings at which the window's edge may stand. `later`: what a tail holds behind them.
        """
        n, i = len(self._buckets), self._least(later)[2]
        self._buckets[i : i + 2] = [self._combine(self._buckets[i], self._buckets[i + 1])]
        self._state[i : i + 2] = [LeafState.TOOK]
        self.merges += 1
        self.tail -= 1
        return Merged(i == 0, i == n - 2)

    def wants(self, leaf: Partial, later: Sequence[Partial]) -> bool:
        """Whether `leaf` and the newest bucket are the pair that adds least of all: then it is to be joined.

        `later`: what a tail holds behind `leaf`.
        """
        least = self._least(later)
        newest = self._buckets[-1]
        cost, _ = self._added(newest, leaf, self._weights.behind(later))
        wanted = (cost, int(newest[COUNT] + leaf[COUNT])) < least[:2]
        self.merges += wanted
        return wanted

    def _least(self, later: Sequence[Partial]) -> tuple[float, int, int]:
        """What the pair that adds least adds, its readings, its place; of equals the fewest readings, the oldest."""
        if len(self._weights.terms) > 1 and self.merges >= self._due:
            self._rescale()
        found, behind = [], self._weights.behind(later)
        for i in reversed(range(len(self._buckets) - 1)):
            cost, behind = self._added(self._buckets[i], self._buckets[i + 1], behind)
            found.append((cost, self._readings(i), i))
        return min(found)

    def _added(self, a: Partial, b: Partial, behind: Behind) -> tuple[float, list[float | None]]:
        """The weight of both as one, less their own, given what is behind both; and what is behind the first.

        Where squares overflow it is no number, and counts as infinite.
        """
        weights, between = self._weights, self._weights.with_one(behind, b)
        cost = weights(self._combine(a, b), behind) - weights(a, between) - weights(b, behind)
        return cost if cost == cost else inf, between

    def _readings(self, i: int) -> int:
        return int(self._buckets[i][COUNT] + self._buckets[i + 1][COUNT])

    def _rescale(self) -> None:
        """Measure each width by what the whole window as one bucket might add."""
        total = self.total()
        assert total is not None
        self._weights.rescale(total)
        self._due = self.merges + len(self._buckets)

    # answers

    def total(self) -> Partial | None:
        """The partial of all buckets, None when there are none."""
        if not self._buckets:
            return None
        return self._before_open(self._fold(self._buckets[:-1]))

    def rest(self) -> Partial | None:
        """The partial of all buckets but the oldest, None when there are none."""
        if len(self._buckets) < 2:
            return None
        return self._before_open(self._without_first(self._buckets[:-1]))

    def _before_open(self, closed: Partial | None) -> Partial:
        return self._buckets[-1] if closed is None else self._combine(closed, self._buckets[-1])

    def _fold(self, leaves: list[Partial]) -> Partial | None:
        """The root's partial: left subtree, bucket, right subtree."""
        if not leaves:
            return None
        root = _root(leaves)
        left, right = self._fold(leaves[:root]), self._fold(leaves[root + 1 :])
        found = leaves[root] if left is None else self._combine(left, leaves[root])
        return found if right is None else self._combine(found, right)

    def _without_first(self, leaves: list[Partial]) -> Partial | None:
        """What stands right of each node on the way down to the first bucket, combined from there upwards."""
        if len(leaves) < 2:
            return None
        root = _root(leaves)
        right = self._fold(leaves[root + 1 :])
        if root == 0:
            return right
        below = self._without_first(leaves[:root])
        found = leaves[root] if below is None else self._combine(below, leaves[root])
        return found if right is None else self._combine(found, right)

    def leaf(self, index: int) -> Partial:
        """A bucket, head ≤ index < tail."""
        return self._buckets[index - self.head]

    def take_state(self, index: int) -> LeafState:
        """What became of a bucket since it was last given out; it counts as given from now on."""
        state, self._state[index - self.head] = self._state[index - self.head], LeafState.GIVEN
        return state

    def begin(self, head: int) -> None:
        """Empty; the next bucket's index is `head`."""
        self.head = self.tail = head
        self._buckets, self._state = [], []

    def finish(self) -> None:
        """Rows may be left of what a bucket took over before: when it is given out, they are told to be of no use."""
        self._state = [LeafState.TOOK] * len(self._buckets)

    def state(self) -> bytes:
        """Ordinal of the oldest bucket, merges, when the scales are taken anew, the scales; 8 bytes each."""
        first = int(self._buckets[0][O_FIRST]) if self._buckets else 0
        return struct.pack(f"<3q{len(self._weights.scales)}d", first, self.merges, self._due, *self._weights.scales)

    def load_state(self, data: bytes) -> None:
        """Take over a state, before the buckets. Raises ValueError for another length, or scales that cannot be."""
        if len(data) != self.size:
            raise ValueError(f"state of merged pairs of {len(data)} bytes, expected {self.size}")
        _, merges, due, *scales = struct.unpack(f"<3q{len(self._weights.scales)}d", data)
        if not 0 <= merges <= 2**62 or not 0 <= due <= 2**62 or not all(scale >= 0.0 for scale in scales):
            raise ValueError(f"{merges} merges, scales {scales}, expected none below 0")
        self.merges, self._due, self._weights.scales = merges, due, scales

    def load(self, head: int, leaves: list[Partial], left: Partial | None, right: Partial | None) -> None:
        """Take over the buckets of a stored window, after its state."""
        self.begin(head)
        for leaf in leaves:
            self.push(leaf)
        self.finish()

    @property
    def size(self) -> int:
        """Bytes of a state."""
        return 24 + 8 * len(self._weights.scales)

    def verify(self) -> None:
        """Raise InvariantError where the buckets are not as many as are counted."""
        if not len(self._buckets) == len(self._state) == self.tail - self.head:
            held = f"{len(self._buckets)} buckets, {len(self._state)} states"
            raise InvariantError(f"{held}, {self.tail - self.head} counted")


def _root(leaves: list[Partial]) -> int:
    return max(range(len(leaves)), key=lambda i: priority(int(leaves[i][O_FIRST])))
