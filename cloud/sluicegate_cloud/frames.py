"""Buckets → frames: what lies inside one slide step becomes one row, what crosses its edge stays a row of its own.

Source: paper Hazelcast, "Break into Frames". `place_in_frames` only says in which frames each bucket lies, and leaves
the folding to the pass that answers windows; `merge_frames` folds, for a table of frames to keep.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from sluicegate_cloud.fleet.folding import fold_frames
from sluicegate_cloud.fleet.known import as_frames
from sluicegate_cloud.fleet.wire import numbers
from sluicegate_cloud.grid import Columns
from sluicegate_cloud.schema import BUCKET_FIELDS, KNOWN_TO_LIE, OWNER, SURE, ddl

_ENDS = {"first_frame": "bigint", "last_frame": "bigint"}
_OF_A_FRAME = {**dict.fromkeys((*KNOWN_TO_LIE, *SURE), "double"), "buckets": "bigint", "span_us": "bigint"}
_NAMES = ("device", "stream", "incarnation", "key")
_KEYS = (*OWNER, *_ENDS, "in_doubt", "hole", "single")


def place_in_frames(buckets: DataFrame, slide_us: int, origin_us: int = 0) -> DataFrame:
    """`buckets` as `read_buckets` gives them, with `first_frame` and `last_frame`: where each begins and ends.

    Frame k begins at `origin_us + k · slide_us`; slide and origin travel as metadata of `first_frame`. Raises
    ValueError for a slide below 1 µs.
    """
    if slide_us < 1:
        raise ValueError(f"slide_us is {slide_us}: a frame must be at least 1 us long")
    first, last = (frame_of(sf.col(name), slide_us, origin_us) for name in ("t_first", "t_last"))
    metadata = {"slide_us": slide_us, "origin_us": origin_us}
    return buckets.withColumns({"first_frame": first, "last_frame": last}).withMetadata("first_frame", metadata)


def merge_frames(buckets: DataFrame, slide_us: int, origin_us: int = 0) -> DataFrame:
    """Per OWNER: a row per frame of `slide_us` µs and a row per bucket that crosses an edge.

    A frame's buckets with readings in doubt are a row of their own: what others are known to hold stays certain. So are
    its holes.
    Columns: OWNER, `first_frame`, `last_frame` (as `place_in_frames`), the bucket's fields (on a folded row only n,
    total, low, high, low_n, high_n, gap, doubt, first and the times mean anything), KNOWN_TO_LIE, SURE, `buckets` (how
    many were folded) and `span_us` (the time they cover, summed). Raises ValueError for a slide below 1 µs.
    """
    placed = place_in_frames(buckets, slide_us, origin_us)
    crossing = sf.when(sf.col("first_frame") != sf.col("last_frame"), sf.col("first"))
    marks = (sf.col("doubt") > 0).alias("in_doubt"), (sf.col("n") == 0).alias("hole"), crossing.alias("single")
    ordered = placed.select(*OWNER, *_ENDS, *BUCKET_FIELDS, *marks).repartition("device", "stream")
    ordered = ordered.sortWithinPartitions(*_KEYS, "first", "t_first", "t_last", "total")
    folded = ordered.mapInArrow(_fold_function(), ddl(OWNER, _ENDS, BUCKET_FIELDS, _OF_A_FRAME))
    first = placed.schema["first_frame"].metadata
    return folded.withMetadata("first_frame", first)


def frame_times(frames: DataFrame) -> tuple[int, int]:
    """(slide_us, origin_us) that `frames` were made with. Raises ValueError for a DataFrame that is not of frames."""
    fields = {field.name: field.metadata for field in frames.schema.fields}
    metadata = fields.get("first_frame", {})
    if "slide_us" not in metadata:
        raise ValueError("these are not frames: expected the DataFrame that place_in_frames or merge_frames returned")
    return int(metadata["slide_us"]), int(metadata["origin_us"])


def frame_of(time: Column, slide_us: int, origin_us: int) -> Column:
    """The frame of a time in µs: floor of (time − origin) / slide in integers: a double would lose microseconds."""
    offset = time - sf.lit(origin_us).cast("bigint")
    slide = sf.lit(slide_us).cast("bigint")
    return sf.call_function("div", offset - sf.pmod(offset, slide), slide)


def _fold_function() -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Rows sorted by _KEYS → one row for each of them; the last group of a batch waits for the next."""

    def fold(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rest: pa.Table | None = None
        for batch in batches:
            table = pa.Table.from_batches([batch])
            table = table if rest is None else pa.concat_tables([rest, table]).combine_chunks()
            if table.num_rows == 0:
                continue
            edges = _edges(table)
            rest = table.slice(int(edges[-1]))
            if edges[-1]:
                yield from _folded(table.slice(0, int(edges[-1])), edges[:-1])
        if rest is not None and rest.num_rows:
            yield from _folded(rest.combine_chunks(), np.zeros(1, np.int64))

    return fold


def _edges(table: pa.Table) -> np.ndarray:
    """Where each group of equal _KEYS begins."""
    other = np.zeros(table.num_rows - 1, np.bool_)
    for name in _KEYS:
        codes = table.column(name).combine_chunks().dictionary_encode(null_encoding="encode")
        codes = codes.combine_chunks() if isinstance(codes, pa.ChunkedArray) else codes
        other |= np.diff(codes.indices.to_numpy()) != 0
    return np.concatenate(([0], np.flatnonzero(other) + 1))


def _folded(table: pa.Table, begin: np.ndarray) -> Iterator[pa.RecordBatch]:
    rows: Columns = {name: numbers(table.column(name)) for name in (*_ENDS, "center", *BUCKET_FIELDS)}
    rows["group"] = np.repeat(np.arange(begin.size), np.diff(np.append(begin, table.num_rows)))
    with np.errstate(all="ignore"):
        told = fold_frames(as_frames(rows, (*BUCKET_FIELDS,)), ("group",))
    heads = {name: table.column(name).take(pa.array(begin)) for name in _NAMES}
    order = (*OWNER, *_ENDS, *BUCKET_FIELDS, *_OF_A_FRAME)
    columns = heads | {name: pa.array(told[name]) for name in order if name not in _NAMES}
    yield from pa.table({name: columns[name] for name in order}).to_batches()
