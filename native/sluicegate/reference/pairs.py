"""The readable twin of sluicegate.engines.pairs: a FIFO of buckets in which any neighbouring pair may be merged.

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
from sluicegate.reference.program import Partial
from sluicegate.reference.widths import Weights

_MASK = 2**64 - 1


class Merged(NamedTuple):
    """Whether a merge took in the oldest bucket, or the open one."""

    oldest: bool
    newest: bool


class State(IntEnum):
    """Of a bucket since it was last given out: nothing, it is new, it took over others."""

    GIVEN = 0
    FRESH = 1
    TOOK = 2


def priority(ordinal: int) -> int:
    """A hash that gives every ordinal another number: splitmix64's finisher (Steele, Lea & Flood 2014)."""
    z = (ordinal + 0x9E3779B97F4A7C15) & _MASK
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & _MASK
    return z ^ z >> 31


class Pairs:
    """Buckets head … tail − 1, counted from the oldest: merging moves those behind by one."""

    def __init__(self, combine: Callable[[Partial, Partial], Partial], terms: Sequence[Term]) -> None:
        """`terms`: the widths that a merge is judged by."""
        self._combine, self._weights = combine, Weights(terms)
        self._leaves: list[Partial] = []
        self._costs: list[float] = []  # of merging each closed bucket with the one behind it, where that is closed too
        self._state: list[State] = []
        self.merges = self._due = 0  # so far; from how many on the scales are taken anew
        self.head = self.tail = 0

    # insertion and eviction

    def push(self, leaf: Partial) -> None:
        """Append a bucket; the one before it is closed now."""
        self._leaves.append(leaf)
        self.tail += 1
        self._state.append(State.FRESH)
        if len(self._leaves) > 2:
            self._costs.append(self._adds(len(self._leaves) - 3))

    def join(self, reading: Partial) -> None:
        """Fold a reading into the newest bucket."""
        self._leaves[-1] = self._combine(self._leaves[-1], reading)

    def pop(self) -> None:
        """Evict the oldest bucket."""
        del self._leaves[0], self._state[0], self._costs[:1]
        self.head += 1

    def pop_newest(self) -> None:
        """Take the newest bucket out; the one before it is open again."""
        del self._leaves[-1], self._state[-1], self._costs[-1:]
        self.tail -= 1

    def mark_newest(self, state: State) -> None:
        """What is to be told of the newest bucket."""
        self._state[-1] = state

    def bulk(self, leaves: Callable[[Partial], bool]) -> None:
        """Evict the longest prefix for which `leaves(prefix)` holds: the policy asks one bucket after the other."""
        while self._leaves and leaves(self._leaves[0]):
            self.pop()

    def coarsen(self) -> None:
        """No levels here: `merge` makes room."""
        raise InvariantError("pairs: there are no levels to evict")

    # merging

    def merge(self) -> Merged:
        """Merge the neighbouring pair that adds least to the bound; of equals the fewest readings, then the oldest.

        What a pair adds: the weight of both as one bucket, less their own, so the interval's width, by how much it
        grows on average over the readings at which the window's edge may stand.
        """
        n, i = len(self._leaves), self._least()[2]
        self._leaves[i : i + 2] = [self._combine(self._leaves[i], self._leaves[i + 1])]
        self._state[i : i + 2] = [State.TOOK]
        self.merges += 1
        self.tail -= 1
        if n > 2:
            del self._costs[min(i, n - 3)]
        for place in range(max(i - 1, 0), min(i + 1, len(self._costs))):
            self._costs[place] = self._adds(place)
        return Merged(i == 0, i == n - 2)

    def wants(self, leaf: Partial) -> bool:
        """Whether `leaf` and the newest bucket are the pair that adds least of all: then it is to be joined."""
        least = self._least()
        newest = self._leaves[-1]
        wanted = (self._added(newest, leaf), int(newest[COUNT] + leaf[COUNT])) < least[:2]
        self.merges += wanted
        return wanted

    def _least(self) -> tuple[float, int, int]:
        """What the pair that adds least adds, its readings, its place; of equals the fewest readings, the oldest."""
        if len(self._weights.terms) > 1 and self.merges >= self._due:
            self._rescale()
        n = len(self._leaves)
        costs = [*self._costs, self._adds(n - 2)]
        return min((costs[i], self._readings(i), i) for i in range(n - 1))

    def _adds(self, i: int) -> float:
        return self._added(*self._leaves[i : i + 2])

    def _added(self, a: Partial, b: Partial) -> float:
        """The weight of both as one, less their own; where squares overflow it is no number, and counts as infinite."""
        cost = self._weights(self._combine(a, b)) - self._weights(a) - self._weights(b)
        return cost if cost == cost else inf

    def _readings(self, i: int) -> int:
        return int(self._leaves[i][COUNT] + self._leaves[i + 1][COUNT])

    def _rescale(self) -> None:
        """Measure each width by what the whole window as one bucket might add, and price every pair anew."""
        total = self.total()
        assert total is not None  # noqa: S101  a pair is to be merged
        self._weights.rescale(total)
        self._due = self.merges + len(self._leaves)
        self._price()

    def _price(self) -> None:
        self._costs = [self._adds(i) for i in range(len(self._leaves) - 2)]

    # answers

    def total(self) -> Partial | None:
        """The partial of all buckets, None when there are none."""
        if not self._leaves:
            return None
        return self._before_open(self._fold(self._leaves[:-1]))

    def rest(self) -> Partial | None:
        """The partial of all buckets but the oldest, None when there are none."""
        if len(self._leaves) < 2:
            return None
        return self._before_open(self._without_first(self._leaves[:-1]))

    def _before_open(self, closed: Partial | None) -> Partial:
        return self._leaves[-1] if closed is None else self._combine(closed, self._leaves[-1])

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
        return self._leaves[index - self.head]

    def take_state(self, index: int) -> State:
        """What became of a bucket since it was last given out; it counts as given from now on."""
        state, self._state[index - self.head] = self._state[index - self.head], State.GIVEN
        return state

    def begin(self, head: int) -> None:
        """Empty; the next bucket's index is `head`."""
        self.head = self.tail = head
        self._leaves, self._costs, self._state = [], [], []

    def finish(self) -> None:
        """Rows may be left of what a bucket took over before: when it is given out, they are told to be of no use."""
        self._state = [State.TOOK] * len(self._leaves)

    def state(self) -> bytes:
        """Ordinal of the oldest bucket, merges, when the scales are taken anew, the scales; 8 bytes each."""
        first = int(self._leaves[0][O_FIRST]) if self._leaves else 0
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

    def result(self) -> tuple[Partial | None, Partial | None]:
        """Nothing besides the buckets and the state."""
        return None, None

    def pop_to(self, head: int) -> None:
        """Nothing at once: the caller evicts one by one."""

    @property
    def size(self) -> int:
        """Bytes of a state."""
        return 24 + 8 * len(self._weights.scales)

    def verify(self) -> None:
        """Raise InvariantError where a kept cost is not what its buckets give."""
        kept = self._costs
        self._price()
        if kept != self._costs:
            raise InvariantError(f"costs {kept!r}, the buckets give {self._costs!r}")


def _root(leaves: list[Partial]) -> int:
    return max(range(len(leaves)), key=lambda i: priority(int(leaves[i][O_FIRST])))
