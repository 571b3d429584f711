"""The readable twin of sluicegate.core.core: one window's evolution, from a reading to the evicted edge.

Below it lie the exact window of `sluicegate.reference.core`, then `bucketing`. A reading is lifted, opens a leaf or
joins the newest (constrained footprint), and the built-in policy evicts. Partials cross this border as bytes:
`layout.width` slots of 8 bytes in the machine's order.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Any

import intervals_twin
from rules_together import Together

from sluicegate import catalogue
from sluicegate.constants import BY_COUNT, BY_TIME, CUSTOM, NEVER, SORTED
from sluicegate.errors import InputError, InvariantError, SnapshotError
from sluicegate.histograms.composition import Deciding
from sluicegate.histograms.max_like import Guard
from sluicegate.histograms.widths import Term
from sluicegate.monoids.layout import COUNT, O_FIRST, T_FIRST, T_LAST, Layout
from sluicegate.policies.eviction import EvictionRule
from sluicegate.records import Bounded, Cut, Saved, kept_slots
from sluicegate.reference.program import Partial
from sluicegate.reference.results import Value, exact_results
from twins import estimate
from twins.bucketing import Bucketing
from twins.factory import make
from twins.late import Late, LateView
from twins.pairs import LeafState, Pairs
from twins.program import combiner, lift
from twins.staged import Staged

_TOO_LATE = struct.Struct("=q")
NOTHING_LEAVES = -(2**63) + 1


class Core(Bucketing):
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
        rules: Deciding | None = None,
        hop: int = 1,
        up_to: int = 0,
        eviction: EvictionRule | None = None,
        merging: Sequence[Term] | None = None,
        staging: tuple[int, Sequence[Guard]] | None = None,
    ) -> None:
        self._bucketed, self._up_to = layout.bucketed, up_to
        self._rules = None if rules is None else Together.of(rules)
        self._extreme_slot = layout.extreme_slot(up_to)
        self._facts, self._name = catalogue.check(engine, layout), engine
        self._kept = layout.width if self._facts.keeps_leaves else kept_slots(policy, layout, up_to)
        self._merging, self._staging = merging, staging
        self._late_since = 2**63 - 1
        self.mark, self.level, self.held = 0, 0, NEVER
        self.heads: list[int] = []
        super().__init__(layout, engine, policy, value, limit, centers, None, hop, up_to, eviction)
        self._late = Late(layout, self._combine) if layout.bucketed and policy == BY_TIME else None

    def _combiner(self, layout: Layout) -> Any:
        return combiner(layout)

    def _make(self, engine: str) -> Any:
        combine, merging = self._combine, self._merging
        self._pairs = None if merging is None else Pairs(combine, merging)
        self._staged: Staged | None = None
        if self._staging is not None:
            most = None if self._rules is None else self._rules.most
            self._staged = Staged(combine, *self._staging, most, merging or ())
            self._pairs = self._staged.stored
        made = self._staged or self._pairs
        return made or make(engine, combine, self._kept)

    def _make_sorted(self) -> Any:
        return make("fiba", self._combine)

    # readings

    def _enters(self, values: Sequence[float], time: int) -> bool:
        if self._late is None:
            return super()._enters(values, time)
        if time < self.newest and not self._belongs(time):
            return False
        if self.head < self.tail and time < self._engine.leaf(self.tail - 1)[T_LAST]:
            self._late.add(lift(self._layout, values, time, self.accepted, self.centers or ()), time, self._time_cutoff)
            return False
        return True

    def _centers_of(self, values: Sequence[float]) -> tuple[float, ...]:
        """What a bucket's sums are taken around is every device's contract: the first reading, whatever it is."""
        return tuple(values) if self._bucketed and self._layout.centered else super()._centers_of(values)

    def _lift(self, values: Sequence[float], time: int) -> Partial:
        if self._rules is not None and self._rules.due(self.accepted):
            self._refresh(self._rules)
        reading = lift(self._layout, values, time, self.accepted, self.centers or ())
        if self._rules is not None and self._rules.sampling:
            self._carry(self._rules, reading)
        return reading

    def insert_many(self, values: Any, times: Any, count: int, out: Any) -> None:
        """Take a batch of readings in a flat buffer; each result column gets one value a reading."""
        if times is not None:
            self.refuse_late(times)
        super().insert_many(values, times, count, out)

    # event time

    def refuse_late(self, times: Iterable[int]) -> None:
        """Raise InputError, before any of a batch enters, where one comes late into a window that needs order."""
        if self._needs_order() and self._has_late_inside(times):
            self._refuse_late_leafless()

    def _has_late_inside(self, times: Iterable[int]) -> bool:
        """Whether one of a batch would have to be put before a reading that is inside when it comes."""
        newest, last = self.newest, self._last_time()
        for time in times:
            if time >= newest:
                newest = last = time
            elif time > newest // self._hop * self._hop - self._value:
                if time < last:
                    return True
                last = time
        return False

    def _needs_order(self) -> bool:
        """Whether a window of single readings by time keeps none to put a late one among."""
        leafless = self._kept < self._layout.width or not (self._facts.keeps_leaves or self._up_to)
        return self._timed and leafless

    def _refuse_late_leafless(self) -> None:
        if self._needs_order():
            raise InputError(catalogue.needs_order_by(self._name))

    def _insert_late(self, time: int, reading: Partial) -> None:
        last = self._last_time()
        super()._insert_late(time, reading)
        if time < last:
            self._late_since = min(self._late_since, time)

    def _go_by_time(self) -> None:
        self._refuse_late_leafless()
        super()._go_by_time()
        self.held = NEVER

    def first_changed(self) -> int:
        """The first closed leaf that `changes` has not given out as it is now: a late one moves all after it."""
        since, self._late_since = self._late_since, 2**63 - 1
        engine = self._engine
        index = engine.head
        while index < engine.tail and engine.leaf(index)[self._newest_slot] <= since:
            index += 1
        return min(self.mark, max(engine.head, index - 1) if index < engine.tail else self.mark)

    # eviction

    @property
    def cutoff(self) -> int:
        """What left early as irrelevant still blocks, as it would in the whole window, a FIFO, what is behind it."""
        cutoff = super().cutoff
        return NOTHING_LEAVES if self._policy == BY_TIME and self.held > cutoff else cutoff

    def _enforce(self) -> None:
        if not self._bucketed and not self._up_to:
            super()._enforce()
            return
        cutoff = self.cutoff
        if self._policy == BY_COUNT:
            if not self._bucketed:
                self._engine.pop_to(max(cutoff, self._engine.head))
            while self._end_of_oldest() <= cutoff:
                self._engine.pop()
        elif self._sorted is not None:
            self._sorted.evict_through(cutoff)
        elif self._timed:
            self._engine.pop_to(self._first_after(cutoff))
        else:
            self._evict(lambda old: old[self._newest_slot] <= cutoff, True)
        if self._up_to:
            self._evict_irrelevant()
        self._settle()

    def _end_of_oldest(self) -> int:
        """The ordinal after the oldest leaf's last reading."""
        if not self._bucketed:
            return self._engine.head + 1
        oldest = self._engine.leaf(self._engine.head)
        return int(oldest[O_FIRST] + oldest[COUNT])

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

    def _note_edge(self) -> None:
        engine = self._engine
        if not self._bucketed:
            super()._note_edge()
            return
        if engine.head == engine.tail:
            self.edge = self.accepted - 1
        else:
            self.edge = max(self.edge, int(engine.leaf(engine.head)[O_FIRST]) - 1)
        if self._policy == BY_COUNT:
            self.edge = max(self.edge, self.cutoff - 1)

    def _settle(self) -> None:
        """Tell the histograms where the window begins now, and how uncertain that is within the oldest bucket."""
        self._note_edge()
        engine, rules = self._engine, self._rules
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

    def require_leaves(self) -> None:
        """Raise ConfigurationError where the engine keeps no whole leaves: of a count by time the time is no leaf."""
        if self._kept < self._layout.width or (self._timed and not (self._facts.keeps_leaves or self._up_to)):
            raise catalogue.refuse_leaves(self._name)

    def _pack(self, partial: Partial | None) -> bytes:
        return b"" if partial is None else self._layout.format.pack(*partial)

    def _unpack(self, packed: bytes) -> Partial:
        return list(self._layout.format.unpack(packed))

    # answers

    def results(self) -> list[Value]:
        """One answer per aggregate."""
        total = self._engine.total()
        if not self._bucketed or total is None:
            return super().results()
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
        where = estimate.cut(self._layout, leaf, estimate.Edge(policy, cutoff, evicted))
        view = LateView(total, rest, leaf, where, cutoff if policy == BY_TIME else None)
        self._add_late(view)
        return self._bounded(view) if bounds else self._estimates(view)

    def _bounded(self, view: LateView) -> list[Bounded]:
        return intervals_twin.by_definition(self, view)

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
            return exact_results(self._layout, partial, int(partial[COUNT]) if self._layout.header else 1)
        n = int(partial[COUNT])
        where = Cut(n, n, n)
        return estimate.results(self._layout, partial, None, partial, where, self.centers or (), self.limit)

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
        super().verify()
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
