"""The slide grid of a stream: which windows exist, and where each stands on a dense axis of bounded length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Columns = dict[str, NDArray[Any]]

#: An empty stretch longer than this many windows is left out: one reading dated 1970 must not make millions of rows.
MAX_EMPTY = 10_000
#: More windows than this for one stream are refused before they are allocated: they would need some 2 GB.
MAX_WINDOWS = 4_000_000


@dataclass(frozen=True)
class Grid:
    """Windows of `width` frames of `slide_us` microseconds each; frame k begins at `origin_us + k * slide_us`."""

    slide_us: int
    width: int
    origin_us: int = 0

    def __post_init__(self) -> None:
        if self.slide_us < 1 or self.width < 1:
            raise ValueError(f"a window of {self.width} frames of {self.slide_us} us is empty: both must be at least 1")

    def start_us(self, frames: Ints) -> Ints:
        """The time in µs at which each of `frames` begins."""
        return self.origin_us + frames * self.slide_us


def window_axis(first: Ints, last: Ints, width: int, max_empty: int = MAX_EMPTY) -> Ints:
    """First frames of the windows to answer, ascending: every window that holds a bucket's first or last frame, and
    the empty ones between them, where they are at most `max_empty` in a row.

    A row that spans more than that is answered at its ends only. The windows of two stretches never share a frame, and
    each stretch begins `width - 1` frames before its first reading; so position p of the axis covers positions p …
    p + width − 1. Raises ValueError when the axis would pass MAX_WINDOWS.
    """
    points = np.unique(np.concatenate((first, last)))
    if points.size == 0:
        return points
    breaks = np.flatnonzero(np.diff(points) > width + max_empty)
    begins = points[np.concatenate(([0], breaks + 1))] - (width - 1)
    ends = points[np.concatenate((breaks, [points.size - 1]))]
    lengths = ends - begins + 1
    if lengths.sum() > MAX_WINDOWS:
        raise ValueError(
            f"{int(lengths.sum()):,} windows for one stream pass the limit of {MAX_WINDOWS:,}: choose a longer slide"
        )
    return expand_ranges(begins, ends)[1]


def expand_ranges(low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """(row, value) for every integer value in each row's low … high (both included; empty where high < low)."""
    counts = np.maximum(high - low + 1, 0)
    row = np.repeat(np.arange(low.size, dtype=np.int64), counts)
    before = np.cumsum(counts) - counts
    return row, low[row] + np.arange(row.size, dtype=np.int64) - before[row]
