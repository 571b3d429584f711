"""The readable twin of policies/_eviction.pxd: the rules that a core enforces besides count and time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sluicegate.errors import InputError, PolicyError
from sluicegate.policies.eviction import COMPILED, DELTA, LONGEST_RUN, MAXIMUM, TOTAL, EvictionRule
from sluicegate.reference.engines.engine import Engine
from sluicegate.reference.program import Partial
from sluicegate.reference.wide import OFFSET

Pack = Callable[[Partial | None], bytes]
Bulk = Callable[[Callable[[Partial], bool], bool], None]  # a core's: single evictions, then a bulk one where monotone


class Rule:
    """Evicts an engine's oldest leaves as an `EvictionRule` says; a compiled rule is asked after each reading."""

    def __init__(self, eviction: EvictionRule, engine: Engine, pack: Pack, bulk: Bulk) -> None:
        """`pack`: a partial as a compiled rule reads it."""
        self._eviction, self._engine, self._pack, self._bulk = eviction, engine, pack, bulk
        self._function: Any = _function(eviction.address) if eviction.kind == COMPILED else None
        self._reference, self._begins = 0.0, 0

    def refuse_fall(self, before: float | None, after: float, name: str | None) -> float:
        """Refuse an attribute that falls though it is declared growing; else what the next is held against."""
        if self._eviction.growing and before is not None and after < before:
            raise InputError(
                f"reading: {name or 'value'} {after!r} after {before!r}, but the policy {self._eviction.name} says "
                "that it never falls; nothing was inserted"
            )
        return after

    def newest(self) -> float | None:
        """The growing attribute of the newest reading, None for an empty window."""
        total = self._engine.total()
        return None if total is None else float(total[self._eviction.other])

    def enforce(self, attribute: float) -> None:
        """The oldest leaves while the rule says so; in bulk, as often as it takes, where the rule is monotone."""
        engine, rule = self._engine, self._eviction
        while rule.most and engine.tail - engine.head > rule.most:
            engine.pop()
        if rule.kind == TOTAL:
            self._evict_over_limit()
            return
        total = engine.total()
        self._reference = attribute if rule.kind == DELTA or total is None else float(total[rule.slot])
        if rule.kind == LONGEST_RUN and total is not None:
            self._begins = engine.head + int(total[rule.slot + OFFSET])
        while engine.head < engine.tail and self._leaves(engine.leaf(engine.head)):
            engine.pop()
            if rule.monotone:
                self._bulk(self._leaves, True)

    def _evict_over_limit(self) -> None:
        """In bulk what surely leaves, where no value is negative; the rest, and otherwise all, one by one."""
        engine, rule = self._engine, self._eviction
        total = engine.total()
        if total is not None and total[rule.slot] > rule.limit and total[rule.other] >= 0.0:
            self._bulk(self._surely_over, True)
        while (total := engine.total()) is not None and total[rule.slot] > rule.limit:
            engine.pop()

    def _surely_over(self, old: Partial) -> bool:
        """Whether what is behind a prefix exceeds the limit, rounding included.

        Any order of adding n values that are not negative is within n·2⁻⁵³ of their sum; there are three such sums, and
        a difference.
        """
        rule, total = self._eviction, self._engine.total()
        if total is None:
            return False
        leaves, whole = self._engine.tail - self._engine.head, total[rule.slot]
        return whole - old[rule.slot] > rule.limit + (whole + abs(rule.limit)) * leaves * 2.0**-51

    def _leaves(self, old: Partial) -> bool:
        rule = self._eviction
        if rule.kind == DELTA:
            return self._reference - old[rule.other] > rule.limit or old[rule.slot] - self._reference > rule.limit
        if rule.kind == MAXIMUM:
            return old[rule.slot] < self._reference
        if rule.kind == LONGEST_RUN:  # no reading of the prefix belongs to the run
            return self._engine.head + old[rule.slot] <= self._begins
        answer = self._function(self._pack(self._engine.total()), self._pack(old), rule.context)
        if answer < 0:
            raise PolicyError(
                f"policy {rule.name}: returned {answer}, expected 0 or 1; the reading is in, nothing more was evicted"
            )
        return bool(answer)


def _function(address: int) -> Any:
    """The C function at an address; partials are passed as bytes that it reads."""
    import ctypes

    return ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p)(address)
