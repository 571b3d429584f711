"""By definition: between which values a window's variance certainly lies; why is told in answers/variance.pyx."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import error_algebra as bounds
from error_algebra import Interval, Part

RUNS = 64
FEW = 8  # counts so low that a whole number of readings at each end says more
_EPSILON = sys.float_info.epsilon
_TINY = 5e-324
SQUARED = 1e150  # beyond it squares of differences may overflow
_INFINITE = math.inf
Quadratic = tuple[float, float, float]  # a·ν² + b·ν + c


class Deviations(NamedTuple):
    """Of known readings: count, mean of x − center, sum of squared deviations from it, least and greatest value."""

    n: float = 0.0
    mean: float = 0.0
    m2: float = 0.0
    low: float = math.inf
    high: float = -math.inf


class _Problem(NamedTuple):
    """All that the bounds read; every value is relative to the center."""

    inside: Deviations
    bucket: Deviations | None  # the only cut bucket, whole
    low: float  # of what may be added
    high: float
    below: Sequence[tuple[float, float]]  # the least sum of c readings is the greatest of these at + slope·c
    above: Sequence[tuple[float, float]]  # the greatest sum alike, upside down
    sum_error: float
    mean_error: float
    m2_error: float


def variance_interval(
    inside: Deviations, part: Part, center: float, bucket: Deviations | None = None, ddof: int = 0
) -> Interval:
    """The variance Σ(x − mean)²/(count − ddof); NaN where no window that is possible holds more than `ddof` readings.

    `bucket`: the moments of the only cut bucket; None where there are several (or none). `maybe_empty`: the window may
    hold no more than `ddof` readings.
    """
    first = max(part.count_low, ddof + 1 - int(inside.n))
    if first > part.count_high:
        return Interval(math.nan, math.nan, math.nan, True, True)
    known = (inside, part) if bucket is None else (inside, part, bucket)
    ends = [abs(x) for m in known for x in (m.low, m.high) if math.isfinite(x)]
    if max(*ends, abs(center)) > SQUARED:
        return Interval(_INFINITE, 0.0, _INFINITE, False, first > part.count_low)
    problem, slack = _problem(inside, part, center, bucket)
    low, high = _INFINITE, -_INFINITE
    for run in runs(first, part.count_high):
        for_run = _of_run(problem, *run, ddof)
        low, high = min(low, for_run[0]), max(high, for_run[1])
    if not (math.isfinite(low) and math.isfinite(high)):  # no count seems possible, or a number overflowed
        low, high = 0.0, _INFINITE
    low = min(low, high)  # where nothing but rounding is between them
    slack += 64 * _EPSILON * high + (inside.n + part.size) * 4 * _TINY
    low = max(0.0, math.nextafter(low - slack, -_INFINITE)) if high < _INFINITE else 0.0
    high = math.nextafter(high + slack, _INFINITE)
    exact = part.count_high == 0 or (bucket is not None and _known(part, int(bucket.n)))
    return Interval((low + high) / 2, low, high, exact, first > part.count_low)


def _known(part: Part, size: int) -> bool:
    """Whether what a bucket of `size` adds is its last reading, or all but its first."""
    return (
        part.count_low == part.count_high
        and part.count_low in (part.n_in, part.n_any)
        and part.count_low in (1, size - 1)
    )


def std_interval(variance: Interval) -> Interval:
    """The standard deviation of a variance's interval."""
    low, high = (math.sqrt(end) if end == end else end for end in (variance.low, variance.high))
    if low == low:
        low, high = max(0.0, math.nextafter(low, 0.0)), math.nextafter(high, _INFINITE)
    return Interval((low + high) / 2, low, high, variance.exact, variance.maybe_empty)


def runs(first: int, last: int) -> Iterator[tuple[int, int]]:
    """The counts first … last in at most 64 runs: one by one where they are few, else geometric."""
    start, left = first, RUNS
    while start <= last:
        ratio = (last + 1) / max(start, 1)
        end = start if left >= last - start + 1 or start == 0 else int(start * ratio ** (1 / left))
        end = last if left == 1 else min(max(end, start), last)
        yield start, end
        start, left = end + 1, left - 1


def _problem(inside: Deviations, part: Part, center: float, bucket: Deviations | None) -> tuple[_Problem, float]:
    ends = [x - center for m in (inside, bucket) if m is not None and m.n for x in (m.low, m.high)]
    if part.count_high:
        ends += [part.low - center, part.high - center]
    n = inside.n + part.size
    reach, spread = max(map(abs, ends)), max(ends) - min(ends)
    if part.size and bucket is None:  # other readings of the cut buckets have gone into their sums
        reach = max(reach, part.magnitude + abs(center))
    error = 4.0 * n * _EPSILON * reach
    slack = math.log2(n + 1) * (16.0 * error * spread + 16.0 * error * error)
    return _moved(inside, part, center, bucket, (error, n * slack, reach)), slack


def _moved(
    inside: Deviations, part: Part, center: float, bucket: Deviations | None, errors: tuple[float, float, float]
) -> _Problem:
    """Everything relative to the mean of what is inside, so that squares stay as small as the spread."""
    mean_error, m2_error, reach = errors
    origin = inside.mean if inside.n else part.low - center
    pad = 4.0 * _EPSILON * reach
    low, high = part.low - center - origin - pad, part.high - center - origin + pad
    below, above = bounds.lines(part, center)
    moved = [[(at, k - sign * origin) for at, k in lines] for sign, lines in ((1, below), (-1, above))]
    own = bucket and bucket._replace(mean=bucket.mean - origin)
    sum_error = 4.0 * part.size * part.size * _EPSILON * reach
    return _Problem(inside._replace(mean=0.0), own, low, high, moved[0], moved[1], sum_error, mean_error, m2_error)


def _of_run(p: _Problem, first: int, last: int, ddof: int) -> tuple[float, float]:
    """Least and greatest variance with first … last added readings; (+inf, −inf) where that cannot be."""
    n, m2 = p.inside.n, p.inside.m2
    if last == 0:
        return m2 / (n - ddof), m2 / (n - ddof)
    least, most = _means(p, first, last)
    if least > most:
        return _INFINITE, -_INFINITE
    apart = max(0.0, least - p.inside.mean, p.inside.mean - most)
    weight = min(_weight(n, first), _weight(n, last))
    low = m2 / (n + last) + weight * apart * apart
    low = max(low, _least(p, first, least, most) if first == last else 0.0) * ((n + last) / (n + last - ddof))
    high = _greatest(p, first, last, first, least, most)
    if first < last:
        high = max(high, _greatest(p, first, last, last, least, most))
    return low, high * ((n + first) / (n + first - ddof))


def _least(p: _Problem, c: int, least: float, most: float) -> float:
    """The least variance (ddof 0) of one count, by what the readings left out can have of the bucket's deviations."""
    if p.bucket is None or c >= p.bucket.n:
        return 0.0
    n, size, total = p.inside.n, p.bucket.n, p.inside.n + c
    out = size - c
    reach = p.bucket.high - p.bucket.low
    others = out * (reach * reach) / 4.0 if out > 1 else 0.0
    bend = size * c / out
    known = p.inside.m2 + p.bucket.m2 - others - _blur(p, bend)
    own = _square(-bend / total, p.bucket.mean, known / total)
    return -_highest(_negated(_add(own, _square(_weight(n, c), p.inside.mean, 0.0))), least, most)


def _blur(p: _Problem, bend: float) -> float:
    """What rounding may have done to M₂ᴮ − bend·(ν − μᴮ)², where that is not negative."""
    assert p.bucket is not None
    own = p.bucket.m2 + p.m2_error
    return p.m2_error + 2.0 * p.mean_error * math.sqrt(bend * own) + bend * p.mean_error * p.mean_error


def _weight(n: float, c: float) -> float:
    """What (ν − μ)² counts in the variance."""
    return n * c / ((n + c) * (n + c))


def _means(p: _Problem, first: int, last: int) -> tuple[float, float]:
    """Between which values the mean of first … last added readings lies."""
    least = max(min((at - p.sum_error) / first, (at - p.sum_error) / last) + k for at, k in p.below) - p.mean_error
    most = p.mean_error - max(min((at - p.sum_error) / first, (at - p.sum_error) / last) + k for at, k in p.above)
    least, most = max(p.low, least), min(p.high, most)
    if p.bucket is not None and first < p.bucket.n:
        share = (p.bucket.n - first) / (p.bucket.n * first)
        reach = math.sqrt((p.bucket.m2 + p.m2_error) * share) * (1 + 1e-9) + 2.0 * p.mean_error
        least, most = max(least, p.bucket.mean - reach), min(most, p.bucket.mean + reach)
    return least, most


def _greatest(p: _Problem, first: int, last: int, c: int, least: float, most: float) -> float:
    """The greatest variance (ddof 0) over ν in least … most, of c readings where values are the limit."""
    n, mean, m2 = p.inside.n, p.inside.mean, p.inside.m2
    apart = _square(_weight(n, min(max(n, first), last)), mean, 0.0)
    by_value = _add(_add(_square(0.0, 0.0, m2 / (n + c)), _within(c / (n + c), p.low, p.high)), apart)
    if p.bucket is None:
        if first == last:
            return _greatest_whole(p, c, least, most)
        return _highest(by_value, least, most)
    size, own = p.bucket.n, p.bucket.m2
    bend = size * first / (size - first) if first < size else 0.0
    total = n + first
    by_bucket = _add(_square(-bend / total, p.bucket.mean, (m2 + own + _blur(p, bend)) / total), apart)
    high = min(_highest(by_value, least, most), _highest(by_bucket, least, most))
    for share in _shares(by_value, by_bucket, least, most):
        high = min(high, _highest(_mixed(by_value, by_bucket, share), least, most))
    return min(high, _greatest_whole(p, c, least, most)) if first == last <= FEW else high


def _greatest_whole(p: _Problem, c: int, least: float, most: float) -> float:
    """The same for one count, which is whole: between the means i·M + (c − i)·m the deviations sag."""
    n, mean, spread = p.inside.n, p.inside.mean, p.high - p.low
    if not spread > 0.0:
        return (p.inside.m2 + n * c / (n + c) * ((least - mean) * (least - mean))) / (n + c)
    best = ((p.high + p.low) * (n + c) / 2 - n * mean) / c
    steps = {math.floor(c * (min(max(nu, least), most) - p.low) / spread) for nu in (least, best, most)}
    grid = [p.low + (i + j) * spread / c for i in steps for j in (-1, 0, 1, 2)]
    candidates = [least, most, *(nu for nu in grid if least <= nu <= most)]
    return max(_with_mean(p, c, nu) for nu in candidates)


def _with_mean(p: _Problem, c: int, nu: float) -> float:
    n, spread = p.inside.n, p.high - p.low
    u = c * (nu - p.low) / spread
    f = u - math.floor(u)
    own = spread * spread * (math.floor(u) + f * f - u * u / c)
    apart = nu - p.inside.mean
    return (p.inside.m2 + max(own, 0.0) + n * c / (n + c) * (apart * apart)) / (n + c)


def _square(k: float, center: float, at: float) -> Quadratic:
    """k·(ν − center)² + at."""
    return k, -2.0 * k * center, k * center * center + at


def _within(k: float, low: float, high: float) -> Quadratic:
    """k·(high − ν)·(ν − low)."""
    return -k, k * (low + high), -k * low * high


def _add(a: Quadratic, b: Quadratic) -> Quadratic:
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


def _negated(q: Quadratic) -> Quadratic:
    return -q[0], -q[1], -q[2]


def _at(q: Quadratic, nu: float) -> float:
    return (q[0] * nu + q[1]) * nu + q[2]


def _highest(q: Quadratic, least: float, most: float) -> float:
    """The greatest value over least … most: at an end or at the vertex."""
    vertex = -q[1] / (2.0 * q[0]) if q[0] < 0.0 else least
    return max(_at(q, least), _at(q, most), _at(q, min(max(vertex, least), most)))


def _mixed(a: Quadratic, b: Quadratic, share: float) -> Quadratic:
    """share·a + (1 − share)·b: nowhere below the lesser of the two, whatever the share."""
    rest = 1.0 - share
    return share * a[0] + rest * b[0], share * a[1] + rest * b[1], share * a[2] + rest * b[2]


def _shares(a: Quadratic, b: Quadratic, least: float, most: float) -> Iterator[float]:
    """The mixtures whose vertex lies where a and b cross: the best for the greatest of the lesser of them."""
    for nu in _crossings(a, b):
        slope_a, slope_b = 2.0 * a[0] * nu + a[1], 2.0 * b[0] * nu + b[1]
        if least <= nu <= most and slope_a != slope_b and 0.0 < (share := slope_b / (slope_b - slope_a)) < 1.0:
            yield share


def _crossings(a: Quadratic, b: Quadratic) -> list[float]:
    k, slope, at = a[0] - b[0], a[1] - b[1], a[2] - b[2]
    if k == 0.0:
        return [-at / slope] if slope != 0.0 else []
    root = math.sqrt(max(slope * slope - 4.0 * k * at, 0.0))
    return [(-slope + sign * root) / (2.0 * k) for sign in (-1.0, 1.0)]
