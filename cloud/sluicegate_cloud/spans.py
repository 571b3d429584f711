"""Cuts the spans of devices alike, so that a fleet's windows and spans can be added up device by device.

A span is one row for many windows of one device. The fleet's windows that lie in it need its components one by one, and
where no device is known to hold a reading for long, all devices' spans must be cut alike to be added. So each task
tells in which blocks of frames a device of the stream is known to hold a reading. Both the fleet's windows and its
spans follow from these blocks alone, and every device's spans are cut at them (`cut_spans`): windows and spans of one
fleet are then equal in start and end.

Not a join of spans with the fleet's windows by range in Spark: the plan could no longer share one exchange. Not spans
as rows of the fleet: they would overlap its windows. Windows left out said "count 0, exact", wrongly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sluicegate_cloud.grid import Axis, Ints, expand_ranges, stretches


class Pieces(NamedTuple):
    """Parts of spans: the entry of the axis each is of, the frame in which its first window begins, how many it has."""

    entry: Ints
    first: Ints
    windows: Ints


class Cut(NamedTuple):
    """The spans of an axis as the fleet has them: `lasting` ones, and `runs` of windows that it has one by one."""

    lasting: Pieces
    runs: Pieces


def block_of(max_empty: int) -> int:
    """Frames in a block: no more than stand between two windows that are answered one by one."""
    return max(max_empty, 1)


def cut_spans(axis: Axis, marks: Ints, width: int, max_empty: int) -> Cut:
    """The entries of `axis`, all of them spans, cut at the blocks `marks` in which a device is known to be."""
    every, none = np.arange(axis.size), np.zeros(0, np.int64)
    if axis.size == 0 or marks.size == 0:
        return Cut(Pieces(every, axis.first, axis.windows), Pieces(none, none, none))
    block = block_of(max_empty)
    begins, ends = stretches(np.concatenate((marks * block, marks * block + block - 1)), width, max_empty)
    low = np.searchsorted(ends, axis.first)
    high = np.searchsorted(begins, axis.last, side="right") - 1
    met = high >= low
    whole = Pieces(every[~met], axis.first[~met], axis.windows[~met])
    found, runs = _parts(axis, every[met], (begins, ends), (low[met], high[met]))
    return Cut(_together([whole, *found]), runs)


def _parts(
    axis: Axis, spans: Ints, fleet: tuple[Ints, Ints], between: tuple[Ints, Ints]
) -> tuple[list[Pieces], Pieces]:
    """Of each span what is before, between and after the stretches of the fleet in it, and these."""
    row, at = expand_ranges(*between)
    entry = spans[row]
    begins, ends = np.maximum(fleet[0][at], axis.first[entry]), np.minimum(fleet[1][at], axis.last[entry])
    same = np.flatnonzero(row[1:] == row[:-1])
    gaps = Pieces(entry[same], fleet[1][at[same]] + 1, fleet[0][at[same + 1]] - fleet[1][at[same]] - 1)
    before = np.minimum(fleet[0][between[0]], axis.last[spans] + 1) - axis.first[spans]
    after = axis.last[spans] - fleet[1][between[1]]
    edges = [(before, axis.first[spans]), (after, fleet[1][between[1]] + 1)]
    found = [Pieces(spans[some], first[some], counts[some]) for counts, first in edges for some in (counts > 0,)]
    return [gaps, *found], Pieces(entry, begins, ends - begins + 1)


def _together(found: Sequence[Pieces]) -> Pieces:
    return Pieces(*(np.concatenate(of) for of in zip(*found, strict=True)))


def between(cut: Cut, low: int, high: int) -> Pieces:
    """Parts whose windows begin at the frames `low` … `high` − 1: lasting ones by their first, runs one by one."""
    some = (cut.lasting.first >= low) & (cut.lasting.first < high)
    lasting = Pieces(*(of[some] for of in cut.lasting))
    begins, ends = np.maximum(cut.runs.first, low), np.minimum(cut.runs.first + cut.runs.windows, high) - 1
    row, first = expand_ranges(begins, ends)
    return _together([lasting, Pieces(cut.runs.entry[row], first, np.ones_like(first))])


def steps(runs: Pieces, most: int) -> Ints:
    """Frames, ascending, between two of which no more than about `most` windows of the runs begin."""
    frames, at = np.unique(np.concatenate((runs.first, runs.first + runs.windows)), return_inverse=True)
    begun = np.concatenate((np.ones_like(runs.first), np.full_like(runs.first, -1)))
    open_ = np.cumsum(np.bincount(at, begun, frames.size)).astype(np.int64)[:-1]
    before = np.concatenate(([0], np.cumsum(open_ * np.diff(frames))))
    wanted = np.arange(most, before[-1], most)
    since = np.searchsorted(before, wanted, side="right") - 1
    return np.asarray(frames[since] + (wanted - before[since]) // open_[since])
