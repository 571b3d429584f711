"""Encodes the columns that travel from Spark to the pass that answers windows: those that are asked for, no more.

Fields that only a cut needs are lists, null for a bucket inside a frame: of a null struct every field would travel.
Names of devices and streams become numbers. `lane` sorts what is one stream's together and by time: a hash of its owner
above, the time of a row below.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from sluicegate_cloud.fleet.known import as_frames
from sluicegate_cloud.grid import Columns, Grid, Ints
from sluicegate_cloud.schema import BUCKET_FIELDS, KNOWN_TO_LIE, SURE

#: Bits of `lane` that tell the time, in units of 2^_UNIT µs (67 s): all of an int64.
_TIME_BITS, _UNIT = 38, 26
#: Rows that are answered together, at least: the cost of a call is spread over them.
ROWS = 1 << 16
#: Rows that are held, at most, before a part of a stream is answered: some 200 MB.
MOST = 1 << 18
_ALWAYS = ("center", "first", "n", "t_first", "t_last", "total", "low", "high", "gap", "doubt")
_SPREAD, _LOGS, _OFTEN = ("variance", "std"), ("geometric_mean",), ("min_count", "max_count")
_OF_LOGS = ("log_total", "log_pre_low", "log_pre_high")
_KINDS: dict[str, type] = {"bigint": np.int64, "double": np.float64}


class Fields(NamedTuple):
    """The columns to read: those of every row, and those of what a cut needs."""

    every: tuple[str, ...]
    cut: tuple[str, ...]


def fields(aggregates: Sequence[str], *, folded: bool) -> Fields:
    """Which fields of buckets, or of frames that are `folded`, the aggregates need."""
    asked = set(aggregates)
    every: list[str] = [*_ALWAYS]
    if folded:
        every += [*SURE, "buckets", "span_us"]
    if asked & {*_SPREAD}:
        every += KNOWN_TO_LIE[:2] if folded else ["m2"]
    if asked & {*_LOGS}:
        every += KNOWN_TO_LIE[2:] if folded else ["log_total"]
    if asked & {*_OFTEN}:
        every += ["low_n", "high_n"]
    left_out = set(every) | (set() if asked & {*_LOGS} else {*_OF_LOGS})
    return Fields(tuple(every), tuple(name for name in BUCKET_FIELDS if name not in left_out))


def laid_out(frames: DataFrame, wanted: Fields) -> DataFrame:
    """The columns to read, what belongs to one stream in one partition, together and by time: the one shuffle.

    Where the frames have `piece` (`spread.placed`), this is true of each piece of a stream.
    """
    needs_cut = (sf.col("first_frame") != sf.col("last_frame")) | (sf.col("doubt") > 0)
    cut = [sf.when(needs_cut, sf.array(*names)).alias(of) for of, names in _lists(wanted).items()]
    by = ("device", "stream", *(["piece"] if "piece" in frames.columns else []))
    chosen = frames.select(*by, *wanted.every, *cut, _lane(by).alias("lane"))
    return chosen.repartition(*by).sortWithinPartitions("lane")


def _lists(wanted: Fields) -> dict[str, list[str]]:
    """The lists that carry what a cut needs, by their columns' names."""
    kinds = {"cut_numbers": "bigint", "cut_values": "double"}
    return {of: [name for name in wanted.cut if BUCKET_FIELDS[name] == kind] for of, kind in kinds.items()}


def _lane(by: Sequence[str]) -> Column:
    half = 1 << (_TIME_BITS - 1)
    time = sf.shiftright("t_first", _UNIT) + sf.lit(half).cast("bigint")
    owner = sf.xxhash64(*by).bitwiseAND(sf.lit(-(1 << _TIME_BITS)).cast("bigint"))
    return owner.bitwiseOR(time)


class Piece(NamedTuple):
    """The windows of a stream that begin at the frames `low` … `high` − 1; `base`: the center of its first row."""

    low: int
    high: int
    base: float


Stream = tuple[str, str]
#: By device and stream, the pieces of one that is cut (`spread`), by number.
Cuts = Mapping[Stream, tuple[Piece, ...]]
#: None is cut.
WHOLE: Cuts = {}


class Rows(NamedTuple):
    """Rows of whole streams: `columns` with `owner`, the number of each row's stream in `devices` and `streams`.

    `until_us`: where these are parts of streams, by time, no later row of them begins before it. `limits`: of a part
    of one stream (`long`) the frames at which the first and last windows begin that it answers; `centers`: what
    `blocks` has to know of that whole stream. `pieces`: by a stream's number, of which piece these are rows; None: of
    all of it.
    """

    columns: Columns
    devices: pa.Array
    streams: pa.Array
    until_us: int | None = None
    limits: tuple[int, int] | None = None
    centers: Columns | None = None
    pieces: tuple[Piece | None, ...] | None = None


#: What a worker is given → rows of whole streams, some at a time.
Source = Callable[[Iterable[pa.RecordBatch]], Iterator[Rows]]


def source(wanted: Fields, grid: Grid, cuts: Cuts = WHOLE) -> Source:
    """Of batches of `laid_out`."""
    return partial(whole_streams, wanted=wanted, grid=grid, cuts=cuts)


def whole_streams(
    batches: Iterable[pa.RecordBatch],
    wanted: Fields,
    grid: Grid,
    rows: int = ROWS,
    most: int = MOST,
    cuts: Cuts = WHOLE,
) -> Iterator[Rows]:
    """Batches of `laid_out` → rows of whole streams, at least so many at a time; of longer ones at most `most` of one.

    A stream is in two only where it is longer than that.
    """
    held: list[pa.RecordBatch] = []
    size, last = 0, None
    for batch in batches:
        cut = _last_edge(last, batch) if size + batch.num_rows >= rows else None
        last = batch if batch.num_rows else last
        if cut is None:
            held, size = [*held, batch], size + batch.num_rows
            if size >= most:
                yield _rows(pa.Table.from_batches(held), wanted, grid, cuts)._replace(until_us=_time_of(batch))
                held, size = [], 0
            continue
        if whole := [one for one in (*held, batch.slice(0, cut)) if one.num_rows]:
            yield _rows(pa.Table.from_batches(whole), wanted, grid, cuts)
        held, size = [batch.slice(cut)], batch.num_rows - cut
    if held and size:
        yield _rows(pa.Table.from_batches(held), wanted, grid, cuts)


def _last_edge(before: pa.RecordBatch | None, batch: pa.RecordBatch) -> int | None:
    """Where the last stream that begins in `batch` does; None where none does."""
    owner = _owner_bits(batch)
    edges = np.flatnonzero(np.diff(owner))
    if edges.size:
        return int(edges[-1]) + 1
    if before is None or not before.num_rows or not batch.num_rows:
        return None
    return 0 if _owner_bits(before.slice(before.num_rows - 1))[0] != owner[0] else None


def _owner_bits(batch: pa.RecordBatch) -> Ints:
    return np.asarray(batch.column("lane").to_numpy() >> _TIME_BITS)


def _time_of(batch: pa.RecordBatch) -> int:
    """A time in µs that no row begins before which comes after these."""
    unit = batch.column("lane")[batch.num_rows - 1].as_py() & ((1 << _TIME_BITS) - 1)
    return int(unit - (1 << (_TIME_BITS - 1))) << _UNIT


def _rows(table: pa.Table, wanted: Fields, grid: Grid, cuts: Cuts) -> Rows:
    table = table.combine_chunks()
    owner, devices, streams, number = owners(table)
    columns: Columns = {"owner": owner} | {name: numbers(table.column(name)) for name in wanted.every}
    columns |= {f"{end}_frame": grid.frame_of(columns[f"t_{end}"]) for end in ("first", "last")}
    for of, names in _lists(wanted).items():
        columns |= _listed(_chunk(table.column(of)), names)
    return Rows(as_frames(columns, wanted.every), devices, streams, pieces=pieces_of(devices, streams, number, cuts))


def _listed(lists: pa.Array, names: Sequence[str]) -> Columns:
    """The columns of rows whose `lists` have a number for each of the names, or are null: then they need none."""
    there = np.flatnonzero(np.asarray(lists.is_valid()))
    if not there.size:
        return {name: unknown(BUCKET_FIELDS[name], len(lists)) for name in names}
    told = numbers(lists.flatten()).reshape(there.size, len(names))
    out = {name: np.zeros(len(lists), told.dtype) for name in names}
    for name, column in zip(names, told.T, strict=True):
        out[name][there] = column
    return out


def pieces_of(devices: pa.Array, streams: pa.Array, number: Ints, cuts: Cuts) -> tuple[Piece | None, ...] | None:
    """`Rows.pieces`, by the number of each stream's piece, −1: whole."""
    if not (number >= 0).any():
        return None
    told = zip(devices.to_pylist(), streams.to_pylist(), number.tolist(), strict=True)
    return tuple(cuts[device, stream][at] if at >= 0 else None for device, stream, at in told)


def unknown(kind: str, rows: int) -> Any:
    """A column of a field that none of the rows needs; it takes no room."""
    return np.broadcast_to(np.zeros((), _KINDS[kind]), rows)


def owners(table: pa.Table) -> tuple[Ints, pa.Array, pa.Array, Ints]:
    """The number of each row's stream, 0 … in the order in which they come; by number the names, and the `piece`."""
    device, stream = (_encoded(table.column(name)) for name in ("device", "stream"))
    key = device.indices.to_numpy().astype(np.int64) * len(stream.dictionary) + stream.indices.to_numpy()
    piece = numbers(table.column("piece")) if "piece" in table.column_names else np.full(1, -1)
    key = key * (int(piece.max(initial=-1)) + 2) + (piece + 1)
    begin = np.concatenate(([0], np.flatnonzero(np.diff(key)) + 1))
    found, first, number = np.unique(key[begin], return_index=True, return_inverse=True)
    run = np.cumsum(np.concatenate(([0], np.diff(key) != 0)))
    once = found.size == begin.size
    at = begin if once else begin[first]
    names = (of.dictionary.take(of.indices.take(pa.array(at))) for of in (device, stream))
    return run if once else number[run], *names, np.broadcast_to(piece, key.shape)[at]


def _encoded(column: Any) -> pa.DictionaryArray:
    array = _chunk(column)
    return array if pa.types.is_dictionary(array.type) else array.dictionary_encode()


def _chunk(column: Any) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def numbers(column: Any) -> Any:
    """As they are stored; a null is NaN, of integers any number."""
    array = _chunk(column)
    if isinstance(array, pa.ChunkedArray):
        array = array.chunk(0)
    kind = np.float64 if pa.types.is_floating(array.type) else np.int64
    if len(array) == 0:
        return np.zeros(0, kind)
    data = np.frombuffer(array.buffers()[1], kind)[array.offset : array.offset + len(array)]
    if array.null_count and kind is np.float64:
        data = np.where(np.asarray(pc.is_null(array)), np.nan, data)
    return data
