"""Spans in the fleet: a device of which nothing is known for long may still hold a reading in every window of others.

A span is one row for many windows of one device. The fleet's windows that lie in it need its components one by one, and
where no device is known to hold a reading for long, all devices' spans must be cut alike to be added. So each task
tells in which blocks of frames a device of the stream is known to hold a reading. Both the fleet's windows and its
spans follow from these blocks alone, and every device's spans are cut at them (`pieces`): windows and spans of one
fleet are then equal in start and end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from sluicegate_cloud.grid import Axis, Ints, expand_ranges, stretches


class Pieces(NamedTuple):
    """Parts of spans: the entry of the axis each is of, the frame in which its first window begins, how many it has."""

    entry: Ints
    first: Ints
    windows: Ints


def block_of(max_empty: int) -> int:
    """Frames in a block: no more than stand between two windows that are answered one by one."""
    return max(max_empty, 1)


def pieces(axis: Axis, marks: Ints, width: int, max_empty: int, most: int) -> tuple[Ints, Iterator[Pieces]]:
    """The spans of `axis` that the fleet has in parts, and the parts, at most `most` at a time."""
    block = block_of(max_empty)
    begins, ends = stretches(np.concatenate((marks * block, marks * block + block - 1)), width, max_empty)
    spans = axis.spans
    low = np.searchsorted(ends, axis.first[spans])
    high = np.searchsorted(begins, axis.last[spans], side="right") - 1
    cut = high >= low
    return spans[cut], _pieces(axis, spans[cut], (begins, ends), (low[cut], high[cut]), most)


def _pieces(
    axis: Axis, spans: Ints, fleet: tuple[Ints, Ints], between: tuple[Ints, Ints], most: int
) -> Iterator[Pieces]:
    """The windows of each stretch of the fleet in each span, and the spans between these stretches."""
    row, at = expand_ranges(*between)
    entry = spans[row]
    begins, ends = np.maximum(fleet[0][at], axis.first[entry]), np.minimum(fleet[1][at], axis.last[entry])
    same = np.flatnonzero(row[1:] == row[:-1])
    gaps = fleet[0][at[same + 1]] - fleet[1][at[same]] - 1
    yield Pieces(entry[same], fleet[1][at[same]] + 1, gaps)
    yield from _edges(axis, spans, fleet, between)
    for one, begin, end in zip(entry.tolist(), begins.tolist(), ends.tolist(), strict=True):
        for since in range(begin, end + 1, most):
            first = np.arange(since, min(since + most, end + 1), dtype=np.int64)
            yield Pieces(np.full_like(first, one), first, np.ones_like(first))


def _edges(axis: Axis, spans: Ints, fleet: tuple[Ints, Ints], between: tuple[Ints, Ints]) -> Iterator[Pieces]:
    """What of each span is before the fleet's first stretch in it, and after the last."""
    before = np.minimum(fleet[0][between[0]], axis.last[spans] + 1) - axis.first[spans]
    after = axis.last[spans] - fleet[1][between[1]]
    for counts, first in ((before, axis.first[spans]), (after, fleet[1][between[1]] + 1)):
        some = counts > 0
        yield Pieces(spans[some], first[some], counts[some])
