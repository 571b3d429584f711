"""What a bucket cut by a window's edge certainly adds to it: count, sum and extremes, vectorised.

A row of every array is one (bucket, window) pair in which the window's start, its end or both fall inside the bucket.
Of a bucket with readings in doubt up to so many of those inside may be repeats, whichever: it contributes any subset.
Beyond the prefix sums P⁻ and P⁺ four things that a bucket carries narrow the interval: the ordinals of its extremes
say how many readings stand before a time, its first and last value are known to be inside or outside, all readings
outside, too, lie between the least and the greatest, and no part of the readings has more than all squares. The scalar
twin for a device's own window is tests/native/bounds/error_algebra.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sluicegate_cloud.grid import Floats, Ints

ORDERED = 1
LATE = 2
#: Squares were rounded, a bucket's few readings at a time or millions.
_ROUNDED = 1 + 1e-9
#: What a reading's square may lose below the least number of float64.
_UNDER = 1e-320
_EPSILON = float(np.finfo(np.float64).eps)
_FAR = np.iinfo(np.int64).max
Lines = tuple[Floats, Floats]
Rows = Mapping[str, Any]
Line = tuple[Floats, Floats, Floats]


@dataclass(frozen=True)
class Ends:
    """Readings known one by one: how many, Σ (x − around) and Σ (x − around)²."""

    count: Floats
    total: Floats
    squares: Floats


@dataclass(frozen=True)
class Cut:
    """Cut buckets and the edges that cut them; all arrays have one entry for each pair."""

    rows: Rows
    start: Ints
    end: Ints
    count_low: Ints
    count_high: Ints
    count: Floats
    total: Floats
    min_low: Floats
    min_high: Floats
    max_low: Floats
    max_high: Floats

    def likely(self) -> tuple[Floats, Floats]:
        """The expected least and greatest inside, were the readings spread evenly between the bucket's extremes."""
        rows = self.rows
        inward = (rows["high"] - rows["low"]) / (self.count + 1)
        least = np.clip(rows["low"] + inward, self.min_low, np.maximum(self.min_high, self.min_low))
        greatest = np.clip(rows["high"] - inward, np.minimum(self.max_low, self.max_high), self.max_high)
        some = self.count >= 0.5
        return np.where(some, least, np.inf), np.where(some, greatest, -np.inf)

    def sums(self, around: Floats | float) -> tuple[Floats, Floats]:
        """Least and greatest Σ (x − around) of the readings inside, over every count that is possible."""
        low, high = self._lines(around)
        c0, c1 = self.count_low.astype(np.float64), self.count_high.astype(np.float64)
        return _least(c0, c1, *low), -_least(c0, c1, -high[0], -high[1])

    def sums_and_raw(self, around: Floats, at: Ints) -> tuple[Floats, Floats, Floats, Floats]:
        """`sums` around that of each pair's window, and around 0."""
        return *self.sums(around[at]), *self.sums(0.0)

    def squares_off(self, around: Floats, near: Floats, at: Ints) -> tuple[Floats, Floats] | None:
        """Least and greatest Σ ((x − around[at])² − near[at]) of the readings inside; None: left to `estimates`."""
        return None

    def _lines(self, around: Floats | float) -> tuple[Lines, Lines]:
        return _lines(self.rows, self.start, self.end, around, (self.count_low + self.count_high) / 2)

    def known_ends(self, around: Floats) -> tuple[Ends, Ends]:
        """Of the first and last readings known to be inside, and of those known to be outside."""
        sides = []
        for wanted in (True, False):
            ends = [np.where(inside if wanted else outside, x - around, 0.0) for inside, outside, x in self._ends()]
            count = sum((inside if wanted else outside).astype(np.float64) for inside, outside, _ in self._ends())
            sides.append(Ends(np.asarray(count), ends[0] + ends[1], ends[0] ** 2 + ends[1] ** 2))
        return sides[0], sides[1]

    def _ends(self) -> list[tuple[NDArray[np.bool_], NDArray[np.bool_], Floats]]:
        return _ends(self.rows, self.start, self.end)

    def least_of(self, around: Floats, lines: Sequence[Line]) -> Floats:
        """Of each (weight, each, whole): the least whole + Σ (weight · (x − around) + each) of the readings inside.

        Shape (lines, pairs).
        """
        below, above = self._lines(around)
        weight, each, whole = (np.stack(column) for column in zip(*lines, strict=True))
        at, slope = (np.where(weight > 0, low[:, None], -high[:, None]) for low, high in zip(below, above, strict=True))
        size = np.abs(weight)
        with np.errstate(invalid="ignore"):
            at = np.where(size > 0, size * at, 0.0)  # the prefix sums of an unordered bucket are not known: infinite
        c0, c1 = self.count_low.astype(np.float64), self.count_high.astype(np.float64)
        return np.asarray(whole + _least(c0, c1, at, size * slope + each))


def cut(rows: Rows, start: Ints, end: Ints) -> Cut:
    """Bounds for buckets `rows` (fields of the contract, one entry a pair) cut by the windows [start, end) in µs."""
    ordered = _ordered(rows)
    times, ordinals, values = _known_points(rows, ordered)
    low, high, estimate = _counts(rows, ordered, times, ordinals, start, end)
    extremes = _extremes(rows, times, values, start, end, low, high)
    total = _estimate(rows, start, end, np.clip(estimate, low, high))
    return Cut(rows, start, end, low, high, np.clip(estimate, low, high), total, *extremes)


def _known_points(rows: Rows, ordered: NDArray[np.bool_]) -> tuple[Ints, Ints, Floats]:
    """Readings whose time is known: (6, pairs) times, ordinals and values (NaN where the value is not known)."""
    names = ("low_t_first", "low_t_last", "high_t_first", "high_t_last")
    times = np.stack([rows["t_first"], *(rows[name] for name in names), rows["t_last"]])
    first = rows["first"]
    last = first + rows["n"] - 1
    ordinals = np.stack([first, *(rows[name.replace("_t_", "_o_")] for name in names), last])
    ends = [np.where(ordered, rows[name], np.nan) for name in ("x_first", "x_last")]
    values = np.stack([ends[0], rows["low"], rows["low"], rows["high"], rows["high"], ends[1]])
    return times, ordinals, np.where(rows["doubt"] > 0, np.nan, values)


def _counts(
    rows: Rows, ordered: NDArray[np.bool_], times: Ints, ordinals: Ints, start: Ints, end: Ints
) -> tuple[Ints, Ints, Floats]:
    """Least, greatest and interpolated number of readings inside. In order: both edges are bracketed by known ordinals.

    Out of order it is certain only that the readings at `t_first` and `t_last` are inside or outside, and the extremes
    whose own times are inside.
    """
    a_low, a_high, a = _edge(rows, times, ordinals, start)
    b_low, b_high, b = _edge(rows, times, ordinals, end)
    n = rows["n"].astype(np.int64)
    before, after = rows["t_first"] < start, rows["t_last"] >= end
    both = (before & after).astype(np.int64)
    extremes = _extremes_inside(rows, times, start, end)
    low = np.where(ordered, np.maximum(b_low - a_high, 0), np.maximum(1 - both, extremes))
    low = np.maximum(low - rows["doubt"].astype(np.int64), 0)
    high = np.where(ordered, b_high - a_low, n - 1 - both)
    return low, high, np.where(ordered, b - a, n * _share(rows, start, end))


def _extremes_inside(rows: Rows, times: Ints, start: Ints, end: Ints) -> Ints:
    """How many of a bucket's two extremes are certainly inside; its only value counts once."""
    inside = (times >= start) & (times < end)
    low, high = inside[1] | inside[2], inside[3] | inside[4]
    return np.asarray(np.where(rows["low"] < rows["high"], low.astype(np.int64) + high, low | high))


def _edge(rows: Rows, times: Ints, ordinals: Ints, edge: Ints) -> tuple[Ints, Ints, Floats]:
    """Least, greatest and interpolated ordinal of the first reading at or after `edge`."""
    before = times < edge
    low = np.where(before, ordinals + 1, rows["first"]).max(axis=0)
    high = np.where(before, rows["first"] + rows["n"], ordinals).min(axis=0)
    t_before = np.where(before, times, -_FAR).max(axis=0)
    t_after = np.where(before, _FAR, times).min(axis=0)
    bracketed = before.any(axis=0) & ~before.all(axis=0)
    span = np.where(bracketed, t_after, 1) - np.where(bracketed, t_before, 0)
    share = np.where(bracketed, edge - np.where(bracketed, t_before, 0), 0) / span
    return low, high, low + (high - low) * np.clip(share, 0.0, 1.0)


def _share(rows: Rows, start: Ints, end: Ints) -> Floats:
    """Share of the bucket's time that lies inside the window."""
    inside = np.minimum(rows["t_last"], end) - np.maximum(rows["t_first"], start)
    span = np.maximum(rows["t_last"] - rows["t_first"], 1)
    return np.asarray(np.clip(inside / span, 0.0, 1.0))


def _extremes(
    rows: Rows, times: Ints, values: Floats, start: Ints, end: Ints, c0: Ints, c1: Ints
) -> tuple[Floats, Floats, Floats, Floats]:
    """(min_low, min_high, max_low, max_high): possible and certain extremes; ±inf where nothing is certain or possible.

    A reading known to be inside is certain; a part that is not empty holds at least the bucket's least value. Where an
    extreme is certainly lost to one side, what stands on the other side of it is all that is possible.
    """
    known = (times >= start) & (times < end) & ~np.isnan(values)
    max_low = np.where(known, values, -np.inf).max(axis=0)
    min_high = np.where(known, values, np.inf).min(axis=0)
    some = c0 > 0
    max_low = np.where(some, np.maximum(max_low, rows["low"]), max_low)
    min_high = np.where(some, np.minimum(min_high, rows["high"]), min_high)
    whole = known.any(axis=0) & (c1 == 1)
    max_high = np.where(whole, max_low, np.where(c1 > 0, _beside(rows, "high", -1.0, start, end), -np.inf))
    min_low = np.where(whole, min_high, np.where(c1 > 0, _beside(rows, "low", 1.0, start, end), np.inf))
    return min_low, min_high, max_low, max_high


def _beside(rows: Rows, name: str, sign: float, start: Ints, end: Ints) -> Floats:
    """The extreme that is possible: the bucket's, or what its neighbours leave where all its places are outside.

    What arrived before the first place is all that is left where that place is at or after the end, and so on. NaN, in
    buckets of format 1 and in those out of order, where a time says nothing of its side, leaves the bucket's own.
    """
    ordered, extreme = _ordered(rows), rows[name]
    ends_before = ordered & (rows[f"{name}_t_first"] >= end)
    starts_after = ordered & (rows[f"{name}_t_last"] < start)
    left = np.select([ends_before, starts_after], [rows[f"{name}_pre"], rows[f"{name}_suf"]], extreme)
    return np.asarray(np.where(np.isfinite(left), left, extreme))


def _lines(rows: Rows, start: Ints, end: Ints, around: Floats | float, count: Floats) -> tuple[Lines, Lines]:
    """(intercepts, slopes) of the four lines in the count c that bound Σ (x − around) from below, and from above.

    The lines: the prefix sums; the known readings and c less these of at least the least value; the total without the
    readings known to be outside, less the others of at most the greatest; and what the squares allow, touched at
    `count`: where c of n readings sum to s, n·(s − c·mean)² ≤ c·(n − c)·M₂.
    """
    low, high = _prefix_interval(rows, start, end)
    n_in, s_in, n_any, s_any = _known_ends(rows, start, end)
    center, least, greatest = rows["center"], rows["low"], rows["high"]
    mean, most, rise = _by_squares(rows, count)
    slopes = np.stack([center - around, least - around, greatest - around, (center - around) + mean])
    below = np.stack([low, s_in - n_in * (least - center), s_any - n_any * (greatest - center), -most])
    above = np.stack([high, s_in - n_in * (greatest - center), s_any - n_any * (least - center), most])
    tilt = np.zeros_like(slopes)
    tilt[3] = rise
    return (below, slopes - tilt), (above, slopes[[0, 2, 1, 3]] + tilt)


def _by_squares(rows: Rows, count: Floats) -> tuple[Floats, Floats, Floats]:
    """(mean less center, a, b): c of the readings sum to c · mean ± at most a + b·c. A tangent at `count`."""
    n = rows["n"].astype(np.float64)
    mean = rows["total"] / n
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.where(np.isnan(rows["m2"]), _squares_by_values(rows, mean), rows["m2"]) * _ROUNDED + n * _UNDER
        at = np.clip(count, 0.5, n - 0.5)
        most = np.sqrt(squares * (at * (n - at) / n))
        rise = squares / most * ((n - 2 * at) / (2 * n))
        known = np.isfinite(most)
    return mean, np.where(known, most - rise * at, np.inf), np.where(known, rise, 0.0)


def _squares_by_values(rows: Rows, mean: Floats) -> Floats:
    """n · (greatest − mean) · (mean − least): no squares of a bucket with these are more; `mean` less the center."""
    n, center, low, high = rows["n"].astype(np.float64), rows["center"], rows["low"], rows["high"]
    rounded = 2 * (n + 8) * _EPSILON * (np.abs(center) + np.maximum(np.abs(low), np.abs(high)))
    above, below = high - center - mean + rounded, mean - (low - center) + rounded
    return np.asarray(n * np.maximum(above, 0.0) * np.maximum(below, 0.0))


def _known_ends(rows: Rows, start: Ints, end: Ints) -> tuple[Floats, Floats, Floats, Floats]:
    """(n_in, s_in, n_any, s_any): the end readings of an ordered bucket that are inside, and all but those outside."""
    n_in, s_in = np.zeros(start.size), np.zeros(start.size)
    n_any, s_any = rows["n"].astype(np.float64), rows["total"].copy()
    for inside, outside, value in _ends(rows, start, end):
        n_in, s_in = n_in + inside, s_in + np.where(inside, value - rows["center"], 0.0)
        n_any, s_any = n_any - outside, s_any - np.where(outside, value - rows["center"], 0.0)
    return n_in, s_in, n_any, s_any


def _ends(rows: Rows, start: Ints, end: Ints) -> list[tuple[NDArray[np.bool_], NDArray[np.bool_], Floats]]:
    """The first and the last reading: whether each is known to be inside, to be outside, and its value."""
    ordered, found = _whole(rows), []
    for name in ("first", "last"):
        inside = (rows[f"t_{name}"] >= start) & (rows[f"t_{name}"] < end)
        found.append((ordered & inside, ordered & ~inside, rows[f"x_{name}"]))
    return found


def _ordered(rows: Rows) -> NDArray[np.bool_]:
    return np.asarray((rows["flags"].astype(np.int64) & ORDERED).astype(bool))


def _whole(rows: Rows) -> NDArray[np.bool_]:
    """Whether the readings inside are a run of the bucket's: it is in order, and none of them is in doubt."""
    return np.asarray(_ordered(rows) & (rows["doubt"] == 0))


def _prefix_interval(rows: Rows, start: Ints, end: Ints) -> tuple[Floats, Floats]:
    """Interval of Σ (x − center) inside, from P⁻ and P⁺; without limits when the bucket is out of order."""
    p_low, p_high, total = rows["pre_low"], rows["pre_high"], rows["total"]
    at_start, at_end = rows["t_first"] < start, rows["t_last"] >= end
    kinds = [at_start & at_end, at_start, at_end]
    low = np.select(kinds, [p_low - p_high, total - p_high, p_low], total)
    high = np.select(kinds, [p_high - p_low, total - p_low, p_high], total)
    ordered = _whole(rows)
    return np.where(ordered, low, -np.inf), np.where(ordered, high, np.inf)


def _least(c0: Floats, c1: Floats, intercepts: Floats, slopes: Floats) -> Floats:
    """Least over c in [c0, c1] of the greatest of the lines: convex, so at an end or where two lines cross."""
    best = np.full(intercepts.shape[1:], np.inf)
    for c in (c0, c1, *(_crossing(c0, c1, intercepts, slopes, i, j) for i, j in combinations(range(4), 2))):
        best = np.minimum(best, (intercepts + slopes * c).max(axis=0))
    return best


def _crossing(c0: Floats, c1: Floats, intercepts: Floats, slopes: Floats, i: int, j: int) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        at = (intercepts[j] - intercepts[i]) / (slopes[i] - slopes[j])
    return np.asarray(np.where(np.isfinite(at), np.clip(at, c0, c1), c0))


def _estimate(rows: Rows, start: Ints, end: Ints, count: Floats) -> Floats:
    """Interpolated Σ (x − center) of the `count` readings inside, held between the lines at that count."""
    center = rows["center"]
    (below, low), (above, high) = _lines(rows, start, end, center, count)
    guess = rows["total"] * count / rows["n"]
    guess = np.maximum(guess, (below + low * count).max(axis=0))
    return np.asarray(np.minimum(guess, (above + high * count).min(axis=0)))
