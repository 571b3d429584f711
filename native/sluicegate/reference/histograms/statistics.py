"""Moments of a sample as every twin keeps them (Chan, Golub & LeVeque); quantiles and fits are the compiled ones."""

from __future__ import annotations

from typing import NamedTuple


class Moments(NamedTuple):
    """Size, mean and sum of squared deviations of a sample; (0, 0, 0) is neutral."""

    n: float = 0.0
    mean: float = 0.0
    m2: float = 0.0


def merge(a: Moments, b: Moments) -> Moments:
    """The moments of both samples together (Chan's formula); an empty side returns the other untouched."""
    if b.n == 0.0:
        return a
    if a.n == 0.0:
        return b
    n, delta = a.n + b.n, b.mean - a.mean
    share = b.n / n
    return Moments(n, a.mean + delta * share, a.m2 + b.m2 + delta * delta * a.n * share)
