"""Cuts a stream that is more than its share of a job by time, into pieces that tasks answer side by side.

Each piece begins at the frame of a reading: the window that begins there holds it, so that no span lies in two pieces.
Neighbours share the rows that windows of both need, and all take sums from the whole stream's first center.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from sluicegate_cloud.fleet.wire import MOST, Cuts, Piece, Stream, owners
from sluicegate_cloud.grid import MAX_WINDOWS, Grid
from sluicegate_cloud.schema import USED
from sluicegate_cloud.session import parallelism

#: Before and after all frames.
FIRST, LAST = -(1 << 61), 1 << 61
#: How many windows' lengths a piece is long at least: what neighbours share is read twice.
LENGTHS = 4
#: Shares of a job for each task that runs at once.
_SHARES = 4


def share(total: int, tasks: int) -> int:
    """Of so many rows, those of one stream that a task should have at most where so many tasks run at once."""
    return max(MOST, -(-total // (_SHARES * tasks)))


def pieces_of(frames: Iterable[int], base: float, width: int) -> tuple[Piece, ...]:
    """Pieces that begin at these frames, in each of which a reading begins; those too near to the one before do not."""
    edges: list[int] = []
    for frame in sorted(frames):
        if not edges or frame - edges[-1] >= LENGTHS * width:
            edges.append(frame)
    return tuple(Piece(low, high, base) for low, high in pairwise([FIRST, *edges[1:], LAST]))


def is_dense(frames: int, buckets: int) -> bool:
    """Whether a stream over so many frames can have no more windows than it may (`grid.MAX_WINDOWS`).

    One that may have more is left to one task, which counts them.
    """
    return frames <= MAX_WINDOWS + buckets


def of_frames(frames: DataFrame, width: int) -> Cuts:
    """The streams of frames (`place_in_frames`, `merge_frames`) that are more than a task's share, and their pieces."""
    rows = frames.where("n > 0")
    sizes, most = _large(rows.groupBy("device", "stream").count())
    if not sizes:
        return {}
    parts = -(-max(sizes.values()) // most)
    edges = sf.percentile_approx("first_frame", [at / parts for at in range(parts)]).alias("edges")
    base = sf.min_by("center", sf.struct("first_frame", "first", "t_first", "t_last")).alias("base")
    frames_of = (sf.max("last_frame") - sf.min("first_frame") + width).alias("frames")
    told = those(rows, sizes).groupBy("device", "stream").agg(edges, base, frames_of).collect()
    found = [((row["device"], row["stream"]), row) for row in told]
    dense = [(name, row) for name, row in found if is_dense(row["frames"], sizes[name])]
    return {name: pieces_of(row["edges"], row["base"], width) for name, row in dense}


def of_documents(documents: DataFrame, grid: Grid) -> Cuts:
    """The same of rows of `dedupe.catalogue`."""
    used = documents.where(sf.col("fate") == USED).select(
        "device", "stream", "t_first", "t_last", "first", "buckets", "center"
    )
    sizes, most = _large(used.groupBy("device", "stream").agg(sf.sum("buckets").alias("count")))
    if not sizes:
        return {}
    found = those(used, sizes).toArrow()
    owner, devices, streams, _ = owners(found)
    names = zip(devices.to_pylist(), streams.to_pylist(), strict=True)
    pieces = ((name, _of_rows(found.filter(pa.array(owner == at)), most, grid)) for at, name in enumerate(names))
    return {name: some for name, some in pieces if some}


def _large(sizes: DataFrame) -> tuple[dict[Stream, int], int]:
    """Of each stream that is more than a task's share its `count`, and that share."""
    large = sf.collect_list(sf.when(sf.col("count") > MOST, sf.struct("device", "stream", "count")))
    told = sizes.agg(sf.sum("count").alias("total"), large.alias("large")).collect()[0]
    most = share(told["total"] or 0, parallelism(sizes.sparkSession))
    return {(device, stream): count for device, stream, count in told["large"] if count > most}, most


def those(rows: DataFrame, streams: Iterable[Stream]) -> DataFrame:
    """The rows of these streams."""
    return _joined(rows, streams, "leftsemi")


def others(rows: DataFrame, streams: Iterable[Stream]) -> DataFrame:
    """The rows of all streams but these."""
    return _joined(rows, streams, "leftanti")


def _joined(rows: DataFrame, streams: Iterable[Stream], how: str) -> DataFrame:
    wanted = rows.sparkSession.createDataFrame([*streams], "device string, stream string")
    return rows.join(sf.broadcast(wanted), ["device", "stream"], how).select(*rows.columns)


def _of_rows(rows: pa.Table, most: int, grid: Grid) -> tuple[Piece, ...]:
    """None where the stream is not dense."""
    time, first, buckets, center = (rows[name].to_numpy() for name in ("t_first", "first", "buckets", "center"))
    frame, last = grid.frame_of(time), grid.frame_of(rows["t_last"].to_numpy())
    if not is_dense(int(last.max() - frame.min()) + grid.width, int(buckets.sum())):
        return ()
    order = np.lexsort((first, frame))
    part = np.cumsum(buckets[order]) // most
    begins = np.concatenate(([0], np.flatnonzero(np.diff(part)) + 1))
    return pieces_of(frame[order][begins].tolist(), float(center[order[0]]), grid.width)


def placed(rows: DataFrame, cuts: Cuts, begin: Column, end: Column, width: int) -> DataFrame:
    """`rows`, which lie between the frames `begin` and `end`, with `piece`: the number of one of `cuts` that needs it.

    A row is there once for each of these; of a stream that is whole `piece` is −1.
    """
    told = [
        (*stream, number, piece.low, piece.high + width)
        for stream, pieces in cuts.items()
        for number, piece in enumerate(pieces)
    ]
    schema = "of_device string, of_stream string, piece_number bigint, piece_low bigint, piece_reach bigint"
    known = rows.sparkSession.createDataFrame(told, schema)
    met = (sf.col("of_device") == sf.col("device")) & (sf.col("of_stream") == sf.col("stream"))
    met &= (end >= sf.col("piece_low")) & (begin <= sf.col("piece_reach"))
    found = rows.join(sf.broadcast(known), met, "left").withColumn("piece", sf.coalesce("piece_number", sf.lit(-1)))
    return found.drop("of_device", "of_stream", "piece_number", "piece_low", "piece_reach")
