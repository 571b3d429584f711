"""The geometric mean of windows: the mean's interval on logarithms. There is none where a reading may be 0 or less.

Sums of ln x are kept relative to ln ref, as the mean's are to ref. A bucket of format 1 does not say its sum: it lies
between n times the logarithm of its least value and of its mean.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sluicegate_cloud.bounds import Cut, Rows
from sluicegate_cloud.doubt import Removed
from sluicegate_cloud.estimates.means import least_mean
from sluicegate_cloud.fleet.groups import Groups
from sluicegate_cloud.fleet.part import Part
from sluicegate_cloud.grid import Columns, Floats, Ints
from sluicegate_cloud.inside import Inside
from sluicegate_cloud.sliding import add_at, greatest_at

_EPSILON = float(np.finfo(np.float64).eps)
_STEPS = 8
SUMS = ("log_low", "log_high", "part_log_low", "part_log_high", "part_log")
LEAST: tuple[str, ...] = ()
GREATEST = ("log_reach", "log_base")


def inside(part: Part, out: Columns) -> None:
    """Fill in what the buckets inside add; NaN where one of them has no logarithms."""
    owners = part.block.owners
    least, greatest = owners.positive[part.owner], owners.greatest[part.owner]
    near = np.where(np.isfinite(least), np.clip(out["ref"], np.minimum(least, greatest), greatest), np.nan)
    out["log_base"] = base = ln(near)  # any number will do of the size of what is there
    some, rows = out["n"] > 0, part.certain.rows
    for name in ("log_low", "log_high"):
        out[name] = np.where(some, part.certain.fold(rows[name], np.add, 0.0) - out["n"] * base, 0.0)
    ends = (np.abs(ln(out[name])) for name in ("min_possible", "max_possible"))
    center = owners.log_center[part.owner]
    out["log_reach"] = np.fmax(np.fmax(np.where(some, np.fmax(*ends), 0.0), np.abs(base)), center)


def doubtful(held: Inside, base: Floats, out: Columns, removed: Removed) -> None:
    """Add what buckets in doubt may; NaN where one of them has no logarithms."""
    base, some = out["log_base"], removed.n > 0  # of logarithms
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


def add(windows: Part, out: Columns, at: Ints, part: Cut) -> None:
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


def _as_logarithms(rows: Rows) -> Rows:
    """The fields of the bucket of the logarithms, as `bounds` reads them."""
    named = {name: ln(rows[name]) for name in ("low", "high", "x_first", "x_last")}
    sums = {name: rows[f"log_{name}"] for name in ("total", "pre_low", "pre_high")}
    center = np.where(rows["center"] > 0, ln(rows["center"]), 0.0)
    return {**rows, **named, **sums, "center": center, "m2": np.full_like(center, np.nan)}


def ln(values: Floats) -> Floats:
    """NaN for 0 and less, silently."""
    return np.log(np.where(values > 0, values, np.nan))


def moved(parts: Columns, groups: Groups, apart: Floats) -> Columns:
    """The components around the mean of the devices' bases; NaN for all where one that may hold a reading has none."""
    held = parts["n"] + parts["count_high"] > 0
    expected = np.where(held, parts["n"] + parts["part_count"], 0.0)
    own = np.where(held, parts["log_base"], np.nan)
    weight = groups.sum(expected)
    summed = groups.sum(np.where(held, expected * own, 0.0))
    base = np.divide(summed, weight, out=groups.greatest(own), where=weight != 0)
    base = groups.to_rows(np.where(groups.greatest(held), base, 0.0))
    off = np.where(held, own - base, 0.0)
    ends = parts["count_low"] * off, parts["count_high"] * off
    return {
        **{name: parts[name] + parts["n"] * off for name in ("log_low", "log_high")},
        "part_log_low": parts["part_log_low"] + np.minimum(*ends),
        "part_log_high": parts["part_log_high"] + np.maximum(*ends),
        "part_log": parts["part_log"] + parts["part_count"] * off,
        "log_reach": np.where(held, parts["log_reach"] + np.abs(off), 0.0),
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
