"""What outlives the process: a window's changes, state and snapshot, and its store: a layer of `sluicegate.Window`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, cast

from sluicegate.core import Core, Saved
from sluicegate.errors import ConfigurationError, InvariantError, SnapshotError
from sluicegate.monoids import OBJECTS
from sluicegate.monoids.layout import O_FIRST
from sluicegate.policies import Custom, Time
from sluicegate.stores.contract import Plan, Store
from sluicegate.stores.description import describe
from sluicegate.stores.stored_core import StoredCore
from sluicegate.window import snapshot
from sluicegate.window.answers import guarded_walk
from sluicegate.window.ingest import Ingest
from sluicegate.window.rebuilding import Row, chain, gather


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


class Durability(Ingest):
    """A window that can be stored and taken up again."""

    _center: tuple[float, ...] | None
    _owned: bytes  # whose state it is, once that was asked for: nothing of it changes

    @guarded_walk
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
        changed = self._core.mark if hasattr(self._core, "flush") else self._core.first_changed()
        closed = [(i, self._stored(i)) for i in range(max(changed, head), end)]
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
        return self._sealed(snapshot.STATE, saved)

    def _sealed(self, kind: int, saved: Saved, leaves: Iterable[bytes] = ()) -> bytes:
        payload = b"".join([snapshot.pack_state(saved), *leaves])
        return snapshot.seal(kind, self._owner(), payload, snapshot.version_of(saved))

    def _gathered(self, saved: Saved, rows: Iterable[Row]) -> list[bytes]:
        width, closed = self._layout.width, self._closed(saved)
        if self._histograms.chained:
            return chain(saved.rules, closed, rows, width)
        return gather(saved.level - len(saved.heads), saved.heads, closed, rows, width, self._core.combine)

    @guarded_walk
    def snapshot(self) -> bytes:
        """The whole window, exactly; `restore` continues bit for bit."""
        self._refuse_objects()
        leaves = (self._stored(i) for i in range(self._core.head, self._open()))
        return self._sealed(snapshot.SNAPSHOT, self._core.save(), leaves)

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
            return self._sealed(snapshot.STATE, saved._replace(mark=0))

        core = StoredCore(
            self._core, self._engine, isinstance(self._policy, Custom), store, plan, layout, described, seal
        )
        self._core = cast(Core, core)
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
        if not self._bucketed and saved.tail != saved.accepted:  # a policy by count would evict what is not there
            raise SnapshotError(f"window state: {saved.tail} leaves of {saved.accepted} readings, expected one each")
        if isinstance(self._policy, Time) and self._layout.width == 1:  # a count alone: its partials are times alone
            saved = saved._replace(left=b"", right=b"")
        try:
            self._core.load(saved, leaves)
        except ValueError as error:
            raise SnapshotError(f"window state: {error}; use an older one or start the window anew") from error
        snapshot.refuse_nan(self._layout, leaves)
        try:
            self._core.verify()
        except InvariantError as error:
            raise SnapshotError(f"window state: its leaves do not fit together: {error}") from None

    def _refuse_objects(self) -> None:
        if self._owned or not self._layout.objects:
            return
        named = zip(self._layout.names, self._layout.monoids, strict=True)
        names = [name for name, monoid in named if monoid.kind in OBJECTS]
        if names:
            raise ConfigurationError(
                f"window: the aggregates {names} keep Python objects, which are not stored (nothing here is ever "
                "unpickled); store the readings, or take aggregates of fixed width (sg.compiled for your own)"
            )

    def _owner(self) -> bytes:
        if self._owned:
            return self._owned
        self._refuse_objects()
        layout = self._layout
        aggregates = [f"{name}:{monoid.identity}" for name, monoid in zip(layout.names, layout.monoids, strict=True)]
        limit = f"buckets:{self._limit}" + (":pairs" if self._histograms.pairs else "")
        kept = [limit, *(each.name for each in self._histograms.deciding)]
        self._owned = snapshot.fingerprint([self._engine, self._policy.name, *kept, *aggregates, *layout.since])
        return self._owned
