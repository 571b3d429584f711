"""The readable twin of sluicegate.core.state and .eviction: what a window is between two readings, and what leaves."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sluicegate import catalogue
from sluicegate.constants import BY_COUNT, BY_TIME, CUSTOM
from sluicegate.errors import BusyError, InputError
from sluicegate.histograms._rules import Rules
from sluicegate.monoids.layout import COUNT, O_FIRST, T_FIRST, Layout
from sluicegate.policies.eviction import EvictionRule
from sluicegate.records import Cut, Edge
from sluicegate.reference import estimate
from sluicegate.reference.engines.engine import Engine
from sluicegate.reference.engines.fiba import Fiba
from sluicegate.reference.engines.pairs import Pairs
from sluicegate.reference.engines.staged import Staged
from sluicegate.reference.eviction import Rule
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

    # what a policy, or the user's rule, lets go

    def _enforce(self) -> None:
        cutoff = self.cutoff
        if self._policy == BY_COUNT:
            if not self._bucketed:
                self._pop_to(max(cutoff, self._engine.head))
            while self._end_of_oldest() <= cutoff:
                self._engine.pop()
        elif self._timed:
            self._evict_by_time(cutoff)
        else:
            self._evict(lambda old: old[self._newest_slot] <= cutoff, True)
        if self._up_to:
            self._evict_irrelevant()
        self._note_edge()
        self._settle()

    def _evict_by_time(self, cutoff: int) -> None:
        if self._sorted is not None:
            self._sorted.evict_through(cutoff)
        else:
            self._pop_to(self._first_after(cutoff))

    def _pop_to(self, head: int) -> None:
        """Evict all before `head` of an exact window, at once where it is much."""
        self._engine.pop_to(head)
        while self._engine.head < head:
            self._engine.pop()

    def _evict_irrelevant(self) -> None:
        """Drop the oldest leaves whose extreme a later reading reaches: they can no longer become the answer."""
        engine, slot, sign = self._engine, self._extreme_slot, self._up_to
        while engine.tail - engine.head > 1:
            oldest, rest = engine.leaf(engine.head), engine.rest()
            if rest is None or sign * rest[slot] < sign * oldest[slot]:
                return
            if self._policy == BY_TIME and self._sorted is None:
                self.held = max(self.held, int(oldest[self._newest_slot]))
            engine.pop()

    def _settle(self) -> None:
        """Tell the histograms where the window begins now, and how uncertain that is within the oldest bucket."""
        rules, engine = self._rules, self._engine
        if rules is None:
            return
        if engine.head == engine.tail:
            rules.settled(self.accepted, 0)
            return
        leaf, start, uncertain = engine.leaf(engine.head), self.edge + 1, 0
        if self._policy == CUSTOM:
            uncertain = int(leaf[COUNT]) - 1
        elif self._policy == BY_TIME and rules.hop is not None and leaf[T_FIRST] <= self.cutoff:
            where = self.cut(leaf)
            start, uncertain = int(leaf[O_FIRST] + leaf[COUNT]) - where.most, where.most - where.least
        rules.settled(start, uncertain)

    def evict_oldest(self, count: int) -> None:
        """Evict so many of the oldest readings of an exact window now. Raises InputError for more than it holds."""
        if self._evicting:
            raise BusyError("window: busy with an eviction; a policy may not evict from its own window")
        if not 0 <= count <= self._engine.tail - self._engine.head:
            held = self._engine.tail - self._engine.head
            raise InputError(f"evict({count}): expected 0 to {held}, the readings the window holds")
        self._pop_to(self._engine.head + count)
        self._note_edge()

    def _enforce_rule(self, rule: Rule, attribute: float) -> None:
        """A compiled rule may not enter its own window."""
        self._evicting = True
        try:
            rule.enforce(attribute)
        finally:
            self._evicting = False
            self._note_edge()
            self._settle()

    def _refuse_fall(self, rows: Sequence[Sequence[float]]) -> None:
        """Refuse a batch whose growing attribute falls, before any of it enters."""
        if self._rule is None or self._eviction is None or not self._eviction.growing:
            return
        name, newest = self._layout.dimensions[self._eviction.dimension], self._rule.newest()
        for row in rows:
            newest = self._rule.refuse_fall(newest, row[self._eviction.dimension], name)

    def evict(self, leaves: Callable[[bytes, bytes], bool], monotone: bool) -> None:
        """Evict by a user's rule of (total, old); what it raises leaves a consistent window."""
        engine = self._engine

        def rule(old: Partial) -> bool:
            return leaves(self._pack(engine.total()), self._pack(old))

        if self._evicting:
            raise BusyError("window: busy with an eviction; a policy may not evict from its own window")
        self._evicting = True
        try:
            self._evict(rule, monotone)
        finally:
            self._evicting = False
            self._note_edge()
            self._settle()

    def _evict(self, leaves: Callable[[Partial], bool], monotone: bool) -> None:
        """Single evictions first, then, after a log n of them, a bulk one where the policy is monotone."""
        engine = self._engine
        singles = (engine.tail - engine.head).bit_length() + 1 if monotone else engine.tail - engine.head
        for _ in range(singles):
            if engine.head == engine.tail or not leaves(engine.leaf(engine.head)):
                return
            engine.pop()
        if engine.head < engine.tail:
            engine.bulk(leaves)
