"""Results of a partition, and between which values the exact ones certainly lie where the edge cuts a bucket.

A bucket's readings are known by count, sum and extremes alone, so any of them may be inside (`bounds.sums`).
Of single readings rounding alone is uncertain; how far it goes is told from the readings themselves.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from typing import Any

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
    if kind in ("sum", "mean"):
        return _added(kind, totals, sums.Subset(count, whole, lo, hi, least, most, taken))
    lows = min(totals.least, lo), min(totals.least, hi)  # between which the minimum lies
    highs = max(totals.greatest, lo), max(totals.greatest, hi)
    if kind == "range":
        least_apart = max(0.0, difference(highs[0], lows[1])[0])
        most_apart = difference(highs[1], lows[0])[1]
        known_both = lows[0] == lows[1] and highs[0] == highs[1]
        return Bounded(min(highs[1] - lows[0], most_apart), least_apart, most_apart, known_both)
    ends, likely = (lows, lows[0]) if kind == "min" else (highs, highs[1])
    return Bounded(likely, *ends, ends[0] == ends[1])


def _added(kind: str, totals: Totals, part: sums.Subset = sums.NOTHING) -> Bounded:
    """A sum or a mean."""
    inside = sums.Inside(totals.inside, totals.sum, totals.least, totals.greatest)
    return (sums.sum_interval if kind == "sum" else sums.mean_interval)(inside, part)


def _whole(kind: str, totals: Totals, readings: Sequence[float]) -> Bounded:
    """Nothing but rounding is uncertain: how much it is follows from the extremes, which buckets always know."""
    known = value(kind, totals)
    if kind in ("variance", "std") and known is not None:
        return clamped(known, *spread(Monoid(kind), array("d", readings)))
    if kind in ("sum", "mean") and totals.inside:
        return _added(kind, totals._replace(least=min(readings), greatest=max(readings)) if readings else totals)
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
