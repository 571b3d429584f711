"""Results of a partition, and between which values the exact ones certainly lie where the edge cuts a bucket.

A bucket's readings are known by count, sum and extremes alone, so any of them may be inside (`bounds.sums.subset`).
Of single readings rounding alone is uncertain; how far it goes is told from the readings themselves.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from typing import Any, NamedTuple

from sluicegate.bounds import sums
from sluicegate.bounds.intervals import clamped, difference, spread
from sluicegate.keyed.definition import Totals
from sluicegate.monoids import Monoid
from sluicegate.records import Bounded

WALKED = ("variance", "std", "first", "last", "argmin", "argmax")
"""Aggregates that take a walk over the readings when they are asked, a nanosecond each."""
NEEDS: dict[str, tuple[str, ...]] = {
    "count": (), "sum": ("sum",), "mean": ("sum",), "min": ("min",), "max": ("max",), "range": ("min", "max"),
    **dict.fromkeys(WALKED, ()),
}  # fmt: skip
"""Which operations an aggregate needs; these are the aggregates that windows by key have."""


class _Bucket(NamedTuple):
    """The cut bucket as the error algebra reads it."""

    n: int
    total: float
    low: float
    high: float


def value(kind: str, totals: Totals) -> Any:
    """The result; where the edge cuts a bucket, the estimate."""
    if totals.cut is not None:
        return bounded(kind, totals).value
    if kind == "count":
        return totals.inside
    if kind == "sum":
        return totals.sum
    if not totals.inside:
        return None
    if kind == "mean":
        return totals.sum / totals.inside
    if kind in WALKED and totals.more is not None:
        variance = totals.more.m2 / totals.inside
        return {**totals.more._asdict(), "variance": variance, "std": math.sqrt(variance)}[kind]
    return {"min": totals.least, "max": totals.greatest, "range": totals.greatest - totals.least}[kind]


def bounded(kind: str, totals: Totals, readings: Sequence[float] = ()) -> Bounded:
    """The result and its interval; `readings`: the values that are inside, where single ones are kept."""
    if totals.cut is None:
        return _whole(kind, totals, readings)
    first, last, count, whole, lo, hi, cutoff, known = totals.cut
    least, most, taken = _inside(first, last, count, cutoff, known)
    if kind == "count":
        return Bounded(totals.inside + taken, totals.inside + least, totals.inside + most, least == most)
    inside = sums.Inside(totals.inside, totals.sum, totals.least, totals.greatest)
    part = sums.subset(_Bucket(count, whole, lo, hi), 0.0, (least, most), taken / count)
    if kind in ("sum", "mean"):
        found = (sums.sum_interval if kind == "sum" else sums.mean_interval)(inside, part, 0.0)
        return Bounded(found.value, found.low, found.high, found.exact)
    low, high = sums.min_interval(inside, part), sums.max_interval(inside, part)
    if kind == "range":
        least_apart = max(0.0, difference(high.low, low.high)[0])
        most_apart = difference(high.high, low.low)[1]
        apart = min(high.high - low.low, most_apart)
        return Bounded(apart, least_apart, most_apart, low.exact and high.exact)
    of = low if kind == "min" else high
    return Bounded(of.low if kind == "min" else of.high, of.low, of.high, of.exact)


def _whole(kind: str, totals: Totals, readings: Sequence[float]) -> Bounded:
    """Nothing but rounding is uncertain: how much it is follows from the extremes, which buckets always know."""
    known = value(kind, totals)
    if kind in ("variance", "std") and known is not None:
        return clamped(known, *spread(Monoid(kind), array("d", readings)))
    if kind in ("sum", "mean") and totals.inside:
        extremes = (min(readings), max(readings)) if readings else (totals.least, totals.greatest)
        inside = sums.Inside(totals.inside, totals.sum, *extremes)
        found = (sums.sum_interval if kind == "sum" else sums.mean_interval)(inside, sums.NOTHING, 0.0)
        return Bounded(known, min(found.low, known), max(found.high, known), True)
    if kind == "range" and known is not None:
        low, high = difference(totals.greatest, totals.least)
        return Bounded(known, low, high, True)
    return Bounded(known, known, known, True)


def _inside(first: int, last: int, count: int, cutoff: int, known: int) -> tuple[int, int, int]:
    """How many of the cut bucket's readings are inside: at least, at most, and by its times if they were even."""
    if known >= 0:
        return known, known, known
    even = round(count * (last - cutoff) / (last - first))  # first ≤ cutoff < last: the newest is inside, one is not
    return 1, count - 1, min(max(even, 1), count - 1)
