"""Bounds what a bucket's fields do not say: its squares and logarithms, and its extremes under readings in doubt."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sluicegate_cloud.grid import Columns, Floats

_EPSILON = sys.float_info.epsilon
#: What squares beyond float64 are at least.
_LARGEST = sys.float_info.max / 4


def as_frames(rows: Columns, every: Sequence[str]) -> Columns:
    """Buckets, or frames already, with the fields of frames; `every`: the fields that all rows have (`wire.Fields`)."""
    if "buckets" in every:
        return rows
    full = rows["n"] > 0
    rows = rows | {"buckets": full.astype(np.int64), "span_us": rows["t_last"] - rows["t_first"]}
    if rows["gap"].any():  # of a bucket that takes back what was told elsewhere nobody knows where it was
        rows["gap"] = np.where(full, np.maximum(rows["gap"], 0), rows["gap"])
    if "m2" in every:
        rows |= squares(rows)
    if "log_total" in every:
        rows |= logarithms(rows)
    return rows | (sure(rows) if rows["doubt"].any() else {f"sure_{of}": rows[of] for of in ("low", "high")})


def squares(rows: Columns) -> dict[str, Floats]:
    """`m2_low`, `m2_high`: between these Σ (x − mean)² lies.

    Of a bucket that does not say it: half the squared range at least, since both extremes are there, at most
    n · (high − mean) · (mean − low).
    """
    m2, silent = rows["m2"], np.isnan(rows["m2"]) & (rows["n"] > 0)
    if not silent.any():
        return {"m2_low": np.minimum(m2, _LARGEST), "m2_high": m2}
    apart, rounded = _mean_apart(rows), _rounded(rows)
    above = np.maximum(rows["high"] - rows["center"] - apart + rounded, 0.0)
    below = np.maximum(apart - (rows["low"] - rows["center"]) + rounded, 0.0)
    least = (rows["high"] - rows["low"]) ** 2 / 2
    low, high = np.where(silent, least, m2), np.where(silent, rows["n"] * above * below, m2)
    return {"m2_low": np.minimum(low, _LARGEST), "m2_high": high}


def logarithms(rows: Columns) -> dict[str, Floats]:
    """`log_low`, `log_high`: between these Σ ln x lies; NaN where a reading may be 0 or less.

    Of a bucket that does not say it: n times between the logarithm of its least value and of its mean.
    """
    n, low, center = rows["n"], rows["low"], rows["center"]
    told = rows["log_total"] + n * np.where(center > 0, np.log(np.where(center > 0, center, 1.0)), 0.0)
    silent = np.isnan(told) & (n > 0)
    if not silent.any():
        return {"log_low": told, "log_high": told}
    mean = np.minimum(rows["high"], center + _mean_apart(rows) + _rounded(rows))
    positive = np.where(low > 0, low, np.nan)
    least, most = n * np.log(positive), n * np.log(np.maximum(positive, mean))
    most = np.where(low > 0, most, np.nan)
    return {"log_low": np.where(silent, least, told), "log_high": np.where(silent, most, told)}


def sure(rows: Columns) -> dict[str, Floats]:
    """`sure_low`, `sure_high`: the extremes that are certain of buckets in doubt; ∓∞ where none is.

    An extreme may be lost where all places of it are in doubt. Then the next one is known where one reading is in
    doubt, else the other extreme, as long as any reading is certain.
    """
    return {"sure_low": _sure(rows, "low", "high", np.minimum), "sure_high": _sure(rows, "high", "low", np.maximum)}


def _sure(rows: Columns, name: str, other: str, pick: np.ufunc) -> Floats:
    doubt, often, none = rows["doubt"], rows[f"{name}_n"], np.inf if name == "low" else -np.inf
    beside = pick(rows[f"{name}_pre"], rows[f"{name}_suf"])  # NaN where one of them is not known
    certain: list[NDArray[np.bool_]] = [
        (doubt == 0) | (often > doubt),
        (doubt == 1) & (often == 1) & (rows["n"] > 1) & ~np.isnan(beside),
        rows["n"] > doubt,
    ]
    return np.asarray(np.select(certain, [rows[name], beside, rows[other]], none))


def _mean_apart(rows: Columns) -> Floats:
    """The mean less the center: nothing is lost far from 0."""
    return np.asarray(rows["total"] / rows["n"])


def _rounded(rows: Columns) -> Floats:
    greatest = np.maximum(np.abs(rows["low"]), np.abs(rows["high"]))
    return np.asarray((rows["n"] + 8) * (np.abs(rows["center"]) + greatest) * (2 * _EPSILON))
