"""The readable twin of sluicegate.core.core: one window's evolution, from a reading to the evicted edge.

It is set up, asked and stored here; below it lie, as in the compiled core, state ← event_time ← bucketing.
A reading is lifted, opens a leaf or joins the newest (constrained footprint), and the built-in policy evicts.
Partials cross this border as bytes: `layout.width` slots of 8 bytes in the machine's order. Input is checked by the
caller.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Sequence
from typing import Any

from sluicegate import catalogue
from sluicegate.bounds.view import View
from sluicegate.constants import BY_COUNT, BY_TIME, CUSTOM, NEVER, SORTED
from sluicegate.errors import BusyError, InvariantError, SnapshotError
from sluicegate.histograms._rules import Rules
from sluicegate.histograms.max_like import Guard
from sluicegate.histograms.widths import Term
from sluicegate.monoids.layout import COUNT, O_FIRST, T_LAST, Layout, Op
from sluicegate.monoids.results import as_number
from sluicegate.policies.eviction import EvictionRule
from sluicegate.records import Bounded, Cut, Edge, Saved, kept_slots
from sluicegate.reference import estimate
from sluicegate.reference.bucketing import Bucketing
from sluicegate.reference.engines.engine import Engine
from sluicegate.reference.engines.factory import make_for
from sluicegate.reference.engines.fiba import Fiba
from sluicegate.reference.engines.pairs import LeafState, Pairs
from sluicegate.reference.engines.staged import Staged
from sluicegate.reference.estimate import Value
from sluicegate.reference.eviction import Rule
from sluicegate.reference.late import Late, LateView
from sluicegate.reference.program import Partial, combiner, deductor, lift

_TOO_LATE = struct.Struct("=q")
FAR_CENTER = 2.0**32  # an exact window's first reading from here on is no center: moments around it would lose theirs


class Core(Bucketing):
    """A window's leaves, their engine, and what has been evicted.

    `limit`: the greatest number of buckets, 0: none. `rules`: the histograms that decide whether a reading joins. With
    neither, every reading is a leaf. `hop`: the window moves on by so much at once (readings or µs). `up_to` 1 (−1):
    what the greatest (least) value makes irrelevant leaves too. `merging`: over the limit the pair that adds least is
    merged, by these widths, in place of a level. `staging`: the newest buckets stay in a tail of this size, and are
    decided by these extremes when they leave it; the limit counts those before it.
    """

    algebra: Any = None  # the compiled core, for its intervals: `sluicegate.core` names it, where this one is in use

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
        eviction: EvictionRule | None = None,
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
        self._sorted = self._engine if isinstance(self._engine, Fiba) and policy == BY_TIME else None
        self._late_since, self.late = 2**63 - 1, 0
        self._late = Late(layout, self._combine) if layout.bucketed and policy == BY_TIME else None
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
        if self._timed or self._late is not None:
            if time < self.newest and not self._belongs(time):
                return
            if self._late is not None and self.head < self.tail and time < self._engine.leaf(self.tail - 1)[T_LAST]:
                self._late.add(self._lift(values, time), time, self._time_cutoff)
                return
        if self.centers is None:
            self.centers = self._centers_of(values)
        if self._rules is not None and self._rules.due(self.accepted):
            self._refresh(self._rules)
        reading = self._lift(values, time)
        if self._rules is not None and self._rules.sampling:
            self._carry(self._rules, reading)
        if self._timed and (self._sorted is not None or time < self.newest):
            self._insert_late(time, reading)
            self.created += 1
        else:
            self._place(values, reading, time)
        self.accepted += 1
        self.newest = max(self.newest, time)
        if self._policy != CUSTOM:
            self._enforce()
        elif self._rule is not None and self._eviction is not None:
            self._enforce_rule(self._rule, values[self._eviction.dimension])
        else:
            self._note_edge()

    def _centers_of(self, values: Sequence[float]) -> tuple[float, ...]:
        """The first reading, around which moments keep their digits; of single readings none that would cost them all.

        What a bucket's sums are taken around is every device's contract and in its interval; an exact result has none.
        """
        if not self._layout.centered:
            return (0.0,) * len(values)
        if self._bucketed:
            return tuple(values)
        return tuple(x if abs(x) < FAR_CENTER else 0.0 for x in values)

    def _lift(self, values: Sequence[float], time: int) -> Partial:
        return lift(self._layout, values, time, self.accepted, self.centers or ())

    def insert_many(
        self, values: memoryview[float], times: memoryview[int] | None, count: int, out: list[array[float]] | None,
        step: int = -1,
    ) -> None:  # fmt: skip
        """Take a batch of readings in a flat buffer; each result column gets one value a reading.

        `step`: what `even_step` says of the times; the compiled one then looks at no more than the first of them.
        """
        dimensions = len(self._layout.dimensions)
        rows = [[values[k] for k in range(i * dimensions, (i + 1) * dimensions)] for i in range(count)]
        self._refuse_fall(rows)
        if times is not None:
            self.refuse_late(times)
        for i, row in enumerate(rows):
            self.insert(row, times[i] if times is not None else self.accepted)
            if out is not None:
                for column, value in zip(out, self.results(), strict=True):
                    column[i] = as_number(value)

    # answers

    def results(self) -> list[Value]:
        """One answer per aggregate."""
        engine = self._engine
        total = engine.total()
        if not self._bucketed or total is None:
            return estimate.exact_results(self._layout, total, engine.tail - engine.head)
        return self._estimates(self._view(total))

    def _view(self, total: Partial) -> LateView:
        """What the answers see of a window of buckets."""
        leaf = self._engine.leaf(self._engine.head)
        cutoff = self._time_cutoff if self._policy == BY_TIME else None
        view = LateView(total, self._engine.rest(), leaf, self.cut(leaf), cutoff)
        if self._late is not None:
            self._late.evict(self._time_cutoff)
            self._add_late(view)
        return view

    def _add_late(self, view: LateView) -> None:
        if self._late is not None:
            self._late.centers = self.centers or ()
            self._late.add_to(view)

    def _estimates(self, view: LateView) -> list[Value]:
        layout, centers = self._layout, self.centers or ()
        pieces = view.total, view.rest, view.leaf, view.where
        return estimate.results(layout, *pieces, centers, self.limit, view.cutoff, view.late)

    def bounded(self) -> list[Bounded] | None:
        """Each aggregate's result with its certain interval; None of a window that is empty or has no buckets."""
        engine = self._engine
        total = engine.total() if self._bucketed else None
        if total is None:
            return None
        return self._bounded(self._view(total))

    def answers_over(
        self, oldest: bytes, newer: bytes, policy: int, cutoff: int, evicted: int, bounds: bool
    ) -> list[Any]:
        """Each aggregate's result, with `bounds` its interval, of a shorter window over the same buckets.

        `oldest`: the bucket that it begins in; `newer`: those after it as one partial, empty where there is none.
        """
        leaf, rest = self._unpack(oldest), self._unpack(newer) if newer else None
        total = leaf if rest is None else self._combine(leaf, rest)
        where = estimate.cut(self._layout, leaf, Edge(policy, cutoff, evicted))
        view = LateView(total, rest, leaf, where, cutoff if policy == BY_TIME else None)
        self._add_late(view)
        return self._bounded(view) if bounds else self._estimates(view)

    def _bounded(self, view: LateView) -> list[Bounded]:
        """By the compiled error algebra, whose definition is tests/native/bounds/intervals_twin.py."""
        inside = None if view.rest is None else tuple(view.rest)
        centers, total, leaf = tuple(self.centers or ()), tuple(view.total), tuple(view.leaf)
        seen = View(self._layout, total, inside, leaf, view.where, view.cutoff, centers, view.late)
        return self.algebra(self._layout, "amta", BY_COUNT, 1, self.limit, centers).bounded_of(seen)

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

    def combine(self, a: bytes, b: bytes) -> bytes:
        """Two neighbouring leaves as one."""
        return self._pack(self._combine(self._unpack(a), self._unpack(b)))

    def lower(self, packed: bytes) -> list[Value]:
        """The answers for a partial by itself."""
        partial = self._unpack(packed)
        if not self._bucketed:
            return estimate.exact_results(self._layout, partial, int(partial[COUNT]) if self._layout.header else 1)
        n = int(partial[COUNT])
        where = Cut(n, n, n)
        return estimate.results(self._layout, partial, None, partial, where, self.centers or (), self.limit)

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

    @property
    def joined_late(self) -> int:
        """Late readings that a window of buckets took beside those in order, which `accepted` does not count."""
        return 0 if self._late is None else self._late.joined

    @property
    def held_late(self) -> int:
        """How many of them it still holds."""
        if self._late is None:
            return 0
        self._late.evict(self._time_cutoff)
        return self._late.readings

    # storage

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
            self._state(), self.limit, self.held, self._late_state(),
        )  # fmt: skip

    def _late_state(self) -> bytes:
        """How many came too late, and the late buckets; of an exact window whether its leaves have moved."""
        if self._late is not None:
            self._late.evict(self._time_cutoff)  # else it would depend on who asked last
            held = self._late.save(self._pack)
        else:
            held = SORTED if self._sorted is not None and not self._facts.any_order else b""
        return _TOO_LATE.pack(self.late) + held if self.late or held else b""

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
                found.append((first, first + count, self._pack(leaf), state == LeafState.TOOK))
        return found

    def load(self, saved: Saved, leaves: Sequence[bytes]) -> None:
        """Take over a saved window whose leaves, oldest first, include the open one."""
        self.accepted, self.newest, self.edge, self.created = saved[:4]
        self.mark, self.level, self.heads = saved.mark, saved.level, list(saved.heads)
        self.centers, self.limit, self.held = saved.centers or None, saved.limit, saved.held
        if saved.late and len(saved.late) < _TOO_LATE.size:
            raise SnapshotError(f"window state: {len(saved.late)} bytes of late readings, expected 8 at least")
        self.late = _TOO_LATE.unpack_from(saved.late)[0] if saved.late else 0
        held_late = saved.late[_TOO_LATE.size :]
        if self._late is not None:
            self._late.load(held_late, self._unpack)
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
        times = [leaf[self._newest_slot] for leaf in unpacked] if self._timed else []
        if self._timed and (
            self._sorted is not None or held_late or times != sorted(times)
        ):  # older ones hold late readings in order of arrival
            self._engine.load(saved.head, [], None, None)
            self._sort(unpacked)
        else:
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
