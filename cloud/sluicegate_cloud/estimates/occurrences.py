"""How often the least and the greatest value of a window occur: certain counts, per device and for all.

A window is pieces: the readings inside, and each cut bucket's part. A piece whose possible extreme is beyond what the
window's certainly reaches adds none; one whose extreme is known to be the window's adds what it certainly has.
"""

from __future__ import annotations

import numpy as np

from sluicegate_cloud.bounds import Cut
from sluicegate_cloud.fleet.groups import Groups
from sluicegate_cloud.fleet.part import Part
from sluicegate_cloud.grid import Columns, Floats, Ints
from sluicegate_cloud.inside import Inside
from sluicegate_cloud.sliding import add_at

SUMS = ("min_n_low", "min_n_high", "max_n_low", "max_n_high")
LEAST: tuple[str, ...] = ()
GREATEST: tuple[str, ...] = ()
Told = tuple[Floats, Floats, Floats]
_SIDES = (("min", "low", 1.0), ("max", "high", -1.0))


def inside(part: Part, out: Columns) -> None:
    """Fill in what the buckets inside have, their extremes being all there is so far."""
    for name, field, sign in _SIDES:
        told = _told(part.certain, field, sign)
        if part.doubtful is not None:
            told = _with_doubt(told, part.doubtful, field, sign, out["n"])
        out[f"_{name}"], out[f"{name}_n_low"], out[f"{name}_n_high"] = told


def _told(held: Inside, field: str, sign: float) -> Told:
    """By what each row says of its extreme; of those in doubt all may be repeats but the last that is certain."""
    n, known, doubt = (held.rows[name].astype(np.float64) for name in ("n", f"{field}_n", "doubt"))
    counts = np.maximum(np.where(known < 0, 1.0, known) - doubt, 0.0), np.where(known < 0, n, known)
    return _with_pairs(held, sign * held.rows[field], counts)


def _with_doubt(certain: Told, held: Inside, field: str, sign: float, n: Ints) -> Told:
    """Both; where a repeat may be all that has the extreme, another value's occurrences are what is asked for."""
    (a, *ours), (b, *its) = certain, _told(held, field, sign)
    least = np.minimum(a, b)
    low, high = (np.where(a == least, x, 0.0) + np.where(b == least, y, 0.0) for x, y in zip(ours, its, strict=True))
    lost = np.minimum(a, held.fold(sign * held.rows[f"sure_{field}"], np.minimum, np.inf)) > least
    return least, np.where(lost, 0.0, low), np.where(lost, n + held.count(), high)


def _with_pairs(held: Inside, values: Floats, counts: tuple[Floats, Floats]) -> Told:
    """(least value, counts of it) of each window's blocks and of the rows that cross a block's edge."""
    row, at = held.pairs
    before, *folded = held.slide.fold_occurrences(values, counts)
    least = before.copy()
    np.minimum.at(least, at, values[row])
    out = [np.where(before == least, count, 0.0) for count in folded]
    same = values[row] == least[at]
    for target, count in zip(out, counts, strict=True):
        add_at(target, at[same], count[row[same]])
    return least, out[0], out[1]


def finish(out: Columns) -> None:
    """Once all parts are known: the readings inside count only where theirs may be, or is, the window's extreme."""
    for name, _, sign in _SIDES:
        extreme = out.pop(f"_{name}")
        certain, possible = sign * out[f"{name}_certain"], sign * out[f"{name}_possible"]
        out[f"{name}_n_high"] = np.where(extreme <= certain, out[f"{name}_n_high"], 0.0)
        out[f"{name}_n_low"] = np.where(extreme == possible, out[f"{name}_n_low"], 0.0)


def add(windows: Part, out: Columns, at: Ints, part: Cut) -> None:
    """Add the parts, in a pass of its own after `finish`."""
    for name, field, sign in _SIDES:
        lows, highs = (part.min_low, part.min_high) if name == "min" else (part.max_high, part.max_low)
        possible, certain = sign * lows, sign * highs
        least, reached = sign * out[f"{name}_possible"][at], sign * out[f"{name}_certain"][at]
        extreme, known = sign * part.rows[field], part.rows[f"{field}_n"].astype(np.float64)
        most = part.count_high.astype(np.float64)
        tie = (possible == reached) & (possible == extreme) & (known > 0)
        highest = np.where(possible <= reached, np.where(tie, np.minimum(most, known), most), 0.0)
        add_at(out[f"{name}_n_high"], at, highest)
        sure = (possible == certain) & (certain == least)
        whole = (part.rows[f"{field}_t_first"] >= part.start) & (part.rows[f"{field}_t_last"] < part.end)
        lowest = np.where(whole & (certain == extreme) & (known > 0), known, 1.0)
        add_at(out[f"{name}_n_low"], at, np.where(sure & (most > 0), lowest, 0.0))


def moved(parts: Columns, groups: Groups, apart: Floats) -> Columns:
    """A device counts where its extreme may be, or certainly is, that of all."""
    out: Columns = {}
    for name, _, sign in _SIDES:
        possible, certain = (sign * parts[f"{name}_{kind}"] for kind in ("possible", "certain"))
        may = possible <= groups.to_rows(groups.least(certain))
        sure = (possible == certain) & (possible == groups.to_rows(groups.least(possible)))
        out[f"{name}_n_high"] = np.where(may, parts[f"{name}_n_high"], 0.0)
        out[f"{name}_n_low"] = np.where(sure, parts[f"{name}_n_low"], 0.0)
    return out


def count(parts: Columns, name: str) -> tuple[Floats, Floats, Floats, Floats]:
    """(value, low, high, slack) of how often each window's `name` ("min" or "max") occurs."""
    some = (parts["n"] + parts["count_low"] > 0).astype(np.float64)
    low = np.maximum(parts[f"{name}_n_low"], some)
    high = np.maximum(parts[f"{name}_n_high"], low)
    return np.maximum(low, np.minimum(1.0, high)), low, high, np.zeros_like(low)
