"""Components of windows → value, low, high and exact of every aggregate, plus completeness and resolution.

The mean's interval is the least and greatest of (S + s) / (C + c) over every count c and sum s that the cut buckets
allow, it is reached at the ends of c's range or where s's own bounds meet the bounds c·m and c·M (rounded both ways).
All sums are widened outward by 2·n·ε·Σ(|x| + |center|), so a sum taken in another order stays inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sluicegate_cloud.estimates import logarithms, occurrences, spread
from sluicegate_cloud.estimates.means import least_mean
from sluicegate_cloud.grid import Columns, Floats
from sluicegate_cloud.names import AGGREGATES


@dataclass(frozen=True)
class Presence:
    """Whether each window may hold a reading, certainly does, and is expected to."""

    possible: NDArray[np.bool_]
    certain: NDArray[np.bool_]
    expected: NDArray[np.bool_]

    @cached_property
    def everywhere(self) -> bool:
        """Whether each window certainly holds a reading, and is expected to."""
        return bool(self.certain.all() and self.expected.all())


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
    out |= _quality(parts, out)
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
    """Variance, and standard deviation as its root, which is at most half the range.

    So it has bounds also where squares are beyond float64. Where they are below it a root says nothing of the value.
    """
    out = _answer("variance", *spread.variance(parts), presence)
    half = spread.half_range(parts)
    with np.errstate(over="ignore"):
        most = np.where(presence.possible, np.nextafter(half * half, np.inf), np.nan)
    out["variance_high"] = np.minimum(out["variance_high"], most)
    for name in ("variance_low", "variance"):
        out[name] = np.clip(out[name], 0.0, out["variance_high"])
    out["variance_exact"] &= presence.expected & ~np.isnan(out["variance"]) | ~presence.possible
    value, low, high = (np.sqrt(out[f"variance{end}"]) for end in ("", "_low", "_high"))
    high = np.fmin(np.nextafter(high, np.inf), half)
    low = np.minimum(np.nextafter(low, 0.0), high)
    exact = out["variance_exact"] & ~((high > 0) & (out["variance_high"] < spread.LEAST_SQUARE))
    return out | {"std": np.clip(value, low, high), "std_low": low, "std_high": high, "std_exact": exact}


def _range(known: Columns) -> Columns:
    """From the intervals of the extremes; exact where both are."""
    value = np.maximum(known["max"] - known["min"], 0.0)
    low, high = _least_apart(known["max_low"], known["min_high"]), -_least_apart(known["min_low"], known["max_high"])
    out = {"range": value, "range_low": np.maximum(low, 0.0), "range_high": high}
    return out | {"range_exact": known["max_exact"] & known["min_exact"]}


def _least_apart(a: Floats, b: Floats) -> Floats:
    """A number that a − b is not below: itself, unless it was rounded up (what was lost: Knuth's sum of two)."""
    apart = a - b
    with np.errstate(invalid="ignore"):
        lost = (a - (apart - (apart - a))) - (b + (apart - a))
    rounded = lost < 0
    return np.where(rounded, np.nextafter(apart, -np.inf), apart) if rounded.any() else apart


def _answer(name: str, value: Floats, low: Floats, high: Floats, slack: Floats, presence: Presence) -> Columns:
    """Widen by `slack` (what rounding may do), hold the value inside, and blank what does not exist."""
    exact = (high - low <= slack) & np.isfinite(slack)
    low, high = low - slack, high + slack
    value = np.clip(value, low, high)
    if name != "sum" and not presence.everywhere:
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


def _quality(parts: Columns, known: Columns) -> Columns:
    """Completeness is the least that it can be: of the readings that are certain, beside all that may be missing.

    A repeat is no reading: neither merged nor known to exist.
    """
    certain, missing = known["count_low"].astype(np.float64), parts["missing"]
    whole = np.where(known["count"] > 0, 1.0, np.nan)
    complete = np.divide(certain, certain + missing, out=whole, where=missing > 0)
    buckets = parts["buckets"]
    resolution = np.divide(parts["span_us"], buckets, out=np.full(missing.shape, np.nan), where=buckets > 0)
    return {"completeness": complete, "resolution_us": resolution, "buckets": buckets}
