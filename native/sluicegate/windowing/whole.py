"""What a window answers whose readings are one whole bucket: every answer is exact, sums but for rounding.

The intervals hold the result over the readings: n values of magnitude at most M have a sum that rounding moves by less
than 4·n·ε·n·M in whatever order they were added. Squares are taken of differences from means that are off by so much a
reading, M being of the bucket's center too.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from sluicegate.records import Bounded
from sluicegate.windowing.slices import SliceResult

_EPSILON, _TINY = 2.0**-52, 5e-324
_SQUARED = 1e150  # beyond it squares of differences may overflow


def _sum(of: SliceResult) -> Bounded:
    n = of.bucket.n
    return _around(of.bucket.total + n * of.center, n * _slack(of))


def _mean(of: SliceResult) -> Bounded:
    lost = 0.0 if of.bucket.low == of.bucket.high else 4 * _TINY  # what a quotient loses below float64's normal numbers
    return _around(of.bucket.total / of.bucket.n + of.center, _slack(of) + lost)


def _slack(of: SliceResult) -> float:
    return 4 * of.bucket.n * _EPSILON * _reach(of)


def _reach(of: SliceResult) -> float:
    return max(abs(of.bucket.low), abs(of.bucket.high), abs(of.center))


def _range(of: SliceResult) -> Bounded:
    from sluicegate.bounds.intervals import difference  # with fractions and decimals: only where it is asked

    low, high = difference(of.bucket.high, of.bucket.low)
    return Bounded(of.bucket.high - of.bucket.low, low, high, True)


def _variance(of: SliceResult) -> Bounded:
    b, error = of.bucket, _slack(of)
    value, spread = b.m2 / b.n, b.high - b.low
    if spread == 0.0:
        return Bounded(0.0, 0.0, 0.0, True)
    if _reach(of) > _SQUARED:  # nothing is said of them
        return Bounded(value if value < math.inf else math.inf, 0.0, math.inf, False)
    slack = 16 * math.log2(b.n + 1) * error * (spread + error) + 8 * b.n * _EPSILON * spread**2 + 8 * _TINY
    return _around(value, slack, least=0.0)


def _std(of: SliceResult) -> Bounded:
    value, low, high, exact = _variance(of)
    return Bounded(math.sqrt(value), math.sqrt(low) * (1 - _EPSILON), math.sqrt(high) * (1 + _EPSILON), exact)


def _geometric_mean(of: SliceResult) -> Bounded:
    b = of.bucket
    if math.isnan(b.log_total):  # a reading was not positive: there is none
        return Bounded(None, None, None, True)
    logarithm = b.log_total / b.n + (math.log(of.center) if of.center > 0.0 else 0.0)
    greatest = max(abs(math.log(b.low)), abs(math.log(b.high)), abs(math.log(of.center)) if of.center > 0.0 else 0.0)
    value = math.exp(logarithm)
    return _around(value, value * 8 * (b.n + 4) * _EPSILON * (greatest + 1.0), least=0.0)


def _around(value: float, slack: float, least: float = -math.inf) -> Bounded:
    return Bounded(value, max(value - slack, least), value + slack, True)


def _known(of: Callable[[SliceResult], float]) -> Callable[[SliceResult], Bounded]:
    def answer(given: SliceResult) -> Bounded:
        value = of(given)
        return Bounded(value, value, value, True)

    return answer


_ANSWERS: dict[str, Callable[[SliceResult], Bounded]] = {
    "count": _known(lambda of: of.bucket.n), "sum": _sum, "mean": _mean, "min": _known(lambda of: of.bucket.low),
    "max": _known(lambda of: of.bucket.high), "range": _range,
    "variance": _variance, "std": _std, "geometric_mean": _geometric_mean,
    "first": _known(lambda of: of.first), "last": _known(lambda of: of.last),
    "argmin": _known(lambda of: of.bucket.low_t_first), "argmax": _known(lambda of: of.bucket.high_t_first),
    "min_count": _known(lambda of: of.bucket.low_n), "max_count": _known(lambda of: of.bucket.high_n),
}  # fmt: skip
AGGREGATES = tuple(_ANSWERS)


def answer(kind: str, of: SliceResult) -> Bounded:
    """The result of one of `AGGREGATES`; variance and standard deviation are the population's, as the agent's are."""
    return _ANSWERS[kind](of)
