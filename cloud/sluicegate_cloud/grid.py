"""Lays windows on a stream's slide grid: which ones exist, and where each stands on a dense axis of bounded length."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Columns = dict[str, NDArray[Any]]

#: A longer run of windows in which nothing is known to be is one row, or none: one reading dated 1970 must not make
#: millions of rows.
MAX_EMPTY = 10_000
#: What makes more windows of a stream than so many beyond its buckets is set aside (`fleet.sparse`): two years by the
#: second, some minutes and a few GB of disk. Of rows of a program's own, a stream that has so many more than frames in
#: which something is known to be is refused.
MAX_WINDOWS = 64_000_000
#: Windows whose axis is made at a time.
MOST = 1 << 20


@dataclass(frozen=True)
class Grid:
    """Windows of `width` frames of `slide_us` microseconds each; frame k begins at `origin_us + k * slide_us`."""

    slide_us: int
    width: int
    origin_us: int = 0

    def __post_init__(self) -> None:
        if self.slide_us < 1 or self.width < 1:
            raise ValueError(f"a window of {self.width} frames of {self.slide_us} us is empty: both must be at least 1")

    def frame_of(self, times: Ints) -> Ints:
        """The frame in which each of `times` in µs lies."""
        return (times - self.origin_us) // self.slide_us

    def start_us(self, frames: Ints) -> Ints:
        """The time in µs at which each of `frames` begins."""
        return self.origin_us + frames * self.slide_us


@dataclass(frozen=True)
class Axis:
    """The windows of a stream, ascending: entry i stands for `windows[i]` of them, the first of which begins at frame
    `first[i]`. 1, unless it is a span: a long run that no known reading is in, and whose windows all say the same.
    """

    first: Ints
    windows: Ints

    @property
    def size(self) -> int:
        """How many entries there are."""
        return self.first.size

    @property
    def last(self) -> Ints:
        """Where the last window of each entry begins."""
        return self.first + self.windows - 1

    @property
    def spans(self) -> Ints:
        """The entries that stand for more than one window."""
        return np.flatnonzero(self.windows > 1)


def window_axes(
    points: Ints, long: tuple[Ints, Ints], width: int, max_empty: int = MAX_EMPTY, most: int = MOST
) -> Iterator[tuple[Axis, int]]:
    """Every window that holds one of `points`, frames in which something is known to be, and the windows between.

    Where more than `max_empty` of these are in a row they are one entry, if one of the `long` rows (their first and
    last frames, `points` both) lies across them, and else none: they hold nothing for certain. Each stretch begins
    `width - 1` frames before its first point and a span's windows hold none, so position p of the axis covers positions
    p … p + width − 1. At most `most` of them at a time, however many there are: an axis each, which goes on with the
    entries that its windows reach into, and how many of its entries are its own.
    """
    begins, ends = stretches(points, width, max_empty)
    upto = np.cumsum(ends - begins + 1)
    crossed = _crossed(ends[:-1], begins[1:] + (width - 1), long)
    for low in range(0, int(upto[-1]) if upto.size else 0, most):
        high = min(low + most, int(upto[-1]))
        own = high - low + int(np.count_nonzero(crossed[(upto[:-1] > low) & (upto[:-1] <= high)]))
        yield _entries(begins, ends, upto, crossed, low, min(high + width - 1, int(upto[-1]))), own


def _entries(begins: Ints, ends: Ints, upto: Ints, crossed: NDArray[np.bool_], low: int, high: int) -> Axis:
    """The windows of number `low` … `high` − 1 of the stretches, and the spans behind any of them."""
    a, b = np.searchsorted(upto, (low, high - 1), side="right")
    since, until = begins[a : b + 1].copy(), ends[a : b + 1].copy()
    since[0] += low - (upto[a] - (ends[a] - begins[a] + 1))
    until[-1] -= upto[b] - high
    first = expand_ranges(since, until)[1]
    span = a + np.flatnonzero(crossed[a : b + 1] & (upto[:-1][a : b + 1] <= high))
    at = np.searchsorted(first, ends[span], side="right")
    windows = np.insert(np.ones_like(first), at, begins[span + 1] - ends[span] - 1)
    return Axis(np.insert(first, at, ends[span] + 1), windows)


def require_few(windows: int, frames: int, of: str) -> None:
    """Raises ValueError for a stream of so many windows whose readings are in so many frames."""
    if windows - frames > MAX_WINDOWS:
        limit = f"{MAX_WINDOWS + frames:,}"
        raise ValueError(f"{windows:,} windows for {of} pass the limit of {limit}: choose a longer slide")


def stretches(points: Ints, width: int, max_empty: int = MAX_EMPTY) -> tuple[Ints, Ints]:
    """The first and last windows of each run that is answered one by one: those that hold a point, and short gaps."""
    points = distinct(points)
    if points.size == 0:
        return points, points
    breaks = np.flatnonzero(np.diff(points) > width + max_empty)
    begins = points[np.concatenate(([0], breaks + 1))] - (width - 1)
    return begins, points[np.concatenate((breaks, [points.size - 1]))]


def distinct(values: Ints) -> Ints:
    """Ascending, each once: nearly sorted ones, which are sorted faster than they are hashed."""
    ordered = np.sort(values, kind="stable")
    return np.asarray(ordered[np.concatenate(([True], ordered[1:] != ordered[:-1]))]) if ordered.size else ordered


def windows_of_lanes(begins: Ints, ends: Ints, lanes: Ints) -> Ints:
    """How many windows the stretches of each stream have.

    `lanes`: the first frame of each of several streams, which lie far apart on one line of frames.
    """
    lengths = ends - begins + 1
    return np.bincount(np.searchsorted(lanes, ends, side="right") - 1, lengths, lanes.size).astype(np.int64)


def block_positions(first: Ints, width: int) -> Ints:
    """Ascending positions for windows that begin at the frames `first`, each equal to its frame modulo `width`.

    So blocks of `width` begin at the same frames whatever else is on the axis, and what is summed in a block is summed
    in one order: a window has the same bits beside any neighbours.
    """
    if first.size == 0:
        return first
    steps = (np.diff(first) - 1) % width + 1
    return np.asarray(np.concatenate(([0], np.cumsum(steps))) + first[0] % width)


def _crossed(low: Ints, high: Ints, long: tuple[Ints, Ints]) -> NDArray[np.bool_]:
    """Whether any of the rows begins at or before each of `low` (ascending) and ends at or after the `high` of it."""
    if long[0].size == 0:
        return np.zeros(low.size, np.bool_)
    order = np.argsort(long[0], kind="stable")
    begun = np.searchsorted(long[0][order], low, side="right")
    reach = np.maximum.accumulate(long[1][order])
    return np.asarray((begun > 0) & (reach[np.maximum(begun - 1, 0)] >= high))


def expand_ranges(low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """(row, value) for every integer value in each row's low … high (both included; empty where high < low)."""
    counts = np.maximum(high - low + 1, 0)
    row = np.repeat(np.arange(low.size, dtype=np.int64), counts)
    before = np.cumsum(counts) - counts
    return row, low[row] + np.arange(row.size, dtype=np.int64) - before[row]
