"""Certain intervals of a window of single readings: its results, but for the rounding of sums and spreads.

Those of windows of buckets are compiled: `sluicegate.answers.intervals`.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from math import exp, fsum, inf, log, log2, nan, nextafter, sqrt
from typing import Any

from sluicegate.bounds import least_squares, sums
from sluicegate.bounds.sketches import of_distinct
from sluicegate.monoids import CERTAIN, ROUNDED, Monoid
from sluicegate.monoids.layout import Layout
from sluicegate.monoids.monoid import PAIRED
from sluicegate.records import Bounded

Columns = Callable[[int], "array[Any]"]  # of int64 where a slot holds whole numbers
UNKNOWN = ("compiled", "custom", "quantiles")  # of whose results nothing is certain
_EPSILON = 2.0**-52
_TINY = 5e-324
_SQUARED = 1e150  # beyond it squares of differences may overflow


def exactly(layout: Layout, values: list[Any], column: Columns, readings: int) -> list[Bounded]:
    """The intervals of a window of single readings: the results, but for the rounding of sums.

    `column`: a slot of each leaf's partial; asked for only where rounding depends on the readings. O(n) then.
    A sketch of distinct values lies between those it tells apart and the readings; of quantiles and the user's own
    results nothing is certain: low and high are None.
    """
    return [_exactly(layout, i, value, column, readings) for i, value in enumerate(values)]


def _of_wide(monoid: Monoid, value: Any, readings: int) -> Bounded:
    kind = monoid.kind
    if kind in UNKNOWN or value is None:
        return Bounded(value, None, None, value is None and kind not in UNKNOWN)
    if kind == "distinct_count":
        return of_distinct(value, value.least, readings)
    least = 5e-324 * (1.0 + monoid.options[0])  # what a quotient below float64's normal numbers loses, times `per`
    margin = abs(value) * 2.0**-50 + least  # three roundings and the conversion of the time, outward
    return Bounded(value, value - margin, value + margin, True)


def _exactly(layout: Layout, i: int, value: Any, column: Columns, readings: int) -> Bounded:
    monoid = layout.monoids[i]
    if monoid.kind in ("rate", "frequency", "distinct_count", *UNKNOWN):
        return _of_wide(monoid, value, readings)
    if monoid.kind == "time_weighted_mean" and value is not None:
        # each product is rounded once, their sum nearly not at all, and what follows twice
        held = column(layout.exact_slots(monoid)[0] + 4)
        least, greatest = min(held), max(held)
        lost = 0.0 if least == greatest else 4 * _TINY  # what a quotient loses below float64's normal numbers
        margin = max(abs(least), abs(greatest)) * 2.0**-50 + lost
        return Bounded(value, value - margin, value + margin, True)
    if monoid.kind in ("slope", "intercept", *PAIRED):
        first = layout.exact_slots(monoid)[0] + 1
        return least_squares.exactly(monoid, column(first), column(first + (1 if monoid.kind in PAIRED else 2)), value)
    if monoid.kind in CERTAIN or value is None:
        return Bounded(value, value, value, True)
    if monoid.kind not in ROUNDED:  # a kind that nobody has thought of here
        return Bounded(value, None, None, False)
    slots = layout.exact_slots(monoid)
    if monoid.kind == "range":
        low, high = difference(max(column(slots[1])), min(column(slots[0])))
        return clamped(value, low, high, True)
    if monoid.kind in ("variance", "std"):
        return clamped(value, *spread(monoid, column(slots[0] + 1)))
    readings_of = column(slots[0])
    n = len(readings_of)
    total = value if monoid.kind == "sum" else (log(value) if monoid.kind == "geometric_mean" else value) * n
    inside = sums.Inside(n, total, min(readings_of), max(readings_of))
    if monoid.kind == "geometric_mean":
        found = exponential(sums.mean_interval(inside))
        return clamped(value, found.low, found.high, found.exact)
    found = (sums.sum_interval if monoid.kind == "sum" else sums.mean_interval)(inside)
    return clamped(value, nextafter(found.low, -inf), nextafter(found.high, inf), True)


def spread(monoid: Monoid, column: array[float]) -> tuple[float, float, bool]:
    """Least and greatest variance or standard deviation, and whether it is known but for rounding.

    From the readings that are held: an engine that subtracts may still carry what those that left rounded away. A mean
    is wrong by less than 4·n·ε·D, D the greatest |x|, and the squares by a few times that times the spread, for each
    level of a merge.
    """
    n, least, greatest = len(column), min(column), max(column)
    if n <= monoid.ddof:
        return nan, nan, True
    reach = max(abs(least), abs(greatest))
    if reach > _SQUARED:  # nothing is said of them
        return 0.0, inf, False
    mean = fsum(column) / n
    variance = fsum((x - mean) * (x - mean) for x in column) / (n - monoid.ddof)
    error = 4.0 * n * _EPSILON * reach
    slack = log2(n + 1) * (16.0 * error * (greatest - least) + 16.0 * error * error)
    slack += 64 * _EPSILON * variance + n * 4 * _TINY
    low, high = max(0.0, nextafter(variance - slack, -inf)), nextafter(variance + slack, inf)
    if monoid.kind == "variance":
        return low, high, True
    return max(0.0, nextafter(sqrt(low), 0.0)), nextafter(sqrt(high), inf), True


def difference(a: float, b: float) -> tuple[float, float]:
    """Two floats that a − b lies between; the same one twice where it is a float itself."""
    d = a - b
    back = d - a
    error = (a - (d - back)) - (b + back)  # Knuth's TwoSum: d + error = a − b
    return (nextafter(d, -inf), d) if error < 0.0 else (d, nextafter(d, inf)) if error else (d, d)


def clamped(value: Any, low: Any, high: Any, exact: bool) -> Bounded:
    """An interval with its value moved into it; nothing where there is no result."""
    if low != low:
        return Bounded(None, None, None, True)
    return Bounded(low if value is None else min(max(value, low), high), low, high, exact)


def exponential(interval: Bounded) -> Bounded:
    """exp is right to an ulp, here and in the value: four of them outward."""
    low, high = exp(interval.low) * (1 - 9e-16), exp(interval.high) * (1 + 9e-16)
    low, high = max(0.0, nextafter(low, -inf)), nextafter(high, inf)
    return interval._replace(value=exp(interval.value), low=low, high=high)
