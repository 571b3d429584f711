"""Moments of two quantities together: the twin of sluicegate.partials.comoments, bit for bit, and what bounds read.

A line's slots (values over time): count, least and greatest time, first value, mean of time less the least, mean of
value less the first, Σ of squared deviations of times and of values, Σ of their products. A pair's (dimensions x and
y): count, first x and y, means less them, Σ of squared deviations of each, Σ of their products. Merged by the formulas
of Chan, Golub & LeVeque (1979); counting from the partial's own first values keeps the digits of far ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isfinite, sqrt
from typing import Any

from sluicegate.monoids.monoid import Monoid

Slots = list[Any]


def lift_line(x: float, time: int) -> Slots:
    """One reading."""
    return [1.0, time, time, x, 0.0, 0.0, 0.0, 0.0, 0.0]


def lift_pair(x: float, y: float) -> Slots:
    """One reading of two dimensions."""
    return [1.0, x, y, 0.0, 0.0, 0.0, 0.0, 0.0]


def combine_line(a: Sequence[Any], b: Sequence[Any]) -> Slots:
    """Either may hold the earlier times."""
    n, first = a[0] + b[0], min(a[1], b[1])
    share = b[0] / n
    both, mean = a[0] * share, a[4] + float(a[1] - first)
    dt = (b[4] + float(b[1] - first)) - mean
    dx = (b[3] - a[3]) + (b[5] - a[5])
    return [
        n, first, max(a[2], b[2]), a[3], mean + dt * share, a[5] + dx * share,
        (a[6] + b[6]) + dt * dt * both, (a[7] + b[7]) + dx * dx * both, (a[8] + b[8]) + dt * dx * both,
    ]  # fmt: skip


def combine_pair(a: Sequence[Any], b: Sequence[Any]) -> Slots:
    """Two neighbours as one."""
    n = a[0] + b[0]
    share = b[0] / n
    both = a[0] * share
    dx, dy = (b[1] - a[1]) + (b[3] - a[3]), (b[2] - a[2]) + (b[4] - a[4])
    return [
        n, a[1], a[2], a[3] + dx * share, a[4] + dy * share,
        (a[5] + b[5]) + dx * dx * both, (a[6] + b[6]) + dy * dy * both, (a[7] + b[7]) + dx * dy * both,
    ]  # fmt: skip


def lowered(monoid: Monoid, slots: Sequence[Any]) -> float | None:
    """The answer of one of the four that are read from such moments."""
    match monoid.kind:
        case "slope":
            return slope(slots, monoid.options[0])
        case "intercept":
            return intercept(slots, monoid.options[0])
        case "covariance":
            return covariance(slots, monoid.ddof)
    return correlation(slots)


def slope(line: Sequence[Any], per: float) -> float | None:
    """Per `per` µs; None where all times are one, or the moments are beyond float64."""
    return _finite(line[8] / line[6] * per) if line[6] > 0.0 else None


def intercept(line: Sequence[Any], at: str) -> float | None:
    """The line's value at the least or the greatest time."""
    if not line[6] > 0.0:
        return None
    when = float(line[2] - line[1]) if at == "last" else 0.0
    return _finite(line[3] + (line[5] + line[8] / line[6] * (when - line[4])))


def covariance(pair: Sequence[Any], ddof: int) -> float | None:
    """None where there are too few readings."""
    return _finite(pair[7] / (pair[0] - ddof)) if pair[0] > ddof else None


def correlation(pair: Sequence[Any]) -> float | None:
    """Pearson's, −1 to 1; None where one of the two does not vary, or its moments are beyond float64."""
    if not (0.0 < pair[5] < inf and 0.0 < pair[6] < inf):
        return None
    scale = sqrt(pair[5]) * sqrt(pair[6])
    r = _finite(pair[7] / scale) if scale else None
    return None if r is None else min(max(r, -1.0), 1.0)


def _finite(x: float) -> float | None:
    return x if isfinite(x) else None
