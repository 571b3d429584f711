"""A sliding window: several aggregates over one stream, an eviction policy, and buckets where memory is bounded.

    window = sg.Window(
        {"mean": sg.mean(), "peak": sg.max()}, policy=sg.policies.time("24h"), histograms=[sg.Constrained(64)]
    )
    window.insert(21.5, time=1_700_000_000_000_000)
    window.query(bounds=True)["mean"]  # Bounded(value=21.5, low=…, high=…, exact=True)

Here it is configured, or made from what was stored. What it does stands in three layers, each of which needs only those
before it: `answers` ← `ingest` ← `durability`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self, cast

from sluicegate import catalogue
from sluicegate.checks import is_number
from sluicegate.constants import BY_COUNT, BY_TIME, CUSTOM
from sluicegate.core import ENGINES, LARGEST, Core
from sluicegate.errors import ConfigurationError, SnapshotError
from sluicegate.histograms.composition import Histogram, compose
from sluicegate.histograms.max_like import Guard, guards
from sluicegate.histograms.widths import Term, terms
from sluicegate.monoids import Monoid
from sluicegate.monoids.layout import Layout, lay_out
from sluicegate.policies import Compiled, Count, Custom, Policy, Ruled, Time, as_policy
from sluicegate.stores.contract import Store
from sluicegate.stores.description import read as read_description
from sluicegate.stores.stored_core import check_store, found_in, stored_engine
from sluicegate.window import snapshot
from sluicegate.window.answers import Footprint as Footprint
from sluicegate.window.answers import Value as Value
from sluicegate.window.durability import Changes as Changes
from sluicegate.window.durability import Durability
from sluicegate.window.readings import reader
from sluicegate.window.rebuilding import Row

#: What of a window its configuration alone says.
_CONFIGURED = (
    *("_policy", "_histograms", "_limit", "_bucketed", "_withheld", "_layout", "_engine", "_owned", "_reader"),
    *("_center", "_core_class"),
)
Centers = float | Mapping[str, float] | Sequence[float]


class Window(Durability):
    """A sliding window over one stream: its newest readings, and the results of aggregates over them.

    `aggregates`: by name, or a single one, which is then named by its kind. `policy` says what leaves:
    `sg.policies.count(n)`, `.time("24h")`, another one of `sg.policies`, or `policy(total, old) -> bool`. `engine`: the
    algorithm, a name of `sg.ENGINES`. `histograms`: none, then every reading is kept and results are exact; or
    `SumLike` or `MaxLike`, `Hop` and `Constrained`, then readings share buckets and results have intervals. `center`:
    what is subtracted from each value before buckets sum it (a number, or one for each dimension); by default the first
    reading. `store`: where leaves are kept instead of in memory. Raises ConfigurationError, which names what is wrong.
    Source: AMTA, Algorithms 1 to 7; A2MTA, section II.
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
        if not isinstance(engine, str) or engine not in (*ENGINES, *catalogue.FORMER):
            raise ConfigurationError(f"engine: {engine!r}, expected one of {', '.join(ENGINES)}")
        self._policy: Policy = as_policy(policy)
        plain = self._lay_out(aggregates, bool(histograms), 0)
        self._histograms = compose(histograms, _kinds(plain), self._policy.hops)
        if histograms and self._policy.exact_only:
            raise ConfigurationError(f"histograms: not under the policy {self._policy.name}: {self._policy.exact_only}")
        self._limit, self._bucketed = self._histograms.limit, self._histograms.bucketed
        self._withheld = self._certain_only(plain)
        self._layout: Layout = self._lay_out(aggregates, self._bucketed, len(self._histograms.controls))
        self._engine, self._owned, self._serves, self._takes_flat = engine, b"", False, False
        self._reader = reader(self._layout.dimensions, self._layout.positive)
        self._center = None if center is None else _centers(center, self._layout.dimensions)
        self._core_class = _object_core() if self._layout.objects else Core
        up_to = _up_to(self._policy, self._layout)
        if store is not None:
            check_store(store)
            self._refuse_objects()
            engine = stored_engine(engine, self._limit)
        catalogue.check(engine, self._layout)
        if store is not None or not self._may_wait:
            staging = self._staging(store)
            self._core = self._made(engine, up_to, staging)
            if store is None:  # else the core that is asked is the store's
                self._bind()

    def __getattr__(self, name: str) -> Any:
        """The core, made when a reading comes or something is asked: of thousands of windows many stay silent."""
        if name != "_core":
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
        self._core = self._made(self._engine, _up_to(self._policy, self._layout), None)
        self._bind()
        return self._core

    def state(self) -> bytes:
        """All but the closed leaves: small and bounded, whatever the window holds."""
        is_silent, found = self._is_silent, super().state()
        if is_silent:  # it stays so
            del self._core
            self._serves = self._takes_flat = False
        return found

    @property
    def _is_silent(self) -> bool:
        try:
            object.__getattribute__(self, "_core")
        except AttributeError:
            return True
        return False

    @property
    def _may_wait(self) -> bool:
        """Whether the configuration has been checked whole without the core."""
        return isinstance(self._policy, Count | Time) and not self._histograms.chained and not self._layout.objects

    def anew(self) -> Self:
        """A window of the same configuration that has taken nothing: thousands share what was checked and laid out.

        Raises ConfigurationError for a window in a store.
        """
        if not self._is_silent and hasattr(self._core, "flush"):
            raise ConfigurationError("anew: the window is in a store; open another one in a store of its own")
        window = type(self).__new__(type(self))
        for name in _CONFIGURED:
            setattr(window, name, getattr(self, name))
        window._serves = window._takes_flat = False
        if not window._may_wait:
            window._core = window._made(window._engine, _up_to(window._policy, window._layout), window._staging(None))
            window._bind()
        return window

    def _made(self, engine: str, up_to: int, staging: tuple[int, list[Guard]] | None) -> Core:
        kind, value, hop = _rule(self._policy)
        eviction = self._policy.eviction(self._layout) if isinstance(self._policy, Ruled) else None
        rules, merging = self._histograms.rules(), self._merging(kind)
        given = (kind, value, self._limit, self._center, rules, hop, up_to, eviction, merging, staging)
        return self._core_class(self._layout, engine, *given)

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

    def _certain_only(self, layout: Layout) -> Sequence[int]:
        """The aggregates whose values are given out only where they are certainly within the limit."""
        limit, policy = self._histograms.sum_like, self._policy
        if limit is None or not limit.withhold:
            return ()
        if not (policy.monotone and policy.remaining):
            raise ConfigurationError(
                f"SumLike(withhold=True): not under the policy {policy.name}, which is not declared monotone and "
                "dependent only on what remains: nothing is certain then (policies.custom)"
            )
        return limit.controlled(_kinds(layout))

    # from what was stored

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
        return cls(aggregates, policy=policy, engine=engine, histograms=histograms, center=center).rebuilt(
            state, leaves
        )

    def rebuilt(self, state: bytes, leaves: Iterable[Row]) -> Self:
        """`rebuild` for the configuration of this window, which stays as it is: it is checked and laid out once."""
        self._owner()
        window = self.anew()
        version, payload = snapshot.unseal(snapshot.STATE, window._owner(), state)
        saved, after = snapshot.unpack_state(version, payload, window._layout.width, window._limit)
        if len(after):
            raise SnapshotError(f"window state: {len(after)} bytes too many")
        if not saved.accepted and state == window.state():
            return window
        window._take(saved, window._gathered(saved, leaves))
        window._core.mark = window._open()  # it has given out what it was rebuilt from
        window._core.take_fresh()
        return window

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

    @classmethod
    def open(cls, store: Store, aggregates: Mapping[str, Monoid] | Monoid | None = None, *, policy: Any = None) -> Self:
        """The window that a store holds, as it was at the newest manifest (see `flush`).

        What it is stands in the store; what is given besides is checked against it. A policy that is a callable has to
        be given. Raises ConfigurationError where the store is empty or needs the policy, ForeignSnapshotError for
        another configuration, CorruptPageError, StoreError. Where it raises, the store stays the caller's, to close.
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


def _object_core() -> type[Core]:
    """The core of aggregates that are Python objects; imported when asked for: with its engines it takes 1.5 MiB."""
    from sluicegate.reference.object_core import ObjectCore

    return cast(type[Core], ObjectCore)


def _kinds(layout: Layout) -> list[tuple[str, str, int]]:
    pairs = zip(layout.names, layout.monoids, strict=True)
    return [(name, monoid.kind, layout.dimension_of(monoid)) for name, monoid in pairs]


def _rule(policy: Policy) -> tuple[int, int, int]:
    if isinstance(policy, Count):
        return BY_COUNT, policy.limit, policy.hop
    return (BY_TIME, policy.span, policy.hop) if isinstance(policy, Time) else (CUSTOM, 0, 1)


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
    if len(given) != len(dimensions) or not all(is_number(x) and abs(x) <= LARGEST for x in given):
        raise ConfigurationError(
            f"center: {center!r}, expected a finite number for each dimension of {list(dimensions)}"
        )
    return tuple(float(x) for x in given if x is not None)
