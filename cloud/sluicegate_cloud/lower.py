"""Components of windows → value, low, high and exact of every aggregate, plus completeness and resolution.

The mean's interval is the least and greatest of (S + s) / (C + c) over every count c and sum s that the cut buckets
allow, it is reached at the ends of c's range or where s's own bounds meet the bounds c·m and c·M (rounded both ways).
All sums are widened outward by 2·n·ε·Σ(|x| + |center|), so a sum taken in another order stays inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sluicegate_cloud import logarithms, occurrences, spread
from sluicegate_cloud.grid import Columns, Floats
from sluicegate_cloud.names import AGGREGATES


@dataclass(frozen=True)
class Presence:
    """Whether each window may hold a reading, certainly does, and is expected to."""

    possible: NDArray[np.bool_]
    certain: NDArray[np.bool_]
    expected: NDArray[np.bool_]


_EPSILON = float(np.finfo(np.float64).eps)
#: Operations of our own on top of the n of the sum itself.
_STEPS = 8


def lower(parts: Columns, aggregates: Sequence[str] = AGGREGATES) -> Columns:
    """The answer of every window: AGGREGATES and those of MORE that are asked for, each with `_low`, `_high`, `_exact`;
    completeness, resolution_us, buckets.

    Where a window may be empty (`count_low` is 0) the interval of mean, min and max holds if there is any reading at
    all; where it must be empty they are NaN. A value is NaN when no reading is expected.
    """
    out: Columns = {}
    low, high = parts["n"] + parts["count_low"], parts["n"] + parts["count_high"]
    value = np.clip(parts["n"] + np.rint(parts["part_count"]).astype(np.int64), low, high)
    out |= {"count": value, "count_low": low, "count_high": high, "count_exact": low == high}
    presence = Presence(high > 0, low > 0, value > 0)
    for name, answer in (("sum", _sum(parts)), ("mean", _mean(parts)), ("min", _min(parts)), ("max", _max(parts))):
        out |= _answer(name, *answer, presence)
    out |= _more(parts, set(aggregates), out, presence)
    out |= _quality(parts, value)
    return out


def _more(parts: Columns, asked: set[str], known: Columns, presence: Presence) -> Columns:
    out: Columns = {}
    if asked & {"variance", "std"}:
        out |= _spread(parts, presence)
    if "range" in asked:
        out |= _range(known)
    if "geometric_mean" in asked:
        out |= _answer("geometric_mean", *logarithms.geometric_mean(parts), presence)
    for name in ("min", "max"):
        if f"{name}_count" in asked:
            out |= _answer(f"{name}_count", *occurrences.count(parts, name), presence)
    return out


def _spread(parts: Columns, presence: Presence) -> Columns:
    """Variance, and standard deviation as its root."""
    out = _answer("variance", *spread.variance(parts), presence)
    out["variance_low"], out["variance"] = (np.maximum(out[name], 0.0) for name in ("variance_low", "variance"))
    roots = {f"std{end}": np.sqrt(out[f"variance{end}"]) for end in ("", "_low", "_high")}
    roots["std_low"], roots["std_high"] = np.nextafter(roots["std_low"], 0.0), np.nextafter(roots["std_high"], np.inf)
    return out | roots | {"std_exact": out["variance_exact"]}


def _range(known: Columns) -> Columns:
    """From the intervals of the extremes; exact where both are."""
    low = np.maximum(known["max_low"] - known["min_high"], 0.0)
    out = {"range": np.maximum(known["max"] - known["min"], 0.0), "range_low": low}
    return out | {
        "range_high": known["max_high"] - known["min_low"],
        "range_exact": known["max_exact"] & known["min_exact"],
    }


def _answer(name: str, value: Floats, low: Floats, high: Floats, slack: Floats, presence: Presence) -> Columns:
    """Widen by `slack` (what rounding may do), hold the value inside, and blank what does not exist."""
    exact = high - low <= slack
    low, high = low - slack, high + slack
    value = np.clip(value, low, high)
    if name != "sum":
        value = np.where(presence.expected, value, np.nan)
        low, high = (np.where(presence.possible, of, np.nan) for of in (low, high))
        exact = (exact & presence.certain) | ~presence.possible
    return {name: value, f"{name}_low": low, f"{name}_high": high, f"{name}_exact": exact}


def _slack(parts: Columns) -> Floats:
    """Rounding of a mean: 2·n·ε·max(|x| + |center|); a sum's is n times that."""
    return np.asarray(2 * (_readings(parts) + _STEPS) * _EPSILON * parts["scale"])


def _readings(parts: Columns) -> Floats:
    return np.asarray((parts["n"] + parts["part_n"]).astype(np.float64))


def _sum(parts: Columns) -> tuple[Floats, Floats, Floats, Floats]:
    inside = parts["total"] + parts["n"] * parts["ref"]
    slack = _slack(parts) * np.maximum(_readings(parts), 1.0)
    return inside + parts["raw_part"], inside + parts["raw_low"], inside + parts["raw_high"], slack


def _min(parts: Columns) -> tuple[Floats, Floats, Floats, Floats]:
    certain = np.where(np.isfinite(parts["min_certain"]), parts["min_certain"], parts["part_max"])
    return np.minimum(certain, parts["min_likely"]), parts["min_possible"], certain, np.zeros(certain.shape)


def _max(parts: Columns) -> tuple[Floats, Floats, Floats, Floats]:
    certain = np.where(np.isfinite(parts["max_certain"]), parts["max_certain"], parts["part_min"])
    return np.maximum(certain, parts["max_likely"]), certain, parts["max_possible"], np.zeros(certain.shape)


def _mean(parts: Columns) -> tuple[Floats, Floats, Floats, Floats]:
    """Around `ref`, the value itself, so that the sum's two ends are nearly the mean's own."""
    ref = parts["ref"]
    low = ref + least_mean(parts, parts["total"], parts["part_low"], parts["part_min"] - ref)
    high = ref - least_mean(parts, -parts["total"], -parts["part_high"], ref - parts["part_max"])
    low, high = np.maximum(low, parts["min_possible"]), np.minimum(high, parts["max_possible"])
    return ref, low, high, _slack(parts)


def least_mean(parts: Columns, total: Floats, part: Floats, least: Floats) -> Floats:
    """Least over c of (total + max(part, c·least)) / (n + c), c from 1 when n is 0; the greatest is − this of − all."""
    n, c1 = parts["n"].astype(np.float64), parts["count_high"].astype(np.float64)
    c0 = np.maximum(parts["count_low"], (parts["n"] == 0) & (c1 > 0)).astype(np.float64)
    least = np.where(np.isfinite(least), least, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        meet = part / least
        meet = np.where(np.isfinite(meet), meet, c0)
        candidates = [c0, c1, np.clip(np.floor(meet), c0, c1), np.clip(np.ceil(meet), c0, c1)]
        means = [(total + np.maximum(part, c * least)) / (n + c) for c in candidates]
    best = means[0]
    for mean in means[1:]:
        best = np.fmin(best, mean)
    return np.asarray(best)


def _quality(parts: Columns, count: NDArray[np.int64]) -> Columns:
    certain = np.maximum(count - parts["doubt"], 0.0)  # a repeat is no reading: neither merged nor known to exist
    known = certain + parts["missing"]
    complete = np.divide(certain, known, out=np.where(count > 0, 1.0, np.nan), where=known > 0)
    buckets = parts["buckets"]
    resolution = np.divide(parts["span_us"], buckets, out=np.full(known.shape, np.nan), where=buckets > 0)
    return {"completeness": complete, "resolution_us": resolution, "buckets": buckets}
