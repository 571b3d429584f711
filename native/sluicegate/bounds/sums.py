"""Between which values a sum or a mean certainly lies, of whole readings and some of a bucket's, which are not known.

If c of a bucket's n readings, which are l … h and add up to S, are inside, they add at least c·l and S − (n − c)·h, and
at most c·h and S − (n − c)·l. A sum or mean is extreme at the least or greatest c or where two of these lines cross,
rounded both ways. All is widened by 4·N²·ε·A, N the readings of all and A the greatest |x|: that covers sums taken in
another order, and an oracle's own rounding. Where more is known of a bucket the compiled `answers.sums` says more.
"""

from __future__ import annotations

from math import ceil, floor, inf, isnan, nextafter
from typing import NamedTuple

from sluicegate.records import Bounded

_EPSILON = 2.0**-52


class Inside(NamedTuple):
    """The readings that are inside for certain: how many, their sum, least and greatest."""

    n: int
    total: float
    low: float
    high: float


class Subset(NamedTuple):
    """A bucket, and how many of its readings are inside: `least` to `most`, by the best guess `taken`."""

    n: int
    total: float
    low: float
    high: float
    least: int
    most: int
    taken: int


NOTHING = Subset(0, 0.0, 0.0, 0.0, 0, 0, 0)


def sum_interval(inside: Inside, part: Subset = NOTHING) -> Bounded:
    """The sum, of one reading or more."""
    return _interval(inside, part, False)


def mean_interval(inside: Inside, part: Subset = NOTHING) -> Bounded:
    """The mean, of one reading or more."""
    return _interval(inside, part, True)


def _interval(inside: Inside, part: Subset, mean: bool) -> Bounded:
    values = [x for each in (inside, part) if each.n for x in (each.low, each.high)]
    readings, reach = inside.n + part.n, max(map(abs, values))
    slack = 4.0 * readings * _EPSILON * readings * reach
    low = _least(inside.n, inside.total - slack, part, mean)
    negated = part._replace(total=-part.total, low=-part.high, high=-part.low)
    high = -_least(inside.n, -inside.total - slack, negated, mean)
    value = inside.total + (part.taken * (part.total / part.n) if part.n else 0.0)
    if mean:
        value /= inside.n + part.taken
        low, high = max(low, min(values)) - 4 * _EPSILON * reach, min(high, max(values)) + 4 * _EPSILON * reach
    low = -inf if isnan(low) else nextafter(low, -inf)  # no number: a sum overflowed
    high = inf if isnan(high) else nextafter(high, inf)
    return Bounded(min(max(value, low), high), low, high, part.least == part.most and part.most in (0, part.n))


def _least(n: int, total: float, part: Subset, mean: bool) -> float:
    """The least sum or mean over how many of the part's readings may be inside: it is monotone between the corners."""
    corners = [part.least, part.most]
    if part.low < part.high:
        crossing = (part.n * part.high - part.total) / (part.high - part.low)
        if part.least < crossing < part.most:
            corners += floor(crossing), ceil(crossing)
    sums = [total + max(c * part.low, part.total - (part.n - c) * part.high) for c in corners]
    return min(each / (n + c) if mean else each for each, c in zip(sums, corners, strict=True))
