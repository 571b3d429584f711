"""Answers of a window of buckets that are put together in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sluicegate.bounds import comoments, held, sketches
from sluicegate.bounds.view import View
from sluicegate.monoids import Monoid
from sluicegate.monoids.layout import COUNT
from sluicegate.monoids.monoid import SKETCHES
from sluicegate.monoids.results import as_number, bounds_of_bins, cut_bins, lowered
from sluicegate.records import Bounded, Cut


def answer(window: View, monoid: Monoid) -> Any:
    """The estimate, not yet moved into its interval."""
    return _ESTIMATES[monoid.kind](window, monoid)


def bounded(window: View, monoid: Monoid) -> Bounded:
    """The answer with its certain interval; low and high None where nothing is certain."""
    return _INTERVALS[monoid.kind](window, monoid, answer(window, monoid))


def numbers(window: View, monoid: Monoid, bounds: bool) -> tuple[float, float, float]:
    """Value, low and high as columns have them; NaN where there is none."""
    if not bounds:
        return as_number(answer(window, monoid)), 0.0, 0.0
    found = bounded(window, monoid)
    return as_number(found.value), as_number(found.low), as_number(found.high)


def alone(layout: Any, partial: tuple[Any, ...]) -> View:
    """A partial by itself, as a window that its edge does not cut."""
    n = int(partial[COUNT])
    return View(layout, partial, None, partial, Cut(n, n, n), None, ())


def _bins(window: View, monoid: Monoid) -> Any:
    own, n = window.layout.own_slots(monoid), int(window.oldest[COUNT])
    if window.whole and window.cut.taken == n:
        return lowered(monoid, window.total[own])
    rest = None if window.rest is None else window.rest[own]
    return cut_bins(monoid.options, rest, window.oldest[own], n, window.cut.taken)


def _bounded_bins(window: View, monoid: Monoid, value: Any) -> Bounded:
    """Each bin by itself."""
    if window.whole:
        return Bounded(value, value, value, True)
    own, cut = window.layout.own_slots(monoid), (window.cut.least, window.cut.most)
    rest = None if window.rest is None else window.rest[own]
    low, high = bounds_of_bins(monoid.options, rest, window.oldest[own], window.oldest[COUNT], cut)
    return Bounded(value, low, high, low == high)


_LINES = ("slope", "intercept", "covariance", "correlation")
_ESTIMATES: dict[str, Callable[[View, Monoid], Any]] = {
    "histogram": _bins, "time_weighted_mean": held.estimate, **dict.fromkeys(_LINES, comoments.estimate),
    **dict.fromkeys(SKETCHES, sketches.estimate),
}  # fmt: skip
_INTERVALS: dict[str, Callable[[View, Monoid, Any], Bounded]] = {
    "histogram": _bounded_bins, "time_weighted_mean": held.interval, **dict.fromkeys(_LINES, comoments.interval),
    **dict.fromkeys(SKETCHES, sketches.interval),
}  # fmt: skip
