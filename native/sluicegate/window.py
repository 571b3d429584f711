"""A sliding window: several aggregates over one stream, an eviction policy, and buckets where memory is bounded.

window = sg.Window({"mean": sg.mean(), "peak": sg.max()}, policy=sg.policies.time("24h"),
histograms=[sg.Constrained(64)]) window.insert(21.5, time=1_700_000_000_000_000) window.query(bounds=True)["mean"]
# Bounded(value=21.5, low=…, high=…, exact=True)
"""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Self, cast, overload

from sluicegate import intervals, snapshot
from sluicegate.batches import Batch, flat_times, flat_values, refuse_not_positive
from sluicegate.engines import ENGINES, LARGEST, Core, Saved, new_column, withhold
from sluicegate.errors import (
    BoundsError,
    ConfigurationError,
    InputError,
    InvariantError,
    PolicyError,
    SnapshotError,
)
from sluicegate.histograms.composition import Histogram, compose
from sluicegate.histograms.constrained import LEAST
from sluicegate.histograms.max_like import Guard, guards
from sluicegate.histograms.widths import Term, terms
from sluicegate.intervals import Bounded, BoundedColumn
from sluicegate.monoids import OBJECTS, Monoid
from sluicegate.monoids.layout import O_FIRST, Layout, lay_out
from sluicegate.monoids.results import as_number
from sluicegate.policies import Compiled, Count, Custom, Policy, Ruled, Time, as_policy
from sluicegate.policies.custom import Field, fields
from sluicegate.readings import Reader, in_range
from sluicegate.rebuilding import Row, chain, gather
from sluicegate.reference.estimate import BY_COUNT, BY_TIME, CUSTOM
from sluicegate.reference.object_core import ObjectCore
from sluicegate.stores.contract import Plan, Store
from sluicegate.stores.description import describe
from sluicegate.stores.description import read as read_description
from sluicegate.stores.stored_core import StoredCore, found_in, stored_engine
from sluicegate.subsequence import Subsequence

Value = float | int | None
Centers = float | Mapping[str, float] | Sequence[float]


class Footprint(NamedTuple):
    """Leaves newly created so far (the papers' measure), leaves held in the window, and bytes its partials occupy."""

    created: int
    held: int
    bytes: int


class Changes(NamedTuple):
    """What was not told before: level (level evictions so far), first leaf, open leaf, leaves closed since, base level.

    `head` and `open` are absolute indices at `level`; leaves head … open − 1 are closed. `closed`: (index, partial)
    of those closed since the last call and still inside. Rows of a level below `base`, or of leaves before `head`, are
    of no use any more: at every 16th level all closed leaves are given out again.

    Where pairs are merged there are no levels, and a leaf's index is the ordinal of its first reading: `closed` are
    also those that took over others since, and of no use are the rows first < index < end of each of `merged`.
    """

    level: int
    head: int
    open: int
    closed: list[tuple[int, bytes]]
    base: int
    merged: tuple[tuple[int, int], ...] = ()


class Window:
    """The newest readings of a stream under a policy, and what the aggregates say of them.

    `aggregates`: name → aggregate, or a single one (then named by its kind). `policy`: `sg.policies.count(n)`,
    `.time("24h")`, or `policy(total, old) -> bool`. `engine`: a name of `sg.ENGINES`. `histograms`: none, or `SumLike`
    or `MaxLike`, with `Hop`, with `Constrained`. `center`: the μ₀ that sums of buckets are taken around (one number, or
    one per dimension), by default the first reading. Raises ConfigurationError, naming what is wrong. Source: papers
    AMTA (Algorithms 1 to 7) and A2MTA (II).
    """

    def __init__(
        self,
        aggregates: Mapping[str, Monoid] | Monoid,
        *,
        policy: Any,
        engine: str = "amta",
        histograms: Sequence[Histogram] = (),
        center: Centers | None = None,
        store: Store | None = None,
    ) -> None:
        self._configure(aggregates, policy, engine, histograms, center, store)
        if store is not None:
            self._keep_in(store, store.plan).begin()

    def _configure(
        self,
        aggregates: Mapping[str, Monoid] | Monoid,
        policy: Any,
        engine: str,
        histograms: Sequence[Histogram],
        center: Centers | None,
        store: Store | None = None,
    ) -> None:
        if engine not in ENGINES:
            raise ConfigurationError(f"engine: {engine!r}, expected one of {', '.join(ENGINES)}")
        self._policy: Policy = as_policy(policy)
        plain = self._lay_out(aggregates, bool(histograms), 0)
        self._histograms = compose(histograms, _kinds(plain), self._policy.hops)
        _refuse_buckets(self._policy, bool(histograms))
        self._limit, self._bucketed = self._histograms.limit, self._histograms.bucketed
        self._withheld = self._certain_only(plain)
        self._layout: Layout = self._lay_out(aggregates, self._bucketed, len(self._histograms.controls))
        self._engine = engine
        self._center = centers = None if center is None else _centers(center, self._layout.dimensions)
        kind, value, hop = _rule(self._policy)
        eviction = self._policy.eviction(self._layout) if isinstance(self._policy, Ruled) else None
        rules, up_to = self._histograms.rules(), _up_to(self._policy, self._layout)
        core: type[Core] = cast(type[Core], ObjectCore) if self._layout.objects else Core
        if store is not None:
            self._refuse_objects()
            engine = stored_engine(engine, self._limit)
        merging, staging = self._merging(kind), self._staging(store)
        given = (kind, value, self._limit, centers, rules, hop, up_to, eviction, merging, staging)
        self._core = core(self._layout, engine, *given)
        self._reader = Reader(self._layout.dimensions, self._layout.positive)
        if store is None:  # else the core that is asked is the store's
            self._bind_slide()

    def _lay_out(self, aggregates: Mapping[str, Monoid] | Monoid, bucketed: bool, samples: int) -> Layout:
        header, times = isinstance(self._policy, Custom | Compiled), isinstance(self._policy, Time)
        read = self._policy.reads if isinstance(self._policy, Ruled) else ()
        return lay_out(aggregates, header=header, times=times, bucketed=bucketed, samples=samples, read=read)

    def _merging(self, kind: int) -> list[Term] | None:
        """What a merge of pairs is judged by; None where whole levels are evicted, or nothing is."""
        if not self._histograms.chained:
            return None
        if self._engine != "amta":
            raise ConfigurationError(
                f"engine: {self._engine!r}, but Constrained(merge='pairs') or a staging tail brings its own tree; "
                "leave the engine out"
            )
        return terms(self._layout, timed=kind != BY_COUNT)

    def _staging(self, store: Store | None) -> tuple[int, list[Guard]] | None:
        """The staging tail's size and the extremes it watches; None where there is none."""
        if not self._histograms.staging:
            return None
        if store is not None:
            raise ConfigurationError("store: a staging tail decides in memory what is kept; leave out one of them")
        return self._histograms.staging, guards(self._histograms.extremes, self._layout)

    # readings

    def insert(self, value: float | Mapping[str, float] | Sequence[float], time: int | None = None) -> None:
        """Take one reading, then evict by the policy. O(1) amortised, O(log n) worst.

        `value`: a number, or one per dimension as mapping or sequence in the order of `dimensions`. `time`: µs;
        without it the reading's ordinal, which a time policy refuses. Raises InputError (nothing changed) for what is
        not finite, does not fit, or is not greater than 0 where a geometric mean reads it; PolicyError where the policy
        raised (the reading is in).
        """
        values = self._reader.row(value)
        if time is None:
            time = self._ordinal()
        self._core.insert(values, in_range(time))
        if isinstance(self._policy, Custom):
            self._enforce(self._policy)

    def slide(self, value: float | Mapping[str, float] | Sequence[float], time: int | None = None) -> Any:
        """`insert` and then `query` in one call: the only aggregate's result, or all by name as `query` gives them.

        The quickest way for single readings: in a compiled window it is bound to compiled code, about a tenth of the
        two calls. Raises as `insert`.
        """
        self.insert(value, time)
        values = list(self.query().values())
        return values[0] if len(values) == 1 else dict(zip(self._layout.names, values, strict=True))

    def _bind_slide(self) -> None:
        """Where a compiled core enforces the policy by itself, `slide` is its own."""
        core: Any = self._core
        if hasattr(core, "slide") and not isinstance(self._policy, Custom) and not self._withheld:
            core.serve(self._layout.names, self._reader.row, in_range, bool(self._layout.positive))
            self.slide = core.slide  # type: ignore[method-assign]

    @overload
    def insert_many(
        self, values: Any, times: Any = None, *, results: Literal[True] = True
    ) -> dict[str, array[float]]: ...
    @overload
    def insert_many(self, values: Any, times: Any = None, *, results: bool) -> dict[str, array[float]] | None: ...
    @overload
    def insert_many(self, values: Any, times: Any = None, *, bounds: Literal[True]) -> dict[str, BoundedColumn]: ...

    def insert_many(
        self, values: Any, times: Any = None, *, results: bool = True, bounds: bool = False
    ) -> dict[str, array[float]] | dict[str, BoundedColumn] | None:
        """Take a batch, as if by `insert` one after the other; the results after each reading, by aggregate.

        `values`: a buffer of float64, (n,) or C-contiguous (n, dimensions), or a sequence of numbers; `times`: int64
        (n,). Count and time policies run compiled and without the GIL; a callable policy is asked for each reading.
        NaN stands for "no result"; a longest run's column is its length, a distinct count's the estimate, and what is
        no number (histogram, top_k, bloom_filter) has no column. With `bounds` each has three, value, low and high, as
        `query(bounds=True)` gives them: compiled for a window of buckets whose aggregates are counts, sums, means,
        extremes, first and last, else reading by reading; raises BoundsError as `query`. Raises InputError, before any
        reading enters, for a value that is not finite, or not greater than 0 where a geometric mean reads it (with its
        index), a time out of range, wrong lengths or types; PolicyError where the policy raised (the readings up to
        there are in).
        """
        flat = flat_values(values, len(self._layout.dimensions))
        refuse_not_positive(flat, self._layout)
        if times is None:
            self._ordinal()
        batch = Batch(flat, None if times is None else flat_times(times, flat.readings))
        if bounds or (results and self._withheld):
            found = self._insert_bounded(batch)
            return found if bounds else {name: column.value for name, column in found.items()}
        columns = [new_column(flat.readings) for _ in self._layout.names] if results else None
        if isinstance(self._policy, Custom):
            self._insert_each(batch, columns, self._policy)
        elif flat.readings:
            self._core.insert_many(batch.values.view, batch.times, flat.readings, columns)
        return None if columns is None else self._layout.numbers(columns)

    def _insert_bounded(self, batch: Batch) -> dict[str, BoundedColumn]:
        self._refuse_unbounded()
        layout, size = self._layout, batch.values.readings
        columns = [new_column(size) for _ in range(3 * len(layout.names))]
        if not isinstance(self._policy, Custom) and getattr(self._core, "bounds_in_batches", False):
            if size:
                self._core.insert_many(batch.values.view, batch.times, size, columns)
        else:
            self._bound_each(batch, columns)
        n, limit = len(layout.names), self._histograms.sum_like
        if limit is not None:
            for k in self._withheld:
                value, low, high = columns[k::n]
                withhold(value, low, high, limit.error or 0.0, limit.atol)
        parts = [layout.numbers(columns[at : at + n]) for at in range(0, 3 * n, n)]
        return {name: BoundedColumn(*(part[name] for part in parts)) for name in parts[0]}

    def _bound_each(self, batch: Batch, columns: list[array[float]]) -> None:
        for i, (values, time) in enumerate(batch.rows(self._core.accepted)):
            self._core.insert(values, time)
            if isinstance(self._policy, Custom):
                self._enforce(self._policy)
            found = self._bounded(self._core.results())
            ends = [[each[part] for each in found] for part in range(3)]
            for column, value in zip(columns, itertools.chain(*ends), strict=True):
                column[i] = as_number(value)

    def _insert_each(self, batch: Batch, columns: list[array[float]] | None, policy: Custom) -> None:
        for i, (values, time) in enumerate(batch.rows(self._core.accepted)):
            self._core.insert(values, time)
            self._enforce(policy)
            for column, value in zip(columns or (), self._core.results(), strict=bool(columns)):
                column[i] = as_number(value)

    def _ordinal(self) -> int:
        if isinstance(self._policy, Time):
            raise InputError("time: missing, expected microseconds as int64, since the policy evicts by time")
        return self._core.accepted

    def _enforce(self, policy: Custom) -> None:
        lower, layout = self._core.lower, self._layout

        def leaves(total: bytes, old: bytes) -> bool:
            return bool(policy.rule(Subsequence(layout, total, lower), Subsequence(layout, old, lower)))

        try:
            self._core.evict(leaves, policy.monotone)
        except Exception as error:
            raise PolicyError(
                f"policy {policy.name}: raised {error!r}; the reading is in, nothing more was evicted"
            ) from error

    def evict(self, count: int = 1) -> None:
        """Let the oldest `count` readings leave now, besides what the policy evicts; only for a window without buckets.

        Raises InputError (nothing changed) for a count that is negative or more than the window holds, as for an empty
        window, and ConfigurationError for a window of buckets or in a store, where readings leave by the policy.
        """
        if self._bucketed:
            raise ConfigurationError("evict: the window keeps buckets of many readings, which leave by its policy")
        if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= len(self):
            raise InputError(f"evict({count!r}): expected 0 to {len(self)}, the readings the window holds")
        self._core.evict_oldest(count)

    # answers

    @overload
    def query(self, bounds: Literal[False] = False) -> dict[str, Value]: ...
    @overload
    def query(self, bounds: Literal[True]) -> dict[str, Bounded]: ...

    def query(self, bounds: bool = False) -> dict[str, Any]:
        """Each aggregate's result by name; an empty window's are count 0, sum 0.0 and None.

        Where the edge cuts a bucket, it is the estimate that interpolates that bucket. With `bounds`, value, low,
        high and exact: the exact result over the readings that arrived certainly lies in low … high, rounding
        included; this takes a walk over the leaves for what a window without histograms rounds (sum, variance). Raises
        BoundsError where buckets are kept under a policy that does not declare itself monotone and dependent only on
        what remains.
        """
        values = self._core.results()
        if not bounds and not self._withheld:
            return dict(zip(self._layout.names, values, strict=True))
        answers = self._given(self._bounded(values))
        return dict(zip(self._layout.names, answers if bounds else [each.value for each in answers], strict=True))

    def _given(self, answers: list[Bounded]) -> list[Bounded]:
        """Without the values that are not certainly within the user's limit, where these are to be withheld."""
        limit = self._histograms.sum_like
        if limit is not None:
            for k in self._withheld:
                answers[k] = answers[k] if limit.keeps(answers[k]) else answers[k]._replace(value=None)
        return answers

    def _certain_only(self, layout: Layout) -> list[int]:
        """The aggregates whose values are given out only where they are certainly within the limit."""
        limit, policy = self._histograms.sum_like, self._policy
        if limit is None or not limit.withhold:
            return []
        if not (policy.monotone and policy.remaining):
            raise ConfigurationError(
                f"SumLike(withhold=True): not under the policy {policy.name}, which is not declared monotone and "
                "dependent only on what remains: nothing is certain then (policies.custom)"
            )
        return limit.controlled(_kinds(layout))

    def _bounded(self, values: list[Any]) -> list[Bounded]:
        self._refuse_unbounded()
        head, tail, unpack = self._core.head, self._core.tail, self._layout.format.unpack
        if head == tail:
            return [Bounded(value, value, value, True) for value in values]
        if not self._bucketed:
            return intervals.exactly(self._layout, values, self._leaves_of_sums(head, tail), tail - head)
        cut, rest = self._core.cut_oldest(), self._core.rest()
        assert cut is not None  # noqa: S101  there is an oldest leaf
        total, oldest = unpack(self._core.total()), unpack(self._core.leaf(head))
        cutoff = self._core.cutoff if isinstance(self._policy, Time) else None
        centers = tuple(self._core.centers or ())
        seen = intervals.Window(self._layout, total, unpack(rest) if rest else None, oldest, cut, cutoff, centers)
        return intervals.bounded(seen, values)

    def _refuse_unbounded(self) -> None:
        if self._bucketed and not (self._policy.monotone and self._policy.remaining):
            raise BoundsError(
                f"policy {self._policy.name}: not declared monotone and dependent only on what remains, so over "
                "buckets no interval is certain; declare it (policies.custom) if it is so, or run without histograms"
            )

    def _leaves_of_sums(self, head: int, tail: int) -> list[tuple[Any, ...]]:
        if not any(monoid.kind in intervals.ROUNDED for monoid in self._layout.monoids):
            return []
        return [tuple(self._layout.unpack(self._core.leaf(index))) for index in range(head, tail)]

    def buckets(self) -> list[Subsequence]:
        """The leaves, oldest first: count, times and each aggregate's result over the leaf alone.

        Raises ConfigurationError where the engine keeps no leaves (the Lite ones under most policies).
        """
        self._core.require_leaves()
        return [
            Subsequence(self._layout, self._core.leaf(i), self._core.lower)
            for i in range(self._core.head, self._core.tail)
        ]

    @property
    def dimensions(self) -> tuple[str | None, ...]:
        """The dimensions a reading has, in the order in which a sequence gives them; (None,) for a plain number."""
        return self._layout.dimensions

    @property
    def fields(self) -> dict[str, Field]:
        """What each slot of a partial holds, for a compiled policy: "count", "sum[load]", … → slot and types."""
        return fields(self._layout)

    @property
    def center(self) -> tuple[float, ...] | None:
        """μ₀ per dimension; None until the first reading decides it."""
        centers = self._core.centers
        return None if centers is None else tuple(centers)

    @property
    def footprint(self) -> Footprint:
        """Leaves created and held, and bytes of partials."""
        return Footprint(self._core.created, self._core.tail - self._core.head, self._core.allocated)

    @property
    def accepted(self) -> int:
        """Readings taken so far, in the window or not."""
        return self._core.accepted

    @property
    def readings(self) -> int:
        """Readings that are still held; where the edge cuts a bucket, at most so many of them are inside."""
        return self._core.accepted - 1 - self._core.edge

    @property
    def limit(self) -> int:
        """The most buckets it keeps now; 0: no constrained footprint."""
        return self._core.limit

    def limit_to(self, buckets: int) -> None:
        """Keep at most so many buckets from now on, from 4 up to the constrained footprint's own limit.

        Fewer: whole levels are evicted, or pairs merged, until they fit; counts, sums and extremes stay exact, the
        intervals grow. More: what is merged stays merged until it leaves, new buckets are finer. Part of `state` and
        `snapshot`. Source: paper A2MTA, "network availability". Raises ConfigurationError; nothing changed then.
        """
        most = self._limit
        if isinstance(buckets, bool) or not isinstance(buckets, int) or not LEAST <= buckets <= most:
            expected = f"expected {LEAST} to {most}" if most else "the window has no constrained footprint to change"
            raise ConfigurationError(f"limit_to({buckets!r}): {expected}")
        self._core.limit_to(buckets)

    def __len__(self) -> int:
        """The number of leaves: readings where there are no histograms, else buckets."""
        return self._core.tail - self._core.head

    def verify(self) -> None:
        """Raise InvariantError where the window's structure contradicts itself; O(n), for tests and diagnosis."""
        self._core.verify()

    # durability

    def changes(self) -> Changes:
        """What happened to the leaves since the last call; together with `state`, all that a restart needs."""
        self._core.require_leaves()
        self._refuse_objects()
        head, end = self._core.head, self._open()
        if self._histograms.chained:
            fresh = self._core.take_fresh()
            closed = [(first, snapshot.portable(partial)) for first, _, partial, _ in fresh]
            merged = tuple((first, after) for first, after, _, took in fresh if took)
            return Changes(0, self._first(head), self._first(end), closed, 0, merged)
        closed = [(i, self._stored(i)) for i in range(max(self._core.mark, head), end)]
        self._core.mark = end
        return Changes(self._core.level, head, end, closed, self._core.level - len(self._core.heads))

    def leaf(self, index: int) -> bytes:
        """The partial of a closed leaf now inside, by its absolute index at the current level. Raises IndexError."""
        self._core.require_leaves()
        self._refuse_objects()
        if self._histograms.chained:
            found = [i for i in range(self._core.head, self._open()) if self._first(i) == index]
            if not found:
                raise IndexError(f"leaf {index}: no closed leaf begins at this ordinal")
            return self._stored(found[0])
        if not self._core.head <= index < self._open():
            raise IndexError(f"leaf {index}: the closed leaves are {self._core.head} to {self._open() - 1}")
        return self._stored(index)

    def state(self) -> bytes:
        """All but the closed leaves: small and bounded, whatever the window holds."""
        self._refuse_objects()
        saved = self._core.save()._replace(mark=0)  # a rebuilt window has given out what it was rebuilt from
        return snapshot.seal(snapshot.STATE, self._owner(), snapshot.pack_state(saved))

    @classmethod
    def rebuild(
        cls,
        aggregates: Mapping[str, Monoid] | Monoid,
        *,
        policy: Any,
        state: bytes,
        leaves: Iterable[Row],
        engine: str = "amta",
        histograms: Sequence[Histogram] = (),
        center: Centers | None = None,
    ) -> Self:
        """The window that `state` was taken from, with the rows (level, index, partial) that `changes` gave out.

        Rows of lower levels are combined as the level evictions did; rows of leaves that have left are ignored. Raises
        SnapshotError where a leaf is missing or bytes are damaged, ForeignSnapshotError for another configuration.
        """
        window = cls(aggregates, policy=policy, engine=engine, histograms=histograms, center=center)
        version, payload = snapshot.unseal(snapshot.STATE, window._owner(), state)
        saved, after = snapshot.unpack_state(version, payload, window._layout.width, window._limit)
        if len(after):
            raise SnapshotError(f"window state: {len(after)} bytes too many")
        window._take(saved, window._gathered(saved, leaves))
        window._core.mark = window._open()  # it has given out what it was rebuilt from
        window._core.take_fresh()
        return window

    def _gathered(self, saved: Saved, rows: Iterable[Row]) -> list[bytes]:
        width, closed = self._layout.width, self._closed(saved)
        if self._histograms.chained:
            return chain(saved.rules, closed, rows, width)
        return gather(saved.level - len(saved.heads), saved.heads, closed, rows, width, self._core.combine)

    def snapshot(self) -> bytes:
        """The whole window, exactly; `restore` continues bit for bit."""
        self._refuse_objects()
        leaves = (self._stored(i) for i in range(self._core.head, self._open()))
        payload = b"".join([snapshot.pack_state(self._core.save()), *leaves])
        return snapshot.seal(snapshot.SNAPSHOT, self._owner(), payload)

    @classmethod
    def restore(
        cls,
        data: bytes,
        aggregates: Mapping[str, Monoid] | Monoid,
        *,
        policy: Any,
        engine: str = "amta",
        histograms: Sequence[Histogram] = (),
        center: Centers | None = None,
    ) -> Self:
        """The window that `data` is a snapshot of, given the same configuration.

        Raises SnapshotError for damaged or truncated bytes, NewerSnapshotError, and ForeignSnapshotError for another
        configuration.
        """
        window = cls(aggregates, policy=policy, engine=engine, histograms=histograms, center=center)
        version, payload = snapshot.unseal(snapshot.SNAPSHOT, window._owner(), data)
        saved, after = snapshot.unpack_state(version, payload, window._layout.width, window._limit)
        size, closed = 8 * window._layout.width, window._closed(saved)
        if len(after) != size * len(closed):
            raise SnapshotError(
                f"window snapshot: {len(after)} bytes of leaves, expected {len(closed)} leaves of {size}"
            )
        rows = [snapshot.portable(bytes(after[i : i + size])) for i in range(0, len(after), size)]
        window._take(saved, rows)
        return window

    # in a store

    @classmethod
    def open(cls, store: Store, aggregates: Mapping[str, Monoid] | Monoid | None = None, *, policy: Any = None) -> Self:
        """The window that a store holds, as it was at the newest manifest (see `flush`).

        What it is stands in the store; what is given besides is checked against it. A policy that is a callable has to
        be given. Raises ConfigurationError where the store is empty or needs the policy, ForeignSnapshotError for
        another configuration, CorruptPageError, StoreError.
        """
        manifest, row = found_in(store)
        told = read_description(manifest.description)
        policy = told.policy if policy is None else policy
        if told.aggregates is None and aggregates is None:
            raise ConfigurationError("open: the window has compiled aggregates; give all of them as `aggregates`")
        if policy is None:
            raise ConfigurationError(
                f"open: the window's policy is {told.policy_name!r}, a callable; give it as `policy`"
            )
        kept = told.aggregates or aggregates
        for given, center in ((aggregates or kept, None), (kept, told.center)):  # what is given is checked as a window
            window = cls.__new__(cls)
            window._configure(cast(Any, given), policy, told.engine, told.histograms, center, store)
            version, payload = snapshot.unseal(snapshot.STATE, window._owner(), manifest.state)
        saved, _ = snapshot.unpack_state(version, payload, window._layout.width, window._limit)
        window._keep_in(store, store.plan._replace(shift=manifest.shift)).resume(manifest, row, saved)
        return window

    def flush(self) -> None:
        """Return when the window as it is now is in its store and would survive a power cut.

        Without it, the store holds the window as it was at an automatic manifest, every 256 pages of partials; after
        kill -9 `open` gives the newest of these, whole. Raises StoreError where the store fails (the window goes on,
        the older manifest stays), ConfigurationError for a window without a store.
        """
        self._in_store("flush").flush()

    def close(self) -> None:
        """Flush, then close the store. Raises as `flush`, and the store is closed all the same."""
        self._in_store("close").close()

    def _in_store(self, call: str) -> StoredCore:
        core: object = self._core
        if not isinstance(core, StoredCore):
            raise ConfigurationError(f"{call}: the window has no store; give it one by `store=`, or use `snapshot`")
        return core

    def _keep_in(self, store: Store, plan: Plan) -> StoredCore:
        """Put a core whose partials live in the store in front of the window's own."""
        layout, histograms = self._layout, self._histograms.histograms
        described = describe(layout.names, layout.monoids, self._policy, self._engine, histograms, self._center)

        def seal(saved: Saved) -> bytes:
            return snapshot.seal(snapshot.STATE, self._owner(), snapshot.pack_state(saved._replace(mark=0)))

        core = StoredCore(
            self._core, self._engine, isinstance(self._policy, Custom), store, plan, layout, described, seal
        )
        self._core = cast(Core, core)
        self.__dict__.pop("slide", None)  # the window's own, which goes through it
        return core

    def _first(self, index: int) -> int:
        """The ordinal of a leaf's first reading; after the newest that of the next reading."""
        if index == self._core.tail:
            return self._core.accepted
        return int(self._layout.format.unpack(self._core.leaf(index))[O_FIRST])

    def _open(self) -> int:
        """Index after the last closed leaf."""
        return self._core.tail - (1 if self._bucketed and self._core.head < self._core.tail else 0)

    def _closed(self, saved: Saved) -> range:
        return range(saved.head, saved.tail - bool(saved.newest_leaf))

    def _stored(self, index: int) -> bytes:
        return snapshot.portable(self._core.leaf(index))

    def _take(self, saved: Saved, closed: list[bytes]) -> None:
        given = self._core.centers
        if given is not None and saved.centers and tuple(given) != saved.centers:
            raise SnapshotError(f"center: {tuple(given)} is given, the stored window has {saved.centers}")
        leaves = [*closed, saved.newest_leaf] if saved.newest_leaf else closed
        if saved.limit and len(leaves) > saved.limit + self._histograms.staging:
            raise SnapshotError(f"window state: {len(leaves)} buckets, the limit is {saved.limit}")
        try:
            self._core.load(saved, leaves)
        except ValueError as error:
            raise SnapshotError(f"window state: {error}; use an older one or start the window anew") from error
        try:
            self._core.verify()
        except InvariantError as error:
            raise SnapshotError(f"window state: its leaves do not fit together: {error}") from None

    def _refuse_objects(self) -> None:
        names = [name for name, monoid in zip(self._layout.names, self._layout.monoids, strict=True)
                 if monoid.kind in OBJECTS]  # fmt: skip
        if names:
            raise ConfigurationError(
                f"window: the aggregates {names} keep Python objects, which are not stored (nothing here is ever "
                "unpickled); store the readings, or take aggregates of fixed width (sg.compiled for your own)"
            )

    def _owner(self) -> bytes:
        self._refuse_objects()
        layout = self._layout
        aggregates = [f"{name}:{monoid.identity}" for name, monoid in zip(layout.names, layout.monoids, strict=True)]
        limit = f"buckets:{self._limit}" + (":pairs" if self._histograms.pairs else "")
        kept = [limit, *(each.name for each in self._histograms.deciding)]
        return snapshot.fingerprint([self._engine, self._policy.name, *kept, *aggregates, *layout.since])


def _kinds(layout: Layout) -> list[tuple[str, str, int]]:
    pairs = zip(layout.names, layout.monoids, strict=True)
    return [(name, monoid.kind, layout.dimension_of(monoid)) for name, monoid in pairs]


def _rule(policy: Policy) -> tuple[int, int, int]:
    if isinstance(policy, Count):
        return BY_COUNT, policy.limit, policy.hop
    return (BY_TIME, policy.span, policy.hop) if isinstance(policy, Time) else (CUSTOM, 0, 1)


def _refuse_buckets(policy: Policy, bucketed: bool) -> None:
    if bucketed and policy.exact_only:
        raise ConfigurationError(f"histograms: not under the policy {policy.name}: {policy.exact_only}")


def _up_to(policy: Policy, layout: Layout) -> int:
    """1 (−1) where the policy evicts up to the current maximum (minimum), 0 where it does not."""
    if not isinstance(policy, Count | Time) or policy.up_to is None:
        return 0
    if len(layout.dimensions) > 1 or any(monoid.kind != policy.up_to for monoid in layout.monoids):
        raise ConfigurationError(
            f"policy {policy.name}: evicts up to the current {policy.up_to}, which must be the only aggregate, "
            f"of one dimension; the aggregates are {list(layout.names)}"
        )
    return 1 if policy.up_to == "max" else -1


def _centers(center: Centers, dimensions: tuple[str | None, ...]) -> tuple[float, ...]:
    if isinstance(center, Mapping):
        given = [center.get(name, None) if name is not None else None for name in dimensions]
    else:
        given = [center] if isinstance(center, int | float) else list(center)
    if len(given) != len(dimensions) or any(not isinstance(x, int | float) or not abs(x) <= LARGEST for x in given):
        raise ConfigurationError(
            f"center: {center!r}, expected a finite number for each dimension of {list(dimensions)}"
        )
    return tuple(float(x) for x in given if x is not None)
