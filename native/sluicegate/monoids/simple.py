"""Constructors of the aggregates whose result is a number or a time.

Each takes the dimension it reads, or none for a stream of single values.
"""

from __future__ import annotations

from sluicegate.monoids.monoid import Monoid


def count() -> Monoid:
    """The number of readings. An empty window: 0."""
    return Monoid("count")


def sum(dimension: str | None = None, *, compensated: bool = False) -> Monoid:
    """The sum of the values. An empty window: 0.0.

    `compensated`: kept in two floats, so that rounding neither piles up nor outlasts a large value (16 bytes a partial
    instead of 8; Dekker 1971, Knuth's TwoSum). Windows without histograms only: buckets sum differences from a center.
    """
    return Monoid("sum", dimension, options=(True,) if compensated else ())


def mean(dimension: str | None = None, *, compensated: bool = False) -> Monoid:
    """The arithmetic mean of the values; `compensated` as in `sum`. An empty window: None."""
    return Monoid("mean", dimension, options=(True,) if compensated else ())


def min(dimension: str | None = None) -> Monoid:
    """The least value. An empty window: None."""
    return Monoid("min", dimension)


def max(dimension: str | None = None) -> Monoid:
    """The greatest value. An empty window: None."""
    return Monoid("max", dimension)


def argmin(dimension: str | None = None) -> Monoid:
    """The time of the least value; where it occurs more than once, the least such time. An empty window: None."""
    return Monoid("argmin", dimension)


def argmax(dimension: str | None = None) -> Monoid:
    """The time of the greatest value; where it occurs more than once, the least such time. An empty window: None."""
    return Monoid("argmax", dimension)


def first(dimension: str | None = None) -> Monoid:
    """The value of the oldest reading, in order of arrival. An empty window: None."""
    return Monoid("first", dimension)


def last(dimension: str | None = None) -> Monoid:
    """The value of the newest reading, in order of arrival. An empty window: None."""
    return Monoid("last", dimension)


def variance(dimension: str | None = None, *, ddof: int = 0) -> Monoid:
    """The mean squared deviation from the mean; `ddof` 1: the sample's, divided by count − 1.

    With count ≤ ddof: None. Merged stably, without differences of large sums (Chan, Golub & LeVeque 1979). Where a
    squared deviation exceeds float64 (values beyond about 1e154) it is inf.
    """
    return Monoid("variance", dimension, ddof)


def std(dimension: str | None = None, *, ddof: int = 0) -> Monoid:
    """The standard deviation: the square root of `variance`."""
    return Monoid("std", dimension, ddof)


def geometric_mean(dimension: str | None = None) -> Monoid:
    """The exponential of the mean logarithm. An empty window: None.

    A window with it refuses values that are not greater than 0, before anything enters.
    """
    return Monoid("geometric_mean", dimension)


def range(dimension: str | None = None) -> Monoid:
    """The greatest less the least value. An empty window: None."""
    return Monoid("range", dimension)


def min_count(dimension: str | None = None) -> Monoid:
    """How often the least value occurs. An empty window: None."""
    return Monoid("min_count", dimension)


def max_count(dimension: str | None = None) -> Monoid:
    """How often the greatest value occurs. An empty window: None."""
    return Monoid("max_count", dimension)
