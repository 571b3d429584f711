"""What the core of windows by key is told, and what it hands over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

Cut = tuple[int, int, int, float, float, float, int, int]
"""A bucket (first, last, readings, sum, least, greatest), the time of the cut, how many are inside (−1: unknown)."""


class More(NamedTuple):
    """What an answer takes from a walk over a partition's readings, in their order; of none it is None."""

    first: float
    last: float
    argmin: int
    argmax: int
    m2: float  # squared deviations from the mean


class Definition(NamedTuple):
    """Of all partitions. Limits of 0 are none."""

    by_time: bool
    length: int  # µs, or readings
    ops: tuple[str, ...]  # which of "sum", "min", "max" the aggregates need
    width: int  # of a bucket in µs or readings; 0: single readings
    partitions: int  # at most
    readings: int  # in all partitions at most
    age: int  # µs
    select: str | Callable[..., Any]
    memory: int  # bytes at most
    shared: bool  # one clock for all keys
    more: bool = False  # whether an aggregate needs `Totals.more`


class Totals(NamedTuple):
    """Of a partition: what is inside for certain, and the bucket that the window's edge cuts."""

    inside: int
    sum: float
    least: float
    greatest: float
    cut: Cut | None
    more: More | None = None


class Held(NamedTuple):
    """A partition as a `select` of the caller's own is given it."""

    key: int | str
    number: int  # partitions made before this one
    newest: int  # greatest time of a reading that entered, µs
    updated: int  # the key's time when its last reading entered, µs
    updates: int  # readings that entered
    held: int  # readings it holds


class Left(NamedTuple):
    """A partition that leaves: why ("count", "readings", "age" or "memory"), and what it held, the oldest first.

    `rows`: readings (time, value), or buckets (first time, last time, readings, sum, least, greatest).
    """

    key: int | str
    reason: str
    rows: list[tuple[Any, ...]]
