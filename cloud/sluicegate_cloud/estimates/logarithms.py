"""The geometric mean of windows: the mean's interval on logarithms. There is none where a reading may be 0 or less.

Sums of ln x are kept relative to ln ref, as the mean's are to ref. A bucket of format 1 does not say its sum: it lies
between n times the logarithm of its least value and of its mean.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from pyspark.sql import Column, Window
from pyspark.sql import functions as sf

from sluicegate_cloud.bounds import Cut
from sluicegate_cloud.doubt import Removed
from sluicegate_cloud.estimates.means import least_mean
from sluicegate_cloud.grid import Columns, Floats, Ints
from sluicegate_cloud.inside import Inside
from sluicegate_cloud.names import OF_A_WINDOW
from sluicegate_cloud.sliding import add_at, greatest_at
from sluicegate_cloud.stream import Stream

_EPSILON = float(np.finfo(np.float64).eps)
_STEPS = 8
SUMS = ("log_low", "log_high", "part_log_low", "part_log_high", "part_log")
LEAST: tuple[str, ...] = ()
GREATEST = ("log_reach", "log_base")


def inside(stream: Stream, out: Columns) -> None:
    """Fill in what the buckets inside add; NaN where one of them has no logarithms."""
    positive = stream.rows["low"] > 0
    least, greatest = stream.rows["low"].min(initial=np.inf, where=positive), stream.rows["high"].max()
    near = np.clip(out["ref"], least, greatest) if positive.any() else np.full_like(out["ref"], np.nan)
    out["log_base"] = base = ln(near)  # any number will do of the size of what is there
    some = out["n"] > 0
    for name in ("log_low", "log_high"):
        out[name] = np.where(some, stream.certain.fold(stream.certain.rows[name], np.add, 0.0) - out["n"] * base, 0.0)
    ends = (np.abs(ln(out[name])) for name in ("min_possible", "max_possible"))
    centers = np.abs(ln(stream.rows["center"]))
    center = float(np.max(centers, initial=0.0, where=np.isfinite(centers)))
    out["log_reach"] = np.fmax(np.fmax(np.where(some, np.fmax(*ends), 0.0), np.abs(base)), center)


def doubtful(held: Inside, center: float, out: Columns, removed: Removed) -> None:
    """Add what buckets in doubt may; NaN where one of them has no logarithms."""
    base, some = out["log_base"], removed.n > 0
    sums = (held.fold(held.rows[f"log_{end}"], np.add, 0.0) for end in ("low", "high"))
    low, high = (np.where(some, total - removed.n * base, 0.0) for total in sums)
    least, greatest = (ln(np.where(some, of, 1.0)) for of in (removed.least, removed.greatest))
    off = np.where(some, removed.most * np.maximum(greatest - base, 0.0), 0.0)
    more = np.where(some, removed.most * np.maximum(base - least, 0.0), 0.0)
    out["part_log_low"] += low - off
    out["part_log_high"] += high + more
    out["part_log"] += (low + high) / 2
    reach = np.fmax(np.abs(least), np.abs(greatest))
    out["log_reach"] = np.where(some, np.fmax(out["log_reach"], reach), out["log_reach"])


def add(stream: Stream, out: Columns, at: Ints, part: Cut) -> None:
    """Add what cut buckets may."""
    rows, base = _as_logarithms(part.rows), out["log_base"][at]
    low, high = replace(part, rows=rows).sums(base)
    counts = np.stack([part.count_low, part.count_high])
    least, greatest = counts * (rows["low"] - base), counts * (rows["high"] - base)
    known = np.isfinite(rows["total"])
    low, high = np.where(known, low, least.min(axis=0)), np.where(known, high, greatest.max(axis=0))
    guess = np.where(known, part.count * (rows["total"] / rows["n"] + rows["center"] - base), (low + high) / 2)
    some = part.count_high > 0
    for name, values in (("low", low), ("high", high)):
        add_at(out[f"part_log_{name}"], at, np.where(some, values, 0.0))
    add_at(out["part_log"], at, np.where(some, np.clip(guess, low, high), 0.0))
    reach = np.fmax(np.abs(rows["low"]), np.abs(rows["high"]))
    greatest_at(out["log_reach"], at, np.nan_to_num(np.fmax(reach, np.abs(rows["center"])), posinf=0.0))


def _as_logarithms(rows: Columns) -> Columns:
    """The fields of the bucket of the logarithms, as `bounds` reads them."""
    named = {name: ln(rows[name]) for name in ("low", "high", "x_first", "x_last")}
    sums = {name: rows[f"log_{name}"] for name in ("total", "pre_low", "pre_high")}
    center = np.where(rows["center"] > 0, ln(rows["center"]), 0.0)
    return {**rows, **named, **sums, "center": center, "m2": np.full_like(center, np.nan)}


def ln(values: Floats) -> Floats:
    """NaN for 0 and less, silently."""
    return np.log(np.where(values > 0, values, np.nan))


def moved(apart: Column, mean: Column) -> dict[str, Column]:
    """The components around the mean of the devices' bases; NaN for all where one that may hold a reading has none."""
    everyone = Window.partitionBy(*OF_A_WINDOW)
    expected, held = sf.col("n") + sf.col("part_count"), sf.col("n") + sf.col("count_high") > 0
    own = sf.when(held, sf.col("log_base"))
    base = sf.sum(expected * own).over(everyone) / sf.nullif(sf.sum(expected).over(everyone), sf.lit(0.0))
    base = sf.coalesce(base, sf.max(own).over(everyone), sf.lit(0.0))
    off = sf.when(held, own - base).otherwise(0.0)
    ends = (sf.col("count_low") * off, sf.col("count_high") * off)
    return {
        **{name: sf.col(name) + sf.col("n") * off for name in ("log_low", "log_high")},
        "part_log_low": sf.col("part_log_low") + sf.least(*ends),
        "part_log_high": sf.col("part_log_high") + sf.greatest(*ends),
        "part_log": sf.col("part_log") + sf.col("part_count") * off,
        "log_reach": sf.when(held, sf.col("log_reach") + sf.abs(off)).otherwise(0.0),
        "log_base": base,
    }


def geometric_mean(parts: Columns) -> tuple[Floats, Floats, Floats, Floats]:
    """(value, low, high, slack) of every window; NaN where there is none or may be none."""
    base, n = parts["log_base"], parts["n"].astype(np.float64)
    least, greatest = (ln(parts[f"part_{name}"]) - base for name in ("min", "max"))
    low = base + least_mean(parts, parts["log_low"], parts["part_log_low"], least)
    high = base - least_mean(parts, -parts["log_high"], -parts["part_log_high"], -greatest)
    slack = 8 * (n + parts["part_n"] + _STEPS) * _EPSILON * parts["log_reach"]
    count = n + parts["part_count"]
    total = (parts["log_low"] + parts["log_high"]) / 2 + parts["part_log"]
    value = base + np.divide(total, count, out=np.full_like(n, np.nan), where=count > 0)
    none = np.isnan(parts["log_low"] + parts["part_log_low"] + parts["part_log_high"] + base)
    low, high = (np.where(none, np.nan, of) for of in (low - slack, high + slack))
    ends = np.fmax(np.exp(low), parts["min_possible"]), np.fmin(np.exp(high), parts["max_possible"])
    spare = np.where(none, 0.0, ends[1] * (4 * _EPSILON - np.expm1(-2 * slack)))
    low, high = (np.where(none, np.nan, end) for end in ends)
    return np.where(none, np.nan, np.exp(value)), low, high, spare
