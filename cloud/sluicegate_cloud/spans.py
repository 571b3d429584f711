"""Spans in the fleet: a device of which nothing is known for long may still hold a reading in every window of others.

A span is one row for many windows of one device. The fleet's windows that lie in it need its components one by one, and
where no device is known to hold a reading for long, all devices' spans must be cut alike to be added. So each device
that has a span is told in which blocks of frames any device of the stream is known to hold a reading (`with_marks`).
Both the fleet's windows and its spans follow from these blocks alone, and a device cuts its own spans at them
(`pieces`): windows and spans of one fleet are then equal in start and end, and groups of one aggregate.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from sluicegate_cloud.grid import Axis, Grid, Ints, expand_ranges, stretches

#: Whose row it is: `FOR_ALL` the device's and, with others', the fleet's; `OF_DEVICE`, `OF_FLEET`: of one of them only.
FOR_ALL, OF_DEVICE, OF_FLEET = 0, 1, 2


class Pieces(NamedTuple):
    """Parts of spans: the entry of the axis each is of, the frame in which its first window begins, how many it has."""

    entry: Ints
    first: Ints
    windows: Ints


def with_marks(frames: DataFrame, grid: Grid, max_empty: int) -> DataFrame:
    """`frames`; rows that may cross a span have `marks`, the blocks in which a device of the stream is known to be."""
    block = block_of(max_empty)
    first, last = sf.col("first_frame"), sf.col("last_frame")
    long = last - first > grid.width + max_empty
    times = [sf.col(f"{name}_t_{end}") for name in ("low", "high") for end in ("first", "last")]
    inner = [sf.when(long & (sf.col("n") > 0), _floor(_floor(t - grid.origin_us, grid.slide_us), block)) for t in times]
    known = [of.alias(f"at_{i}") for i, of in enumerate((_floor(first, block), _floor(last, block), *inner))]
    points = frames.select("stream", *known).distinct()
    sets = sf.flatten(sf.array(*(sf.collect_set(f"at_{i}") for i in range(len(known)))))
    marks = points.groupBy(sf.col("stream").alias("marked")).agg(sf.array_distinct(sets).alias("marks"))
    return frames.join(sf.broadcast(marks), (sf.col("stream") == sf.col("marked")) & long, "left").drop("marked")


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


def _floor(of: Column, by: int) -> Column:
    """Floor of a quotient of integers."""
    return sf.call_function("div", of - sf.pmod(of, sf.lit(by).cast("bigint")), sf.lit(by).cast("bigint"))
