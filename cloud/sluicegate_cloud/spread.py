"""Variance and standard deviation of windows: the population's, with certain intervals, per device and for all.

Source: error-algebra, "Variance". For c readings of mean ν in the cut buckets, C of mean μ inside and N = C + c,
N · variance = M₂ + q + (C·c/N)(ν − μ)², where q lies between 0 and c·(M − ν)(ν − m). Least over c: concave in 1/N for
the least |ν − μ| that any c allows, so at an end of c's range. Greatest: SEGMENTS ranges of N, each bounded by its
worse ends; there a second bound holds as well, since N · variance ≤ Σ (x − r)² for any r: a cut bucket adds no more
than all its readings do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from pyspark.sql import Column
from pyspark.sql import functions as sf

from sluicegate_cloud.bounds import Cut
from sluicegate_cloud.grid import Columns, Floats, Ints
from sluicegate_cloud.sliding import add_at, greatest_at

if TYPE_CHECKING:
    from sluicegate_cloud.components import Stream

SEGMENTS = 12
_EPSILON = float(np.finfo(np.float64).eps)
_STEPS = 8
#: `squares_*`: Σ (x − ref)² of the readings inside; `part_squares`, `part_total`: at most Σ (x − ref)², and the sum of
#: x − ref, of all readings of the cut buckets; `part_estimate`: Σ (x − ref)² of the part inside; `reach`: the greatest
#: |x − ref|.
SUMS = ("squares_low", "squares_high", "part_squares", "part_total", "part_estimate")
LEAST: tuple[str, ...] = ()
GREATEST = ("reach",)


def inside(stream: Stream, out: Columns) -> None:
    """Fill in what the buckets inside add; `out` has `n`, `ref` and `total` of them already."""
    rows, ref = stream.rows, out["ref"]
    n, total = rows["n"].astype(np.float64), rows["total"] + rows["n"] * (rows["center"] - stream.center)
    own = stream.slide.fold_squares(n, total, rows["m2_low"])
    squares = _with_pairs(stream, n, total, own)
    mean = np.divide(out["total"], out["n"], out=np.zeros_like(ref), where=out["n"] > 0)
    out["squares_low"] = squares + out["n"] * mean * mean
    out["squares_high"] = out["squares_low"] + stream.fold(rows["m2_high"] - rows["m2_low"], np.add, 0.0)
    reach = np.maximum(np.abs(rows["center"].max() - ref), np.abs(rows["center"].min() - ref))
    for name in ("min_possible", "max_possible"):
        reach = np.maximum(reach, np.where(np.isfinite(out[name]), np.abs(out[name] - ref), 0.0))
    out["reach"] = reach


def _with_pairs(stream: Stream, n: Floats, total: Floats, own: tuple[Floats, Floats, Floats]) -> Floats:
    """Σ (x − mean)² of each window's blocks and of the rows that cross a block's edge, around the mean of both."""
    row, at = stream.inside_pairs
    count, added, squares = own
    n_all, total_all = count.copy(), added.copy()
    add_at(n_all, at, n[row])
    add_at(total_all, at, total[row])
    mean = np.divide(total_all, n_all, out=np.zeros_like(n_all), where=n_all > 0)
    apart = np.divide(added, count, out=mean.copy(), where=count > 0) - mean
    out = squares + count * apart * apart
    off = total[row] / n[row] - mean[at]
    add_at(out, at, stream.rows["m2_low"][row] + n[row] * off * off)
    return np.asarray(out)


def add(stream: Stream, out: Columns, at: Ints, part: Cut) -> None:
    """Add what cut buckets may."""
    rows, ref = part.rows, out["ref"][at]
    n = rows["n"].astype(np.float64)
    total = rows["total"] + n * (rows["center"] - ref)
    around = total * total / n
    add_at(out["part_squares"], at, rows["m2_high"] + around)
    add_at(out["part_total"], at, total)
    add_at(out["part_estimate"], at, part.count / n * ((rows["m2_low"] + rows["m2_high"]) / 2 + around))
    ends = [np.abs(rows[name] - ref) for name in ("low", "high", "center")]
    greatest_at(out["reach"], at, np.max(ends, axis=0))


def moved(apart: Column, mean: Column) -> dict[str, Column]:
    """The components around `mean`, which is `apart` less than `ref`."""
    n, part_n, part_total = (sf.col(name) for name in ("n", "part_n", "part_total"))
    inside_shift = 2 * apart * sf.col("total") + n * apart * apart
    likely = sf.col("raw_part") - sf.col("part_count") * sf.col("ref")
    return {
        "squares_low": sf.col("squares_low") + inside_shift,
        "squares_high": sf.col("squares_high") + inside_shift,
        "part_squares": sf.col("part_squares") + 2 * apart * part_total + part_n * apart * apart,
        "part_total": part_total + part_n * apart,
        "part_estimate": sf.col("part_estimate") + 2 * apart * likely + sf.col("part_count") * apart * apart,
        "reach": sf.col("reach") + sf.abs(apart),
    }


def variance(parts: Columns) -> tuple[Floats, Floats, Floats, Floats]:
    """(value, low, high, slack) of every window's variance; NaN where there can be no reading."""
    n = parts["n"].astype(np.float64)
    mean = np.divide(parts["total"], n, out=np.zeros_like(n), where=n > 0)
    least, greatest = (np.maximum(parts[f"squares_{end}"] - n * mean * mean, 0.0) for end in ("low", "high"))
    count = n + parts["part_count"]
    guess = (parts["squares_low"] + parts["squares_high"]) / 2 + parts["part_estimate"]
    value = np.divide(guess, count, out=np.full_like(n, np.nan), where=count > 0)
    readings = n + parts["part_n"] + _STEPS
    slack = 8 * readings * _EPSILON * parts["reach"] ** 2
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return value, _low(parts, n, mean, least), _high(parts, n, mean, greatest), slack


def _box(parts: Columns) -> tuple[Floats, Floats]:
    """The least and greatest value, less ref, of what the cut buckets may add; 0 where they add nothing."""
    ends = (parts[f"part_{name}"] - parts["ref"] for name in ("min", "max"))
    least, greatest = (np.where(np.isfinite(end), end, 0.0) for end in ends)
    return least, greatest


def _means(parts: Columns, c0: Floats, c1: Floats) -> tuple[Floats, Floats]:
    """Between which means the part's lies for any count of c0 … c1, at least 1."""
    least, greatest = _box(parts)
    c0, c1 = np.maximum(c0, 1.0), np.maximum(c1, 1.0)
    low = np.maximum(least, np.minimum(parts["part_low"] / c0, parts["part_low"] / c1))
    high = np.minimum(greatest, np.maximum(parts["part_high"] / c0, parts["part_high"] / c1))
    return np.minimum(low, high), np.maximum(low, high)


def _low(parts: Columns, n: Floats, mean: Floats, squares: Floats) -> Floats:
    c0, c1 = parts["count_low"].astype(np.float64), parts["count_high"].astype(np.float64)
    low, high = _means(parts, c0, c1)
    apart = mean - np.clip(mean, low, high)
    ends = [(squares + n * c / (n + c) * apart * apart) / (n + c) for c in (c0, c1)]
    return np.asarray(np.where(n > 0, np.fmin(*ends), np.where(c1 > 0, 0.0, np.nan)))


def _high(parts: Columns, n: Floats, mean: Floats, squares: Floats) -> Floats:
    c1 = parts["count_high"].astype(np.float64)
    c0 = np.maximum(parts["count_low"], (n == 0) & (c1 > 0)).astype(np.float64)
    ratio = ((n + c1) / (n + c0)) ** (1 / SEGMENTS)
    best, begin = np.full_like(n, -np.inf), n + c0
    for i in range(SEGMENTS):
        end = n + c1 if i == SEGMENTS - 1 else np.minimum(begin * ratio, n + c1)
        bound = _segment(parts, n, mean, squares, begin, np.maximum(end, begin))
        best, begin = np.fmax(best, bound), end
    return np.asarray(np.where(n + c1 > 0, best, np.nan))


def _segment(parts: Columns, n: Floats, mean: Floats, squares: Floats, begin: Floats, end: Floats) -> Floats:
    """No variance of begin … end readings is greater."""
    least, greatest = _box(parts)
    share = (end - n) / end
    pull = n / begin * share
    low, high = _means(parts, begin - n, end - n)
    turn = (share * (least + greatest) / 2 - pull * mean) / (share - pull)
    inner = np.clip(np.where(np.isfinite(turn), turn, low), low, high)
    spread = [share * (greatest - v) * (v - least) + pull * (v - mean) ** 2 for v in (low, high, inner)]
    one = squares / begin + np.max(spread, axis=0)
    far = np.maximum(least * least, greatest * greatest)
    two = (parts["squares_high"] + np.minimum(parts["part_squares"], (end - n) * far)) / begin
    return np.asarray(np.fmin(one, two))
