"""What a window answers, and what it tells of itself: the lowest layer of `sluicegate.Window`."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, Concatenate, Literal, NamedTuple, ParamSpec, TypeVar, overload

from sluicegate.constants import NEVER
from sluicegate.core import Core
from sluicegate.errors import BoundsError, BusyError, ConfigurationError
from sluicegate.histograms.composition import Composition
from sluicegate.histograms.constrained import LEAST
from sluicegate.monoids import Monoid
from sluicegate.monoids.layout import Layout
from sluicegate.policies import Policy
from sluicegate.policies.custom import Field, fields
from sluicegate.records import Bounded
from sluicegate.window.readings import RowReader
from sluicegate.window.subsequence import Subsequence

Value = float | int | None
Asked = ParamSpec("Asked")
Found = TypeVar("Found")


def of_nothing(monoid: Monoid, value: Any) -> Bounded:
    """What an empty window answers; between which numbers its distinct values lie are numbers, as of any window."""
    ends = 0 if monoid.kind == "distinct_count" else value
    return Bounded(value, ends, ends, True)


class Footprint(NamedTuple):
    """Leaves newly created so far (the papers' measure), leaves held in the window, and bytes its partials occupy."""

    created: int
    held: int
    bytes: int


def guarded_walk(
    walk: Callable[Concatenate[Any, Asked], Found],
) -> Callable[Concatenate[Any, Asked], Found]:
    """A walk over the leaves; BusyError where another thread changed the window meanwhile, which stays whole."""

    @wraps(walk)
    def guarded(self: Any, /, *args: Asked.args, **named: Asked.kwargs) -> Found:
        before = self._reach
        try:
            found = walk(self, *args, **named)
        except LookupError:
            self._refuse_changed(before)
            raise
        self._refuse_changed(before)
        return found

    return guarded


class Queries:
    """A window whose configuration is known; `sluicegate.window.configure` makes it. A gateway keeps thousands."""

    __slots__ = (
        "__dict__", "__weakref__", "_bucketed", "_center", "_core", "_core_class", "_engine", "_histograms", "_layout",
        "_limit", "_owned", "_policy", "_reader", "_serves", "_takes_flat", "_withheld",
    )  # fmt: skip
    _policy: Policy
    _layout: Layout
    _core: Core
    _reader: RowReader
    _engine: str
    _histograms: Composition
    _limit: int
    _bucketed: bool
    _withheld: Sequence[int]  # aggregates whose values are given out only where they are certainly within the limit
    _serves: bool  # the compiled core takes single readings and gives answers by name itself
    _takes_flat: bool  # and a batch as it is given

    @overload
    def query(self, bounds: Literal[False] = False) -> dict[str, Value]: ...
    @overload
    def query(self, bounds: Literal[True]) -> dict[str, Bounded]: ...

    def query(self, bounds: bool = False) -> dict[str, Any]:
        """Each aggregate's result by name. An empty window: count 0, sum 0.0, None for the others.

        With `bounds=True` each is a `Bounded(value, low, high, exact)`: the exact result over the readings that arrived
        certainly lies in low … high, rounding included. Where the window's edge cuts a bucket, value is an estimate
        between them. Without histograms, bounds of a sum or variance take O(n). Raises BoundsError where buckets are
        kept under a policy that does not declare itself monotone and dependent only on what remains,
        ConfigurationError where the engine does not keep the leaves that are needed (the Lite ones).
        """
        if self._serves and not bounds:
            return self._core.named()
        if not bounds and not self._withheld:
            return dict(zip(self._layout.names, self._core.results(), strict=True))
        answers = self._withhold(self._bounded())
        return dict(zip(self._layout.names, answers if bounds else [each.value for each in answers], strict=True))

    def _withhold(self, answers: list[Bounded]) -> list[Bounded]:
        """Without the values that are not certainly within the user's limit, where these are to be withheld."""
        limit = self._histograms.sum_like
        if limit is not None:
            for k in self._withheld:
                answers[k] = answers[k] if limit.keeps(answers[k]) else answers[k]._replace(value=None)
        return answers

    def _bounded(self) -> list[Bounded]:
        self._refuse_unbounded()
        answers = self._core.bounded() if self._bucketed else None
        return self._exactly() if answers is None else answers

    @guarded_walk
    def _exactly(self) -> list[Bounded]:
        """Of an empty window, or of single readings: by a walk over the leaves where rounding depends on them."""
        values, held = self._core.results(), self._core.tail - self._core.head
        if not held:
            return [of_nothing(monoid, value) for monoid, value in zip(self._layout.monoids, values, strict=True)]
        from sluicegate.bounds.intervals import exactly  # an agent's windows have buckets

        return exactly(self._layout, values, self._slot_of_leaves, held)

    @property
    def _reach(self) -> tuple[int, int, int]:
        core = self._core
        return core.accepted, core.head, core.tail

    def _refuse_changed(self, before: tuple[int, int, int]) -> None:
        if self._reach != before:
            raise BusyError("window: another thread changed it while its leaves were read; use one thread a window")

    def _refuse_unbounded(self) -> None:
        if self._bucketed and not (self._policy.monotone and self._policy.remaining):
            raise BoundsError(
                f"policy {self._policy.name}: not declared monotone and dependent only on what remains, so over "
                "buckets no interval is certain; declare it (policies.custom) if it is so, or run without histograms"
            )

    def _slot_of_leaves(self, slot: int) -> array[Any]:
        """A slot of each leaf's partial, oldest first; of int64 where it holds a whole number."""
        core, code = self._core, self._layout.code(slot)
        if hasattr(core, "slot_of_leaves"):  # not of a store, where each page may fail
            found: array[Any] = core.slot_of_leaves(slot)
            return found if code == "d" else array("q", found.tobytes())
        unpack, leaf = self._layout.unpack, core.leaf
        return array(code, (unpack(leaf(index))[slot] for index in range(core.head, core.tail)))

    @guarded_walk
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
        """Readings taken so far, in the window or not; those that came too late for it are `late` instead."""
        return self._core.accepted + int(getattr(self._core, "joined_late", 0))

    @property
    def now(self) -> int | None:
        """Event time of a window by time: the greatest time of a reading, or what `advance` said; None before both."""
        return None if self._core.newest == NEVER else int(self._core.newest)

    @property
    def late(self) -> int:
        """Readings that belonged to the window no more when they came; they changed nothing, and are not `accepted`."""
        return int(getattr(self._core, "late", 0))

    @property
    def readings(self) -> int:
        """Readings that are still held; where the edge cuts a bucket, at most so many of them are inside."""
        return self._core.accepted - 1 - self._core.edge + int(getattr(self._core, "held_late", 0))

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

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Refuse to be copied or pickled: a copy would be the same window by another name. Raises TypeError."""
        raise TypeError(
            f"{type(self).__name__}: is neither copied nor pickled; take `snapshot()`, and `restore` with the same "
            "aggregates and policy, for a second one"
        )

    def verify(self) -> None:
        """Raise InvariantError where the window's structure contradicts itself; O(n), for tests and diagnosis."""
        self._core.verify()
