"""Computes every window of a stream as components: the readings inside, and what the cut buckets may add.

Buckets with readings in doubt are parts too, though they lie inside: how many of their readings count is not known.

Components of several devices combine by adding, least and greatest (`windows.fleet`), so a window stays in
this form until `lower` turns it into values and intervals. Work grows with frames and crossing buckets, not with
windows times width.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType

import numpy as np

from sluicegate_cloud import doubt
from sluicegate_cloud.bounds import Cut
from sluicegate_cloud.estimates import logarithms, occurrences, spread
from sluicegate_cloud.fleet.block import blocks
from sluicegate_cloud.fleet.part import Part, parts
from sluicegate_cloud.grid import MAX_EMPTY, Axis, Columns, Floats, Grid, Ints
from sluicegate_cloud.sliding import add_at, greatest_at, least_at

#: The components of a window, by how they combine over devices. `ref`: the mean's estimate, to which `total`,
#: `part_low` and `part_high` are relative; `n`, `total`: the readings of the buckets inside; `part_*`: of the cut
#: buckets and of those in doubt, pooled (`part_n`: all their readings, `part_count`: interpolated); `raw_*`: their sum
#: of x itself; `*_possible`, `*_certain`, `*_likely`: the extremes; `scale`: greatest |x| plus |center|; `missing`:
#: readings known to be lost; `doubt`: counted ones that may be repeats; `span_us`: summed time that `buckets` cover.
INTEGERS = ("n", "part_n", "count_low", "count_high", "buckets", "span_us")
SUMS = (*INTEGERS, "part_count", "raw_low", "raw_high", "raw_part", "missing", "doubt")
LEAST = ("part_min", "min_possible", "min_certain", "min_likely")
GREATEST = ("part_max", "max_possible", "max_certain", "max_likely", "scale")
SHIFTED = ("ref", "total", "part_low", "part_high")
COMPONENTS = (*SUMS, *LEAST, *GREATEST, *SHIFTED)

#: Components that only some aggregates need; each module has `SUMS`, `LEAST`, `GREATEST`, `inside`, `add` and `moved`.
FAMILIES: dict[str, ModuleType] = {
    "variance": spread,
    "std": spread,
    "geometric_mean": logarithms,
    "min_count": occurrences,
    "max_count": occurrences,
}


def families(aggregates: Sequence[str]) -> tuple[ModuleType, ...]:
    """What the aggregates need beyond COMPONENTS, each once."""
    return tuple(dict.fromkeys(FAMILIES[name] for name in aggregates if name in FAMILIES))


def names(needed: Sequence[ModuleType]) -> tuple[str, ...]:
    """All components with those of the families."""
    return (*COMPONENTS, *(name for family in needed for name in (*family.SUMS, *family.LEAST, *family.GREATEST)))


def components(
    rows: Columns, grid: Grid, max_empty: int = MAX_EMPTY, needed: Sequence[ModuleType] = ()
) -> tuple[Axis, Columns]:
    """The windows of one stream and their components (name → array, an entry for each of the axis), `needed` ones too.

    `rows` are the columns of buckets or of frames of one device and stream, all incarnations, in any order.
    """
    rows = {"owner": np.zeros(rows["n"].size, np.int64)} | {n: of for n, of in rows.items() if n != "incarnation"}
    found = [
        (part, answer(part, needed)) for _, block in blocks(rows, grid, max_empty) for part in parts(block, max_empty)
    ]
    if not found:
        none = Axis(np.zeros(0, np.int64), np.zeros(0, np.int64))
        return none, {name: np.zeros(0, np.int64 if name in INTEGERS else np.float64) for name in names(needed)}
    shifts = [part.axis.first - part.block.owners.shift[part.owner] for part, _ in found]
    axis = Axis(np.concatenate(shifts), np.concatenate([part.axis.windows for part, _ in found]))
    return axis, {name: np.concatenate([answer[name] for _, answer in found]) for name in names(needed)}


def answer(part: Part, needed: Sequence[ModuleType]) -> Columns:
    """The components of every window of a part."""
    out = _inside(part, needed)
    out["ref"] = _estimate(part, out)
    out["total"] += out["n"] * (part.base - out["ref"])
    for family in needed:
        family.inside(part, out)
    if part.doubtful is not None:
        doubt.add(part.doubtful, part.base, out, needed)
    _add_parts(part, out, needed)
    if occurrences in needed:
        occurrences.finish(out)
        for at, cut in part.cuts():
            occurrences.add(part, out, at, cut)
    out["missing"] = np.maximum(out["missing"], 0.0)
    owners = part.block.owners
    out["scale"] += np.maximum(np.abs(owners.center_low), np.abs(owners.center_high))[part.owner]
    return out


def _inside(part: Part, needed: Sequence[ModuleType]) -> Columns:
    rows, fold = part.certain.rows, part.certain.fold
    out: Columns = {name: np.zeros(part.size) for name in names(needed)}
    for name in INTEGERS:
        out[name] = np.zeros(part.size, np.int64)
    for name in ("n", "buckets", "span_us"):
        out[name] = fold(rows[name].astype(np.int64), np.add, 0)
    out["total"], out["missing"] = part.certain.total(), part.missing()
    for name, of, pick, none in (("min", "low", np.minimum, np.inf), ("max", "high", np.maximum, -np.inf)):
        out[f"{name}_certain"] = fold(rows[of], pick, none)
        out[f"{name}_possible"] = out[f"{name}_certain"].copy()
        if part.doubtful is not None:
            doubt.extremes(part.doubtful, out, name, of, pick, none)
        out[f"{name}_likely"] = out[f"{name}_possible"].copy()
    out["scale"] = np.maximum(np.abs(_finite(out["min_possible"])), np.abs(_finite(out["max_possible"])))
    out["part_min"], out["part_max"] = np.full(part.size, np.inf), np.full(part.size, -np.inf)
    return out


def _estimate(part: Part, out: Columns) -> Floats:
    """The interpolated mean of every window; its base where no reading is expected."""
    count, total = out["n"].astype(np.float64), out["total"].copy()
    if part.doubtful is not None:
        count, total = count + part.doubtful.count(), total + part.doubtful.total()
    for at, cut in part.cuts():
        add_at(count, at, cut.count)
        add_at(total, at, cut.total + cut.count * (cut.rows["center"] - part.base[at]))
    return np.asarray(part.base + np.divide(total, count, out=np.zeros_like(total), where=count > 0))


def _add_parts(windows: Part, out: Columns, needed: Sequence[ModuleType]) -> None:
    for at, part in windows.cuts():
        low, high, raw_low, raw_high = part.sums_and_raw(out["ref"], at)
        raw = part.total + part.count * part.rows["center"]
        for name, values in (
            ("part_n", part.rows["n"]),
            ("count_low", part.count_low),
            ("count_high", part.count_high),
            ("part_count", part.count),
            ("part_low", low),
            ("part_high", high),
            ("raw_low", raw_low),
            ("raw_high", raw_high),
            ("raw_part", raw),
            ("missing", part.rows["gap"]),
            ("doubt", np.minimum(part.rows["doubt"], part.count)),
            ("buckets", part.rows["buckets"]),
            ("span_us", part.rows["span_us"]),
        ):
            add_at(out[name], at, values)
        for family in needed:
            if family is not occurrences:
                family.add(windows, out, at, part)
        _add_extremes(out, at, part)


def _add_extremes(out: Columns, at: Ints, part: Cut) -> None:
    # the whole bucket, not what of it may be inside: its S and P± were rounded at that size
    greatest_at(out["scale"], at, np.maximum(np.abs(part.rows["low"]), np.abs(part.rows["high"])))
    some = part.count_high > 0
    least_at(out["part_min"], at[some], part.rows["low"][some])
    greatest_at(out["part_max"], at[some], part.rows["high"][some])
    least_at(out["min_possible"], at, part.min_low)
    least_at(out["min_certain"], at, part.min_high)
    greatest_at(out["max_possible"], at, part.max_high)
    greatest_at(out["max_certain"], at, part.max_low)
    least, greatest = part.likely()
    least_at(out["min_likely"], at, least)
    greatest_at(out["max_likely"], at, greatest)


def _finite(values: Floats) -> Floats:
    return np.where(np.isfinite(values), values, 0.0)
