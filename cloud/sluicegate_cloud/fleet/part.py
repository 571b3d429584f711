"""Picks the rows of some windows of a block: which lie inside, which of these are in doubt, which an edge cuts."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise

import numpy as np

from sluicegate_cloud.bounds import Cut
from sluicegate_cloud.compiled import COMPILED, cut_pairs, records_of
from sluicegate_cloud.fleet.block import Block
from sluicegate_cloud.grid import Axis, Columns, Floats, Ints, block_positions, expand_ranges
from sluicegate_cloud.inside import Inside, Place

#: Windows that are answered at a time: their columns stay in the processor's cache.
WINDOWS = 1 << 14
#: Pairs of (cut bucket, window) bounded at a time; 2^15 need about 30 MB, with a variance 100 MB.
SLAB = 1 << 15
_OF_A_FRAME = ("owner", "n", "total", "center", "base", "low", "high", "gap", "doubt", "buckets", "span_us",
               "sure_low", "sure_high", "m2_low", "m2_high", "low_n", "high_n", "log_low", "log_high",
               "first_frame", "last_frame")  # fmt: skip


class Part:
    """Windows `begin` … `end` − 1 of an axis; every array over windows has an entry for each of them."""

    def __init__(self, block: Block, axis: Axis, owner: Ints, begin: int, end: int) -> None:
        """`owner`: the stream of each window of the axis."""
        self.block, self.grid = block, block.grid
        self.axis, self.owner = Axis(axis.first[begin:end], axis.windows[begin:end]), owner[begin:end]
        self.start_us = self.grid.start_us(self.axis.first - block.owners.shift[self.owner])
        self.place = _place(axis, begin, end, self.grid.width)
        self.base = block.owners.base[self.owner]
        self.certain = self._inside(block.certain, doubt=False)
        doubtful = self._inside(block.doubtful, doubt=True)
        self.doubtful = doubtful if doubtful.rows["n"].size else None

    @property
    def size(self) -> int:
        """How many windows."""
        return self.axis.size

    def _inside(self, frames: Columns, *, doubt: bool) -> Inside:
        """The rows all of whose frames are among those that the windows cover."""
        first, last = self.place.frames[0], self.place.frames[-1]
        since, upto = np.searchsorted(frames["first_frame"], (first, last + 1))
        rows = {name: frames[name][since:upto] for name in _OF_A_FRAME if name in frames}
        alone = np.all(rows["first_frame"][1:] > rows["first_frame"][:-1])
        crossing = self.crossing
        wanted = (crossing["doubt"] > 0) == doubt
        wanted &= (crossing["first_frame"] >= first) & (crossing["last_frame"] <= last)
        if wanted.any():
            rows = {name: np.concatenate((rows[name], crossing[name][wanted])) for name in rows}
        return Inside.of(rows, int(upto - since) if alone else 0, self.place)

    @cached_property
    def crossing(self) -> Columns:
        """The rows that cross a frame's edge and have a frame among those that the windows cover."""
        rows, (first, last) = self.block.crossing, (self.place.frames[0], self.place.frames[-1])
        since = int(np.searchsorted(self.block.reach, first))
        upto = int(np.searchsorted(rows["first_frame"], last, side="right"))
        some = {name: column[since:upto] for name, column in rows.items()}
        touching = some["last_frame"] >= first
        return some if touching.all() else {name: column[touching] for name, column in some.items()}

    def cuts(self) -> Iterator[tuple[Ints, Cut]]:
        """Slabs of (window positions, cut buckets): first the windows a row overlaps at its start, then the others."""
        if self._held is not None:
            yield from self._held
        else:
            yield from self._cuts()

    @cached_property
    def _held(self) -> list[tuple[Ints, Cut]] | None:
        """All pairs, where they are not more than a slab or two: they are asked for several times."""
        pairs = sum(int(np.maximum(high - low + 1, 0).sum()) for low, high in self._ranges)
        return list(self._cuts()) if pairs <= 2 * SLAB else None

    @cached_property
    def _ranges(self) -> list[tuple[Ints, Ints]]:
        """The windows that each crossing row overlaps at its start, and the others: first and last position."""
        first, last = self.crossing["first_frame"], self.crossing["last_frame"]
        starts, width = self.axis.first, self.grid.width
        ends = (first - width + 1, np.minimum(first, last - width)), (first + 1, last)
        return [(np.searchsorted(starts, low), np.searchsorted(starts, high, side="right") - 1) for low, high in ends]

    def _cuts(self) -> Iterator[tuple[Ints, Cut]]:
        length = self.grid.width * self.grid.slide_us
        for low, high in self._ranges:
            for slab in _slabs(np.maximum(high - low + 1, 0)):
                row, at = expand_ranges(low[slab], high[slab])
                pairs = cut_pairs(self.crossing, self._records, row + slab.start, self.start_us[at], length)
                yield at, pairs

    @cached_property
    def _records(self) -> Ints | None:
        return records_of(self.crossing) if COMPILED else None

    def missing(self) -> Floats:
        """Readings that may be missing in each window, in any of a span's: each hole and gap that it touches."""
        out = self.certain.fold(self.certain.rows["gap"].astype(np.float64), np.add, 0.0)
        holes = self.block.holes
        if holes["gap"].size:
            begin = np.searchsorted(self.axis.last, holes["whole_first_frame"] - (self.grid.width - 1))
            end = np.searchsorted(self.axis.first, holes["whole_last_frame"], side="right")
            some = begin < end
            change = np.zeros(self.size + 1, np.int64)
            np.add.at(change, begin[some], holes["gap"][some])
            np.subtract.at(change, end[some], holes["gap"][some])
            out += np.cumsum(change[:-1])
        return out


def parts(block: Block, max_empty: int, most: int = WINDOWS) -> Iterator[Part]:
    """All windows of all streams of a block, ascending, at most so many at a time."""
    for axis, owner, own in block.axes(max_empty):
        for begin in range(0, own, most):
            yield Part(block, axis, owner, begin, min(begin + most, own))


def _place(axis: Axis, begin: int, end: int, width: int) -> Place:
    """The windows, and the positions behind them that they cover."""
    upto = min(end + width - 1, axis.size)
    at = block_positions(axis.first[begin:upto], width)
    upto = begin + int(np.searchsorted(at, at[end - begin - 1] + width))
    return Place(axis.first[begin:end], axis.first[begin:upto], at[: upto - begin], width)


def _slabs(counts: Ints) -> Iterator[slice]:
    """Runs of rows whose pairs together stay near SLAB."""
    slab = np.cumsum(counts) // SLAB
    edges = np.concatenate(([0], np.flatnonzero(np.diff(slab)) + 1, [counts.size]))
    for begin, end in pairwise(edges.tolist()):
        if counts[begin:end].any():
            yield slice(begin, end)
