"""Constructors of the built-in aggregates; each takes the dimension it reads, or none for a stream of single values."""

from __future__ import annotations

from dataclasses import dataclass

KINDS = ("count", "sum", "mean", "min", "max", "argmin", "argmax", "first", "last")


@dataclass(frozen=True, slots=True)
class Monoid:
    """An aggregate to keep: its kind (one of `KINDS`) and the dimension it reads (None: the stream has only one)."""

    kind: str
    dimension: str | None = None


def count() -> Monoid:
    """The number of readings. An empty window: 0."""
    return Monoid("count")


def sum(dimension: str | None = None) -> Monoid:
    """The sum of the values. An empty window: 0.0."""
    return Monoid("sum", dimension)


def mean(dimension: str | None = None) -> Monoid:
    """The arithmetic mean of the values. An empty window: None."""
    return Monoid("mean", dimension)


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
