"""Results of a partition, and between which values the exact ones certainly lie where the edge cuts a bucket.

Of a bucket of c readings with sum S, all in [lo, hi], m are inside: their sum is at least max(m·lo, S − (c − m)·hi) and
at most min(m·hi, S − (c − m)·lo). Both are pieces of straight lines in m, so their extremes over the possible m lie at
its ends or where two lines cross. Rounding is allowed for by 4·n·ε·n·max|x|.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from sluicegate.keyed.definition import Cut, Totals
from sluicegate.records import Bounded

WALKED = ("variance", "std", "first", "last", "argmin", "argmax")
"""Aggregates that take a walk over the readings when they are asked, a nanosecond each."""
NEEDS: dict[str, tuple[str, ...]] = {
    "count": (), "sum": ("sum",), "mean": ("sum",), "min": ("min",), "max": ("max",), "range": ("min", "max"),
    **dict.fromkeys(WALKED, ()),
}  # fmt: skip
"""Which operations an aggregate needs; these are the aggregates that windows by key have."""
_EPSILON = 2.0**-52


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


def bounded(kind: str, totals: Totals) -> Bounded:
    """The result and its interval."""
    if totals.cut is None:
        known = value(kind, totals)
        return Bounded(known, known, known, True)
    if kind in ("sum", "mean"):
        return _sum_like(kind, totals, totals.cut)
    first, last, count, _, lo, hi, cutoff, known = totals.cut
    least, most, taken = _inside(first, last, count, cutoff, known)
    if kind == "count":
        return Bounded(totals.inside + taken, totals.inside + least, totals.inside + most, least == most)
    low_min, high_min = min(totals.least, lo), min(totals.least, hi)
    low_max, high_max = max(totals.greatest, lo), max(totals.greatest, hi)
    if kind == "min":
        return Bounded(low_min, low_min, high_min, low_min == high_min)
    if kind == "max":
        return Bounded(high_max, low_max, high_max, low_max == high_max)
    low, high = max(0.0, low_max - high_min), high_max - low_min
    return Bounded(high, low, high, low == high)


def _inside(first: int, last: int, count: int, cutoff: int, known: int) -> tuple[int, int, int]:
    """How many of the cut bucket's readings are inside: at least, at most, and by its times if they were even."""
    if known >= 0:
        return known, known, known
    even = round(count * (last - cutoff) / (last - first))  # first ≤ cutoff < last: the newest is inside, one is not
    return 1, count - 1, min(max(even, 1), count - 1)


def _sum_like(kind: str, totals: Totals, cut: Cut) -> Bounded:
    first, last, count, whole, lo, hi, cutoff, known = cut
    least, most, taken = _inside(first, last, count, cutoff, known)

    def at_least(m: int) -> float:
        return totals.sum + max(m * lo, whole - (count - m) * hi)

    def at_most(m: int) -> float:
        return totals.sum + min(m * hi, whole - (count - m) * lo)

    def share(m: int) -> int:
        return totals.inside + m if kind == "mean" else 1

    where = set(_crossings(least, most, count, whole, lo, hi))
    low, high = min(at_least(m) / share(m) for m in where), max(at_most(m) / share(m) for m in where)
    all_of_them = totals.inside + count
    magnitude = max(map(abs, (lo, hi, *((totals.least, totals.greatest) if totals.inside else ()))))
    rounding = 4 * all_of_them * _EPSILON * magnitude * (1 if kind == "mean" else all_of_them)
    estimate = (totals.sum + whole * (taken / count)) / share(taken)
    low, high = low - rounding, high + rounding
    return Bounded(min(max(estimate, low), high), low, high, False)


def _crossings(least: int, most: int, count: int, whole: float, lo: float, hi: float) -> Iterable[int]:
    """The ends, and the whole numbers about where the lines cross."""
    yield from (least, most)
    if hi > lo:
        for crossing in ((count * hi - whole) / (hi - lo), (whole - count * lo) / (hi - lo)):
            at = math.floor(min(max(crossing, least), most))
            yield from (m for m in range(at - 1, at + 3) if least <= m <= most)
