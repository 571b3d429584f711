"""Every aggregate recomputed from a plain list of readings, without the code that is tested."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any

import sluicegate as sg

Reading = tuple[float, int]
EDGES = (-4.0, -1.5, 0.0, 0.5, 6.0)
FIXED = {
    "longest_run": sg.longest_run(), "rate": sg.rate(), "frequency": sg.frequency(per="1ms"),
    "histogram": sg.histogram(EDGES), "bloom_filter": sg.bloom_filter(128, 3), "top_k": sg.top_k(3),
    "distinct_count": sg.distinct_count(lg_k=8), "sum": sg.sum(compensated=True), "mean": sg.mean(compensated=True),
    "time_weighted_mean": sg.time_weighted_mean(),
}  # fmt: skip
CANONICAL = ("longest_run", "histogram", "bloom_filter", "top_k", "distinct_count", "rate", "frequency")
"""Those whose partials are a function of the readings, whatever the order of combining."""


def expected(readings: list[Reading]) -> dict[str, Any]:
    """What each aggregate of `FIXED` answers over these readings; sketches by what they promise (`check_sketches`)."""
    values = [x for x, _ in readings]
    total = math.fsum(values)
    return {
        "longest_run": longest_run(readings), "rate": rate(readings), "frequency": frequency(readings),
        "histogram": bins(values), "top_k": tops(readings), "sum": total,
        "mean": total / len(values) if values else None, "time_weighted_mean": time_weighted_mean(readings),
    }  # fmt: skip


def longest_run(readings: list[Reading]) -> Any:
    """Each run from each start, the first of the longest."""
    best: tuple[int, int] | None = None
    for start in range(len(readings)):
        end = start
        while end + 1 < len(readings) and readings[end + 1][0] > readings[end][0]:
            end += 1
        if best is None or end - start > best[1] - best[0]:
            best = start, end
    if best is None:
        return None
    first, last = readings[best[0]][1], readings[best[1]][1]
    return sg.LongestRun(first, last, last - first, best[1] - best[0] + 1)


def rate(readings: list[Reading]) -> float | None:
    """Change per second between the first and the last reading."""
    if not readings or readings[-1][1] <= readings[0][1]:
        return None
    return (readings[-1][0] - readings[0][0]) / (readings[-1][1] - readings[0][1]) * 1e6


def time_weighted_mean(readings: list[Reading]) -> float | None:
    """Each value times how long it held, in whole fractions; the last one alone where no time passes."""
    if not readings or any(b[1] < a[1] for a, b in pairwise(readings)):
        return None
    area = sum(Fraction(a[0]) * (b[1] - a[1]) for a, b in pairwise(readings))
    elapsed = readings[-1][1] - readings[0][1]
    return float(area / elapsed) if elapsed else readings[-1][0]


def frequency(readings: list[Reading]) -> float | None:
    """Steps per millisecond between the least and the greatest time."""
    times = [time for _, time in readings]
    return (len(times) - 1) / (max(times) - min(times)) * 1e3 if times and max(times) > min(times) else None


def bins(values: list[float]) -> Any:
    """Each value counted between its edges."""
    counts = tuple(sum(low <= x < high for x in values) for low, high in pairwise(EDGES))
    return sg.Bins(EDGES, counts, sum(x < EDGES[0] for x in values), sum(x >= EDGES[-1] for x in values))


def tops(readings: list[Reading]) -> list[Any]:
    """The three greatest; sorting is stable, so equal ones stay in order of arrival."""
    return [sg.Top(x, time) for x, time in sorted(readings, key=lambda reading: -reading[0])[:3]]


def check_sketches(results: dict[str, Any], readings: list[Reading]) -> None:
    """No false negatives; counted one by one while few; an estimate within five standard errors, a certain least."""
    distinct = len(Counter(x for x, _ in readings))
    assert all(results["bloom_filter"].might_contain(x) for x, _ in readings)
    found = results["distinct_count"]
    assert found.least <= distinct
    if distinct <= 24:
        assert (found.estimate, found.error, found.least) == (distinct, 0.0, distinct)
    else:
        assert found.error == 0.065
        assert abs(found.estimate - distinct) <= 5 * found.error * distinct


def _sums(us: list[float], vs: list[float]) -> tuple[float, float, float, float]:
    """Means of both, Σ of squared deviations of the first, and Σ of products."""
    u, v = math.fsum(us) / len(us), math.fsum(vs) / len(vs)
    return u, v, math.fsum((x - u) ** 2 for x in us), math.fsum((x - u) * (y - v) for x, y in zip(us, vs, strict=True))


def slope(readings: list[Reading]) -> float | None:
    """Of the line of least squares, per second."""
    if len({time for _, time in readings}) < 2:
        return None
    _, _, tt, tx = _sums([float(time - readings[0][1]) for _, time in readings], [x for x, _ in readings])
    return tx / tt * 1e6


def intercept(readings: list[Reading]) -> float | None:
    """The line's value at the least time."""
    rise = slope(readings)
    if rise is None:
        return None
    first = min(time for _, time in readings)
    t, x, _, _ = _sums([float(time - first) for _, time in readings], [x for x, _ in readings])
    return x - rise / 1e6 * t


def _with_itself(readings: list[Reading]) -> float | None:
    values = [x for x, _ in readings]
    return _sums(values, values)[3] / len(values) if values else None


TOGETHER: dict[str, Callable[[list[Reading]], float | None]] = {
    "slope": slope, "intercept": intercept, "covariance": _with_itself,
    "correlation": lambda readings: 1.0 if len({x for x, _ in readings}) > 1 else None,
}  # fmt: skip
"""Aggregates of two quantities; where these are dimensions, of one with itself."""
