"""One stream's rows on its axis of windows: which lie inside, which are in doubt, and the pairs that an edge cuts."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from sluicegate_cloud.bounds import Cut, cut
from sluicegate_cloud.grid import Columns, Grid, Ints, expand_ranges
from sluicegate_cloud.inside import Inside

#: Pairs of (cut bucket, window) bounded at a time; 2^15 need about 30 MB, with a variance 100 MB.
SLAB = 1 << 15


class Stream:
    """The rows of one stream, those certainly inside, those in doubt, and the cuts."""

    def __init__(self, rows: Columns, axis: Ints, grid: Grid) -> None:
        """`rows`: with readings, in order; `axis`: the first frame of every window, ascending."""
        self.rows, self.axis, self.grid = rows, axis, grid
        self.center = float(rows["center"][0])
        in_doubt = rows["doubt"] > 0
        self.certain = Inside.of(rows, ~in_doubt, axis, grid.width)
        self.doubtful = Inside.of(rows, in_doubt, axis, grid.width) if in_doubt.any() else None

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
