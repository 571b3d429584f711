"""Leaves windows without an answer where a bucket spans more windows than are answered one by one; the rest go on.

A clock that was years off makes such a bucket. It may have readings in any of its windows, of which nothing is kept, so
in these neither its device nor all devices together have an answer.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from sluicegate_cloud.documents import bucket_rows
from sluicegate_cloud.fleet.sparse import joined
from sluicegate_cloud.grid import Grid
from sluicegate_cloud.schema import USED

#: Windows that one bucket may touch, and stretches of a device's stream that are told apart where buckets touch more.
MOST_WINDOWS, MOST = 100_000, 100
_FIELDS = ("device", "stream", "t_first", "t_last")
_TYPES = "device string, stream string, t_first bigint, t_last bigint, buckets bigint"
_TIMES = ("t_first", "t_last", "buckets")
#: The same for Arrow.
LONG = pa.schema([("device", pa.string()), ("stream", pa.string()), *((name, pa.int64()) for name in _TIMES)])


Ranges = list[tuple[int, int]]


class Longs(NamedTuple):
    """How many such `buckets` there are; by stream and device (None: of any) between which µs, both ends included."""

    buckets: int
    where: Mapping[str, Mapping[str | None, Ranges]]


#: There is none.
NONE = Longs(0, {})


def is_long(t_first: int, t_last: int, grid: Grid) -> bool:
    """Whether a bucket of these times touches more than MOST_WINDOWS windows."""
    first, last = ((time - grid.origin_us) // grid.slide_us for time in (t_first, t_last))
    return last - first + grid.width > MOST_WINDOWS


def long_buckets(documents: DataFrame, grid: Grid) -> Longs:
    """Those of the documents in use.

    Where a device's stream has them in more than MOST stretches the last one goes on to the end of the latest, so that
    no device can make the list long.
    """
    some = documents.where((sf.col("fate") == USED) & (sf.col("t_last") - sf.col("t_first") >= least_us(grid)))
    found = some.mapInArrow(_told(grid), _TYPES).repartition("device", "stream")
    rows = found.sortWithinPartitions("device", "stream", "t_first").mapInArrow(stretches, _TYPES).collect()
    return of_stretches(row.asDict() for row in rows)


def least_us(grid: Grid) -> int:
    """How long a document lasts, at least, that may have any."""
    return (MOST_WINDOWS - grid.width) * grid.slide_us


def of_stretches(rows: Iterable[Mapping[str, Any]]) -> Longs:
    """Of rows of `stretches`."""
    buckets = 0
    where: dict[str, dict[str | None, Ranges]] = {}
    for row in rows:
        where.setdefault(row["stream"], {}).setdefault(row["device"], []).append((row["t_first"], row["t_last"]))
        buckets += row["buckets"]
    for devices in where.values():
        devices[None] = together(one for ranges in devices.values() for one in ranges)
    return Longs(buckets, where)


def together(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Those of several devices, at least one; what overlaps is one."""
    first, last = np.array([*ranges], np.int64).T
    return [*zip(*(of.tolist() for of in joined(first, last, -1)), strict=True)]


def _told(grid: Grid) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def told(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows:
                rows = bucket_rows(batch).select(_FIELDS)
                times = zip(rows["t_first"].to_pylist(), rows["t_last"].to_pylist(), strict=True)
                long = [is_long(since, until, grid) for since, until in times]
                one = pa.array([1] * rows.num_rows, pa.int64())
                yield rows.append_column("buckets", one).filter(pa.array(long))

    return told


def stretches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Buckets, by stream and time → the stretches of each stream."""
    rows = (row for batch in batches for row in batch.to_pylist())
    for (device, stream), mine in groupby(rows, key=lambda row: (row["device"], row["stream"])):
        out: list[dict[str, int]] = []
        for row in mine:
            if out and (row["t_first"] <= out[-1]["t_last"] or len(out) == MOST):
                out[-1]["t_last"] = max(out[-1]["t_last"], row["t_last"])
                out[-1]["buckets"] += 1
            else:
                out.append({name: row[name] for name in ("t_first", "t_last", "buckets")})
        head = {"device": device, "stream": stream}
        yield pa.RecordBatch.from_pylist([head | one for one in out])


def touches(some: Mapping[str | None, Sequence[tuple[int, int]]], device: str | None, start: int, end: int) -> bool:
    """Whether any of them, of this device (None: of any), may have a reading in [start, end)."""
    ranges = some.get(device, ())
    at = bisect_left(ranges, start, key=lambda one: one[1])
    return at < len(ranges) and ranges[at][0] < end
