"""Slope, intercept, covariance and correlation of a window of buckets: estimates and certain intervals.

What lies wholly inside is known by its moments. Of the bucket that the edge cuts c readings are inside, all in a box
[u₀, u₁] × [v₀, v₁] that the bucket's extremes and the edge give. With n readings wholly inside, k = n·c / (n + c) and
the distance (d, e) of both parts' means (Chan, Golub & LeVeque 1979),

    Σuv = Σuv of what is inside + Σuv of the part + k·d·e,        Σuu and Σvv alike,

the part's Σuu is at most the whole bucket's and c·(u₁ − u₀)² / 4 (Popoviciu), and |Σuv| ≤ √(Σuu·Σvv) (Cauchy and
Schwarz). From the mean of what is inside, a bucket's a = u − ū and b = v − v̄ have known A = Σa², B = Σb², C = Σab. Of
any part Σ(λa ± b/λ)² is at most the whole bucket's, and 4ab is the difference of both squares: with λ² = √(B/A)

    (C − √(A·B)) / 2 ≤ Σab of the part ≤ (C + √(A·B)) / 2,        Σuv = Σuv of what is inside + Σab − Σa·Σb / (n + c).

Both hold, and the narrower one counts. Each is an interval, so their quotients are. Rounding: n readings merged in any
order are off by no more than 16·n²·(1 + log₂ n)·ε of both ranges' product: each mean is off by at most 4·n·ε of its
range, each product by what that makes of it, and the weights of all products add up to no more than n·log₂ n / 2,
whatever the tree.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import pairwise
from math import inf, isfinite, log2
from typing import Any, NamedTuple

from sluicegate.bounds.spans import EVERYTHING, Span, around, outward, point
from sluicegate.bounds.view import View
from sluicegate.monoids import Monoid, comoments
from sluicegate.monoids.layout import COUNT, ORDERED, T_LAST
from sluicegate.records import Bounded

_EPSILON = sys.float_info.epsilon
_LEAST = 2.0**-1074  # what a product that is too small for float64 is off by, at most
_SEGMENTS = 8  # of the possible counts, each bounded by itself


class Joint(NamedTuple):
    """Moments of n readings of u and v, the means as numbers of their own, with what rounding may have done."""

    n: float
    u: Span
    v: Span
    uu: Span
    vv: Span
    uv: Span


class Box(NamedTuple):
    """What the cut bucket's part lies in, and the bucket's own Σuu and Σvv, which no part of it exceeds."""

    u: Span
    v: Span
    uu: float
    vv: float


def interval(window: View, monoid: Monoid, value: float | None) -> Bounded:
    """The certain interval, the value moved into it; low and high None where nothing is certain."""
    if window.whole and value is None:  # there is no result, or one of moments beyond float64
        return Bounded(None, None, None, _has_none(window, monoid))
    found = _span(window, monoid)
    if found is None or not found.known:
        return Bounded(value, None, None, False)
    if value is None:
        value = (found.low + found.high) / 2.0 if isfinite(found.high - found.low) else found.low
    value = min(max(value, found.low), found.high)
    return Bounded(value, found.low, found.high, window.whole)


def _has_none(window: View, monoid: Monoid) -> bool:
    """Whether so many readings of such values, all of them inside, have no such result."""
    own = window.total[window.layout.own_slots(monoid)]
    if monoid.kind == "covariance":
        return bool(own[0] <= monoid.ddof)
    if monoid.kind in ("slope", "intercept"):
        return bool(own[1] == own[2])
    return any(low == high for low, high in (_extremes(window, window.total, which, monoid) for which in range(2)))


def estimate(window: View, monoid: Monoid) -> float | None:
    """The answer with the cut bucket's share taken: as if its readings lay evenly in time, along its own line."""
    own = window.layout.own_slots(monoid)
    if window.whole:
        return comoments.lowered(monoid, window.total[own])
    leaf, share = list(window.oldest[own]), window.cut.taken / window.oldest[COUNT]
    taken = _end_of_line(leaf, share) if monoid.kind in ("slope", "intercept") else _share_of_pair(leaf, share)
    if window.rest is None:
        return comoments.lowered(monoid, taken)
    combine = comoments.combine_line if monoid.kind in ("slope", "intercept") else comoments.combine_pair
    return comoments.lowered(monoid, combine(taken, window.rest[own]))


def _end_of_line(leaf: list[Any], share: float) -> list[Any]:
    """The newest part of a bucket of readings that lie evenly along its line: a share of it, three times as stiff."""
    n, first, last, origin, t, x, tt, xx, tx = leaf
    span = float(last - first)
    ahead = (span - t) * (1.0 - share)
    rise = tx / tt * ahead if tt > 0.0 else 0.0
    begin = first + int(span * (1.0 - share))
    cubed = share * share * share
    return [n * share, begin, last, origin, t + ahead - float(begin - first), x + rise, tt * cubed, xx * share,
            tx * cubed]  # fmt: skip


def _share_of_pair(leaf: list[Any], share: float) -> list[Any]:
    n, x, y, mean_x, mean_y, xx, yy, xy = leaf
    return [n * share, x, y, mean_x, mean_y, xx * share, yy * share, xy * share]


def _span(window: View, monoid: Monoid) -> Span | None:
    """Between which numbers the result lies; None: it is not known whether there is one, or where."""
    inside, box = _inside(window, monoid), _box(window, monoid)
    oldest = None if window.whole else _moments(window, monoid, window.oldest)
    if monoid.kind == "covariance" and (inside is None or inside.n <= monoid.ddof):
        return _small_covariance(window, monoid, box)
    if inside is None:
        return Span(-1.0, 1.0) if monoid.kind == "correlation" else None
    found: Span | None = None
    for least, most in _counts(window):
        each = _of_counts(window, monoid, inside, box, oldest, float(least), float(most))
        found = each if found is None else found.joined(each)
    if monoid.kind == "correlation" and found is not None:
        found = found.within(Span(-1.0, 1.0))
    return found


def _small_covariance(window: View, monoid: Monoid, box: Box) -> Span | None:
    """Of readings of which hardly any is known to be inside: no covariance exceeds a quarter of the box (Popoviciu)."""
    if window.rest is not None or monoid.ddof:
        return None
    half = (box.u - point(box.u.low)) * (box.v - point(box.v.low)) * point(0.25)
    return Span(-half.high, half.high)


def _of_counts(
    window: View, monoid: Monoid, inside: Joint, box: Box, oldest: Joint | None, least: float, most: float
) -> Span:
    """The result if between `least` and `most` readings of the cut bucket are inside."""
    n, all_of_it = inside.n, window.whole
    k = Span(0.0, 0.0) if all_of_it else outward(n * least / (n + least), n * most / (n + most))
    d, e = box.u - inside.u, box.v - inside.v
    uu = 0.0 if all_of_it else _most(most, box.u, box.uu)
    vv = 0.0 if all_of_it else _most(most, box.v, box.vv)
    crossed = (Span(0.0, uu) * Span(0.0, vv)).root().high
    both = inside.uv + Span(-crossed, crossed) + k * (d * e)
    first = inside.uu + Span(0.0, uu) + k * d.square()
    second = inside.vv + Span(0.0, vv) + k * e.square()
    if oldest is not None:
        near = _from_inside(inside, oldest, (d, e), least, most)
        both, first, second = near.uv.within(both), near.uu.within(first), near.vv.within(second)
    if monoid.kind == "covariance":
        return both / Span(n + least - monoid.ddof, n + most - monoid.ddof)
    if monoid.kind == "correlation":
        return both / (_not_negative(first).root() * _not_negative(second).root())
    slope = both / _not_negative(first)
    if monoid.kind == "slope":
        return slope * point(monoid.options[0])
    share = outward(least / (n + least), most / (n + most))  # of the cut bucket's in all
    at = inside.v + Span(0.0, 0.0) if all_of_it else inside.v + share * e
    when = inside.u if all_of_it else inside.u + share * d
    return at + slope * (_reference(window, monoid) - when)


def _from_inside(inside: Joint, oldest: Joint, away: tuple[Span, Span], least: float, most: float) -> Joint:
    """The sums of what is inside and of the part, by the bucket's own about the mean of what is inside."""
    n, (d, e) = point(oldest.n), (oldest.u - inside.u, oldest.v - inside.v)
    a, b = _not_negative(oldest.uu + n * d.square()).high, _not_negative(oldest.vv + n * e.square()).high
    c, reach = oldest.uv + n * (d * e), (Span(a, a).root() * Span(b, b).root()).high
    part = Span((c - point(reach)).low, (c + point(reach)).high) * point(0.5)
    counts = Span(least, most)
    sums = [_sum_of(counts, each, total, most) for each, total in zip(away, (a, b), strict=True)]
    uv = inside.uv + part - sums[0] * sums[1] / Span(inside.n + least, inside.n + most)
    return Joint(inside.n, inside.u, inside.v, inside.uu + Span(0.0, a), inside.vv + Span(0.0, b), uv)


def _sum_of(counts: Span, away: Span, squares: float, most: float) -> Span:
    """Between what a part's deviations add up to: each is in the box, and all their squares are at most `squares`."""
    reach = (point(most).root() * Span(squares, squares).root()).high
    return Span(-reach, reach).within(counts * away)


def _not_negative(span: Span) -> Span:
    return Span(max(0.0, span.low), max(0.0, span.high))


def _most(count: float, box: Span, whole: float) -> float:
    """A part's sum of squared deviations is at most this."""
    width = (box - point(box.low)).high
    most = outward(0.0, width * (width * count / 4.0)).high
    return min(most, whole)


def _counts(window: View) -> list[tuple[int, int]]:
    """The possible counts of the cut bucket's readings inside, in a few segments."""
    if window.whole:
        return [(0, 0)]
    least, most = window.cut.least, window.cut.most
    edges = sorted({least + (most - least) * i // _SEGMENTS for i in range(_SEGMENTS + 1)})
    return list(pairwise(edges)) or [(least, most)]


def _inside(window: View, monoid: Monoid) -> Joint | None:
    """The moments of what lies wholly inside, u counted from the window's least possible time where it is time."""
    slots = window.total if window.whole else window.rest
    return None if slots is None else _moments(window, monoid, slots)


def _moments(window: View, monoid: Monoid, slots: Sequence[Any]) -> Joint:
    own = slots[window.layout.own_slots(monoid)]
    n = own[0]
    error = 16.0 * n * n * (1.0 + log2(n)) * _EPSILON if n > 1 else 0.0
    if monoid.kind in ("slope", "intercept"):
        times, values = float(own[2] - own[1]), _range(window, slots, 0, monoid)
        u = around(own[4], 4.0 * n * _EPSILON * times) + point(float(own[1] - window.begin))
        v = around(own[3] + own[5], 4.0 * n * _EPSILON * values + 2.0 * _EPSILON * abs(own[3]))
        return _joint(n, u, v, (own[6], own[7], own[8]), (times, values), error)
    ranges = _range(window, slots, 0, monoid), _range(window, slots, 1, monoid)
    u, v = (around(own[1 + i] + own[3 + i], 4.0 * n * _EPSILON * ranges[i] + 2.0 * _EPSILON * abs(own[1 + i]))
            for i in range(2))  # fmt: skip
    return _joint(n, u, v, (own[5], own[6], own[7]), ranges, error)


def _joint(n: float, u: Span, v: Span, sums: tuple[float, ...], ranges: tuple[float, float], error: float) -> Joint:
    a, b = ranges
    lost = _lost(n)
    uu, vv = (
        _not_negative(around(each, error * x * x + lost)) if isfinite(each) else Span(0.0, inf)
        for each, x in zip(sums[:2], ranges, strict=True)
    )
    return Joint(n, u, v, uu, vv, around(sums[2], error * a * b + lost) if isfinite(sums[2]) else EVERYTHING)


def _range(window: View, slots: Sequence[Any], which: int, monoid: Monoid) -> float:
    """How far apart the values of the (first or second) dimension are."""
    low, high = _extremes(window, slots, which, monoid)
    return (Span(high, high) - Span(low, low)).high


def _extremes(window: View, slots: Sequence[Any], which: int, monoid: Monoid) -> tuple[float, float]:
    return window.extremes(slots, window.layout.dimensions.index(monoid.reads[which]))


def _box(window: View, monoid: Monoid) -> Box:
    leaf = window.oldest
    own = leaf[window.layout.own_slots(monoid)]
    error = 1.0 + 16.0 * own[0] * own[0] * (1.0 + log2(own[0])) * _EPSILON
    lost = _lost(own[0])
    if monoid.kind in ("slope", "intercept"):
        span, values = float(leaf[T_LAST] - window.begin), Span(*_extremes(window, leaf, 0, monoid))
        times = _grown(own[6] + lost, error, own[2] - own[1])
        return Box(Span(0.0, span), values, times, _grown(own[7] + lost, error, *values))
    first, second = (Span(*_extremes(window, leaf, which, monoid)) for which in range(2))
    return Box(first, second, _grown(own[5] + lost, error, *first), _grown(own[6] + lost, error, *second))


def _lost(n: float) -> float:
    """What n readings' sums of products may lack where these are too small for float64: as often as they are merged."""
    return 2.0 * n * n * _LEAST


def _grown(total: float, error: float, low: float, high: float | None = None) -> float:
    """A bucket's sum of squared deviations with the most that rounding may have taken from it."""
    width = low if high is None else high - low
    return inf if not isfinite(total) else outward(0.0, total + (error - 1.0) * width * width).high


def _reference(window: View, monoid: Monoid) -> Span:
    """The time at which an intercept is taken, from the window's least possible one."""
    first, last = (float(each - window.begin) for each in window.total[window.layout.own_slots(monoid)][1:3])
    ordered = window.oldest[ORDERED] == 1  # then the cut bucket's greatest time is inside
    if monoid.options[0] == "last":
        least = 0.0 if window.cut.least else -inf  # what is inside may lie before the cut bucket, and none of it count
        known = last if window.whole or ordered else max(least, _of_rest(window, monoid, 2, 0.0))
        return around(known, 0.0).joined(around(last, 0.0))
    if window.whole:
        return around(first, 0.0)
    latest = min(float(window.oldest[T_LAST] - window.begin), _of_rest(window, monoid, 1, inf))
    return Span(min(0.0, latest), latest)


def _of_rest(window: View, monoid: Monoid, slot: int, otherwise: float) -> float:
    """The least (slot 1) or greatest time (2) of what lies wholly inside, from the window's least possible one."""
    if window.rest is None:
        return otherwise
    return float(window.rest[window.layout.own_slots(monoid)][slot] - window.begin)
