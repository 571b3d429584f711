"""Constructors of the aggregates whose partial is wider than a number, yet of a width known beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import isfinite

from sluicegate.checks import check_span, check_whole, is_whole
from sluicegate.errors import ConfigurationError
from sluicegate.monoids.monoid import Monoid

MOST_BINS = 1024
MOST_BITS = 65_536
MOST_HASHES = 16
MOST_TOP = 256
MOST_COUNTERS = 8192
LEAST_LG_K, MOST_LG_K = 8, 12


def rate(dimension: str | None = None, *, per: int | str = "1s") -> Monoid:
    """(last − first) / (time of last − time of first), per `per`: how fast a counter or level moves on average.

    In order of arrival; `per`: a length of time (µs, or a text such as "1h"). None for an empty window, for a single
    reading, and where no time passes between the first and the last reading or the clock went back. For readings per
    time see `frequency`.
    """
    return Monoid("rate", dimension, options=(float(check_span("rate", per, "per")),))


def frequency(*, per: int | str = "1s") -> Monoid:
    """(count − 1) / (greatest − least time), per `per`: how often readings come.

    None for fewer than two readings and where all have one time.
    """
    return Monoid("frequency", options=(float(check_span("frequency", per, "per")),))


def time_weighted_mean(dimension: str | None = None) -> Monoid:
    """The mean over time where each value holds until the next one: Σ x·(time of the next − its own) / elapsed.

    From the window's first reading to its last, so the last value weighs nothing yet; of equal times the later arrival
    holds. A window whose readings all have one time: its last value. None for an empty window, and for a window by
    count in which the clock went back. For sensors that report a change, not at even times.
    """
    return Monoid("time_weighted_mean", dimension)


def slope(dimension: str | None = None, *, per: int | str = "1s") -> Monoid:
    """The slope of the line of least squares through the values over time, per `per` (µs, or a text such as "1h").

    None where all readings have one time. Kept as moments around the partial's own first value and least time, so that
    far values and years after 1970 cost no digits, and merged by the formulas of Chan, Golub & LeVeque (1979).
    """
    return Monoid("slope", dimension, options=(float(check_span("slope", per, "per")),))


def intercept(dimension: str | None = None, *, at: str = "first") -> Monoid:
    """The value of the line of least squares at the window's least time, or with at="last" at its greatest.

    Time counts from there, not from 1970. None where all readings have one time. Raises ConfigurationError.
    """
    if at not in ("first", "last"):
        raise ConfigurationError(f"intercept(at={at!r}): expected 'first' or 'last': the least or the greatest time")
    return Monoid("intercept", dimension, options=(at,))


def covariance(a: str, b: str, *, ddof: int = 0) -> Monoid:
    """The covariance of two dimensions of a reading; `ddof` 1: the sample's, divided by count − 1.

    With count ≤ ddof: None. Merged stably (Chan, Golub & LeVeque 1979). Raises ConfigurationError.
    """
    return Monoid("covariance", _two("covariance", a, b), ddof)


def correlation(a: str, b: str) -> Monoid:
    """Pearson's correlation of two dimensions of a reading, −1 to 1; None where one of them does not vary."""
    return Monoid("correlation", _two("correlation", a, b))


def longest_run(dimension: str | None = None) -> Monoid:
    """The longest run of readings that increase strictly, each next to the one before; the earliest of equal ones.

    `LongestRun(t_first, t_last, span, length)`; an empty window: None. Source: paper AMTA, Experiment 3.
    """
    return Monoid("longest_run", dimension)


def histogram(edges: Sequence[float], dimension: str | None = None, *, bins: int | None = None) -> Monoid:
    """How many values fall into each bin [edges[i], edges[i + 1]), below the first edge, and from the last one on.

    `edges`: 2 to 1,025 increasing finite numbers, or, with `bins`, the least and greatest of so many bins of equal
    width. `Bins(edges, counts, below, above)`; an empty window: zeros. Raises ConfigurationError.
    """
    try:
        given = tuple(float(x) for x in edges)
    except (TypeError, ValueError, OverflowError):
        raise ConfigurationError(f"histogram: edges {edges!r}, expected increasing finite numbers") from None
    if bins is not None:
        given = _equal(given, bins)
    increasing = all(map(isfinite, given)) and all(a < b for a, b in pairwise(given))
    if not increasing or not 2 <= len(given) <= MOST_BINS + 1:
        expected = f"expected 2 to {MOST_BINS + 1} increasing finite numbers"
        raise ConfigurationError(f"histogram: {len(given)} edges, {list(given[:5])}…; {expected}")
    return Monoid("histogram", dimension, options=given)


def bloom_filter(bits: int, hashes: int = 4, dimension: str | None = None) -> Monoid:
    """The set of values seen, with false positives, never false negatives: `BloomFilter.might_contain(value)`.

    `bits`: a multiple of 64, up to 65,536; `hashes`: 1 to 16; with n values about (1 − e^(−hashes·n/bits))^hashes of
    the values that are not there are not denied. An empty window denies all. Raises ConfigurationError.
    """
    if not is_whole(bits, 64, MOST_BITS) or bits % 64:
        raise ConfigurationError(f"bloom_filter(bits={bits!r}): expected a multiple of 64, from 64 to {MOST_BITS}")
    check_whole("bloom_filter", hashes, 1, MOST_HASHES, "hashes")
    return Monoid("bloom_filter", dimension, options=(bits, hashes))


def top_k(k: int, dimension: str | None = None) -> Monoid:
    """The k greatest values with their times, greatest first; of equal ones the earlier arrival first.

    A list of `Top(value, time)`, shorter where the window has fewer readings, empty for an empty one. `k`: 1 to 256.
    """
    check_whole("top_k", k, 1, MOST_TOP, "k")
    return Monoid("top_k", dimension, options=(k,))


def distinct_count(dimension: str | None = None, *, lg_k: int = 10) -> Monoid:
    """How many different values (HyperLogLog): `DistinctCount(estimate, error, least, sketch)`.

    `lg_k` 8 to 12: 2^lg_k + 8 bytes a partial, a relative standard error of 1.04 / 2^(lg_k / 2): 3.25 % at 10. Up to
    3 · 2^(lg_k − 5) values (96 at 10) are counted one by one. An empty window: 0. `sketch` is read by
    `hll_sketch_estimate` in Spark and by Apache DataSketches. Raises ConfigurationError.
    """
    check_whole("distinct_count", lg_k, LEAST_LG_K, MOST_LG_K, "lg_k")
    return Monoid("distinct_count", dimension, options=(lg_k,))


def count_min(width: int = 256, depth: int = 4, dimension: str | None = None) -> Monoid:
    """How often each value occurs, by hash: `CountMin.most(value)` is never too small (Cormode & Muthukrishnan 2005).

    Too great by more than e / `width` of the readings with a probability of at most e^−`depth`. `width` 8 to 4,096,
    `depth` 1 to 8, at most 8,192 counters of 8 bytes together. Raises ConfigurationError.
    """
    if not is_whole(width, 8, 4096) or not is_whole(depth, 1, 8) or width * depth > MOST_COUNTERS:
        raise ConfigurationError(
            f"count_min(width={width!r}, depth={depth!r}): expected 8 to 4096 by 1 to 8, at most {MOST_COUNTERS}"
        )
    return Monoid("count_min", dimension, options=(width, depth))


def _two(name: str, a: object, b: object) -> tuple[str, str]:
    if not isinstance(a, str) or not isinstance(b, str):
        raise ConfigurationError(f"{name}({a!r}, {b!r}): expected the names of two dimensions: {name}('a', 'b')")
    return a, b


def _equal(ends: tuple[float, ...], bins: int) -> tuple[float, ...]:
    if len(ends) != 2 or not is_whole(bins, 1, MOST_BINS):
        raise ConfigurationError(
            f"histogram({list(ends[:5])}, bins={bins!r}): expected the least and greatest edge of 1 to {MOST_BINS} bins"
        )
    low, high = ends
    return (*(low + (high - low) * i / bins for i in range(bins)), high)
