"""Buckets in Parquet files whose row groups lie by device: a worker reads whole streams of them, no row is Spark's.

Columns that only a cut bucket needs are read of row groups in which a bucket crosses a frame's edge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sluicegate_cloud.fleet.known import as_frames
from sluicegate_cloud.fleet.listing import placed
from sluicegate_cloud.fleet.parts import Group, Part
from sluicegate_cloud.fleet.wire import MOST, ROWS, Fields, Rows, Source, numbers, owners, unknown
from sluicegate_cloud.grid import Grid, Ints
from sluicegate_cloud.schema import BUCKET_FIELDS

_NAMES, _TIMES = ["device", "stream"], ["t_first", "t_last", "doubt"]
#: What files say of their row groups, by path: read once, however many row groups a file has.
Footers = dict[str, pq.FileMetaData]


def source(parts: Sequence[Part], wanted: Fields, grid: Grid) -> Source:
    """Batches of `id`, the numbers of `parts` → rows of whole streams."""
    return partial(_streams, parts=tuple(parts), wanted=wanted, grid=grid)


def _streams(
    batches: Iterable[pa.RecordBatch], parts: Sequence[Part], wanted: Fields, grid: Grid, rows: int = ROWS
) -> Iterator[Rows]:
    for batch in batches:
        for number in batch.column("id").to_pylist():
            yield from streams_of(parts[number], wanted, grid, rows)


def streams_of(part: Part, wanted: Fields, grid: Grid, rows: int = ROWS, most: int = MOST) -> Iterator[Rows]:
    """The streams of a part, whole, at least so many rows at a time where it has as many.

    Of a large device the row groups by time, with `until_us`: at least `most` rows at a time.
    """
    return _by_time(part, wanted, grid, most) if part.pieces else _by_device(part, wanted, grid, rows)


def _by_time(part: Part, wanted: Fields, grid: Grid, most: int) -> Iterator[Rows]:
    held: list[pa.Table] = []
    footers: Footers = {}
    later = [*(group.since for group in part.groups[1:]), None]
    for group, until_us in zip(part.groups, later, strict=True):
        held += [table for table, _ in _read(part, group, wanted, grid, footers) if table.num_rows]
        if held and (until_us is None or sum(table.num_rows for table in held) >= most):
            rows = _rows(held, wanted)
            names = zip(rows.devices.to_pylist(), rows.streams.to_pylist(), strict=True)
            pieces = tuple((part.pieces or {})[name] for name in names)
            frames = {f"{end}_frame": grid.frame_of(rows.columns[f"t_{end}"]) for end in ("first", "last")}
            yield rows._replace(columns=rows.columns | frames, until_us=until_us, pieces=pieces)
            held = []


def _by_device(part: Part, wanted: Fields, grid: Grid, rows: int) -> Iterator[Rows]:
    held: list[pa.Table] = []
    footers: Footers = {}
    size = 0
    lows = [group.low for group in part.groups]
    for at, group in enumerate(part.groups):
        following = lows[at + 1] if at + 1 < len(lows) else None
        for table, least in _read(part, group, wanted, grid, footers):
            held, size = [*held, table], size + table.num_rows
            bound = least if following is None or (least is not None and least < following) else following
            if size >= rows and bound is not None:
                done, held = _split(held, bound)
                size = sum(one.num_rows for one in held)
                if done:
                    yield _rows(done, wanted)
    if size:
        yield _rows(held, wanted)


def _read(
    part: Part, group: Group, wanted: Fields, grid: Grid, footers: Footers
) -> Iterator[tuple[pa.Table, str | None]]:
    """The rows of the part's devices, some at a time, and the least device that may still come of this row group."""
    at, place = placed(group.path)
    with pq.ParquetFile(place, filesystem=at, read_dictionary=_NAMES, metadata=footers.get(group.path)) as file:
        footers[group.path] = file.metadata
        if part.pieces:
            crosses, upto = _reaching(file, group.number, part, grid)
            by_device = False
        else:
            crosses, by_device = _looked_at(file, group.number, grid)
            upto = group.rows
        names = [*_NAMES, *wanted.every, *(wanted.cut if crosses else ())]
        held = 0
        for batch in (
            file.iter_batches(min(ROWS, upto), row_groups=[group.number], columns=names, use_threads=False)
            if upto
            else ()
        ):
            held += batch.num_rows
            table = pa.Table.from_batches([batch])
            last = table["device"][table.num_rows - 1].as_py() if by_device else group.low
            yield _mine(part, group, table, grid), None if held >= upto else last
            if held >= upto:  # what is not decoded costs nothing
                return


def _reaching(file: pq.ParquetFile, number: int, part: Part, grid: Grid) -> tuple[bool, int]:
    """Of the rows of a group that a part's pieces need: whether one is cut or in doubt, and where the last one ends."""
    some = [piece for piece in (part.pieces or {}).values() if piece.low < piece.high]
    low, high = min(piece.low for piece in some), max(piece.high for piece in some) + grid.width
    crosses, upto, seen = False, 0, 0
    for batch in file.iter_batches(ROWS, row_groups=[number], columns=_TIMES, use_threads=False):
        first, last, doubt = (numbers(batch.column(name)) for name in _TIMES)
        first, last = grid.frame_of(first), grid.frame_of(last)
        mine = np.flatnonzero((last >= low) & (first <= high))
        if mine.size:
            crosses = crosses or bool(np.any((first != last)[mine] | (doubt > 0)[mine]))
            upto = seen + int(mine[-1]) + 1
        seen += batch.num_rows
    return crosses, upto


def _looked_at(file: pq.ParquetFile, number: int, grid: Grid) -> tuple[bool, bool]:
    """Whether a bucket of the row group is cut by an edge or in doubt, and whether its rows lie by device."""
    crosses, by_device, before = False, True, ""
    for batch in file.iter_batches(ROWS, row_groups=[number], columns=["device", *_TIMES], use_threads=False):
        first, last, doubt = (numbers(batch.column(name)) for name in _TIMES)
        crosses = crosses or bool(np.any((grid.frame_of(first) != grid.frame_of(last)) | (doubt > 0)))
        device = batch.column("device")
        runs = device.dictionary.take(device.indices.take(pa.array(_begins(device.indices)))).to_pylist()
        told = [before, *runs]
        by_device = by_device and all(a <= b for a, b in pairwise(told))
        before = runs[-1]
    return crosses, by_device


def _begins(codes: Any) -> Ints:
    """Where a run of equal codes begins."""
    return np.concatenate(([0], np.flatnonzero(np.diff(codes.to_numpy())) + 1))


def _mine(part: Part, group: Group, table: pa.Table, grid: Grid) -> pa.Table:
    if part.pieces:
        return _needed(part, table, grid)
    after, upto = part.after, part.upto
    if not part.others and (after is None or group.low > after) and (upto is None or group.high <= upto):
        return table
    return _where(table, partial(_of_part, part))


def _of_part(part: Part, names: pa.Array) -> pa.Array:
    """Which devices are the part's."""
    mine = pc.invert(pc.is_in(names, value_set=pa.array([*part.others], names.type)))
    mine = mine if part.after is None else pc.and_(mine, pc.greater(names, part.after))
    return mine if part.upto is None else pc.and_(mine, pc.less_equal(names, part.upto))


def _needed(part: Part, table: pa.Table, grid: Grid) -> pa.Table:
    """The rows that windows of the part's pieces may hold, and those of the readings that end them."""
    owner, devices, streams, _ = owners(table)
    begin, end = (grid.frame_of(numbers(table[name])) for name in ("t_first", "t_last"))
    kept = np.zeros(owner.size, bool)
    for at, name in enumerate(zip(devices.to_pylist(), streams.to_pylist(), strict=True)):
        piece = (part.pieces or {}).get(name)
        if piece is not None and piece.low < piece.high:
            kept |= (owner == at) & (end >= piece.low) & (begin <= piece.high + grid.width)
    return _taken(table, kept)


def _where(table: pa.Table, wanted: Callable[[pa.Array], pa.Array]) -> pa.Table:
    """The rows of those devices."""
    column = table["device"].combine_chunks()
    column = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
    return _taken(table, np.asarray(wanted(column.dictionary))[column.indices])


def _taken(table: pa.Table, kept: Any) -> pa.Table:
    if kept.all():
        return table
    begin, end = int(np.argmax(kept)), kept.size - int(np.argmax(kept[::-1]))
    if kept[begin:end].all():
        return table.slice(begin, end - begin) if kept.any() else table.slice(0, 0)
    return table.filter(pa.array(kept))


def _split(held: list[pa.Table], bound: str) -> tuple[list[pa.Table], list[pa.Table]]:
    """Rows of devices before `bound`, of which no more come, and the others."""
    done = [_where(table, lambda names: pc.less(names, bound)) for table in held]
    rest = [_where(table, lambda names: pc.greater_equal(names, bound)) for table in held]
    return [one for one in done if one.num_rows], [one for one in rest if one.num_rows]


def _rows(tables: list[pa.Table], wanted: Fields) -> Rows:
    narrow = all(set(wanted.cut) - set(table.column_names) for table in tables)
    if not narrow:
        tables = [_with_cut(table, wanted) for table in tables]
    table = pa.concat_tables(tables).unify_dictionaries().combine_chunks()
    owner, devices, streams, _ = owners(table)
    columns = {"owner": owner} | {name: numbers(table[name]) for name in table.column_names if name not in _NAMES}
    if narrow:
        columns |= {name: unknown(BUCKET_FIELDS[name], owner.size) for name in wanted.cut}
    return Rows(as_frames(columns, wanted.every), devices, streams)


def _with_cut(table: pa.Table, wanted: Fields) -> pa.Table:
    """With the columns that a cut needs, though none of the rows does."""
    for name in wanted.cut:
        if name not in table.column_names:
            zeros = np.zeros(table.num_rows, np.int64 if BUCKET_FIELDS[name] == "bigint" else np.float64)
            table = table.append_column(name, pa.array(zeros))
    return table
