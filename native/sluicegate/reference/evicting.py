"""The readable twin of sluicegate.core.eviction: what a policy, or the user's rule, lets go."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sluicegate.constants import BY_COUNT, BY_TIME, CUSTOM
from sluicegate.errors import BusyError, InputError
from sluicegate.monoids.layout import COUNT, O_FIRST, T_FIRST
from sluicegate.reference.eviction import Rule
from sluicegate.reference.program import Partial
from sluicegate.reference.state import State


class Evicting(State):
    """A window whose oldest readings leave."""

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
