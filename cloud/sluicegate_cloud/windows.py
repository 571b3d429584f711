"""Frames → sliding windows per device and fleet-wide, each with value, low, high, exact, completeness and resolution.

One shuffle brings what belongs to a stream together, none where files or documents hold it together already; a pass
over Arrow batches then answers the windows of many streams at once (`fleet`). A fleet's windows add up what each task
has of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from sluicegate_cloud.fleet import files, packed, wire
from sluicegate_cloud.fleet import spread as spreading
from sluicegate_cloud.fleet.listing import listed
from sluicegate_cloud.fleet.parts import LOOKED, Group, looked, parts_of
from sluicegate_cloud.frames import frame_of, frame_times, place_in_frames
from sluicegate_cloud.grid import MAX_EMPTY, Grid
from sluicegate_cloud.merging import answers
from sluicegate_cloud.merging.whole import whole
from sluicegate_cloud.names import AGGREGATES, ALL, SILENT
from sluicegate_cloud.schema import USED, ddl
from sluicegate_cloud.session import parallelism
from sluicegate_cloud.sinks import Sink

_OF_A_DOCUMENT = (
    "device", "stream", "center", "fate", "buckets", "packed", "first", "hole", "hole_from", "hole_to", "lost",
    "losses", "gaps",
)  # fmt: skip
_HEAD = {"device": "string", "stream": "string", "window_start": "bigint", "window_end": "bigint"}


def sliding_windows(
    frames: DataFrame,
    frames_per_window: int,
    aggregates: Sequence[str] = AGGREGATES,
    *,
    fleet: bool = True,
    max_empty: int = MAX_EMPTY,
    spread: bool = False,
) -> DataFrame:
    """Windows of `frames_per_window` frames, sliding by one: the rows of each device, and of all (`device` null).

    `frames` as `place_in_frames` or `merge_frames` gives them. Windows are [window_start, window_end) in µs on the grid
    of the frames, from the first that holds a reading of the stream to the last, so those at both ends are partial;
    empty ones between are rows of count 0. Where more than `max_empty` in a row hold no reading whose time is known,
    they have one row in all: what it says holds for each of its `windows`, the last of which ends at `window_end`; none
    if they are empty for certain. `spread`: count the streams' rows first, a job of its own, and cut by time those that
    are most of the job, so that several tasks answer them. Columns: `window_columns(aggregates)`. Raises ValueError for
    frames that are not frames, a width below 1, a negative `max_empty` or an unknown aggregate.
    """
    _require(frames_per_window, max_empty)
    slide_us, origin_us = frame_times(frames)
    wanted = wire.fields(aggregates, folded="buckets" in frames.columns)
    asked = Asked(Grid(slide_us, frames_per_window, origin_us), tuple(aggregates), fleet, max_empty)
    cuts = spreading.of_frames(frames, frames_per_window) if spread else wire.WHOLE
    if cuts:
        frames = spreading.placed(frames, cuts, sf.col("first_frame"), sf.col("last_frame"), frames_per_window)
    return asked.of(wire.laid_out(frames, wanted), wire.source(wanted, asked.grid, cuts))


def windows_of_files(
    spark: SparkSession,
    paths: str | Path | Sequence[str | Path],
    slide_us: int,
    frames_per_window: int,
    aggregates: Sequence[str] = AGGREGATES,
    *,
    origin_us: int = 0,
    fleet: bool = True,
    max_empty: int = MAX_EMPTY,
) -> DataFrame:
    """`sliding_windows` of buckets in Parquet files: the same rows, several times as fast where they lie by device.

    `paths`: files and folders with the columns of `schema.BUCKETS` that all workers see. Where the files' own
    statistics say that their row groups are by device (as those of a DataFrame sorted by it are), workers read whole
    streams of them, and no bucket is a row of Spark's; else Spark brings the streams together. A device that is more
    than a task's share, or has a million rows, is cut by time where its row groups lie by it too. Raises ValueError as
    `sliding_windows` does, and SourceError where there is no file.
    """
    _require(frames_per_window, max_empty)
    named = [paths] if isinstance(paths, str | Path) else [*paths]
    found, grid = listed(named), Grid(slide_us, frames_per_window, origin_us)
    parts = parts_of(found, 4 * parallelism(spark), grid, partial(_looked, spark))
    if parts is None:
        frames = place_in_frames(spark.read.parquet(*found), slide_us, origin_us)
        return sliding_windows(frames, frames_per_window, aggregates, fleet=fleet, max_empty=max_empty)
    wanted = wire.fields(aggregates, folded=False)
    numbers = spark.range(0, len(parts), 1, len(parts))
    return Asked(grid, tuple(aggregates), fleet, max_empty).of(numbers, files.source(parts, wanted, grid))


def _looked(spark: SparkSession, groups: Sequence[Group], devices: frozenset[str], grid: Grid) -> pa.Table:
    """What `parts.Look` asks of the files, looked up by Spark's workers."""

    def worker(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from looked(((at, groups[at]) for at in batch.column("id").to_pylist()), devices, grid)

    numbers = spark.range(0, len(groups), 1, min(len(groups), 4 * parallelism(spark)))
    return numbers.mapInArrow(worker, ddl(LOOKED)).toArrow()


def windows_of_documents(
    documents: DataFrame,
    grid: Grid,
    aggregates: Sequence[str] = AGGREGATES,
    *,
    fleet: bool = True,
    max_empty: int = MAX_EMPTY,
    sink: Sink | None = None,
    long: bool = False,
) -> DataFrame:
    """`sliding_windows` of the buckets of documents as `dedupe.catalogue` gives them, in their partitions.

    Buckets stay packed until they are answered. `sink`: as `Asked.written` has it. `long`: whether a stream may have
    more buckets than a task should hold; documents are sorted by time then, and such a stream is answered in parts, by
    several tasks where it is most of the job. All windows are answered, however many: `sparse.set_aside` says of which
    streams they are too many. Raises ValueError for an unknown aggregate.
    """
    some = documents.where((sf.col("fate") == USED) | (sf.col("hole") > 0))
    cuts = spreading.of_documents(some, grid) if long else wire.WHOLE
    if long:
        some = _by_time(some, grid, cuts)
    needed = _OF_A_DOCUMENT + (("since", "piece") if long else ())
    source = packed.source(wire.fields(aggregates, folded=False), grid, cuts)
    asked, given = Asked(grid, tuple(aggregates), fleet, max_empty, bounded=False), some.select(*needed)
    return asked.of(given, source) if sink is None else asked.written(given, source, sink)


def _by_time(documents: DataFrame, grid: Grid, cuts: wire.Cuts) -> DataFrame:
    """Each partition sorted by `since`; the pieces of streams that are cut go to the tasks that answer them."""
    some = documents.withColumns({"since": _end(sf.least, "t_first"), "piece": sf.lit(-1).cast("bigint")})
    by = ("device", "stream", "piece")
    if not cuts:
        return some.sortWithinPartitions(*by, "since", "first")
    begin, end = (frame_of(of, grid.slide_us, grid.origin_us) for of in (sf.col("since"), _end(sf.greatest, "t_last")))
    cut = spreading.placed(some.drop("piece"), cuts, begin, end, grid.width)
    apart = cut.where("piece >= 0").select(some.columns).repartition(*by)
    return spreading.others(some, cuts).union(apart).sortWithinPartitions(*by, "since", "first")


def _end(pick: Callable[..., Column], of_buckets: str) -> Column:
    """The least (or greatest) time in µs of a document's buckets and of what is missing beside them."""
    hole = sf.when(sf.col("hole") > 0, pick("hole_from", "hole_to"))
    return pick(sf.when(sf.col("fate") == USED, sf.col(of_buckets)), hole, pick("loss_from", "loss_to"))


class Asked(NamedTuple):
    """Which windows are wanted, wherever the buckets come from."""

    grid: Grid
    aggregates: tuple[str, ...]
    fleet: bool = True
    max_empty: int = MAX_EMPTY
    bounded: bool = True

    def of(self, given: DataFrame, source: wire.Source) -> DataFrame:
        """The windows of the streams that `source` reads from each partition of `given`; none is in two of these."""
        schema = ddl(window_columns(self.aggregates))
        windows = given.mapInArrow(answers.devices(*self._asked(source), bounded=self.bounded), schema)
        if not self.fleet:
            return windows
        columns = ddl(answers.share_columns(self.aggregates))
        shares = given.mapInArrow(answers.shares(*self._asked(source), bounded=self.bounded), columns)
        return windows.unionByName(_by_stream(shares).mapInArrow(self._whole(), schema))

    def written(self, given: DataFrame, source: wire.Source, sink: Sink) -> DataFrame:
        """The same, those of all too, taken by the sink in the workers that answer them: what the sink tells of them.

        The rows of devices are no rows of Spark's, so that one pass answers them and tells what they add.
        """
        columns = ddl(answers.share_columns(self.aggregates), sink.schema)
        both = given.mapInArrow(answers.both(*self._asked(source), sink, bounded=self.bounded), columns)
        return _by_stream(both).mapInArrow(answers.unnamed(self._whole(), sink), ddl(sink.schema))

    def _asked(self, source: wire.Source) -> tuple[Grid, wire.Source, Sequence[str], int]:
        return self.grid, source, self.aggregates, self.max_empty

    def _whole(self) -> answers.Pass:
        return whole(self.grid, self.aggregates, self.max_empty)


def _by_stream(shares: DataFrame) -> DataFrame:
    return shares.repartition("stream").sortWithinPartitions("stream", "kind", "frame")


def _require(frames_per_window: int, max_empty: int) -> None:
    if frames_per_window < 1:
        raise ValueError(f"frames_per_window is {frames_per_window}: a window holds at least 1 frame")
    if max_empty < 0:
        raise ValueError(f"max_empty is {max_empty}: expected how many windows in a row may hold nothing, 0 or more")


def window_columns(aggregates: Sequence[str] = AGGREGATES) -> dict[str, str]:
    """The columns of window rows and their SQL types: each aggregate, `_low`, `_high` and `_exact`, then the quality.

    Raises ValueError for an unknown aggregate.
    """
    if unknown := [name for name in aggregates if name not in ALL]:
        raise ValueError(f"unknown aggregate {unknown[0]!r}: choose from {', '.join(ALL)}")
    columns = dict(_HEAD)
    for name in aggregates:
        kind = "bigint" if name.endswith("count") else "double"
        columns |= {name: kind, f"{name}_low": kind, f"{name}_high": kind, f"{name}_exact": "boolean"}
    quality = {"completeness": "double", "resolution_us": "double", "buckets": "bigint", SILENT: "bigint"}
    return columns | quality | {"windows": "bigint"}
