"""Every window of one stream of one device as components: the readings inside, and what the cut buckets may add.

Buckets with readings in doubt are parts too, though they lie inside: how many of their readings count is not known.

Components of several devices combine by adding, least and greatest (`windows.fleet`), so a window stays in
this form until `lower` turns it into values and intervals. Work grows with frames and crossing buckets, not with
windows times width.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from types import ModuleType

import numpy as np

from sluicegate_cloud import doubt, logarithms, occurrences, spread
from sluicegate_cloud.bounds import Cut, cut
from sluicegate_cloud.grid import MAX_EMPTY, Columns, Floats, Grid, Ints, expand_ranges, window_axis
from sluicegate_cloud.inside import Inside
from sluicegate_cloud.sliding import Slide, add_at, greatest_at, least_at

#: Pairs of (cut bucket, window) bounded at a time; 2^15 need about 30 MB, with a variance 100 MB.
SLAB = 1 << 15

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
) -> tuple[Ints, Columns]:
    """First frame of every window of one stream, ascending, and its components (name → array), `needed` ones too.

    `rows` are the columns of `merge_frames` for one device and stream, all incarnations, in any order.
    Raises ValueError when the windows would be too many (`grid.MAX_WINDOWS`).
    """
    ties = rows["total"], rows["t_last"], rows["t_first"]  # two boards have buckets of the same ordinals
    order = np.lexsort((*ties, rows["first"], rows["first_frame"], rows["incarnation"]))
    rows = {name: column[order] for name, column in rows.items() if name != "incarnation"}
    full = {name: column[rows["n"] > 0] for name, column in rows.items()}
    axis = window_axis(full["first_frame"], full["last_frame"], grid.width, max_empty)
    if axis.size == 0:
        return axis, {name: np.zeros(0, np.int64 if name in INTEGERS else np.float64) for name in names(needed)}
    return axis, Stream(full, axis, grid, needed).answer(_holes(rows, axis, grid))


def _holes(rows: Columns, axis: Ints, grid: Grid) -> Floats:
    """Readings missing in each position of the axis: a hole's are spread over its time."""
    holes = {name: column[rows["n"] == 0] for name, column in rows.items()}
    low = np.searchsorted(axis, holes["first_frame"])
    high = np.searchsorted(axis, holes["last_frame"], side="right") - 1
    row, at = expand_ranges(low, high)
    frame = grid.start_us(axis[at])
    first, last = holes["t_first"][row], holes["t_last"][row]
    inside = np.minimum(last, frame + grid.slide_us) - np.maximum(first, frame)
    share = np.where(last > first, inside / np.maximum(last - first, 1), 1.0)
    missing = np.zeros(axis.size)
    add_at(missing, at, holes["gap"][row] * share)
    return missing


class Stream:
    """One stream's rows on its axis: the readings inside each window, then the pairs that an edge cuts."""

    def __init__(self, rows: Columns, axis: Ints, grid: Grid, needed: Sequence[ModuleType] = ()) -> None:
        self.rows, self.axis, self.grid, self.needed = rows, axis, grid, needed
        self.center = float(rows["center"][0])
        in_doubt = rows["doubt"] > 0
        self.certain = Inside.of(rows, ~in_doubt, axis, grid.width)
        self.doubtful = Inside.of(rows, in_doubt, axis, grid.width) if in_doubt.any() else None

    def answer(self, missing: Floats) -> Columns:
        """The components of every window; `missing` holds the lost readings of each position."""
        out = self._inside(missing)
        out["ref"] = self._estimate(out)
        out["total"] += out["n"] * (self.center - out["ref"])
        for family in self.needed:
            family.inside(self, out)
        if self.doubtful is not None:
            doubt.add(self.doubtful, self.center, out, self.needed)
        self._add_parts(out)
        if occurrences in self.needed:
            occurrences.finish(out)
            for at, part in self.cuts():
                occurrences.add(self, out, at, part)
        out["missing"] = np.maximum(out["missing"], 0.0)
        out["scale"] += np.abs(self.rows["center"]).max()
        return out

    def _inside(self, missing: Floats) -> Columns:
        rows, fold = self.certain.rows, self.certain.fold
        out: Columns = {name: np.zeros(self.axis.size) for name in names(self.needed)}
        for name in INTEGERS:
            out[name] = np.zeros(self.axis.size, np.int64)
        for name in ("n", "buckets", "span_us"):
            out[name] = fold(rows[name].astype(np.int64), np.add, 0)
        out["total"] = fold(rows["total"] + rows["n"] * (rows["center"] - self.center), np.add, 0.0)
        out["missing"] = fold(rows["gap"].astype(np.float64), np.add, 0.0)
        positions = np.arange(missing.size)
        out["missing"] += Slide(positions, positions, self.grid.width, missing.size).fold(missing, np.add, 0.0)
        for name, field, pick, none in (("min", "low", np.minimum, np.inf), ("max", "high", np.maximum, -np.inf)):
            out[f"{name}_certain"] = fold(rows[field], pick, none)
            out[f"{name}_possible"] = out[f"{name}_certain"].copy()
            if self.doubtful is not None:
                doubt.extremes(self.doubtful, out, name, field, pick, none)
            out[f"{name}_likely"] = out[f"{name}_possible"].copy()
        out["scale"] = np.maximum(np.abs(_finite(out["min_possible"])), np.abs(_finite(out["max_possible"])))
        out["part_min"], out["part_max"] = np.full(self.axis.size, np.inf), np.full(self.axis.size, -np.inf)
        return out

    def _estimate(self, out: Columns) -> Floats:
        """The interpolated mean of every window; its center where no reading is expected."""
        count, total = out["n"].astype(np.float64), out["total"].copy()
        if self.doubtful is not None:
            count, total = count + self.doubtful.count(), total + self.doubtful.sum_around(self.center)
        for at, part in self.cuts():
            add_at(count, at, part.count)
            add_at(total, at, part.total + part.count * (part.rows["center"] - self.center))
        return np.asarray(self.center + np.divide(total, count, out=np.zeros_like(total), where=count > 0))

    def _add_parts(self, out: Columns) -> None:
        for at, part in self.cuts():
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
            for family in self.needed:
                if family is not occurrences:
                    family.add(self, out, at, part)
            _add_extremes(out, at, part)

    def cuts(self) -> Iterator[tuple[Ints, Cut]]:
        """Slabs of (window positions, cut buckets): first the windows a row overlaps at its start, then the others."""
        rows, width = self.rows, self.grid.width
        crossing = np.flatnonzero(rows["first_frame"] < rows["last_frame"])
        first, last = rows["first_frame"][crossing], rows["last_frame"][crossing]
        for begin, end in ((first - width + 1, np.minimum(first, last - width)), (first + 1, last)):
            low, high = self._at_or_after(begin), np.searchsorted(self.axis, end, side="right") - 1
            for slab in _slabs(np.maximum(high - low + 1, 0)):
                row, at = expand_ranges(low[slab], high[slab])
                start = self.grid.start_us(self.axis[at])
                pairs = {name: column[crossing[slab][row]] for name, column in rows.items()}
                yield at, cut(pairs, start, start + self.grid.width * self.grid.slide_us)

    def _at_or_after(self, frames: Ints) -> Ints:
        return np.searchsorted(self.axis, frames)


def _slabs(counts: Ints) -> Iterator[slice]:
    """Runs of rows whose pairs together stay near SLAB."""
    slab = np.cumsum(counts) // SLAB
    edges = np.concatenate(([0], np.flatnonzero(np.diff(slab)) + 1, [counts.size]))
    for begin, end in pairwise(edges.tolist()):
        if counts[begin:end].any():
            yield slice(begin, end)


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
