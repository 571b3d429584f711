"""Slope, intercept, covariance and correlation of single readings, computed anew in whole numbers: rounded once.

A float is a whole number over a power of two, so over one common power all sums are whole numbers and exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import inf, isfinite, isqrt, nextafter

from sluicegate.monoids import Monoid
from sluicegate.records import Bounded


def exactly(monoid: Monoid, first: Sequence[float], second: Sequence[float], value: float | None) -> Bounded:
    """The result between the two floats next to the exact one; `first` is times where `monoid` is over time.

    `value` None: no result, or one whose moments are beyond float64, of which nothing is certain then.
    """
    found = _result(monoid, first, second)
    if found is None or value is None:
        return Bounded(None, None, None, found is None)
    nearest = _nearest(found)
    low, high = nextafter(nearest, -inf), nextafter(nearest, inf)
    if monoid.kind == "correlation":
        low, high = max(low, -1.0), min(high, 1.0)
    return Bounded(min(max(value, low), high), low, high, True)


def _result(monoid: Monoid, first: Sequence[float], second: Sequence[float]) -> Fraction | None:
    (us, p), (vs, q) = _scaled(first), _scaled(second)
    n, su, sv = len(us), sum(us), sum(vs)
    uv = n * sum(u * v for u, v in zip(us, vs, strict=True)) - su * sv
    uu = n * sum(u * u for u in us) - su * su
    if monoid.kind == "covariance":
        return Fraction(uv, n * (n - monoid.ddof) * p * q) if n > monoid.ddof else None
    if monoid.kind == "correlation":
        vv = n * sum(v * v for v in vs) - sv * sv
        return _correlation(uv, uu, vv) if uu and vv else None
    if not uu:
        return None
    slope = Fraction(uv * p, uu * q)
    if monoid.kind == "slope":
        return slope * Fraction(monoid.options[0])
    at = max(us) if monoid.options[0] == "last" else min(us)
    return Fraction(sv, n * q) + slope * (Fraction(at, p) - Fraction(su, n * p))


def _correlation(uv: int, uu: int, vv: int) -> Fraction:
    """Its square's root to 64 bits, with its sign; however small it is."""
    square, below = uv * uv, uu * vv
    shift = 128 + max(0, below.bit_length() - square.bit_length())
    root = isqrt((square << 2 * shift) // below)
    return Fraction(root if uv >= 0 else -root, 1 << shift)


def _scaled(numbers: Sequence[float]) -> tuple[list[int], int]:
    """Each as a whole number over one power of two."""
    ratios = [x.as_integer_ratio() for x in numbers]
    scale = max(below for _, below in ratios)
    return [above * (scale // below) for above, below in ratios], scale


def _nearest(exact: Fraction) -> float:
    try:
        found = float(exact)
    except OverflowError:
        return inf if exact > 0 else -inf
    return found if isfinite(found) else inf
