"""The readable twin of sluicegate.engines.core: one window's evolution, from a reading to the evicted edge.

A reading is lifted, opens a leaf or joins the newest (constrained footprint), and the built-in policy evicts.
Partials cross this border as bytes: `layout.width` slots of 8 bytes in the machine's order. Input is checked by the
caller.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import NamedTuple

from sluicegate.errors import BusyError, InvariantError
from sluicegate.monoids.layout import COUNT, O_FIRST, T_LAST, Layout, Op
from sluicegate.reference import estimate
from sluicegate.reference.amta import Amta
from sluicegate.reference.engine import Engine
from sluicegate.reference.estimate import BY_COUNT, BY_TIME, Cut, Edge, Value
from sluicegate.reference.program import Partial, combiner, lift
from sluicegate.reference.recalc import Recalc

NEVER = -(2**62)
KEPT_LEVELS = 16
LATEST = 2**61  # a time plus or minus a span of 2^62 still fits an int64
LARGEST = 2.0**960  # 2^62 such values still add up to a finite float64
ENGINES: dict[str, Callable[[Callable[[Partial, Partial], Partial]], Engine]] = {"recalc": Recalc, "amta": Amta}


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
    left: bytes  # R0 and R1, empty where absent
    right: bytes
    newest_leaf: bytes  # the open leaf of a window of buckets, else empty


def first_refused(values: memoryview[float]) -> int:
    """Index of the first value that is not finite or whose magnitude exceeds 2^960; −1 where all may enter."""
    return next((i for i, x in enumerate(values) if not abs(x) <= LARGEST), -1)


def first_late(times: memoryview[int]) -> int:
    """Index of the first time beyond ±2^61 µs; −1 where all may enter."""
    return next((i for i, time in enumerate(times) if not -LATEST <= time <= LATEST), -1)


class Core:
    """A window's leaves, their engine, and what has been evicted. `limit` = 0: every reading is a leaf."""

    def __init__(
        self, layout: Layout, engine: str, policy: int, value: int, limit: int, centers: Sequence[float] | None
    ) -> None:
        self._layout, self._limit, self._policy, self._value = layout, limit, policy, value
        self._combine = combiner(layout)
        self._engine: Engine = ENGINES[engine](self._combine)
        self._newest_slot = T_LAST if layout.header else layout.slot(Op.T_LAST)
        self.centers: tuple[float, ...] | None = None if centers is None else tuple(centers)
        self.accepted, self.newest, self.edge, self.created, self.mark = 0, NEVER, -1, 0, 0
        self.heads: list[int] = []
        self.level = 0
        self._evicting = False

    # readings

    def insert(self, values: Sequence[float], time: int) -> None:
        """Take one reading and enforce a built-in policy."""
        if self._evicting:
            raise BusyError("window: busy with an eviction; a policy may not insert into its own window")
        if self.centers is None:
            self.centers = tuple(values) if self._limit else (0.0,) * len(values)
        self._place(lift(self._layout, values, time, self.accepted, self.centers), time)
        self.accepted += 1
        self.newest = max(self.newest, time)
        self._enforce()

    def insert_many(
        self, values: memoryview[float], times: memoryview[int] | None, count: int, out: list[array[float]] | None
    ) -> None:
        """Take a batch of readings in a flat buffer; each result column gets one value a reading."""
        dimensions = len(self._layout.dimensions)
        for i in range(count):
            row = [values[k] for k in range(i * dimensions, (i + 1) * dimensions)]
            self.insert(row, times[i] if times is not None else self.accepted)
            if out is not None:
                for column, value in zip(out, self.results(), strict=True):
                    column[i] = float("nan") if value is None else value

    def _place(self, reading: Partial, time: int) -> None:
        engine = self._engine
        while True:
            if self._limit and engine.head < engine.tail and self._joins(time):
                engine.join(reading)
                return
            if not self._limit or engine.tail - engine.head < self._limit:
                engine.push(reading)
                self.created += 1
                return
            self._evict_level()

    def _joins(self, time: int) -> bool:
        """Whether the newest bucket takes a reading of this time: only after a level eviction, while it is not full.

        A late reading opens a bucket of its own while levels are in proportion to what the window holds; beyond that,
        many late readings would evict a level each few of them, for ever.
        """
        newest, oldest = self._engine.leaf(self._engine.tail - 1), self._engine.leaf(self._engine.head)
        inside = self.accepted - int(oldest[O_FIRST]) + 1
        if not self.level or (time < newest[T_LAST] and (4 * inside) >> min(self.level, 62) >= self._limit):
            return False
        return newest[COUNT] * (self._limit - 2) < inside

    def _evict_level(self) -> None:
        engine, leaf = self._engine, self._engine.leaf(self._engine.head)
        self.edge = max(self.edge, int(leaf[O_FIRST] + leaf[COUNT]) - 1 - self.cut(leaf).most)
        self.heads.append(engine.head)
        engine.coarsen()
        self.level += 1
        self.mark >>= 1
        if (
            self.level % KEPT_LEVELS == 0
        ):  # every leaf is given out again, so that rows of lower levels can be forgotten
            self.mark, self.heads = 0, []

    # eviction

    def _enforce(self) -> None:
        if self._policy == BY_COUNT:
            while self._after_oldest() >= self._value:
                self._engine.pop()
        elif self._policy == BY_TIME:
            cutoff = self.newest - self._value
            self._evict(lambda old: old[self._newest_slot] <= cutoff, True)
        self._note_edge()

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

    def _note_edge(self) -> None:
        engine = self._engine
        if not self._limit:
            self.edge = max(self.edge, engine.head - 1)
        elif engine.head == engine.tail:
            self.edge = self.accepted - 1
        else:
            self.edge = max(self.edge, int(engine.leaf(engine.head)[O_FIRST]) - 1)
        if self._policy == BY_COUNT:
            self.edge = max(self.edge, self.accepted - 1 - self._value)

    def _after_oldest(self) -> int:
        """How many readings the leaves after the oldest hold: ordinals have no gaps."""
        engine = self._engine
        if not self._limit:
            return engine.tail - engine.head - 1
        oldest = engine.leaf(engine.head)
        return self.accepted - int(oldest[O_FIRST] + oldest[COUNT])

    # answers

    def cut(self, leaf: Partial) -> Cut:
        """Where the edge cuts the oldest leaf of a window of buckets."""
        return estimate.cut(self._layout, leaf, Edge(self._policy, self.newest - self._value, self.edge))

    def cut_oldest(self) -> Cut | None:
        """The same for the oldest leaf there is, None for an empty window."""
        return None if self._engine.head == self._engine.tail else self.cut(self._engine.leaf(self._engine.head))

    def results(self) -> list[Value]:
        """One answer per aggregate."""
        engine = self._engine
        total = engine.total()
        if not self._limit or total is None:
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
        return self._pack(self._engine.leaf(index))

    def combine(self, a: bytes, b: bytes) -> bytes:
        """Two neighbouring leaves as one."""
        return self._pack(self._combine(self._unpack(a), self._unpack(b)))

    def lower(self, packed: bytes) -> list[Value]:
        """The answers for a partial by itself."""
        partial = self._unpack(packed)
        if not self._limit:
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

    def save(self) -> Saved:
        """All but the closed leaves."""
        engine = self._engine
        newest = self.leaf(engine.tail - 1) if self._limit and engine.head < engine.tail else b""
        pair = (engine.left, engine.right) if isinstance(engine, Amta) else (None, None)
        return Saved(
            self.accepted, self.newest, self.edge, self.created, engine.head, engine.tail, self.mark, self.level,
            tuple(self.heads), self.centers or (), self._pack(pair[0]), self._pack(pair[1]), newest,
        )  # fmt: skip

    def load(self, saved: Saved, leaves: Sequence[bytes]) -> None:
        """Take over a saved window whose leaves, oldest first, include the open one."""
        self.accepted, self.newest, self.edge, self.created = saved[:4]
        self.mark, self.level, self.heads = saved.mark, saved.level, list(saved.heads)
        self.centers = saved.centers or None
        unpacked = [self._unpack(leaf) for leaf in leaves]
        if isinstance(self._engine, Amta):
            pair = (self._unpack(side) if side else None for side in (saved.left, saved.right))
            self._engine.load(saved.head, unpacked, *pair)
            return
        self._engine.head = self._engine.tail = saved.head
        for leaf in unpacked:
            self._engine.push(leaf)

    def verify(self) -> None:
        """Raise InvariantError where the window contradicts itself."""
        engine = self._engine
        if isinstance(engine, Amta):
            engine.verify()
        if self._limit and engine.tail - engine.head > self._limit:
            raise InvariantError(f"{engine.tail - engine.head} buckets, the limit is {self._limit}")
        if self._limit:
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
