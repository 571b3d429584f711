"""Every window of one stream of one device as components: the readings inside, and what the cut buckets may add.

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
from sluicegate_cloud.grid import MAX_EMPTY, Axis, Columns, Floats, Grid, Ints, expand_ranges, window_axis
from sluicegate_cloud.sliding import Slide, add_at, greatest_at, least_at
from sluicegate_cloud.stream import Stream

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


#: What squares beyond float64 are at least.
_LARGEST = float(np.finfo(np.float64).max) / 4

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

    `rows` are the columns of `merge_frames` for one device and stream, all incarnations, in any order.
    Raises ValueError when the windows would be too many (`grid.MAX_WINDOWS`).
    """
    ties = rows["total"], rows["t_last"], rows["t_first"]  # two boards have buckets of the same ordinals
    order = np.lexsort((*ties, rows["first"], rows["first_frame"], rows["incarnation"]))
    rows = {name: column[order] for name, column in rows.items() if name != "incarnation"}
    rows["m2_low"] = np.minimum(rows["m2_low"], _LARGEST)
    full = {name: column[rows["n"] > 0] for name, column in rows.items()}
    holes = _within(full, {name: column[rows["n"] == 0] for name, column in rows.items()})
    points = known_points(full, grid), holes["first_frame"], holes["last_frame"]
    long = tuple(np.concatenate((full[name], holes[name])) for name in ("first_frame", "last_frame"))
    axis = window_axis(np.concatenate(points), (long[0], long[1]), grid.width, max_empty)
    if axis.size == 0:
        return axis, {name: np.zeros(0, np.int64 if name in INTEGERS else np.float64) for name in names(needed)}
    return axis, _answer(Stream(full, axis.first, grid), _missing(holes, axis.first, grid), needed)


def known_points(rows: Columns, grid: Grid) -> Ints:
    """The frames in which a reading is known to be: the ends of every row, and the extremes of those that are long."""
    crossing = rows["first_frame"] < rows["last_frame"]
    extremes = [rows[f"{name}_t_{end}"][crossing] for name in ("low", "high") for end in ("first", "last")]
    known = [grid.frame_of(times.astype(np.int64)) for times in extremes]
    return np.concatenate((rows["first_frame"], rows["last_frame"], *known))


def _within(full: Columns, holes: Columns) -> Columns:
    """The holes, their frames held between the stream's own: what is missing before or after makes no windows."""
    if full["n"].size == 0:
        return {name: column[:0] for name, column in holes.items()}
    ends = full["first_frame"].min(), full["last_frame"].max()
    return holes | {name: np.clip(holes[name], *ends) for name in ("first_frame", "last_frame")}


def _missing(holes: Columns, axis: Ints, grid: Grid) -> Floats:
    """Readings missing in each position of the axis: a hole's are spread over its time."""
    low = np.searchsorted(axis, holes["first_frame"])
    high = np.searchsorted(axis, holes["last_frame"], side="right") - 1
    row, at = expand_ranges(low, high)
    frame = grid.start_us(axis[at])
    first, last = holes["t_first"][row], holes["t_last"][row]
    inside = np.maximum(np.minimum(last, frame + grid.slide_us) - np.maximum(first, frame), 0)
    here = (frame <= first) & (first < frame + grid.slide_us)
    share = np.where(last > first, inside / np.maximum(last - first, 1), here)
    missing = np.zeros(axis.size)
    add_at(missing, at, holes["gap"][row] * share)
    return missing


def _answer(stream: Stream, missing: Floats, needed: Sequence[ModuleType]) -> Columns:
    """The components of every window; `missing` holds the lost readings of each position."""
    out = _inside(stream, missing, needed)
    out["ref"] = _estimate(stream, out)
    out["total"] += out["n"] * (stream.center - out["ref"])
    for family in needed:
        family.inside(stream, out)
    if stream.doubtful is not None:
        doubt.add(stream.doubtful, stream.center, out, needed)
    _add_parts(stream, out, needed)
    if occurrences in needed:
        occurrences.finish(out)
        for at, part in stream.cuts():
            occurrences.add(stream, out, at, part)
    out["missing"] = np.maximum(out["missing"], 0.0)
    out["scale"] += np.abs(stream.rows["center"]).max()
    return out


def _inside(stream: Stream, missing: Floats, needed: Sequence[ModuleType]) -> Columns:
    rows, fold = stream.certain.rows, stream.certain.fold
    out: Columns = {name: np.zeros(stream.axis.size) for name in names(needed)}
    for name in INTEGERS:
        out[name] = np.zeros(stream.axis.size, np.int64)
    for name in ("n", "buckets", "span_us"):
        out[name] = fold(rows[name].astype(np.int64), np.add, 0)
    out["total"] = fold(rows["total"] + rows["n"] * (rows["center"] - stream.center), np.add, 0.0)
    out["missing"] = fold(rows["gap"].astype(np.float64), np.add, 0.0)
    positions = np.arange(missing.size)
    out["missing"] += Slide(positions, positions, stream.grid.width, missing.size).fold(missing, np.add, 0.0)
    for name, field, pick, none in (("min", "low", np.minimum, np.inf), ("max", "high", np.maximum, -np.inf)):
        out[f"{name}_certain"] = fold(rows[field], pick, none)
        out[f"{name}_possible"] = out[f"{name}_certain"].copy()
        if stream.doubtful is not None:
            doubt.extremes(stream.doubtful, out, name, field, pick, none)
        out[f"{name}_likely"] = out[f"{name}_possible"].copy()
    out["scale"] = np.maximum(np.abs(_finite(out["min_possible"])), np.abs(_finite(out["max_possible"])))
    out["part_min"], out["part_max"] = np.full(stream.axis.size, np.inf), np.full(stream.axis.size, -np.inf)
    return out


def _estimate(stream: Stream, out: Columns) -> Floats:
    """The interpolated mean of every window; its center where no reading is expected."""
    count, total = out["n"].astype(np.float64), out["total"].copy()
    if stream.doubtful is not None:
        count, total = count + stream.doubtful.count(), total + stream.doubtful.sum_around(stream.center)
    for at, part in stream.cuts():
        add_at(count, at, part.count)
        add_at(total, at, part.total + part.count * (part.rows["center"] - stream.center))
    return np.asarray(stream.center + np.divide(total, count, out=np.zeros_like(total), where=count > 0))


def _add_parts(stream: Stream, out: Columns, needed: Sequence[ModuleType]) -> None:
    for at, part in stream.cuts():
        low, high = part.sums(out["ref"][at])
        raw_low, raw_high = part.sums(0.0)
        raw = part.total + part.count * part.rows["center"]
        share = part.rows["gap"] * part.count / part.rows["n"]
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
            ("missing", share),
            ("doubt", np.minimum(part.rows["doubt"], part.count)),
            ("buckets", part.rows["buckets"]),
            ("span_us", part.rows["span_us"]),
        ):
            add_at(out[name], at, values)
        for family in needed:
            if family is not occurrences:
                family.add(stream, out, at, part)
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
