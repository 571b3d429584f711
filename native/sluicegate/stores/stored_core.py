"""A window's core whose partials live in a store: the core's own calls, and when which state becomes durable.

A manifest describes the window at the end of one reading; it is stored after the pages it needs and before any page it
needs is deleted. So what a store holds is always the window as it was at its newest manifest: at `flush`, at `close`,
or at the last automatic one (every 256 pages, so every 131,072 readings of an exact window), whichever came last.
"""

from __future__ import annotations

import weakref
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial as partial_of
from threading import RLock
from typing import Any, TypeVar

from sluicegate.core import Core, Saved
from sluicegate.errors import BusyError, ConfigurationError, CorruptPageError, StoreError
from sluicegate.monoids.layout import Layout
from sluicegate.stores import manifest as manifests
from sluicegate.stores.contract import Plan, Store
from sluicegate.stores.manifest import Level, Life, Manifest
from sluicegate.stores.page import MOST_SLOTS
from sluicegate.stores.pager import Pager
from sluicegate.window.one_thread import alone
from sluicegate.window.snapshot import portable

ENGINES = {"amta": "kvs_amta", "log_mta": "kvs_log_mta"}
"""The engines that can keep their partials in a store, and what they are called then."""

SLICE = 2**15  # readings of a batch between two looks at what is due
MOST_LIVES = 1024
T = TypeVar("T")
_IN_USE: weakref.WeakSet[Any] = weakref.WeakSet()
_PLAIN = frozenset({
    "accepted", "newest", "edge", "created", "level", "limit", "head", "tail", "heads", "centers", "cutoff",
    "allocated", "lower", "combine", "engine_object", "late", "joined_late", "held_late",
    "require_leaves",
})  # fmt: skip
_ANSWERS = frozenset({"results", "bounded", "total", "rest", "leaf", "save", "refuse_late"})


def stored_engine(engine: str, limit: int) -> str:
    """The engine's name where its partials are in a store. Raises ConfigurationError where that makes no sense."""
    if engine not in ENGINES:
        raise ConfigurationError(
            f"store: engine {engine!r} keeps its partials in memory; expected one of {list(ENGINES)}"
        )
    if limit:
        raise ConfigurationError(
            "store: a constrained footprint merges whole levels of stored pages; its buckets fit into memory, so keep "
            "them there, or leave out `Constrained`"
        )
    return ENGINES[engine]


def check_store(store: object) -> None:
    """Raise ConfigurationError for what has not the calls of a store, such as a path."""
    missing = [call for call in ("plan", "put", "get", "delete", "sync", "close") if not hasattr(store, call)]
    if missing:
        raise ConfigurationError(f"store: {store!r} has no {missing[0]}; expected a store, as sg.stores.SQLite(path)")


def found_in(store: Store) -> tuple[Manifest, int]:
    """The newest manifest of a store and its row. Raises ConfigurationError where it holds no window."""
    check_store(store)
    found = manifests.newest(store)
    if found is None:
        raise ConfigurationError("open: the store holds no window; begin one by sg.Window(..., store=store)")
    return found


def first_unsealed(engine: str, shift: int) -> Callable[[int, int], int]:
    """Of each tier, the first page that is not whole and followed by another once so many leaves have entered."""

    def of_forest(tier: int, tail: int) -> int:
        return max(((tail + 1) >> (shift * tier)) - 2, 0) >> shift

    def of_tree(tier: int, tail: int) -> int:
        return max(tail - 1, 0) >> (shift * tier) >> shift

    return of_forest if engine == "amta" else of_tree


class StoredCore:
    """The core of a window with a store. All that is not here is the core's own.

    `asked`: a callable policy decides after `insert`, in `evict`; a reading's end is then there. A StoreError says that
    nothing has changed, or, after `insert_many`, that the readings up to `accepted` are in. A failure while the oldest
    readings leave is noted and mended by the next call; until then no answer is given.
    """

    def __init__(
        self,
        core: Core,
        engine: str,
        asked: bool,
        store: Store,
        plan: Plan,
        layout: Layout,
        description: bytes,
        seal: Callable[[Saved], bytes],
    ) -> None:
        if layout.width << plan.shift > MOST_SLOTS:
            raise ConfigurationError(
                f"store: {layout.width} slots a partial make pages of {layout.width << plan.shift + 3} bytes, expected "
                "up to 8 MiB; keep fewer aggregates in one window"
            )
        self._core, self._kind, self._asked, self._store, self._plan = core, engine, asked, store, plan
        self._description, self._state, self._width = description, seal, layout.width
        self._engine: Any = core.engine_object
        self._next, self._sealed = 0, 0
        self._busy = self._evicting = self._closed = False
        self._alone = RLock()
        self._pager: Pager

    def __getattr__(self, name: str) -> Any:
        """What the core knows without its partials, and its answers, which are mended or refused (StoreError)."""
        if name in _ANSWERS:
            return partial_of(self._told, getattr(self._core, name))
        if name not in _PLAIN:
            raise AttributeError(
                f"StoredCore: {name!r} is not known to be right while a store fails; give it a method here"
            )
        return getattr(self._core, name)

    @property
    def mark(self) -> int:
        """Leaves from here on have not been given out by `changes`."""
        return self._core.mark

    @mark.setter
    def mark(self, mark: int) -> None:
        self._core.mark = mark

    # beginning

    def begin(self) -> None:
        """Start an empty window in an empty store, and note that it is there. Raises ConfigurationError, StoreError."""
        if manifests.newest(self._store) is not None:
            raise ConfigurationError("store: holds a window already; use sg.Window.open(store), or an empty store")
        with self._attached([Life(1, 0)], row=1):
            self.flush()

    def resume(self, found: Manifest, row: int, saved: Saved) -> None:
        """Go on from a manifest. Raises StoreError, CorruptPageError where pages around head and tail do not fit."""
        if found.width != self._width:
            raise CorruptPageError(f"store: partials of {found.width} slots, the window's have {self._width}")
        if (saved.head, saved.tail) != (found.head, found.tail):
            raise CorruptPageError(
                f"store: a manifest of leaves {found.head} to {found.tail}, its state of {saved.head} to {saved.tail}"
            )
        with self._attached(_lives(found), row):
            self._pager.keep_from(
                {self._plan.shift * tier: level.kept for tier, level in enumerate(found.levels)},
                {self._plan.shift * tier: head for tier, head in enumerate(found.heads)},
            )
            self._next = found.sequence + 1
            levels = [(level.begin, portable(level.partials)) for level in found.levels]
            self._engine.recover(saved.head, saved.tail, levels)
            self._core.load(saved, [])
            self.flush()

    @contextmanager
    def _attached(self, lives: Sequence[Life], row: int) -> Iterator[None]:
        """Take the store; where what follows fails it is free again."""
        if self._store in _IN_USE:
            raise StoreError("store: another window has it open; close that first")
        shift = self._plan.shift
        self._pager = Pager(self._store, shift, self._width, lives, first_unsealed(self._kind, shift), row)
        self._engine.attach(self._pager, shift)
        _IN_USE.add(self._store)
        leave = weakref.finalize(self, _abandon, self._pager, weakref.ref(self._store))
        try:
            yield
        except BaseException:
            leave()
            raise

    # readings

    @alone
    def insert(self, values: Sequence[float], time: int) -> None:
        """Take one reading and enforce a built-in policy. Raises StoreError: then nothing has changed."""
        self._check_free()
        self._mend()
        self._core.insert(values, time)
        if not self._asked:
            self._checkpoint_if_due()

    @alone
    def insert_many(
        self, values: memoryview[float], times: memoryview[int] | None, count: int, out: list[array[float]] | None
    ) -> None:
        """Take a batch. Raises StoreError: then the readings up to `accepted` are in, and have no results here.

        Raises InputError, before any reading enters, for a late one where single readings are stored by time.
        """
        dimensions = len(values) // count if count else 1
        columns: Any = None if out is None else [memoryview(column) for column in out]
        failures = self._engine.failures
        with self._use():
            if times is not None:
                self._mend()
                self._core.refuse_late(times)
            for begin in range(0, count, SLICE):
                end = min(begin + SLICE, count)
                self._mend()
                self._core.insert_many(
                    values[begin * dimensions : end * dimensions], None if times is None else times[begin:end],
                    end - begin, None if columns is None else [column[begin:end] for column in columns],
                )  # fmt: skip
                self._mend()
                if out is not None and self._engine.failures > failures:  # some of its results could not be had
                    raise self._engine.error
                self._checkpoint_if_due()

    @alone
    def advance(self, time: int) -> None:
        """It is at least this late. Raises StoreError: then nothing has changed."""
        self._check_free()
        self._mend()
        self._core.advance(time)
        self._checkpoint_if_due()

    @alone
    def evict(self, leaves: Callable[[bytes, bytes], bool], monotone: bool) -> None:
        """Evict by a user's rule. Where the store fails nothing more leaves; the rule decides with the next reading."""
        if self._engine.faulted:
            return
        self._evicting = True
        try:
            self._core.evict(leaves, monotone)
        finally:
            self._evicting = False
        self._checkpoint_if_due()

    def evict_oldest(self, count: int) -> None:
        """Refuse: what left by hand would be back after a crash. Raises ConfigurationError."""
        raise ConfigurationError("evict: a window in a store evicts by its policy only; by hand it would not last")

    def _checkpoint_if_due(self) -> None:
        """At the end of a reading, so once its evictions are through; after a failure, when that is mended."""
        if self._engine.sealed - self._sealed >= self._plan.every and not self._engine.faulted:
            self._checkpoint()

    def _mend(self) -> None:
        """Repair what a failure of the store left open, then let leave what should have left. Raises StoreError."""
        while self._engine.faulted:
            self._engine.heal()
            self._core.enforce_now()

    # answers: after a failure they are mended or refused, never made up

    @alone
    def verify(self) -> None:
        """Read every page and compare. Raises InvariantError, StoreError."""
        self._check_free()
        self._mend()
        try:
            self._core.verify()
        finally:
            self._mend()  # a page that cannot be read is no defect: StoreError then

    @alone
    def _told(self, ask: Callable[..., T], *given: Any) -> T:
        self._check_free()
        self._mend()
        answer = ask(*given)
        if self._engine.faulted:
            self._mend()  # raises where the store still fails
            answer = ask(*given)
            if self._engine.faulted:
                raise self._engine.error
        return answer

    # durability

    def flush(self) -> None:
        """Return when the window as it is now would survive a power cut. Raises StoreError."""
        self._check_done()
        with self._use():
            self._checkpoint()
        self._pager.flush(self._next - 1)

    def close(self) -> None:
        """Flush and let go of the store, also where flushing fails; the window takes no call any more."""
        self._check_done()
        try:
            self.flush()
        finally:
            self._closed = True
            self._pager.close()
            _IN_USE.discard(self._store)

    @alone
    def _checkpoint(self) -> None:
        self._mend()
        shift, kept = self._plan.shift, self._pager.kept
        levels = [
            Level(kept.get(shift * tier, 0), begin, portable(partials))
            for tier, (begin, partials) in enumerate(self._engine.levels())
        ]
        manifest = Manifest(
            self._next, self._core.head, self._core.tail, shift, self._width, self._pager.lives, tuple(levels),
            self._description, self._state(self._core.save()),
        )  # fmt: skip
        self._pager.checkpoint(manifest)
        self._next, self._sealed = self._next + 1, self._engine.sealed

    def _check_free(self) -> None:
        if self._closed:
            raise StoreError("store: the window is closed; open it again by sg.Window.open")
        self._pager.check_process()
        if self._busy:
            raise BusyError("window: busy with a batch; use one thread a window")

    def _check_done(self) -> None:
        self._pager.check_process()
        if self._evicting:
            raise BusyError("window: busy with an eviction; a policy may not flush or close its own window")

    @contextmanager
    def _use(self) -> Iterator[None]:
        self._check_free()
        self._busy = True
        try:
            yield
        finally:
            self._busy = False


def _lives(found: Manifest) -> list[Life]:
    """The earlier lives some page of the window may be from, and a new one."""
    lives = [*found.lives, Life(found.lives[-1].number + 1, found.tail)]
    while len(lives) > 1 and (lives[1].tail <= found.head or lives[1].tail == lives[0].tail or len(lives) > MOST_LIVES):
        lives.pop(0)
    return [
        life for life, after in zip(lives, [*lives[1:], None], strict=True) if after is None or after.tail > life.tail
    ]


def _abandon(pager: Pager, store: weakref.ref[Any]) -> None:
    """A window that was never closed: its thread ends, its store may be opened again."""
    pager.stop()
    found = store()
    if found is not None:
        _IN_USE.discard(found)
