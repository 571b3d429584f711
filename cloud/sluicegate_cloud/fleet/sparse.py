"""Streams of more windows than a device may make: they are set aside with a reason, so that all others are answered.

A reading makes a window's length of windows, and up to `grid.MAX_EMPTY` empty ones before the next: a device that sends
little could make any number of rows. A stream has a row for every bucket that was sent and `grid.MAX_WINDOWS` more, and
each of GROUPS groups of a device's streams STREAMS times as many; of a group that needs more, those streams with most
are set aside. What is counted follows from the documents alone, so that every run decides alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from sluicegate_cloud import grid as grids
from sluicegate_cloud.documents import fields_of
from sluicegate_cloud.fleet.spread import those
from sluicegate_cloud.fleet.wire import Stream
from sluicegate_cloud.grid import MAX_EMPTY, Grid, Ints, stretches
from sluicegate_cloud.schema import BUCKET_FIELDS, REFUSED, USED

#: Groups of a device's streams: as many as a table's shards, which count apart.
GROUPS = 16
#: How many streams of a group may have as many windows as one may.
STREAMS = 4
_AT = {name: i for i, name in enumerate(BUCKET_FIELDS)}
_EXTREMES = ("low_t_first", "low_t_last", "high_t_first", "high_t_last")
_STRETCHES = "device string, stream string, first bigint, last bigint, buckets bigint"
_COUNTED = "device string, stream string, windows bigint, buckets bigint"
#: Which streams are set aside, and why.
Aside = dict[Stream, str]


class Count(NamedTuple):
    """How many windows a stream has, and how many buckets were sent of it."""

    windows: int
    buckets: int


def too_many(counts: Mapping[Stream, Count]) -> Aside:
    """Of the streams of a group of some devices those that do not fit: first those with fewest windows are taken."""
    beyond = {of: max(count.windows - count.buckets, 0) for of, count in counts.items()}
    taken: dict[str, int] = {}
    out: Aside = {}
    for of in sorted(beyond, key=lambda of: (beyond[of], of)):
        taken[of[0]] = taken.get(of[0], 0) + beyond[of]
        if beyond[of] > grids.MAX_WINDOWS or taken[of[0]] > STREAMS * grids.MAX_WINDOWS:
            out[of] = (
                f"its stream {of[1]} has {counts[of].windows:,} windows of {counts[of].buckets:,} buckets; one may "
                f"have {grids.MAX_WINDOWS:,} more than buckets, all of a device {STREAMS * GROUPS} times as many: "
                "choose a longer slide"
            )
    return out


def doubtful(names: Sequence[Stream], beyond: Sequence[int]) -> list[Stream]:
    """The streams of devices that may have too many, if each has at most so many windows more than buckets."""
    taken: dict[str, int] = {}
    large: set[str] = set()
    for (device, _), windows in zip(names, beyond, strict=True):
        taken[device] = taken.get(device, 0) + windows
        if windows > grids.MAX_WINDOWS or taken[device] > STREAMS * grids.MAX_WINDOWS:
            large.add(device)
    return [of for of in names if of[0] in large]


def at_most(first_us: Ints, last_us: Ints, buckets: Ints, grid: Grid) -> Ints:
    """How many windows more than buckets streams may have whose readings lie between these times."""
    return np.asarray(np.maximum(grid.frame_of(last_us) - grid.frame_of(first_us) + grid.width - buckets, 0))


def of_document(packed: Any, buckets: int, grid: Grid, max_empty: int) -> tuple[Ints, Ints]:
    """The first and last windows of each run that the packed buckets of a document have windows in."""
    told = fields_of(packed, buckets)
    first, last = (grid.frame_of(told[_AT[name]]) for name in ("t_first", "t_last"))
    long = first < last
    extremes = [grid.frame_of(told[_AT[name]][long]) for name in _EXTREMES]
    return stretches(np.concatenate([first, last, *extremes]), grid.width, max_empty)


def is_short(first_us: Any, last_us: Any, grid: Grid, max_empty: int) -> Any:
    """Whether all windows of documents between these times are one run, whatever is in them."""
    return grid.frame_of(last_us) - grid.frame_of(first_us) <= grid.width + max_empty


def joined(firsts: Ints, lasts: Ints, max_empty: int) -> tuple[Ints, Ints]:
    """The runs of windows of several documents, as one stream has them: sorted, and one where no more lie between."""
    order = np.argsort(firsts, kind="stable")
    begins, reach = firsts[order], np.maximum.accumulate(lasts[order])
    breaks = np.flatnonzero(begins[1:] > reach[:-1] + max_empty + 1)
    some = np.concatenate((breaks, [begins.size - 1])) if begins.size else breaks
    return begins[np.concatenate(([0], breaks + 1))] if begins.size else begins, reach[some]


def set_aside(documents: DataFrame, tallied: Sequence[dict[str, Any]], grid: Grid, max_empty: int = MAX_EMPTY) -> Aside:
    """Which streams of `documents` (`dedupe.catalogue`) are too many; `tallied`: `quality.tally` of them.

    Two Spark jobs where a device's times allow so many windows, usually none.
    """
    ends = _ends(tallied)
    some = _large(ends, grid)
    if not some:
        return {}
    mine = those(documents.where((sf.col("fate") == USED) | (sf.col("hole") > 0)), some)
    runs = mine.mapInArrow(_runs({of: ends[of][:2] for of in some}, grid, max_empty), _STRETCHES)
    runs = runs.repartition("device", "stream").sortWithinPartitions("device", "stream", "first")
    group = sf.pmod(sf.xxhash64("device", "stream"), sf.lit(GROUPS)).alias("group")
    rows = runs.mapInArrow(_counts(max_empty), _COUNTED).select("*", group).collect()
    groups: dict[int, dict[Stream, Count]] = {}
    for row in rows:
        counts = groups.setdefault(row["group"], {})
        counts[row["device"], row["stream"]] = Count(row["windows"], row["buckets"])
    return {of: why for counts in groups.values() for of, why in too_many(counts).items()}


def without(documents: DataFrame, aside: Aside) -> DataFrame:
    """`documents`, those of these streams refused."""
    spark = documents.sparkSession
    rows = [(*of, why) for of, why in aside.items()]
    known = spark.createDataFrame(rows, "of_device string, of_stream string, aside string")
    met = (sf.col("of_device") == sf.col("device")) & (sf.col("of_stream") == sf.col("stream"))
    found = documents.join(sf.broadcast(known), met, "left")
    is_aside = sf.col("aside").isNotNull()
    return found.withColumns(
        {
            "reason": sf.when(is_aside & (sf.col("fate") == USED), sf.col("aside")).otherwise(sf.col("reason")),
            "fate": sf.when(is_aside & (sf.col("fate") == USED), sf.lit(REFUSED)).otherwise(sf.col("fate")),
            **{name: sf.when(is_aside, sf.lit(0)).otherwise(sf.col(name)) for name in ("hole", "lost")},
        }
    ).select(documents.columns)


def _ends(tallied: Sequence[dict[str, Any]]) -> dict[Stream, tuple[int, int, int]]:
    """Of each stream in use its first and last time, and how many buckets it has."""
    out: dict[Stream, tuple[int, int, int]] = {}
    for row in tallied:
        if row["fate"] == USED:
            of = row["device"], row["stream"]
            first, last, buckets = out.get(of, (row["first_us"], row["last_us"], 0))
            out[of] = min(first, row["first_us"]), max(last, row["last_us"]), buckets + row["buckets"]
    return out


def _large(ends: Mapping[Stream, tuple[int, int, int]], grid: Grid) -> list[Stream]:
    """The streams of devices that may have too many windows."""
    if not ends:
        return []
    first, last, buckets = np.array([*ends.values()], np.int64).T
    return doubtful([*ends], at_most(first, last, buckets, grid).tolist())


def _runs(
    ends: Mapping[Stream, tuple[int, int]], grid: Grid, max_empty: int
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Documents → the runs of windows of each; holes as far as the stream (`ends`, µs) reaches."""

    def told(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for at, row in enumerate(batch.drop_columns(["packed", "extras"]).to_pylist()):
                first_us, last_us = ends[row["device"], row["stream"]]
                if row["hole"] > 0:
                    times = np.clip([row["hole_from"], row["hole_to"]], first_us, last_us)
                    yield _found(row, stretches(grid.frame_of(times), grid.width, max_empty), 0)
                if row["fate"] == USED:
                    first, last = (grid.frame_of(np.array([row[name]])) for name in ("t_first", "t_last"))
                    if (last - first)[0] <= grid.width + max_empty:
                        yield _found(row, (first - (grid.width - 1), last), row["buckets"])
                    else:
                        packed = batch["packed"][at].as_buffer()
                        yield _found(row, of_document(packed, row["buckets"], grid, max_empty), row["buckets"])

    return told


def _found(row: Mapping[str, Any], runs: tuple[Ints, Ints], buckets: int) -> pa.RecordBatch:
    size = runs[0].size
    counted = np.zeros(size, np.int64)
    counted[:1] = buckets
    head = {name: pa.repeat(pa.scalar(row[name], pa.string()), size) for name in ("device", "stream")}
    return pa.RecordBatch.from_pydict(head | {"first": runs[0], "last": runs[1], "buckets": counted})


def _counts(max_empty: int) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Runs of windows, sorted by stream and where they begin → how many windows each stream has."""

    def told(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        name: Stream | None = None
        windows = buckets = 0
        open_ = (0, -1)
        for batch in batches:
            names = [*zip(batch["device"].to_pylist(), batch["stream"].to_pylist(), strict=True)]
            edges = [0, *(at for at in range(1, len(names)) if names[at] != names[at - 1]), len(names)]
            for begin, end in pairwise(edges):
                if begin == end:
                    continue
                first, last, some = (batch[of].to_numpy()[begin:end] for of in ("first", "last", "buckets"))
                if name == names[begin]:
                    first, last = np.append(open_[0], first), np.append(open_[1], last)
                else:
                    if name is not None:
                        yield _count(name, windows + open_[1] - open_[0] + 1, buckets)
                    name, windows, buckets = names[begin], 0, 0
                begins, ends = joined(first, last, max_empty)
                windows += int((ends[:-1] - begins[:-1] + 1).sum())
                buckets, open_ = buckets + int(some.sum()), (int(begins[-1]), int(ends[-1]))
        if name is not None:
            yield _count(name, windows + open_[1] - open_[0] + 1, buckets)

    return told


def _count(name: Stream, windows: int, buckets: int) -> pa.RecordBatch:
    columns = {"device": [name[0]], "stream": [name[1]], "windows": [windows], "buckets": [buckets]}
    return pa.RecordBatch.from_pydict(columns)
