"""The readable twin of sluicegate.engines.core: one window's evolution, from a reading to the evicted edge.

A reading is lifted, opens a leaf or joins the newest (constrained footprint), and the built-in policy evicts.
Partials cross this border as bytes: `layout.width` slots of 8 bytes in the machine's order. Input is checked by the
caller.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from math import nan
from typing import NamedTuple

from sluicegate.engines import catalogue
from sluicegate.errors import BusyError, InputError, InvariantError
from sluicegate.histograms.max_like import Guard
from sluicegate.histograms.widths import Term
from sluicegate.monoids.layout import COUNT, O_FIRST, T_FIRST, T_LAST, Layout, Op
from sluicegate.monoids.results import as_number
from sluicegate.policies.eviction import Eviction
from sluicegate.reference import estimate
from sluicegate.reference.engine import Engine
from sluicegate.reference.estimate import BY_COUNT, BY_TIME, CUSTOM, Cut, Edge, Value
from sluicegate.reference.eviction import Rule
from sluicegate.reference.factory import make_for
from sluicegate.reference.paged import Paged
from sluicegate.reference.pairs import Pairs, State
from sluicegate.reference.program import Partial, combiner, deductor, lift
from sluicegate.reference.rules import Rules
from sluicegate.reference.staged import Staged, Verdict
from sluicegate.reference.statistics import Moments

NEVER = -(2**62)
NOTHING_LEAVES = -(2**63) + 1
KEPT_LEVELS = 16
FINER = 4  # where pairs are merged a bucket closes at a quarter of the size that all would have if they were equal
LATEST = 2**61  # a time plus or minus a span of 2^62 still fits an int64
LARGEST = 2.0**960  # 2^62 such values still add up to a finite float64


class Saved(NamedTuple):
    """All of a window but its closed leaves."""

    accepted: int  # readings so far, the next ordinal
    newest: int  # the greatest time seen
    edge: int  # the greatest ordinal known to be evicted, −1 at first
    created: int  # leaves so far
    head: int  # absolute indices at the current level
    tail: int
    mark: int  # leaves from here on have not been given out by `changes`
    level: int  # level evictions so far
    heads: tuple[int, ...]  # the head of each lower level when it was evicted, since the last multiple of KEPT_LEVELS
    centers: tuple[float, ...]
    left: bytes  # R0 and, less the newest leaf, R1; empty where absent
    right: bytes
    newest_leaf: bytes  # the open leaf of a window of buckets, else empty
    rules: bytes = b""  # what the histograms keep, empty where none does
    limit: int = 0  # of buckets now, 0: none
    held: int = NEVER  # the greatest time of what left as irrelevant


def new_column(readings: int) -> array[float]:
    """Room for a result a reading."""
    return array("d", bytes(8 * readings))


def first_refused(values: memoryview[float]) -> int:
    """Index of the first value that is not finite or whose magnitude exceeds 2^960; −1 where all may enter."""
    return next((i for i, x in enumerate(values) if not abs(x) <= LARGEST), -1)


def first_not_positive(values: memoryview[float], dimensions: int, dimension: int) -> int:
    """Index of the first row whose value of this dimension is not greater than 0; −1 where there is none."""
    return next((i for i, x in enumerate(values[dimension::dimensions]) if not x > 0.0), -1)


def first_late(times: memoryview[int]) -> int:
    """Index of the first time beyond ±2^61 µs; −1 where all may enter."""
    return next((i for i, time in enumerate(times) if not -LATEST <= time <= LATEST), -1)


def withhold(value: array[float], low: array[float], high: array[float], error: float, atol: float) -> None:
    """NaN in place of each value that is not certainly within error · |exact| + atol of an exact one in low … high."""
    for i, x in enumerate(value):
        ends = [low[i], high[i]] + ([0.0] if low[i] < 0.0 < high[i] else [])
        if any(abs(x - exact) > error * abs(exact) + atol for exact in ends):
            value[i] = nan


def kept_slots(policy: int, layout: Layout, up_to: int) -> int:
    """How many of a leaf's first slots the eviction asks for: none by count, the time by time, else all."""
    if layout.header or up_to:
        return layout.width
    return {BY_COUNT: 0, BY_TIME: layout.slot(Op.T_LAST) + 1}.get(policy, layout.width)


class Core:
    """A window's leaves, their engine, and what has been evicted.

    `limit`: the greatest number of buckets, 0: none. `rules`: the histograms that decide whether a reading joins. With
    neither, every reading is a leaf. `hop`: the window moves on by so much at once (readings or µs). `up_to` 1 (−1):
    what the greatest (least) value makes irrelevant leaves too. `merging`: over the limit the pair that adds least is
    merged, by these widths, in place of a level. `staging`: the newest buckets stay in a tail of this size, and are
    decided by these extremes when they leave it; the limit counts those before it.
    """

    def __init__(
        self,
        layout: Layout,
        engine: str,
        policy: int,
        value: int,
        limit: int,
        centers: Sequence[float] | None,
        rules: Rules | None = None,
        hop: int = 1,
        up_to: int = 0,
        eviction: Eviction | None = None,
        merging: Sequence[Term] | None = None,
        staging: tuple[int, Sequence[Guard]] | None = None,
    ) -> None:
        self._layout, self.limit, self._policy, self._value = layout, limit, policy, value
        self._bucketed, self._rules, self._hop, self._up_to = layout.bucketed, rules, hop, up_to
        self._extreme_slot = layout.extreme_slot(up_to)
        self._facts, self._name = catalogue.check(engine, layout), engine
        self._kept = layout.width if self._facts.keeps_leaves else kept_slots(policy, layout, up_to)
        self._combine = self._combiner(layout)
        self._pairs = None if merging is None else Pairs(self._combine, merging)
        self._staged: Staged | None = None
        if staging is not None:
            most = None if rules is None else rules.most
            self._staged = Staged(self._combine, *staging, most, merging or ())
            self._pairs = self._staged.stored
        self._engine: Engine = self._staged or self._pairs or self._make(engine)
        self._newest_slot = T_LAST if layout.header else layout.slot(Op.T_LAST)
        self._timed = policy == BY_TIME and not layout.header  # an exact window by time
        self.centers: tuple[float, ...] | None = None if centers is None else tuple(centers)
        self.accepted, self.newest, self.edge, self.created, self.mark = 0, NEVER, -1, 0, 0
        self.heads: list[int] = []
        self.level = 0
        self.held = NEVER
        self._evicting = False
        self._eviction = eviction
        self._rule = None if eviction is None else Rule(eviction, self._engine, self._pack, self._evict)

    def _combiner(self, layout: Layout) -> Callable[[Partial, Partial], Partial]:
        return combiner(layout)

    def _deductor(self, layout: Layout) -> Callable[[Partial, Partial], Partial]:
        return deductor(layout)

    def _make(self, engine: str) -> Engine:
        return make_for(engine, self._layout, self._combine, self._deductor(self._layout), self._kept)

    # readings

    def insert(self, values: Sequence[float], time: int) -> None:
        """Take one reading and enforce a built-in policy."""
        if self._evicting:
            raise BusyError("window: busy with an eviction; a policy may not insert into its own window")
        if self._eviction is not None and self._eviction.growing:
            self._refuse_fall([values])
        if self.centers is None:
            self.centers = tuple(values) if self._layout.centered else (0.0,) * len(values)
        if self._rules is not None and self._rules.due(self.accepted):
            self._refresh(self._rules)
        reading = self._lift(values, time)
        if self._rules is not None and self._rules.sampling:
            self._carry(self._rules, reading)
        self._place(values, reading, time)
        self.accepted += 1
        self.newest = max(self.newest, time)
        if self._policy != CUSTOM:
            self._enforce()
        elif self._rule is not None and self._eviction is not None:
            self._enforce_rule(self._rule, values[self._eviction.dimension])
        else:
            self._note_edge()

    def _lift(self, values: Sequence[float], time: int) -> Partial:
        return lift(self._layout, values, time, self.accepted, self.centers or ())

    def insert_many(
        self, values: memoryview[float], times: memoryview[int] | None, count: int, out: list[array[float]] | None
    ) -> None:
        """Take a batch of readings in a flat buffer; each result column gets one value a reading."""
        dimensions = len(self._layout.dimensions)
        rows = [[values[k] for k in range(i * dimensions, (i + 1) * dimensions)] for i in range(count)]
        self._refuse_fall(rows)
        for i, row in enumerate(rows):
            self.insert(row, times[i] if times is not None else self.accepted)
            if out is not None:
                for column, value in zip(out, self.results(), strict=True):
                    column[i] = as_number(value)

    def _refuse_fall(self, rows: Sequence[Sequence[float]]) -> None:
        """Refuse a batch whose growing attribute falls, before any of it enters."""
        if self._rule is None or self._eviction is None or not self._eviction.growing:
            return
        name, newest = self._layout.dimensions[self._eviction.dimension], self._rule.newest()
        for row in rows:
            newest = self._rule.refuse_fall(newest, row[self._eviction.dimension], name)

    def _refresh(self, rules: Rules) -> None:
        """Give the sum-like histogram the current results and their sample, which the buckets carry."""
        total = self._engine.total()
        if rules.sums is not None and total is not None:
            rules.sums.results = [self._raw(control.dimension, total) for control in rules.sums.controls]
            slots = [self._layout.slot(Op.SAMPLE, j) for j in range(rules.controls)]
            rules.sums.samples = [Moments(*total[slot : slot + 3]) for slot in slots]
        rules.refresh(self.accepted)

    def _raw(self, dimension: int, total: Partial) -> float:
        if dimension < 0:
            return float(total[COUNT])
        return (self.centers or ())[dimension] * total[COUNT] + total[self._layout.slot(Op.PREFIX, dimension)]

    def _carry(self, rules: Rules, reading: Partial) -> None:
        for j, result in enumerate(rules.sums.results if rules.sums else ()):
            slot = self._layout.slot(Op.SAMPLE, j)
            reading[slot : slot + 3] = 1.0, result, 0.0

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
        inside = max(self.accepted - int(staged.leaf(staged.head)[O_FIRST]) + 1, self._fewest_cut)
        size = newest[COUNT] + old[COUNT] - 1
        forced = stored.merges > 0 and size * (FINER * (self.limit - 2)) < inside
        return Verdict.JOIN if forced else Verdict.OPEN

    def _note_oldest(self) -> None:
        """The oldest bucket takes over another: what has left of it stays known."""
        leaf = self._engine.leaf(self._engine.head)
        self.edge = max(self.edge, int(leaf[O_FIRST] + leaf[COUNT]) - 1 - self.cut(leaf).most)

    def _joins(self, values: Sequence[float], time: int) -> bool:
        """Whether the newest bucket takes a reading: as the histograms say, or because of the limit.

        Up to an extreme, the reading that hides all of it joins: that costs nothing. The limit forces it only after a
        level eviction, while the bucket is not full, and, where histograms decide, while more than half of the limit is
        in use. A late reading opens a bucket of its own while levels are in proportion to what the window holds;
        beyond, many late readings would evict a level each few of them, for ever.
        """
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

    @property
    def _fewest_cut(self) -> int:
        """The readings that a window up to an extreme holds at least when its edge cuts a bucket, 0: not known.

        Before, what leaves is irrelevant: buckets need not be finer than they will be then.
        """
        return self._value if self._up_to and self._policy == BY_COUNT else 0

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

    def limit_to(self, limit: int) -> None:
        """From now on at most `limit` buckets; neighbours are merged until no more are there."""
        if self._evicting:
            raise BusyError("window: busy with an eviction; a policy may not limit its own window")
        self.limit = limit
        while self._constrained() > limit:
            self._make_room()

    def _constrained(self) -> int:
        """How many buckets the limit counts: all but what is staged."""
        return self._engine.tail - self._engine.head if self._staged is None else self._staged.kept

    # eviction

    def _enforce(self) -> None:
        cutoff = self.cutoff
        if self._policy == BY_COUNT:
            if not self._bucketed:
                self._pop_to(max(cutoff, self._engine.head))
            while self._end_of_oldest() <= cutoff:
                self._engine.pop()
        elif self._timed:
            self._pop_to(self._first_after(cutoff))
        else:
            self._evict(lambda old: old[self._newest_slot] <= cutoff, True)
        if self._up_to:
            self._evict_irrelevant()
        self._note_edge()
        self._settle()

    def _first_after(self, cutoff: int) -> int:
        """The first leaf that does not leave by time."""
        head = self._engine.head
        while head < self._engine.tail and self._engine.leaf(head)[self._newest_slot] <= cutoff:
            head += 1
        return head

    def _pop_to(self, head: int) -> None:
        """Evict all before `head` of an exact window, at once where it is much."""
        self._engine.pop_to(head)
        while self._engine.head < head:
            self._engine.pop()

    @property
    def cutoff(self) -> int:
        """By time: readings of this time or earlier leave. By count: the ordinal of the first reading inside.

        What left early as irrelevant still blocks, as it would in the whole window, a FIFO, what is behind it.
        """
        last = self.accepted if self._policy == BY_COUNT else self.newest
        cutoff = last // self._hop * self._hop - self._value
        return NOTHING_LEAVES if self._policy == BY_TIME and self.held > cutoff else cutoff

    def _evict_irrelevant(self) -> None:
        """Drop the oldest leaves whose extreme a later reading reaches: they can no longer become the answer."""
        engine, slot, sign = self._engine, self._extreme_slot, self._up_to
        while engine.tail - engine.head > 1:
            oldest, rest = engine.leaf(engine.head), engine.rest()
            if rest is None or sign * rest[slot] < sign * oldest[slot]:
                return
            if self._policy == BY_TIME:
                self.held = max(self.held, int(oldest[self._newest_slot]))
            engine.pop()

    def _settle(self) -> None:
        """Tell the histograms where the window begins now, and how uncertain that is within the oldest bucket."""
        rules, engine = self._rules, self._engine
        if rules is None or self._faulted():
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
        for _ in range(count):
            self._engine.pop()
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
            if engine.head == engine.tail or self._faulted() or not leaves(engine.leaf(engine.head)):
                return
            engine.pop()
        if engine.head < engine.tail and not self._faulted():
            engine.bulk(leaves)

    def _faulted(self) -> bool:
        """Whether a partial could not be had from a store: what the engine gives is not to be believed."""
        return isinstance(self._engine, Paged) and self._engine.faulted

    def _note_edge(self) -> None:
        engine = self._engine
        if self._bucketed and self._faulted():
            return
        if not self._bucketed:
            self.edge = max(self.edge, engine.head - 1)
        elif engine.head == engine.tail:
            self.edge = self.accepted - 1
        else:
            self.edge = max(self.edge, int(engine.leaf(engine.head)[O_FIRST]) - 1)
        if self._policy == BY_COUNT:
            self.edge = max(self.edge, self.cutoff - 1)

    def _end_of_oldest(self) -> int:
        """The ordinal after the oldest leaf's last reading."""
        if not self._bucketed:
            return self._engine.head + 1
        oldest = self._engine.leaf(self._engine.head)
        return int(oldest[O_FIRST] + oldest[COUNT])

    # answers

    def cut(self, leaf: Partial) -> Cut:
        """Where the edge cuts the oldest leaf of a window of buckets."""
        return estimate.cut(self._layout, leaf, Edge(self._policy, self.cutoff, self.edge))

    def cut_oldest(self) -> Cut | None:
        """The same for the oldest leaf there is, None for an empty window."""
        return None if self._engine.head == self._engine.tail else self.cut(self._engine.leaf(self._engine.head))

    def results(self) -> list[Value]:
        """One answer per aggregate."""
        engine = self._engine
        total = engine.total()
        if not self._bucketed or total is None:
            return estimate.exact_results(self._layout, total, engine.tail - engine.head)
        leaf = engine.leaf(engine.head)
        return estimate.results(self._layout, total, engine.rest(), leaf, self.cut(leaf), self.centers or ())

    def total(self) -> bytes:
        """The partial of all leaves, empty for an empty window."""
        return self._pack(self._engine.total())

    def rest(self) -> bytes:
        """The partial of all leaves but the oldest, empty where there is none."""
        return self._pack(self._engine.rest())

    def leaf(self, index: int) -> bytes:
        """A leaf of the window, head ≤ index < tail."""
        self.require_leaves()
        if not self._engine.head <= index < self._engine.tail:
            raise IndexError(f"leaf {index}: the window holds {self._engine.head} to {self._engine.tail - 1}")
        return self._pack(self._engine.leaf(index))

    def require_leaves(self) -> None:
        """Raise ConfigurationError where the engine keeps no whole leaves."""
        if self._kept < self._layout.width:
            raise catalogue.refuse_leaves(self._name)

    def combine(self, a: bytes, b: bytes) -> bytes:
        """Two neighbouring leaves as one."""
        return self._pack(self._combine(self._unpack(a), self._unpack(b)))

    def lower(self, packed: bytes) -> list[Value]:
        """The answers for a partial by itself."""
        partial = self._unpack(packed)
        if not self._bucketed:
            return estimate.exact_results(self._layout, partial, int(partial[COUNT]) if self._layout.header else 1)
        n = int(partial[COUNT])
        return estimate.results(self._layout, partial, None, partial, Cut(n, n, n), self.centers or ())

    @property
    def head(self) -> int:
        """Absolute index of the oldest leaf, at the current level."""
        return self._engine.head

    @property
    def tail(self) -> int:
        """Absolute index after the newest leaf."""
        return self._engine.tail

    @property
    def allocated(self) -> int:
        """Bytes of the partials held, about twice the leaves'."""
        return 16 * self._layout.width * (self._engine.tail - self._engine.head)

    # storage

    @property
    def engine_object(self) -> Engine:
        """The engine itself, for whoever gives it a store."""
        if isinstance(self._engine, Paged):
            self._engine.carry(self._pack, self._unpack, self._layout.width)
        return self._engine

    def enforce_now(self) -> None:
        """Let leave what a built-in policy says, where a failure of the store kept it."""
        if self._policy != CUSTOM:
            self._enforce()
        elif self._rule is not None:
            self._enforce_rule(self._rule, self._rule.attribute)
        else:
            self._note_edge()
            self._settle()

    def save(self) -> Saved:
        """All but the closed leaves."""
        engine = self._engine
        newest = self.leaf(engine.tail - 1) if self._bucketed and engine.head < engine.tail else b""
        self.require_leaves()
        pair = engine.result()
        if self._timed:  # the compiled window keeps times beside its engine: a partial of many leaves has none
            pair = pair[0] and [0, *pair[0][1:]], pair[1] and [0, *pair[1][1:]]
        return Saved(
            self.accepted, self.newest, self.edge, self.created, engine.head, engine.tail, self.mark, self.level,
            tuple(self.heads), self.centers or (), self._pack(pair[0]), self._pack(pair[1]), newest,
            self._state(), self.limit, self.held,
        )  # fmt: skip

    def _state(self) -> bytes:
        """What the histograms keep; merged pairs first, which `rebuilding.chain` reads."""
        return b"".join(part.state() for part in (self._staged or self._pairs, self._rules) if part is not None)

    def take_fresh(self) -> list[tuple[int, int, bytes, bool]]:
        """(first ordinal, ordinal after the last, partial, took over others) of closed buckets not yet given out."""
        found, pairs = [], self._staged or self._pairs
        for index in range(self.head, self.tail - 1) if pairs is not None else ():
            if pairs is not None and (state := pairs.take_state(index)):
                leaf = pairs.leaf(index)
                first, count = int(leaf[O_FIRST]), int(leaf[COUNT])
                found.append((first, first + count, self._pack(leaf), state == State.TOOK))
        return found

    def load(self, saved: Saved, leaves: Sequence[bytes]) -> None:
        """Take over a saved window whose leaves, oldest first, include the open one."""
        self.accepted, self.newest, self.edge, self.created = saved[:4]
        self.mark, self.level, self.heads = saved.mark, saved.level, list(saved.heads)
        self.centers, self.limit, self.held = saved.centers or None, saved.limit, saved.held
        rules = saved.rules
        if self._staged is not None:
            self._staged.load_state(rules[: self._staged.size], len(leaves))
            rules = rules[self._staged.size :]
        elif self._pairs is not None:
            self._pairs.load_state(rules[: self._pairs.size])
            rules = rules[self._pairs.size :]
        if self._rules is not None:
            self._rules.load(rules)
        unpacked = [self._unpack(leaf) for leaf in leaves]
        pair = (self._unpack(side) if side else None for side in (saved.left, saved.right))
        self._engine.load(saved.head, unpacked, *pair)

    def verify(self) -> None:
        """Raise InvariantError where the window contradicts itself."""
        engine = self._engine
        engine.verify()
        if self.limit and self._constrained() > self.limit:
            raise InvariantError(f"{self._constrained()} buckets, the limit is {self.limit}")
        if self._bucketed:
            self._verify_chain()

    def _verify_chain(self) -> None:
        after: int | None = None
        for index in range(self._engine.head, self._engine.tail):
            leaf = self._engine.leaf(index)
            if after is not None and leaf[O_FIRST] != after:
                raise InvariantError(f"leaf {index} begins at ordinal {leaf[O_FIRST]}, expected {after}")
            after = int(leaf[O_FIRST] + leaf[COUNT])
        if after is not None and after != self.accepted:
            raise InvariantError(f"the newest leaf ends before ordinal {after}, expected {self.accepted}")

    def _pack(self, partial: Partial | None) -> bytes:
        return b"" if partial is None else self._layout.format.pack(*partial)

    def _unpack(self, packed: bytes) -> Partial:
        return list(self._layout.format.unpack(packed))
