"""Lays many whole streams side by side on one axis of frames, so that one pass over columns answers all of them.

Each stream has a *lane* of the line: its frames moved by a whole number of windows, so that what a window of one lane
can reach no window of another can. Streams then differ from stretches of one stream in what is known of a whole stream
only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sluicegate.format.gaps import NEVER
from sluicegate_cloud.fleet.folding import fold_frames
from sluicegate_cloud.grid import (
    MOST,
    Axis,
    Columns,
    Floats,
    Grid,
    Ints,
    distinct,
    stretches,
    window_axes,
    windows_of_lanes,
)

#: No frame of a line passes this.
_FARTHEST = 1 << 61
_SORTED = ("first_frame", "first", "t_first", "t_last", "total", "center", "doubt")
#: A row's own fields that do not outlive its folding into a frame.
_OF_A_CUT = (
    "flags", "pre_low", "pre_high", "low_t_first", "low_t_last", "low_o_first", "low_o_last", "high_t_first",
    "high_t_last", "high_o_first", "high_o_last", "x_first", "x_last", "m2", "low_pre", "low_suf", "high_pre",
    "high_suf", "log_total", "log_pre_low", "log_pre_high",
)  # fmt: skip


@dataclass(frozen=True)
class Owners:
    """What is known of each whole stream, an entry a stream.

    `shift`: from its own frames to the line's; `lane`: its first frame there; `base`: the center of its first row, from
    which its sums are taken; `center_low`, `center_high`: of all its rows; `positive`, `greatest`: its least value
    above 0 (∞: none) and its greatest; `log_center`: the greatest |ln center|.
    """

    shift: Ints
    lane: Ints
    base: Floats
    center_low: Floats
    center_high: Floats
    positive: Floats
    greatest: Floats
    log_center: Floats


@dataclass(frozen=True)
class Block:
    """Rows on one line: `certain` and `doubtful` ones of one frame each, those `crossing` an edge, and the holes.

    A frame has a row for each center that its buckets have, usually one. All are sorted by `first_frame` on the line;
    `points`: the frames in which a reading is known to be; `reach`: the last frame of any crossing row so far.
    """

    grid: Grid
    owners: Owners
    certain: Columns
    doubtful: Columns
    crossing: Columns
    holes: Columns
    points: Ints
    reach: Ints = field(repr=False)

    @property
    def long(self) -> tuple[Ints, Ints]:
        """First and last frames of all that may lie across windows in which nothing is known to be."""
        first, last = (np.concatenate((self.crossing[of], self.holes[of])) for of in ("first_frame", "last_frame"))
        return first, last

    @property
    def last(self) -> Ints:
        """Of each stream the frame of its last reading, on the line."""
        ends = np.append(self.owners.lane[1:], np.iinfo(np.int64).max)
        return np.asarray(self.points[np.searchsorted(self.points, ends) - 1])

    def stretches(self, max_empty: int) -> tuple[Ints, Ints]:
        """The first and last windows, on the line, of each run that is answered one by one."""
        return stretches(self.points, self.grid.width, max_empty)

    def counts(self, max_empty: int) -> tuple[Ints, Ints]:
        """Of each stream how many windows it has, and the frames in which a reading is known to be."""
        lanes = self.owners.lane
        return windows_of_lanes(*self.stretches(max_empty), lanes), windows_of_lanes(self.points, self.points, lanes)

    def axes(self, max_empty: int) -> Iterator[tuple[Axis, Ints, int]]:
        """The windows of some streams after others, the stream of each window, and how many come in no other axis."""
        lanes = self.owners.lane
        counts = windows_of_lanes(*self.stretches(max_empty), lanes)
        group = np.cumsum(counts) // MOST
        first, last = self.long
        before = self.grid.width - 1  # so many frames before its lane what is missing of a stream may begin
        for begin, end in _runs(group):
            upto = lanes[end] if end < lanes.size else np.iinfo(np.int64).max
            points = self.points[(self.points >= lanes[begin]) & (self.points < upto)]
            here = (first >= lanes[begin] - before) & (first < upto - before)
            long = first[here], last[here]
            for axis, own in window_axes(points, long, self.grid.width, max_empty, MOST):
                owner = np.searchsorted(lanes, axis.first + self.grid.width - 1, side="right") - 1
                yield axis, np.maximum(owner, 0), own


def blocks(
    rows: Columns, grid: Grid, max_empty: int, centers: Columns | None = None, *, goes_on: bool = False
) -> Iterator[tuple[Ints, Block]]:
    """`rows`: fields of buckets and of frames (`known.as_frames`) in any order, with `owner`: 0, 1, ….

    (Which streams, a block with their rows), usually one. Streams without a reading are in none. `centers`: of each
    stream `base`, `center_low` and `center_high` (`Owners`), where `rows` are not all rows of it; `goes_on`: they are
    of one stream, of which more come later.
    """
    first, last = _own_frames(rows, grid)
    full = rows["n"] > 0
    streams = int(rows["owner"].max(initial=-1)) + 1
    low, high = _ends_of_owners(rows["owner"][full], first[full], last[full], streams)
    there = np.flatnonzero(low <= high)
    for some in _fitting(low[there], high[there], grid.width, max_empty):
        owners = there[some]
        number = np.full(streams, -1)
        number[owners] = np.arange(owners.size)
        owner = number[rows["owner"]]
        mine = owner >= 0
        wanted = slice(None) if mine.all() else mine
        shift, lane = _lanes(low[owners], high[owners], grid.width, max_empty)
        kept = {name: _taken(column, wanted) for name, column in rows.items()}
        kept |= {"owner": owner[wanted], "first_frame": first[wanted], "last_frame": last[wanted]}
        told = {name: of[owners] for name, of in (centers or {}).items()}
        ends = np.full_like(lane, _FARTHEST) if goes_on else high[owners] + shift
        yield owners, _block(kept, grid, shift, lane, ends, told)


def _own_frames(rows: Columns, grid: Grid) -> tuple[Ints, Ints]:
    if "first_frame" in rows:
        return rows["first_frame"], rows["last_frame"]
    return grid.frame_of(rows["t_first"]), grid.frame_of(rows["t_last"])


def _ends_of_owners(owner: Ints, first: Ints, last: Ints, streams: int) -> tuple[Ints, Ints]:
    low, high = np.full(streams, np.iinfo(np.int64).max), np.full(streams, np.iinfo(np.int64).min)
    np.minimum.at(low, owner, first)
    np.maximum.at(high, owner, last)
    return low, high


def _steps(low: Ints, high: Ints, width: int, max_empty: int) -> Floats:
    return np.asarray(high.astype(np.float64) - low + 4.0 * width + max_empty + 1)


def _fitting(low: Ints, high: Ints, width: int, max_empty: int) -> Iterator[slice]:
    """Runs of streams whose lanes fit on a line, one at least."""
    group = np.cumsum(_steps(low, high, width, max_empty)) // _FARTHEST
    for begin, end in _runs(group):
        yield slice(begin, end)


def _lanes(low: Ints, high: Ints, width: int, max_empty: int) -> tuple[Ints, Ints]:
    """How far each stream's frames are moved, and where they begin then; a stream alone stays where it is."""
    if low.size == 1:
        return np.zeros(1, np.int64), low
    phase = low % width
    steps = -(-(phase + (high - low) + 2 * width + max_empty + 1) // width) * width
    lane = np.cumsum(steps) - steps + phase
    return lane - low, lane


def _block(rows: Columns, grid: Grid, shift: Ints, lane: Ints, ends: Ints, centers: Columns) -> Block:
    moved = shift[rows["owner"]]
    rows["first_frame"], rows["last_frame"] = rows["first_frame"] + moved, rows["last_frame"] + moved
    full = rows["n"] > 0
    holes = {name: rows[name][~full] for name in ("owner", "first", "first_frame", "last_frame", "gap")}
    of_holes, first, last = [], lane[holes["owner"]], ends[holes["owner"]]
    by_number = holes["first"] == NEVER  # between two readings, which make windows
    for name in ("first_frame", "last_frame"):  # what is missing before or after the stream makes no windows
        holes[f"whole_{name}"] = np.clip(holes[name], first - grid.width, last + grid.width)
        of_holes.append(np.clip(holes[name], first, last)[~by_number])
        holes[name] = np.clip(holes[name], first - (grid.width - 1), last + (grid.width - 1))
    rows = _in_order(rows if full.all() else {name: _taken(column, full) for name, column in rows.items()})
    owners = replace(_owners(rows, shift, lane), **centers)
    rows["base"] = owners.base[rows["owner"]]
    crosses = rows["first_frame"] < rows["last_frame"]
    crossing = {name: column[crosses] for name, column in rows.items()}
    certain, doubtful = _frames(rows, ~crosses)
    points = _points(rows, crossing, of_holes, grid, shift)
    reach = np.maximum.accumulate(crossing["last_frame"]) if crosses.any() else crossing["last_frame"]
    return Block(grid, owners, certain, doubtful, crossing, holes, points, reach)


def _in_order(rows: Columns) -> Columns:
    """Sorted by frame, then by ordinal; usually they are. Two boards have buckets of the same ordinals."""
    frame, first = np.diff(rows["first_frame"]), np.diff(rows["first"])
    if np.all((frame > 0) | ((frame == 0) & (first > 0))):
        return rows
    order = np.lexsort(tuple(rows[name] for name in reversed(_SORTED)))
    return {name: _taken(column, order) for name, column in rows.items()}


def _taken(column: NDArray[Any], wanted: Any) -> NDArray[Any]:
    """Those entries; of a column that takes no room (`wire.unknown`) they take none."""
    if not column.size or column.strides != (0,) or isinstance(wanted, slice):
        return np.asarray(column[wanted])
    return np.broadcast_to(column[0], int(np.count_nonzero(wanted)) if wanted.dtype == bool else wanted.size)


def _owners(rows: Columns, shift: Ints, lane: Ints) -> Owners:
    begin = np.searchsorted(rows["owner"], np.arange(shift.size))
    center = rows["center"]
    logs = np.abs(np.log(np.where(center > 0, center, 1.0)))
    return Owners(
        shift,
        lane,
        center[begin],
        np.minimum.reduceat(center, begin),
        np.maximum.reduceat(center, begin),
        np.minimum.reduceat(np.where(rows["low"] > 0, rows["low"], np.inf), begin),
        np.maximum.reduceat(rows["high"], begin),
        np.maximum.reduceat(logs, begin),
    )


def _frames(rows: Columns, inside: NDArray[np.bool_]) -> tuple[Columns, Columns]:
    """The rows of one frame, folded: what others are known to hold stays certain beside a bucket in doubt.

    Buckets of another center are of another incarnation; a frame of its own loses nothing of what each of them tells.
    """
    kept = {name: column for name, column in rows.items() if name not in _OF_A_CUT}
    in_doubt = rows["doubt"] > 0
    found = []
    for wanted in (inside & ~in_doubt, inside & in_doubt):
        some = kept if wanted.all() else {name: column[wanted] for name, column in kept.items()}
        total = some["total"] + some["n"] * (some["center"] - some["base"])
        told = fold_frames(some | {"total": total, "of": some["center"]}, ("first_frame", "of"))
        found.append(told | {"center": told["base"]})
    return found[0], found[1]


def _points(rows: Columns, crossing: Columns, of_holes: Sequence[Ints], grid: Grid, shift: Ints) -> Ints:
    """The frames in which a reading is known to be: the ends of every row, and the extremes of those that are long."""
    moved = shift[crossing["owner"]]
    times = [crossing[f"{name}_t_{end}"] for name in ("low", "high") for end in ("first", "last")]
    extremes = [grid.frame_of(time.astype(np.int64)) + moved for time in times]
    ends = [rows[name] for name in ("first_frame", "last_frame")]
    return distinct(np.concatenate([*ends, *of_holes, *extremes]))


def _runs(group: Ints | Floats) -> Iterator[tuple[int, int]]:
    """Begin and end of each run of equal numbers."""
    edges = np.concatenate(([0], np.flatnonzero(np.diff(group)) + 1, [group.size]))
    for begin, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        if begin < end:
            yield begin, end
