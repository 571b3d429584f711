"""By definition: between which values a window's result certainly lies when its edges cut buckets (error algebra).

A window is what lies wholly inside (`Inside`) and what the cut bucket may add (`Part`). All sums are of x − center. A
cut bucket adds c of its n readings. Of these some are known (an ordered bucket cut at its start keeps its last reading
and loses its first), so with l, h its least and greatest x − center the added sum s obeys, for each c,

    s ≥ s_low                          s ≤ s_high                         (the prefix sums P⁻, P⁺)
    s ≥ s_in + (c − n_in)·l            s ≤ s_in + (c − n_in)·h            (n_in readings of sum s_in are inside)
    s ≥ s_any − (n_any − c)·h          s ≤ s_any − (n_any − c)·l          (no more than n_any of sum s_any are)

A sum or mean is extreme at the least or greatest c or where two of these lines cross, rounded both ways. What is
returned for sums and means is widened by 4·N²·ε·A, N the readings of all buckets touched and A = max(|x|, |center|): it
covers sums taken in another order, the rounding of x − center, and an oracle's own rounding. Counts and extremes are
exact. A bucket here is any object with the fields of sluicegate.format.bucket.Bucket that are read.
"""

from __future__ import annotations

import math
import sys
from typing import Any, NamedTuple

_EPSILON = sys.float_info.epsilon
_INFINITE = math.inf
Range = tuple[int, int]
Lines = tuple[tuple[float, float], tuple[float, float], tuple[float, float]]  # each its value at c = 0 and its slope
Known = tuple[int, float, int, float]  # n_in, s_in, n_any, s_any
Ends = tuple[list[float], list[float]]  # known readings inside, known readings outside


class Inside(NamedTuple):
    """The readings of all buckets wholly inside: count, sum of x − center, least and greatest value."""

    n: int = 0
    total: float = 0.0
    low: float = math.inf
    high: float = -math.inf


class Interval(NamedTuple):
    """A result: low ≤ the exact one ≤ high, `value` the best guess; NaN, NaN, NaN where the window is certainly empty.

    `exact`: nothing but rounding is uncertain. `maybe_empty`: the window may hold no reading; low and high then bound
    the result if it holds one.
    """

    value: float
    low: float
    high: float
    exact: bool
    maybe_empty: bool


class Part(NamedTuple):
    """What cut buckets may add to a window."""

    count_low: int
    count_high: int
    count_mid: float  # the best guess
    sum_low: float
    sum_high: float
    sum_mid: float  # the best guess
    raw_low: float  # of x, not of x − center
    raw_high: float
    n_in: int
    s_in: float
    n_any: int
    s_any: float
    low: float  # every value that may be inside is at least this
    high: float
    min_high: float  # the minimum is certainly at most this; +inf: not known
    max_low: float
    size: int  # readings of the buckets, inside or not
    magnitude: float  # the greatest |x| of the buckets


_EMPTY_SUMS = (0.0, 0.0, 0.0, 0.0, 0.0)
NOTHING = Part(0, 0, 0.0, *_EMPTY_SUMS, 0, 0.0, 0, 0.0, math.inf, -math.inf, math.inf, -math.inf, 0, 0.0)


def subset(bucket: Any, center: float, counts: Range, share: float, has: tuple[bool, bool] = (False, False)) -> Part:
    """Any readings of a bucket, counts[0] … counts[1] of them; `has`: whether its least and greatest are among them.

    `share` of the readings is the best guess.
    """
    return part_of(bucket, center, counts, (-_INFINITE, _INFINITE), ([], []), has, share)


def part_of(
    bucket: Any,
    center: float,
    counts: Range,
    sums: tuple[float, float],
    ends: Ends,
    has: tuple[bool, bool],
    share: float | None,
) -> Part:
    """The part of what is known: counts, prefix sums, end readings, and whether each extreme is certainly inside."""
    inside, outside = ends
    low, high = bucket.low, bucket.high
    n_in, s_in = len(inside), sum([x - center for x in inside])
    n_any, s_any = bucket.n - len(outside), bucket.total - sum([x - center for x in outside])
    if n_in == counts[1]:
        low, high, n_any, s_any = min(inside), max(inside), n_in, s_in
    known = n_in, s_in, n_any, s_any
    sum_low, raw_low = _extents(sums[0], known, low - center, high - center, counts, center)
    sum_high, raw_high = _extents(-sums[1], _negated(known), center - high, center - low, counts, -center)
    min_high = low if has[0] else min([*inside, high if counts[0] else _INFINITE])
    max_low = high if has[1] else max([*inside, low if counts[0] else -_INFINITE])
    count_mid, sum_mid = _guess(counts, known, sum(counts) / 2 if share is None else share * bucket.n)
    sum_mid = min(max(sum_mid, sum_low), -sum_high)
    magnitude = max(abs(bucket.low), abs(bucket.high))
    ranges = *counts, count_mid, sum_low, -sum_high, sum_mid, raw_low, -raw_high
    return Part(*ranges, *known, low, high, min_high, max_low, bucket.n, magnitude)


def _extents(s_low: float, known: Known, low: float, high: float, counts: Range, center: float) -> tuple[float, float]:
    """The least added sum of x − center, and of x."""
    lines = _below(s_low, known, low, high)
    corners = _corners(lines, *counts)
    return _least(lines, corners, 0.0), _least(lines, corners, center)


def _guess(counts: Range, known: Known, count: float) -> tuple[float, float]:
    """The best guess of count and sum: `count` clamped, the readings that are not known taken at their mean."""
    n_in, s_in, n_any, s_any = known
    count = min(max(count, counts[0]), counts[1])
    mean = (s_any - s_in) / (n_any - n_in) if n_any > n_in else 0.0
    return count, s_in + (count - n_in) * mean


def _below(s_low: float, known: Known, low: float, high: float) -> Lines:
    """The lines below the added sum as a function of c; those above it are, upside down, `_below` of all negated."""
    n_in, s_in, n_any, s_any = known
    return (s_low, 0.0), (s_in - n_in * low, low), (s_any - n_any * high, high)


def _negated(known: Known) -> Known:
    return known[0], -known[1], known[2], -known[3]


def _corners(lines: Lines, c_low: int, c_high: int) -> list[int]:
    """The least and greatest count, and where two lines cross, rounded both ways."""
    if c_low == c_high:
        return [c_low]
    corners = [c_low, c_high]
    (at, k), (at_1, k_1), (at_2, k_2) = lines
    for rise, run_ in ((at_1 - at, k - k_1), (at_2 - at, k - k_2), (at_2 - at_1, k_1 - k_2)):
        if run_ != 0.0 and c_low < (c := rise / run_) < c_high:
            corners += math.floor(c), math.ceil(c)
    return corners


def _least(lines: Lines, corners: list[int], slope: float) -> float:
    """The least over c of the greatest line at c, all lines tilted by `slope`."""
    (at, k), (at_1, k_1), (at_2, k_2) = lines
    return min([max(at + k * c, at_1 + k_1 * c, at_2 + k_2 * c) + slope * c for c in corners])


def _least_mean(n: int, total: float, lines: Lines, corners: list[int]) -> float:
    """The least over c of (total + the greatest line at c) / (n + c): monotone between the corners."""
    (at, k), (at_1, k_1), (at_2, k_2) = lines
    return min([(total + max(at + k * c, at_1 + k_1 * c, at_2 + k_2 * c)) / (n + c) for c in corners])


def sum_interval(inside: Inside, part: Part, center: float) -> Interval:
    """The sum of x. An empty window's is 0."""
    base, slack = inside.total + inside.n * center, _slack(inside, part, center)
    below, above = lines(part, center)
    counts = part.count_low, part.count_high
    low = base + max(part.raw_low, _least(below, _corners(below, *counts), center))
    high = base + min(part.raw_high, -_least(above, _corners(above, *counts), -center))
    value = base + part.sum_mid + part.count_mid * center
    return _interval(value, low - slack, high + slack, _fixed(part), inside.n + part.count_low == 0)


def mean_interval(inside: Inside, part: Part, center: float) -> Interval:
    """The mean of x; where the window may be empty, of one or more readings."""
    if inside.n + part.count_high == 0:
        return Interval(math.nan, math.nan, math.nan, True, True)
    slack, (below, above) = _slack(inside, part, center), lines(part, center)
    maybe_empty = inside.n + part.count_low == 0
    counts = (1 if maybe_empty else part.count_low), part.count_high
    low = center + _least_mean(inside.n, inside.total - slack, below, _corners(below, *counts))
    high = center - _least_mean(inside.n, -inside.total - slack, above, _corners(above, *counts))
    least, greatest = min(inside.low, part.low), max(inside.high, part.high)
    ulps = 4 * _EPSILON * max(abs(least), abs(greatest), abs(center))
    count = inside.n + part.count_mid
    value = center + (inside.total + part.sum_mid) / count if count > 0 else (least + greatest) / 2
    return _interval(value, max(low, least) - ulps, min(high, greatest) + ulps, _fixed(part), maybe_empty)


def min_interval(inside: Inside, part: Part = NOTHING) -> Interval:
    """The least x; where the window may be empty, of one or more readings."""
    low, high = min(inside.low, part.low), min(inside.low, part.min_high)
    return _of_extreme(inside, part, (low, high), (low, part.high), 1)


def max_interval(inside: Inside, part: Part = NOTHING) -> Interval:
    """The greatest x; where the window may be empty, of one or more readings."""
    low, high = max(inside.high, part.max_low), max(inside.high, part.high)
    return _of_extreme(inside, part, (low, high), (part.low, high), 0)


def _of_extreme(
    inside: Inside, part: Part, ends: tuple[float, float], unsure: tuple[float, float], likely: int
) -> Interval:
    """`ends` where the window certainly holds a reading, else `unsure`; the value is the `likely` one of the two."""
    if inside.n + part.count_high == 0:
        return Interval(math.nan, math.nan, math.nan, True, True)
    if inside.n + part.count_low == 0:
        return Interval(unsure[likely], *unsure, False, True)
    return Interval(ends[likely], *ends, ends[0] == ends[1], False)


def lines(part: Part, center: float) -> tuple[Lines, Lines]:
    """The lines below and, upside down, above the sum that a pooled part adds; one that adds nothing adds 0."""
    low, high = (part.low - center, part.high - center) if part.count_high else (0.0, 0.0)
    known = part.n_in, part.s_in, part.n_any, part.s_any
    return _below(part.sum_low, known, low, high), _below(-part.sum_high, _negated(known), -high, -low)


def _slack(inside: Inside, part: Part, center: float) -> float:
    """What rounding may have done to a sum over every reading touched."""
    readings = inside.n + part.size
    magnitude = max(part.magnitude, abs(center), *(abs(x) for x in (inside.low, inside.high) if inside.n))
    return 4.0 * readings * _EPSILON * readings * magnitude


def _fixed(part: Part) -> bool:
    """Whether the parts add known readings and no others."""
    return part.count_low == part.count_high and part.count_low in (part.n_in, part.n_any)


def _interval(value: float, low: float, high: float, exact: bool, maybe_empty: bool) -> Interval:
    """An interval rounded outward, without bounds where a sum overflowed, with the value clamped into it."""
    low = -_INFINITE if math.isnan(low) else math.nextafter(low, -_INFINITE)
    high = _INFINITE if math.isnan(high) else math.nextafter(high, _INFINITE)
    return Interval(min(max(value, low), high), low, high, exact, maybe_empty)
