"""Readings into a window, one by one and in batches, with the answers after each: a layer of `sluicegate.Window`."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from types import MethodType
from typing import Any, Literal, TypeVar, cast, overload

from sluicegate.core import Core, withhold
from sluicegate.errors import ConfigurationError, InputError, PolicyError
from sluicegate.monoids import ROUNDED
from sluicegate.monoids.results import as_number
from sluicegate.policies import Custom, Time
from sluicegate.records import BoundedColumn
from sluicegate.window.answers import Queries
from sluicegate.window.batches import Batch, flat_times, flat_values, refuse_not_positive
from sluicegate.window.readings import in_range
from sluicegate.window.subsequence import Subsequence

Call = TypeVar("Call", bound=Callable[..., Any])


class _BoundWhenAsked:
    """A call that the core has an own one for: kept in the window from the first time on, so that it is found there."""

    def __init__(self, call: Callable[..., Any]) -> None:
        self._call = call

    def __get__(self, window: Ingest | None, owner: type | None = None) -> Any:
        if window is None:
            return self._call
        core: Any = window._core  # if it is made now, what follows is known
        kind, name = type(window), self._call.__name__
        if not window._serves or kind.insert is not Ingest.insert or getattr(kind, name) is not self._call:
            return MethodType(self._call, window)  # a subclass's own is asked for each reading
        bound = core.insert_one if name == "insert" else core.slide
        setattr(window, name, bound)
        return bound


def _bound_when_asked(call: Call) -> Call:
    return cast(Call, _BoundWhenAsked(call))


class Ingest(Queries):
    """A window that takes readings."""

    @_bound_when_asked
    def insert(self, value: float | Mapping[str, float] | Sequence[float], time: int | None = None) -> None:
        """Take one reading, then evict by the policy. O(1) amortised, O(log n) worst.

        `value`: a number, or one per dimension as mapping or sequence in the order of `dimensions`. `time`: µs;
        without it the reading's ordinal, which a time policy refuses. Raises InputError (nothing changed) for what is
        not finite, does not fit, or is not greater than 0 where a geometric mean reads it, and for a late reading where
        the engine keeps no leaves (the Lite ones); PolicyError where the policy raised (the reading is in).
        """
        values = self._reader.row(value)
        if time is None:
            time = self._ordinal()
        self._core.insert(values, in_range(time))
        if isinstance(self._policy, Custom):
            self._enforce(self._policy)

    @_bound_when_asked
    def slide(self, value: float | Mapping[str, float] | Sequence[float], time: int | None = None) -> Any:
        """`insert` and then `query` in one call: the only aggregate's result, or all by name as `query` gives them.

        The quickest way for single readings: in a compiled window it is bound to compiled code. Raises as `insert`.
        """
        self.insert(value, time)
        values = list(self.query().values())
        return values[0] if len(values) == 1 else dict(zip(self._layout.names, values, strict=True))

    def advance(self, time: int) -> None:
        """Say that it is at least `time` (µs) now: readings that are too old leave, although none arrived.

        An earlier time than the window's own changes nothing. Raises ConfigurationError for a window by anything but
        time, InputError for a time out of range, StoreError where its store fails.
        """
        self._core.advance(in_range(time))

    def _bind(self) -> None:
        """Where a compiled core enforces the policy by itself, calls for one reading are its own."""
        core: Any = self._core
        if hasattr(core, "slide") and not isinstance(self._policy, Custom) and not self._withheld:
            layout, self._serves = self._layout, True
            core.serve(self._reader, in_range)
            self._takes_flat = not layout.positive and len(layout.numbers(layout.names)) == len(layout.names)

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
        extremes, ranges, first, last, variances and standard deviations, else reading by reading; raises BoundsError
        and ConfigurationError as `query`, before any reading enters. Raises InputError, before any reading enters, for
        a value that is not finite, or not greater than 0 where a geometric mean reads it (with its index), a time out
        of range, wrong lengths or types; PolicyError where the policy raised (the readings up to there are in).
        """
        core = self._core  # if it is made now, what follows is known
        if self._takes_flat and not bounds:
            found = core.columns_after(values, times, results)
            if found is not None:
                return found if results else None
        flat = flat_values(values, len(self._layout.dimensions))
        refuse_not_positive(flat, self._layout)
        if times is None:
            self._ordinal()
        batch = Batch(flat, None if times is None else flat_times(times, flat.readings))
        if bounds or (results and self._withheld):
            bounded = self._insert_bounded(batch)
            return bounded if bounds else {name: column.value for name, column in bounded.items()}
        columns = [_column(flat.readings) for _ in self._layout.names] if results else None
        if isinstance(self._policy, Custom):
            self._insert_each(batch, columns or ())
        elif flat.readings:
            self._core.insert_many(batch.values.view, batch.times, flat.readings, columns)
        return None if columns is None else self._layout.numbers(columns)

    def _insert_bounded(self, batch: Batch) -> dict[str, BoundedColumn]:
        self._refuse_unbounded()
        if not self._bucketed and any(monoid.kind in ROUNDED for monoid in self._layout.monoids):
            self._core.require_leaves()  # what it rounds is bounded over them: refused before any reading enters
        layout, size = self._layout, batch.values.readings
        columns = [_column(size) for _ in range(3 * len(layout.names))]
        if not isinstance(self._policy, Custom) and self._bucketed and isinstance(self._core, Core):
            if size:
                self._core.insert_many(batch.values.view, batch.times, size, columns)
        else:
            if batch.times is not None and not self._layout.objects:  # those take what comes late
                self._core.refuse_late(batch.times)
            self._insert_each(batch, columns, bounds=True)
        n, limit = len(layout.names), self._histograms.sum_like
        if limit is not None:
            for k in self._withheld:
                value, low, high = columns[k::n]
                withhold(value, low, high, limit.error or 0.0, limit.atol)
        parts = [layout.numbers(columns[at : at + n]) for at in range(0, 3 * n, n)]
        return {name: BoundedColumn(*(part[name] for part in parts)) for name in parts[0]}

    def _insert_each(self, batch: Batch, columns: Sequence[array[float]], bounds: bool = False) -> None:
        """One by one; with `bounds` the columns are those of the values, then of the low and the high ends."""
        for i, (values, time) in enumerate(batch.rows(self._core.accepted)):
            self._core.insert(values, time)
            if isinstance(self._policy, Custom):
                self._enforce(self._policy)
            found = chain(*zip(*self._bounded(), strict=True)) if bounds else self._core.results()
            for column, value in zip(columns, found, strict=False):  # the intervals' `exact` has no column
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


def _column(readings: int) -> array[float]:
    """Room for a result a reading."""
    return array("d", bytes(8 * readings))
