"""Answers windows from the extras of documents, per device and for all: first by devices, then by windows.

The rows stand beside those of `windows.sliding_windows`, for the same windows of the same grid. What a single reading
carries follows from it, but for its second value; a bucket that does not carry what is asked leaves its windows without
an answer.
"""

from __future__ import annotations

import pickle
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby, islice
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from sluicegate.format.bucket import ORDERED
from sluicegate_cloud.documents import bucket_rows
from sluicegate_cloud.extras.answers import answer
from sluicegate_cloud.extras.asked import Asked
from sluicegate_cloud.extras.long import Longs, is_long, touches
from sluicegate_cloud.extras.piece import Piece, Share, added, in_order, merged, share_of
from sluicegate_cloud.extras.placed import FIELDS, PLACED, Record
from sluicegate_cloud.fleet.sparse import joined
from sluicegate_cloud.grid import Grid
from sluicegate_cloud.schema import USED, ddl

_HEAD = {"device": "string", "stream": "string", "window_start": "bigint", "window_end": "bigint"}
_ROWS = {"device": "string", "stream": "string", "incarnation": "string", "key": "string", "first": "bigint",
         "t_first": "bigint", "t_last": "bigint", "n": "bigint", "low": "double", "high": "double", "flags": "bigint",
         "doubt": "bigint"}  # fmt: skip
_SQL = {"string": pa.string(), "bigint": pa.int64(), "double": pa.float64(), "boolean": pa.bool_(),
        "binary": pa.binary(), "array<double>": pa.list_(pa.float64())}  # fmt: skip
_BATCH = 4096
#: Whose windows of all devices are added up, in the order of the devices; what a device's window adds to them, pickled.
_WINDOW, _SHARE = ("stream", "window_start"), "share"
Batches = Iterable[pa.RecordBatch]


def carried_windows(
    documents: DataFrame, grid: Grid, asked: Sequence[Asked], streams: Sequence[str], long: Longs
) -> DataFrame:
    """`documents` as `dedupe.catalogue` gives them → rows of `_HEAD` and the columns of each of `asked`.

    A window in which no reading can be has none. `long`: of `long_buckets`; windows that these touch have no answer.
    """
    used = documents.where(sf.col("fate") == USED)
    used = used if "*" in streams else used.where(sf.col("stream").isin(*streams))
    parts = {"parts": "array<binary>"}
    rows = used.mapInArrow(rows_of(asked), ddl(_fields(asked), parts))
    owner, columns = ("stream", "device"), columns_of(asked)
    ordered = rows.repartition(*owner).sortWithinPartitions(*owner, "t_first", "incarnation", "first")
    of_devices = ordered.mapInArrow(_windows(grid, asked, long), ddl(_HEAD, columns, {_SHARE: "binary"}))
    together = of_devices.repartition(*_WINDOW).sortWithinPartitions(*_WINDOW, "device")
    return together.mapInArrow(_with_all(asked, long), ddl(_HEAD, columns))


def _fields(asked: Sequence[Asked]) -> dict[str, str]:
    """The fields of a bucket that are needed, with their SQL types."""
    return _ROWS | (FIELDS if any(each.kind in PLACED for each in asked) else {})


def columns_of(asked: Sequence[Asked]) -> dict[str, str]:
    """The columns and their SQL types."""
    return {name: kind for each in asked for name, kind in each.columns.items()}


def rows_of(asked: Sequence[Asked]) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    """Documents in use → a row a bucket, with what it carries of each of `asked`."""

    def told(batches: Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for i in range(batch.num_rows):
                one = batch.slice(i, 1)
                rows = bucket_rows(one)
                extras = {name: dict(by_first) for name, by_first in one["extras"][0].as_py() or []}
                parts = pa.array(list(_parts(rows.to_pydict(), extras, asked)), pa.list_(pa.binary()))
                yield pa.RecordBatch.from_pydict({name: rows[name] for name in _fields(asked)} | {"parts": parts})

    return told


def _parts(
    rows: Mapping[str, list[Any]], extras: Mapping[str, Mapping[int, bytes]], asked: Sequence[Asked]
) -> Iterator[list[bytes | None]]:
    for n, first, value, time in zip(rows["n"], rows["first"], rows["x_first"], rows["t_first"], strict=True):
        reading = array("d", [value]), array("q", [time])
        yield [
            each.fold(*reading) if each.is_folded and (n == 1 or not each.carried)
            else extras.get(each.carried, {}).get(first)
            for each in asked
        ]  # fmt: skip


def arrow(columns: Mapping[str, str]) -> pa.Schema:
    """Of columns and their SQL types."""
    return pa.schema([(name, _SQL[kind]) for name, kind in columns.items()])


def _schema(asked: Sequence[Asked]) -> pa.Schema:
    return arrow(_HEAD | columns_of(asked))


def _windows(grid: Grid, asked: Sequence[Asked], long: Longs) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    """Rows of whole streams of devices → their windows, and what each adds to that of all."""
    schema = _schema(asked).append(pa.field(_SHARE, pa.binary()))

    def told(batches: Batches) -> Iterator[pa.RecordBatch]:
        answered = _told(batches, grid, asked, long)
        while held := [*islice(answered, _BATCH)]:
            yield pa.RecordBatch.from_pylist(held, schema)

    return told


def _told(batches: Batches, grid: Grid, asked: Sequence[Asked], long: Longs) -> Iterator[dict[str, Any]]:
    rows = (row for batch in batches for row in batch.to_pylist())
    for (stream, device), mine in groupby(rows, key=lambda row: (row["stream"], row["device"])):
        for share in shares([piece_of(row) for row in mine], grid, asked):
            yield answered(device, stream, share, asked, long) | {_SHARE: pickle.dumps(share)}


def _with_all(asked: Sequence[Asked], long: Longs) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    """Windows of devices, those of one time together → they themselves, and those of all devices."""
    schema = _schema(asked)

    def told(batches: Batches) -> Iterator[pa.RecordBatch]:
        whose: tuple[str, int] | None = None
        share: Share | None = None
        for batch in batches:
            yield batch.drop_columns([_SHARE])
            done: list[dict[str, Any]] = []
            for stream, start, packed in zip(*(batch[name].to_pylist() for name in (*_WINDOW, _SHARE)), strict=True):
                mine: Share = pickle.loads(packed)  # noqa: S301 - what `_told` wrote, through Spark's own shuffle
                if whose is not None and share is not None and whose != (stream, start):
                    done.append(answered(None, whose[0], share, asked, long))
                    share = None
                whose, share = (stream, start), mine if share is None else added(share, mine, asked)
            yield pa.RecordBatch.from_pylist(done, schema)
        if whose is not None and share is not None:
            yield pa.RecordBatch.from_pylist([answered(None, whose[0], share, asked, long)], schema)

    return told


def piece_of(row: Mapping[str, Any]) -> Piece:
    """Of a row of `rows_of`."""
    times = row["t_first"], row["t_last"], (f"{row['incarnation']} {row['key'] or ''}", row["first"])
    counts = row["n"], row["n"] - row["doubt"], row["low"], row["high"]
    ordered, parts = bool(row["flags"] & ORDERED), tuple(row["parts"])
    if "x_first" not in row:
        return Piece(*times, *counts, ordered, parts)
    ends, line = (row["low"], row["high"], ordered), (row["incarnation"], row["key"])
    record = Record(row["t_first"], row["t_last"], row["first"], row["n"], row["doubt"], *ends, row, line)
    return Piece(*times, *counts, ordered, parts, record)


def answered(device: str | None, stream: str, share: Share, asked: Sequence[Asked], long: Longs) -> dict[str, Any]:
    """The row of a window: `_HEAD` and the columns of `asked`."""
    head = {"device": device, "stream": stream, "window_start": share.start, "window_end": share.end}
    if touches(long.where.get(stream, {}), device, share.start, share.end):
        return head | dict.fromkeys(columns_of(asked))
    for place, each in enumerate(asked):
        head |= answer(share, place, each)
    return head


def shares(
    pieces: Sequence[Piece], grid: Grid, asked: Sequence[Asked], between: tuple[int, int] | None = None
) -> Iterator[Share]:
    """What each window of the grid has of the pieces of one device, which are in the order of their times.

    `between`: only of windows that begin at these frames, both ends included. Those that lie in one frame are merged
    first: work grows with buckets, and with frames a window. Long ones (`is_long`) are passed over.
    """
    pieces = [piece for piece in pieces if not is_long(piece.t_first, piece.t_last, grid)]
    if any(each.kind == "time_weighted_mean" for each in asked):
        pieces = in_order(pieces)
    kept = _framed(pieces, grid, asked)
    frames = np.array([(_frame(piece.t_first, grid), _frame(piece.t_last, grid)) for piece in kept], np.int64)
    first, last = frames.reshape(-1, 2).T
    runs = joined(first - (grid.width - 1), last, 0)
    if between is not None:
        runs = np.maximum(runs[0], between[0]), np.minimum(runs[1], between[1])
    open_, at = list[Piece](), 0
    for window in chain.from_iterable(
        range(low, high + 1) for low, high in zip(*(of.tolist() for of in runs), strict=True)
    ):
        start = grid.origin_us + window * grid.slide_us
        end = start + grid.width * grid.slide_us
        while at < len(kept) and kept[at].t_first < end:
            open_.append(kept[at])
            at += 1
        open_ = [piece for piece in open_ if piece.t_last >= start]
        found = share_of(open_, start, end, asked)
        if found is not None:
            yield found


def _frame(time: int, grid: Grid) -> int:
    return (time - grid.origin_us) // grid.slide_us


def _framed(pieces: Sequence[Piece], grid: Grid, asked: Sequence[Asked]) -> list[Piece]:
    def whole_in(piece: Piece) -> int | None:
        first, last = (_frame(time, grid) for time in (piece.t_first, piece.t_last))
        return first if first == last and piece.least == piece.n else None

    found: list[Piece] = []
    for frame, group in groupby(pieces, key=whole_in):
        some = [*group]
        found += some if frame is None else [merged(some, asked)]
    return found
