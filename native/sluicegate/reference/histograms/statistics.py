"""The readable twin of sluicegate.histograms._statistics: quantiles, prediction intervals, extreme values.

Nothing here asks for more than the C library's log, exp, pow and atan: both sides agree to the last bit on one machine.
Sources: Wichura, AS 241 (normal quantile); Abramowitz & Stegun 26.7.3, 26.7.4 (Student's t) and 26.7.5 (many degrees of
freedom); Chan, Golub & LeVeque (merge of moments); Hosking, Wallis & Wood 1985 (GEV by probability-weighted moments).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import atan, exp, expm1, inf, isfinite, log, pi, pow, sqrt
from typing import NamedTuple

MOST_SUMMED = 128  # degrees of freedom from which Fisher's expansion is exact to 1e-9
EULER = 0.5772156649015329
_LOG2, _LOG3 = log(2.0), log(3.0)
_LANCZOS = (
    0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
    12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7,
)  # fmt: skip
_CENTRAL = (
    (2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457, 13731.693765509461125,
     1971.5909503065514427, 133.14166789178437745, 3.387132872796366608),
    (5226.495278852545925, 28729.085735721942674, 39307.89580009271061, 21213.794301586595867, 5394.1960214247511077,
     687.1870074920579083, 42.313330701600911252, 1.0),
)  # fmt: skip
_MIDDLE = (
    (7.7454501427834140764e-4, 0.0227238449892691845833, 0.24178072517745061177, 1.27045825245236838258,
     3.64784832476320460504, 5.7694972214606914055, 4.6303378461565452959, 1.42343711074968357734),
    (1.05075007164441684324e-9, 5.475938084995344946e-4, 0.0151986665636164571966, 0.14810397642748007459,
     0.68976733498510000455, 1.6763848301838038494, 2.05319162663775882187, 1.0),
)  # fmt: skip
_TAIL = (
    (2.01033439929228813265e-7, 2.71155556874348757815e-5, 0.0012426609473880784386, 0.026532189526576123093,
     0.29656057182850489123, 1.7848265399172913358, 5.4637849111641143699, 6.6579046435011037772),
    (2.04426310338993978564e-15, 1.4215117583164458887e-7, 1.8463183175100546818e-5, 7.868691311456132591e-4,
     0.0148753612908506148525, 0.13692988092273580531, 0.59983220655588793769, 1.0),
)  # fmt: skip


def _ratio(r: float, parts: tuple[tuple[float, ...], tuple[float, ...]]) -> float:
    above = below = 0.0
    for a, b in zip(*parts, strict=True):
        above, below = above * r + a, below * r + b
    return above / below


def normal_quantile(p: float) -> float:
    """The value below which a standard normal lies with probability 0 < p < 1; relative error about 1e-16 (AS 241)."""
    q = p - 0.5
    if abs(q) <= 0.425:
        return q * _ratio(0.180625 - q * q, _CENTRAL)
    r = sqrt(-log(p if q < 0 else 1.0 - p))
    x = _ratio(r - 1.6, _MIDDLE) if r <= 5.0 else _ratio(r - 5.0, _TAIL)
    return -x if q < 0 else x


def student_probability(t: float, freedom: int) -> float:
    """Probability that Student's t with so many degrees of freedom lies within ±t: a finite sum (A&S 26.7.3 and 4)."""
    cos2, sin = freedom / (freedom + t * t), t / sqrt(freedom + t * t)
    odd = freedom & 1
    term, total = sqrt(cos2) if odd else 1.0, 0.0
    for i in range(1, freedom >> 1):
        total += term
        term *= cos2 * (2 * i - 1 + odd) / (2 * i + odd)
    if freedom > 1:
        total += term
    return (atan(t / sqrt(freedom)) + sin * total) * 2.0 / pi if odd else sin * total


def _student_density(t: float, freedom: int) -> float:
    ratio = 1.0 / sqrt(pi) if freedom & 1 else sqrt(pi) / 2.0  # Γ((ν + 1)/2) / Γ(ν/2), from ν = 1 or 2 upwards
    for i in range(2 - (freedom & 1), freedom, 2):
        ratio *= (i + 1.0) / i
    return ratio / sqrt(freedom * pi) * pow(1.0 + t * t / freedom, -(freedom + 1.0) / 2.0)


def student_quantile(confidence: float, freedom: int) -> float:
    """Two-tailed: t with P(|T| ≤ t) = confidence for `freedom` ≥ 1 degrees of freedom; accurate to 1e-9."""
    z = normal_quantile(0.5 + confidence / 2.0)
    if freedom >= MOST_SUMMED:
        return _fisher(z, float(freedom))
    t = z  # below the root of a concave function: Newton's steps rise to it
    for _ in range(200):
        step = (confidence - student_probability(t, freedom)) / (2.0 * _student_density(t, freedom))
        t += step
        if step <= 1e-14 * t:
            break
    return t


def _fisher(z: float, v: float) -> float:
    z2 = z * z
    g1 = (z2 + 1.0) * z / 4.0
    g2 = ((5.0 * z2 + 16.0) * z2 + 3.0) * z / 96.0
    g3 = (((3.0 * z2 + 19.0) * z2 + 17.0) * z2 - 15.0) * z / 384.0
    g4 = ((((79.0 * z2 + 776.0) * z2 + 1482.0) * z2 - 1920.0) * z2 - 945.0) * z / 92160.0
    return z + (g1 + (g2 + (g3 + g4 / v) / v) / v) / v


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


def prediction_interval(sample: Moments, t: float) -> tuple[float, float]:
    """Where the next result lies: mean ± t·s·√(1 + 1/n), for n ≥ 2 (A2MTA, II-A)."""
    half = t * sqrt(sample.m2 / (sample.n - 1.0)) * sqrt(1.0 + 1.0 / sample.n)
    return sample.mean - half, sample.mean + half


def least_magnitude(low: float, high: float) -> float:
    """The least |r| for r in low … high."""
    return 0.0 if low <= 0.0 <= high else min(abs(low), abs(high))


class Gev(NamedTuple):
    """A generalized extreme value distribution; Hosking's shape k is −ξ. Scale 0: a plateau at `location`."""

    location: float
    scale: float
    shape: float


def _gamma(z: float) -> float:
    """Γ(z) for z > 0 (Lanczos, g = 7), about 15 digits."""
    if z < 1.0:
        return _gamma(z + 1.0) / z
    z -= 1.0
    total, base = _LANCZOS[0], z + 7.5
    for i in range(1, 9):
        total += _LANCZOS[i] / (z + i)
    return sqrt(2.0 * pi) * pow(base, z + 0.5) * exp(-base) * total


def fit_gev(maxima: Sequence[float]) -> Gev:
    """Fit block maxima (at least 3) by unbiased probability-weighted moments (Hosking, Wallis & Wood 1985).

    λ₂ ≤ 0, up to rounding, is a plateau: scale 0 at the maxima's mean.
    """
    ranked, n = sorted(maxima), len(maxima)
    least, b0, b1, b2 = ranked[0], 0.0, 0.0, 0.0
    for i in range(n):
        x = ranked[i] - least
        b0 += x
        b1 += x * i
        b2 += x * i * (i - 1.0)
    b0, b1, b2 = b0 / n, b1 / (n * (n - 1.0)), b2 / (n * (n - 1.0) * (n - 2.0))
    l2, l3 = 2.0 * b1 - b0, 6.0 * b2 - 6.0 * b1 + b0
    if not l2 > 1e-13 * max(abs(least), abs(ranked[n - 1])):
        return Gev(least + b0, 0.0, 0.0)
    return _of_moments(least + b0, l2, l3 / l2)


def _of_moments(l1: float, l2: float, skew: float) -> Gev:
    c = 2.0 / (3.0 + skew) - _LOG2 / _LOG3
    k = 7.8590 * c + 2.9554 * c * c
    if abs(k) < 1e-7:
        scale = l2 / _LOG2
        return Gev(l1 - EULER * scale, scale, 0.0)
    gamma = _gamma(1.0 + k)
    scale = l2 * k / (-expm1(-k * _LOG2) * gamma)
    return Gev(l1 - scale * (1.0 - gamma) / k, scale, k)


def gev_quantile(fit: Gev, p: float) -> float:
    """The value below which a block's maximum lies with probability 0 < p < 1."""
    y = -log(-log(p))
    return fit.location + fit.scale * (y if fit.shape == 0.0 else -expm1(-fit.shape * y) / fit.shape)


def recommended_range(fit: Gev, confidence: float) -> tuple[float, float]:
    """Candidates to become the window's result: all from the lower quantile upwards."""
    low = gev_quantile(fit, 1.0 - confidence)
    return (low if isfinite(low) else fit.location), inf


def paper_range(fit: Gev, confidence: float) -> tuple[float, float]:
    """The paper's: ξ ≥ 0: end point (−∞ at 0) to upper quantile; ξ < 0: lower quantile to end point."""
    if fit.scale == 0.0:
        return fit.location, inf
    if fit.shape > 0.0:
        return gev_quantile(fit, 1.0 - confidence), fit.location + fit.scale / fit.shape
    return (-inf if fit.shape == 0.0 else fit.location + fit.scale / fit.shape), gev_quantile(fit, confidence)
