"""The readable twin of sluicegate.core.state: what a window is between two readings, and where its edge stands."""

from __future__ import annotations

from collections.abc import Callable

from sluicegate import catalogue
from sluicegate.constants import BY_COUNT, BY_TIME
from sluicegate.monoids.layout import COUNT, O_FIRST, Layout
from sluicegate.policies.eviction import EvictionRule
from sluicegate.records import Cut, Edge
from sluicegate.reference import estimate
from sluicegate.reference.engines.engine import Engine
from sluicegate.reference.engines.fiba import Fiba
from sluicegate.reference.engines.pairs import Pairs
from sluicegate.reference.engines.staged import Staged
from sluicegate.reference.eviction import Rule
from sluicegate.reference.histograms.rules import Rules
from sluicegate.reference.late import Late
from sluicegate.reference.program import Partial

NOTHING_LEAVES = -(2**63) + 1


class State:
    """A window's leaves, their engine, and what has been evicted; `sluicegate.reference.core` sets it up."""

    accepted: int
    newest: int
    edge: int
    created: int
    mark: int
    heads: list[int]
    level: int
    held: int
    late: int
    limit: int
    centers: tuple[float, ...] | None
    _layout: Layout
    _policy: int
    _value: int
    _hop: int
    _up_to: int
    _bucketed: bool
    _timed: bool  # an exact window by time
    _evicting: bool
    _extreme_slot: int
    _newest_slot: int
    _kept: int  # slots of a leaf
    _facts: catalogue.Facts  # the engine's
    _name: str  # the engine's
    _engine: Engine
    _sorted: Fiba | None  # the same where readings may come late
    _late_since: int  # the least time of those that came late since `changes` was asked
    _combine: Callable[[Partial, Partial], Partial]
    _pairs: Pairs | None
    _late: Late | None  # of a window of buckets by time
    _staged: Staged | None
    _rules: Rules | None
    _eviction: EvictionRule | None
    _rule: Rule | None

    @property
    def cutoff(self) -> int:
        """By time: readings of this time or earlier leave. By count: the ordinal of the first reading inside.

        What left early as irrelevant still blocks, as it would in the whole window, a FIFO, what is behind it.
        """
        last = self.accepted if self._policy == BY_COUNT else self.newest
        cutoff = last // self._hop * self._hop - self._value
        return NOTHING_LEAVES if self._policy == BY_TIME and self.held > cutoff else cutoff

    def _first_after(self, cutoff: int) -> int:
        """The first leaf that does not leave by time."""
        head = self._engine.head
        while head < self._engine.tail and self._engine.leaf(head)[self._newest_slot] <= cutoff:
            head += 1
        return head

    def _end_of_oldest(self) -> int:
        """The ordinal after the oldest leaf's last reading."""
        if not self._bucketed:
            return self._engine.head + 1
        oldest = self._engine.leaf(self._engine.head)
        return int(oldest[O_FIRST] + oldest[COUNT])

    def _note_edge(self) -> None:
        engine = self._engine
        if not self._bucketed:
            self.edge = max(self.edge, engine.head - 1)
        elif engine.head == engine.tail:
            self.edge = self.accepted - 1
        else:
            self.edge = max(self.edge, int(engine.leaf(engine.head)[O_FIRST]) - 1)
        if self._policy == BY_COUNT:
            self.edge = max(self.edge, self.cutoff - 1)

    def cut(self, leaf: Partial) -> Cut:
        """Where the edge cuts the oldest leaf of a window of buckets."""
        return estimate.cut(self._layout, leaf, Edge(self._policy, self.cutoff, self.edge))

    def cut_oldest(self) -> Cut | None:
        """The same for the oldest leaf there is, None for an empty window."""
        return None if self._engine.head == self._engine.tail else self.cut(self._engine.leaf(self._engine.head))

    def require_leaves(self) -> None:
        """Raise ConfigurationError where the engine keeps no whole leaves: of a count by time the time is no leaf."""
        if self._kept < self._layout.width or (self._timed and not (self._facts.keeps_leaves or self._up_to)):
            raise catalogue.refuse_leaves(self._name)

    def _pack(self, partial: Partial | None) -> bytes:
        return b"" if partial is None else self._layout.format.pack(*partial)

    def _unpack(self, packed: bytes) -> Partial:
        return list(self._layout.format.unpack(packed))
