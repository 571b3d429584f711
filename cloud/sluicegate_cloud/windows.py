"""Frames → sliding windows per device and fleet-wide, each with value, low, high, exact, completeness and resolution.

Per stream a grouped Arrow function answers every window in NumPy (`components`); a fleet's windows combine those of its
devices in one hash aggregate with code generation; `lower` then turns both into rows in Arrow batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from sluicegate_cloud.estimates.components import (
    COMPONENTS,
    GREATEST,
    INTEGERS,
    LEAST,
    SUMS,
    components,
    families,
    names,
)
from sluicegate_cloud.estimates.lower import lower
from sluicegate_cloud.frames import frame_times
from sluicegate_cloud.grid import MAX_EMPTY, Axis, Columns, Grid, Ints
from sluicegate_cloud.names import AGGREGATES, ALL, ENDS, OF_A_WINDOW
from sluicegate_cloud.schema import SURE, ddl
from sluicegate_cloud.spans import FOR_ALL, OF_DEVICE, OF_FLEET, pieces, with_marks

_HEAD = {"device": "string", "stream": "string", "window_start": "bigint", "window_end": "bigint"}
#: `windows`: how many a row stands for; `whose`: see `spans`.
_PLACE = {"windows": "bigint", "whose": "bigint"}
_ARROW = {"bigint": pa.int64()}
_WHOSE = ("device", "stream")
_NOT_READ = (*_WHOSE, "key", "marks")
#: Windows that travel to the JVM at a time, about 8 MB: it takes them one batch after the other.
_BATCH_ROWS = 1 << 15


def sliding_windows(
    frames: DataFrame,
    frames_per_window: int,
    aggregates: Sequence[str] = AGGREGATES,
    *,
    fleet: bool = True,
    max_empty: int = MAX_EMPTY,
) -> DataFrame:
    """Windows of `frames_per_window` frames, sliding by one: the rows of each device, and of all (`device` null).

    `frames` as `merge_frames` gives them. Windows are [window_start, window_end) in µs on the grid of the frames, from
    the first that holds a reading of the stream to the last, so those at both ends are partial; empty ones between are
    rows of count 0. Where more than `max_empty` in a row hold no reading whose time is known, they have one row in all:
    what it says holds for each of its `windows`, the last of which ends at `window_end`; none if they are empty for
    certain. Columns: `window_columns(aggregates)`. Raises ValueError for frames that are not frames, a width below 1, a
    negative `max_empty` or an unknown aggregate.
    """
    if frames_per_window < 1:
        raise ValueError(f"frames_per_window is {frames_per_window}: a window holds at least 1 frame")
    if max_empty < 0:
        raise ValueError(f"max_empty is {max_empty}: expected how many windows in a row may hold nothing, 0 or more")
    schema = ddl(window_columns(aggregates))
    needed = families(aggregates)
    slide_us, origin_us = frame_times(frames)
    grid = Grid(slide_us, frames_per_window, origin_us)
    if fleet:
        frames = with_marks(frames, grid, max_empty)
    answer = _stream_function(grid, needed, max_empty)
    parts = frames.groupBy("device", "stream").applyInArrow(answer, ddl(_HEAD, _PLACE, _kinds(needed)))
    if fleet:
        parts = _with_fleet(parts, needed)
    return parts.mapInArrow(_lower_function(tuple(aggregates)), schema)


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
    return columns | {"completeness": "double", "resolution_us": "double", "buckets": "bigint", "windows": "bigint"}


def _kinds(needed: Sequence[ModuleType]) -> dict[str, str]:
    """The components' SQL types."""
    return {name: "bigint" if name in INTEGERS else "double" for name in names(needed)}


def _stream_function(
    grid: Grid, needed: Sequence[ModuleType], max_empty: int
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The grouped function: the frames of one device's stream → the components of its windows."""

    def answer(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        table = pa.Table.from_batches(batches)
        rows: Columns = {
            name: table.column(name).combine_chunks().to_numpy(zero_copy_only=False)
            for name in table.column_names
            if name not in _NOT_READ
        }
        axis, parts = components(_without_nulls(rows), grid, max_empty, needed)
        entries = pa.table({name: parts[name] for name in _kinds(needed)})
        for entry, placed, whose in _placed(axis, _marks(table), grid.width, max_empty):
            start = grid.start_us(placed.first)
            end = grid.start_us(placed.last) + grid.width * grid.slide_us
            owner = {name: pa.repeat(table.column(name)[0], placed.size) for name in _WHOSE}
            place = {"window_start": start, "window_end": end, "windows": placed.windows, "whose": whose}
            told = entries if entry is None else entries.take(entry)
            whole = pa.table({**owner, **place, **dict(zip(told.column_names, told.columns, strict=True))})
            yield from whole.to_batches(_BATCH_ROWS)

    return answer


def _marks(table: pa.Table) -> Ints | None:
    """The blocks of the fleet, which long rows are told; None where there is no such row."""
    if "marks" not in table.column_names:
        return None
    told = table.column("marks").drop_null()
    return np.sort(told[0].values.to_numpy(zero_copy_only=False)) if len(told) else None


def _placed(axis: Axis, marks: Ints | None, width: int, max_empty: int) -> Iterator[tuple[Ints | None, Axis, Ints]]:
    """(entries of the axis, None: all; where they stand; whose they are): the device's, then the fleet's parts."""
    whose = np.full(axis.size, FOR_ALL)
    if marks is None or axis.spans.size == 0:
        yield None, axis, whose
        return
    cut, parts = pieces(axis, marks, width, max_empty, _BATCH_ROWS)
    whose[cut] = OF_DEVICE
    yield None, axis, whose
    for part in parts:
        yield part.entry, Axis(part.first, part.windows), np.full(part.entry.size, OF_FLEET)


def _without_nulls(rows: Columns) -> Columns:
    """Extremes of a hole are null; every other field of the contract is always there."""
    return {
        name: np.where(np.isnan(of), 0.0, of) if name in ("low", "high", *SURE) else of for name, of in rows.items()
    }


def _with_fleet(parts: DataFrame, needed: Sequence[ModuleType]) -> DataFrame:
    """The same rows and, for each stream and window, one that combines all devices (`device` null).

    The devices' sums are relative to their own means. They are first moved to the fleet's mean, in whose direction the
    interval of their sum is nearly that of the mean itself; rows are sorted, so sums have the same bits in every run.
    """
    shared = parts.repartition("stream", "window_start").sortWithinPartitions(*OF_A_WINDOW, "device")
    moved = shared.select(*OF_A_WINDOW, *_PLACE, *_moved_to_the_fleets_mean(needed))
    fleet = moved.groupBy(*OF_A_WINDOW).agg(*(sf.max(name).alias(name) for name in _PLACE), *_combined(needed))
    fleet = fleet.withColumn("device", sf.lit(None).cast("string"))
    return shared.unionByName(fleet)


def _moved_to_the_fleets_mean(needed: Sequence[ModuleType]) -> list[Column]:
    everyone = Window.partitionBy(*OF_A_WINDOW)
    expected = sf.col("n") + sf.col("part_count")
    mean = sf.sum(expected * sf.col("ref")).over(everyone) / sf.nullif(sf.sum(expected).over(everyone), sf.lit(0.0))
    mean = sf.coalesce(mean, sf.max("ref").over(everyone))
    apart = sf.col("ref") - mean
    ends = (sf.col("count_low") * apart, sf.col("count_high") * apart)
    kept = [name for name in COMPONENTS if name not in ("ref", "total", "part_low", "part_high")]
    return [
        *map(sf.col, kept),
        mean.alias("ref"),
        (sf.col("total") + sf.col("n") * apart).alias("total"),
        (sf.col("part_low") + sf.least(*ends)).alias("part_low"),
        (sf.col("part_high") + sf.greatest(*ends)).alias("part_high"),
        *(of.alias(name) for family in needed for name, of in family.moved(apart, mean).items()),
    ]


def _combined(needed: Sequence[ModuleType]) -> list[Column]:
    more = {kind: [name for of in needed for name in getattr(of, kind)] for kind in ("SUMS", "LEAST", "GREATEST")}
    return [
        *(sf.sum(name).alias(name) for name in (*SUMS, "total", "part_low", "part_high", *more["SUMS"])),
        *(sf.min(name).alias(name) for name in (*LEAST, *more["LEAST"])),
        *(sf.max(name).alias(name) for name in (*GREATEST, "ref", *more["GREATEST"])),
    ]


def _lower_function(aggregates: tuple[str, ...]) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The batch function: components → window rows."""

    def answer(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for given in batches:
            batch = _shown(given)
            parts: Columns = {
                name: batch.column(name).to_numpy(zero_copy_only=False) for name in _kinds(families(aggregates))
            }
            head = {name: batch.column(name) for name in _HEAD}
            told = _arrow(lower(parts, aggregates), aggregates)
            yield pa.RecordBatch.from_pydict(head | told | {"windows": batch.column("windows")})

    return answer


def _shown(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Without what is a device's part of the fleet, and without the fleet's copy of what is a device's only."""
    whose, fleets = batch.column("whose").to_numpy(), np.asarray(batch.column("device").is_null())
    hidden = whose == np.where(fleets, OF_DEVICE, OF_FLEET)
    return batch.filter(pa.array(~hidden)) if hidden.any() else batch


def _arrow(answers: Columns, aggregates: tuple[str, ...]) -> dict[str, Any]:
    """Arrow columns in the order of `window_columns`; NaN, which means that there is no such number, becomes null."""
    kinds = window_columns(aggregates)
    columns = [f"{name}{end}" for name in aggregates for end in ENDS]
    return {
        name: pa.array(answers[name], _ARROW.get(kinds[name]), from_pandas=True)
        for name in (*columns, "completeness", "resolution_us", "buckets")
    }
