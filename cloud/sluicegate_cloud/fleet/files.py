"""Buckets in Parquet files whose row groups lie by device: a worker reads whole streams of them, no row is Spark's.

What a part of the files reads is told by the row groups' own statistics; whatever these say, each device is in one part
only. Columns that only a cut bucket needs are read of row groups in which a bucket crosses a frame's edge.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from sluicegate_cloud.errors import SourceError
from sluicegate_cloud.fleet.known import as_frames
from sluicegate_cloud.fleet.wire import ROWS, Fields, Rows, Source, numbers, owners, unknown
from sluicegate_cloud.grid import Grid, Ints
from sluicegate_cloud.schema import BUCKET_FIELDS

#: How often a row may be read, on average, by parts that share its row group.
_MOST_READ = 1.7
_NAMES = ["device", "stream"]


class Group(NamedTuple):
    """A row group: where it is, its rows, and between which devices they lie, both ends included."""

    path: str
    number: int
    rows: int
    low: str
    high: str


class Part(NamedTuple):
    """The devices after `after` up to `upto` (None: all), and the row groups that may have any of them, ascending."""

    after: str | None
    upto: str | None
    groups: tuple[Group, ...]


def listed(paths: Sequence[str | Path]) -> list[str]:
    """Every Parquet file at `paths`, absolute or as URIs; of folders those that Spark reads. Raises SourceError."""
    out = [name for path in paths for name in _files(str(path))]
    if not out:
        raise SourceError(f"there are no Parquet files in {', '.join(map(str, paths)) or 'an empty list of paths'}")
    return out


def _files(path: str) -> Iterator[str]:
    scheme = "" if "://" not in path else path.partition("://")[0] + "://"
    at, place = _placed(path)
    info = at.get_file_info(place)
    if info.type == fs.FileType.File:
        yield path if scheme else place
        return
    if info.type != fs.FileType.Directory:
        raise SourceError(f"there is nothing at {path}: name a Parquet file or a folder of such")
    for one in sorted(at.get_file_info(fs.FileSelector(place, recursive=True)), key=lambda one: str(one.path)):
        inner = str(one.path)[len(place) :].strip("/").split("/")
        if one.is_file and not any(name.startswith(("_", ".")) for name in inner):
            yield scheme + one.path


def _placed(path: str) -> tuple[fs.FileSystem, str]:
    try:
        at, place = fs.FileSystem.from_uri(path if "://" in path else Path(path).absolute().as_uri())
    except (pa.ArrowInvalid, OSError) as error:
        raise SourceError(f"{path} cannot be read: {error}") from error
    return at, str(place)


def parts_of(paths: Sequence[str], most: int) -> list[Part] | None:
    """At most so many parts of about as many rows; None where row groups do not lie by device, or do not say so."""
    groups = [group for path in paths for group in _groups(path)]
    if any(group is None for group in groups):
        return None
    found = sorted((group for group in groups if group is not None), key=lambda group: (group.low, group.high))
    if not found:
        return None
    parts = [part for part in _cut(found, most) if part.groups]
    read, rows = sum(group.rows for part in parts for group in part.groups), sum(group.rows for group in found)
    return parts if read <= rows * max(_MOST_READ, 1 + len(parts) / len(found)) else None


def _groups(path: str) -> Iterator[Group | None]:
    at, place = _placed(path)
    with pq.ParquetFile(place, filesystem=at) as file:
        told = file.metadata
        device = [told.schema.column(i).path for i in range(told.num_columns)].index("device")
        for number in range(told.num_row_groups):
            group = told.row_group(number)
            known = group.column(device).statistics
            if known is None or not known.has_min_max or known.null_count or not isinstance(known.min, str):
                yield None
            elif group.num_rows:
                yield Group(path, number, group.num_rows, known.min, known.max)


def _cut(groups: Sequence[Group], most: int) -> Iterator[Part]:
    """Cut after the devices with which every so manieth row group begins: those before it end there."""
    each = sum(group.rows for group in groups) / max(most, 1)
    edges, held = [], 0
    for group in groups:
        if held >= each:
            edges.append(group.low)
            held = 0
        held += group.rows
    edges = sorted(set(edges))
    for after, upto in zip([None, *edges], [*edges, None], strict=True):
        mine = (
            group for group in groups if (after is None or group.high > after) and (upto is None or group.low <= upto)
        )
        yield Part(after, upto, tuple(mine))


def source(parts: Sequence[Part], wanted: Fields, grid: Grid) -> Source:
    """Batches of `id`, the numbers of `parts` → rows of whole streams."""
    return partial(_streams, parts=tuple(parts), wanted=wanted, grid=grid)


def _streams(
    batches: Iterable[pa.RecordBatch], parts: Sequence[Part], wanted: Fields, grid: Grid, rows: int = ROWS
) -> Iterator[Rows]:
    for batch in batches:
        for number in batch.column("id").to_pylist():
            yield from streams_of(parts[number], wanted, grid, rows)


def streams_of(part: Part, wanted: Fields, grid: Grid, rows: int = ROWS) -> Iterator[Rows]:
    """The streams of a part, whole, at least so many rows at a time where it has as many."""
    held: list[pa.Table] = []
    size = 0
    lows = [group.low for group in part.groups]
    for at, group in enumerate(part.groups):
        following = lows[at + 1] if at + 1 < len(lows) else None
        for table, least in _read(part, group, wanted, grid):
            held, size = [*held, table], size + table.num_rows
            bound = least if following is None or (least is not None and least < following) else following
            if size >= rows and bound is not None:
                done, held = _split(held, bound)
                size = sum(one.num_rows for one in held)
                if done:
                    yield _rows(done, wanted)
    if size:
        yield _rows(held, wanted)


def _read(part: Part, group: Group, wanted: Fields, grid: Grid) -> Iterator[tuple[pa.Table, str | None]]:
    """The rows of the part's devices, some at a time, and the least device that may still come of this row group."""
    at, place = _placed(group.path)
    with pq.ParquetFile(place, filesystem=at, read_dictionary=_NAMES) as file:
        crosses, by_device = _looked_at(file, group.number, grid)
        names = [*_NAMES, *wanted.every, *(wanted.cut if crosses else ())]
        held = 0
        for batch in file.iter_batches(ROWS, row_groups=[group.number], columns=names, use_threads=False):
            held += batch.num_rows
            table = pa.Table.from_batches([batch])
            last = table["device"][table.num_rows - 1].as_py() if by_device else group.low
            yield _mine(part, group, table), None if held >= group.rows else last


def _looked_at(file: pq.ParquetFile, number: int, grid: Grid) -> tuple[bool, bool]:
    """Whether a bucket of the row group is cut by an edge or in doubt, and whether its rows lie by device."""
    crosses, by_device, before = False, True, ""
    names = ["device", "t_first", "t_last", "doubt"]
    for batch in file.iter_batches(ROWS, row_groups=[number], columns=names, use_threads=False):
        first, last, doubt = (numbers(batch.column(name)) for name in names[1:])
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


def _mine(part: Part, group: Group, table: pa.Table) -> pa.Table:
    after, upto = part.after, part.upto
    if (after is None or group.low > after) and (upto is None or group.high <= upto):
        return table
    return _where(table, lambda name: (after is None or name > after) and (upto is None or name <= upto))


def _where(table: pa.Table, wanted: Any) -> pa.Table:
    """The rows of those devices."""
    column = table["device"].combine_chunks()
    column = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
    kept = np.array([wanted(name) for name in column.dictionary.to_pylist()], bool)[column.indices.to_numpy()]
    if kept.all():
        return table
    begin, end = int(np.argmax(kept)), kept.size - int(np.argmax(kept[::-1]))
    if kept[begin:end].all():
        return table.slice(begin, end - begin) if kept.any() else table.slice(0, 0)
    return table.filter(pa.array(kept))


def _split(held: list[pa.Table], bound: str) -> tuple[list[pa.Table], list[pa.Table]]:
    """Rows of devices before `bound`, of which no more come, and the others."""
    done = [_where(table, lambda name: name < bound) for table in held]
    rest = [_where(table, lambda name: name >= bound) for table in held]
    return [one for one in done if one.num_rows], [one for one in rest if one.num_rows]


def _rows(tables: list[pa.Table], wanted: Fields) -> Rows:
    narrow = all(set(wanted.cut) - set(table.column_names) for table in tables)
    if not narrow:
        tables = [_with_cut(table, wanted) for table in tables]
    table = pa.concat_tables(tables).unify_dictionaries().combine_chunks()
    owner, devices, streams = owners(table)
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
