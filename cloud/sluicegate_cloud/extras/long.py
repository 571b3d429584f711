"""Buckets that touch more windows than are answered one by one: these windows have no answer, and the merge goes on.

A clock that was years off makes such a bucket. It may have readings in any of its windows, of which nothing is kept, so
in these neither its device nor all devices together have an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from sluicegate_cloud.documents import bucket_rows
from sluicegate_cloud.errors import SourceError
from sluicegate_cloud.grid import Grid
from sluicegate_cloud.schema import USED

#: Windows that one bucket may touch, and buckets that may touch more.
MOST_WINDOWS, MOST = 100_000, 1_000
_FIELDS = ("device", "stream", "t_first", "t_last")
_TYPES = "device string, stream string, t_first bigint, t_last bigint"


class Long(NamedTuple):
    """A bucket's device, and its first and last time in µs."""

    device: str
    t_first: int
    t_last: int


#: By stream.
Longs = Mapping[str, Sequence[Long]]


def is_long(t_first: int, t_last: int, grid: Grid) -> bool:
    """Whether a bucket of these times touches more than MOST_WINDOWS windows."""
    first, last = ((time - grid.origin_us) // grid.slide_us for time in (t_first, t_last))
    return last - first + grid.width > MOST_WINDOWS


def long_buckets(documents: DataFrame, grid: Grid) -> Longs:
    """Those of the documents in use. Raises SourceError for more than MOST."""
    least = (MOST_WINDOWS - grid.width) * grid.slide_us  # of documents that may have any
    some = documents.where((sf.col("fate") == USED) & (sf.col("t_last") - sf.col("t_first") >= least))
    found = some.mapInArrow(_told(grid), _TYPES).limit(MOST + 1).collect()
    if len(found) > MOST:
        raise SourceError(f"over {MOST:,} buckets touch over {MOST_WINDOWS:,} windows each: take a longer slide")
    out: dict[str, list[Long]] = {}
    for row in found:
        out.setdefault(row["stream"], []).append(Long(row["device"], row["t_first"], row["t_last"]))
    return out


def _told(grid: Grid) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def told(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows:
                rows = bucket_rows(batch).select(_FIELDS)
                times = zip(rows["t_first"].to_pylist(), rows["t_last"].to_pylist(), strict=True)
                long = [is_long(since, until, grid) for since, until in times]
                yield rows.filter(pa.array(long))

    return told


def touches(some: Sequence[Long], device: str | None, start: int, end: int) -> bool:
    """Whether any of them, of this device (None: of any), may have a reading in [start, end)."""
    return any(device in (None, one.device) and one.t_first < end and one.t_last >= start for one in some)
