"""Bounds windows whose buckets hold readings in doubt: of each bucket any number of these, up to its doubt, may count.

A bucket of n readings with doubt d stands for n − d … n of them, whichever: so it is a part whose count ranges, as a
cut bucket is. What it may be less by are at most d readings between its extremes. That adds up over the buckets of a
window, so the work does not grow with the window: for a sum relative to r, Σ d·max(0, high − r) is at most
D·max(0, H − r) and at most Σ d·high − D·r + D·max(0, r − h), with D = Σ d and H, h the greatest and least `high`.
An extreme is certain where it occurs more than d times, or in a bucket without doubt (`frames`, SURE): a repeat may be
stamped with the time it came again, so the reading that it repeats need not be in the window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType

import numpy as np

from sluicegate_cloud.grid import Columns, Floats
from sluicegate_cloud.inside import Inside


@dataclass(frozen=True)
class Removed:
    """Of each window's buckets in doubt: `n` readings with Σ (x − ref) = `total` between `least` and `greatest`.

    At most `most` of them are repeats; `far`: the greatest |x − ref|.
    """

    n: Floats
    total: Floats
    most: Floats
    least: Floats
    greatest: Floats
    far: Floats


def extremes(held: Inside, out: Columns, name: str, field: str, pick: np.ufunc, none: float) -> None:
    """What is possible and what is certain of a window's extreme, with the buckets in doubt."""
    out[f"{name}_possible"] = pick(out[f"{name}_possible"], held.fold(held.rows[field], pick, none))
    out[f"{name}_certain"] = pick(out[f"{name}_certain"], held.fold(held.rows[f"sure_{field}"], pick, none))


def add(held: Inside, base: Floats, out: Columns, needed: Sequence[ModuleType]) -> None:
    """Add the buckets in doubt to the components of the windows that they lie in."""
    rows, ref = held.rows, out["ref"]
    n, most = held.count(), held.fold(rows["doubt"].astype(np.float64), np.add, 0.0)
    total = held.total()
    low, high = _less(held, ref, most), _more(held, ref, most)
    zero = np.zeros_like(ref)
    around_ref, around_0 = total + n * (base - ref), total + n * base
    out["part_low"] += around_ref - low
    out["part_high"] += around_ref + high
    out["raw_low"] += around_0 - _less(held, zero, most)
    out["raw_high"] += around_0 + _more(held, zero, most)
    out["raw_part"] += around_0
    out["part_count"] += n
    out["doubt"] += most
    out["missing"] += held.fold(rows["gap"].astype(np.float64), np.add, 0.0)
    whole = {name: held.fold(rows[name].astype(np.int64), np.add, 0) for name in ("n", "doubt", "buckets", "span_us")}
    for name, values in (
        ("part_n", whole["n"]),
        ("count_low", whole["n"] - whole["doubt"]),
        ("count_high", whole["n"]),
        ("buckets", whole["buckets"]),
        ("span_us", whole["span_us"]),
    ):
        out[name] += values
    least, greatest = held.fold(rows["low"], np.minimum, np.inf), held.fold(rows["high"], np.maximum, -np.inf)
    out["part_min"], out["part_max"] = np.minimum(out["part_min"], least), np.maximum(out["part_max"], greatest)
    far = np.where(n > 0, np.maximum(np.abs(least - ref), np.abs(greatest - ref)), 0.0)
    removed = Removed(n, around_ref, most, least, greatest, far)
    for family in needed:
        if hasattr(family, "doubtful"):
            family.doubtful(held, base, out, removed)


def _less(held: Inside, ref: Floats, most: Floats) -> Floats:
    """At most so much less is Σ (x − ref) without the repeats: Σ doubt · max(0, high − ref)."""
    return _beyond(held, held.rows["high"], ref, most)


def _more(held: Inside, ref: Floats, most: Floats) -> Floats:
    """At most so much more: Σ doubt · max(0, ref − low)."""
    return _beyond(held, -held.rows["low"], -ref, most)


def _beyond(held: Inside, ends: Floats, ref: Floats, most: Floats) -> Floats:
    greatest, least = held.fold(ends, np.maximum, -np.inf), held.fold(ends, np.minimum, np.inf)
    some = most > 0
    greatest, least = np.where(some, greatest, 0.0), np.where(some, least, 0.0)
    at_most = most * np.maximum(greatest - ref, 0.0)
    summed = held.fold(held.rows["doubt"] * ends, np.add, 0.0) - most * ref + most * np.maximum(ref - least, 0.0)
    return np.asarray(np.where(some, np.maximum(np.minimum(at_most, summed), 0.0), 0.0))
