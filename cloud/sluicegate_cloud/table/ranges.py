"""Which windows of a stream a change touches, and which documents one must read to answer them again.

A window's row depends on the buckets that it overlaps, and whether there is a row (or a span of many) on where the
stream's neighbouring readings are. So a change between two times rewrites the windows that overlap it, and those
between it and the nearest documents before and after it which are as they were.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from sluicegate_cloud.grid import Grid, Ints, expand_ranges

#: Before and after all frames.
FIRST, LAST = -(1 << 61), 1 << 61
Ranges = list[tuple[int, int]]
#: The same as arrays: where each begins, and ends.
Ends = tuple[Ints, Ints]


def merged(ranges: Iterable[tuple[int, int]], near: int = 1) -> Ranges:
    """Ranges of integers, both ends included, ascending; those that overlap, or are `near`, are one."""
    out: Ranges = []
    for low, high in sorted(ranges):
        if out and low <= out[-1][1] + near:
            out[-1] = (out[-1][0], max(out[-1][1], high))
        else:
            out.append((low, high))
    return out


def joined(first: Ints, last: Ints) -> Ends:
    """The same of arrays: firsts and lasts."""
    order = np.argsort(first, kind="stable")
    first, reach = first[order], np.maximum.accumulate(last[order])
    breaks = np.flatnonzero(first[1:] > reach[:-1] + 1)
    return first[np.concatenate(([0], breaks + 1))[: first.size]], reach[
        np.append(breaks, first.size - 1)[: first.size]
    ]


def crossing(some: Ends, others: Ends) -> tuple[Ints, Ints, Ints]:
    """What ranges share with others, which are ascending and apart: the row of `some`, and from where to where."""
    low, high = np.searchsorted(others[1], some[0]), np.searchsorted(others[0], some[1], side="right") - 1
    row, at = expand_ranges(low, high)
    return row, np.maximum(some[0][row], others[0][at]), np.minimum(some[1][row], others[1][at])


def rewritten(touched: Sequence[tuple[int, int]], edges: Ints, grid: Grid) -> Ranges:
    """The first frames of the windows to answer anew, where the stream changed at times `touched` in µs.

    `edges`: ascending, the first and last times of the documents in use.
    """
    times = merged(touched)
    free = np.ones(edges.size, bool)
    for low, high in times:
        free[np.searchsorted(edges, low) : np.searchsorted(edges, high, side="right")] = False
    kept = edges[free]
    return merged(_around(low, high, kept, grid, (times[0][0], times[-1][1])) for low, high in times)


def _around(low: int, high: int, kept: Ints, grid: Grid, ends: tuple[int, int]) -> tuple[int, int]:
    """`ends`: of all that changed: before and after it there is no window where no document is kept."""
    before, after = int(np.searchsorted(kept, low)) - 1, int(np.searchsorted(kept, high, side="right"))
    first, last = _frame(ends[0], grid) - grid.width + 1, _frame(ends[1], grid)
    if before >= 0:
        first = min(_frame(kept[before], grid) + 1, _frame(low, grid) - grid.width + 1)
    if after < kept.size:
        last = max(_frame(kept[after], grid) - grid.width, _frame(high, grid))
    return first, last


def needed(window: tuple[int, int], edges: Ints, grid: Grid) -> tuple[int, int]:
    """The times in µs, both included, of what must be read for the windows that begin at these frames."""
    low, high = FIRST, LAST
    if window[0] > FIRST:
        at = int(np.searchsorted(edges, grid.origin_us + window[0] * grid.slide_us)) - 1
        low = int(edges[at]) if at >= 0 else FIRST
    if window[1] < LAST:
        at = int(np.searchsorted(edges, grid.origin_us + (window[1] + grid.width) * grid.slide_us))
        high = int(edges[at]) if at < edges.size else LAST
    return low, high


def cut_at(window: tuple[int, int], times: Iterable[int], grid: Grid) -> Ranges:
    """The window in parts, each beginning at the frame of one of `times`, at which there is a reading.

    A window that begins there holds that reading, so that no span lies in two parts.
    """
    frames = (_frame(time, grid) for time in times)
    begins = [window[0], *sorted({frame for frame in frames if window[0] < frame <= window[1]})]
    return [*zip(begins, [*(begin - 1 for begin in begins[1:]), window[1]], strict=True)]


def within(frames: Ints, ranges: Sequence[tuple[int, int]]) -> NDArray[np.bool_]:
    """Which of `frames` are in one of the ranges."""
    out = np.zeros(frames.size, bool)
    for low, high in ranges:
        out |= (frames >= low) & (frames <= high)
    return out


def _frame(time: int, grid: Grid) -> int:
    return (int(time) - grid.origin_us) // grid.slide_us
