"""Which part of some Parquet files each task reads: whole devices by the row groups' statistics, large ones by time.

Whatever the statistics say, each device is in one part only, or each window of it in one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sluicegate_cloud.fleet.listing import placed
from sluicegate_cloud.fleet.spread import FIRST, LAST, LENGTHS, is_dense
from sluicegate_cloud.fleet.wire import MOST, Piece, Stream, owners
from sluicegate_cloud.grid import Grid, Ints

#: How often a row may be read, on average, by parts that share its row group.
_MOST_READ = 1.7
#: Rows of a device beyond which it is answered in parts wherever it is.
LARGE = 4 * MOST
_KINDS = {"bigint": pa.int64(), "double": pa.float64(), "string": pa.string()}


class Group(NamedTuple):
    """A row group: where it is, its rows, and between which devices and times in µs they lie, all ends included."""

    path: str
    number: int
    rows: int
    low: str
    high: str
    since: int
    until: int


class Part(NamedTuple):
    """The devices after `after` up to `upto` (None: all), and the row groups that may have any of them, ascending.

    `others`: devices of other parts all the same. `pieces`: of one large device what is answered of each stream; then
    the row groups lie by time, and `since` says when each one's first row of the device does.
    """

    after: str | None
    upto: str | None
    groups: tuple[Group, ...]
    others: frozenset[str] = frozenset()
    pieces: Mapping[Stream, Piece] | None = None


#: Row groups, devices → a row for each device and stream of a row group: `group`, its place among these, `since`, when
#: its first row begins, and of its first reading `frame`, `first` and `center`.
Look = Callable[[Sequence[Group], frozenset[str], Grid], pa.Table]
LOOKED = {
    "group": "bigint", "device": "string", "stream": "string", "since": "bigint", "frame": "bigint", "first": "bigint",
    "center": "double",
}  # fmt: skip
_SCHEMA = pa.schema([(name, _KINDS[kind]) for name, kind in LOOKED.items()])


def parts_of(paths: Sequence[str], most: int, grid: Grid, look: Look, large: int = LARGE) -> list[Part] | None:
    """About so many parts of about as many rows; None where row groups do not lie by device, or do not say so."""
    groups = [group for path in paths for group in _groups(path)]
    if any(group is None for group in groups):
        return None
    found = sorted((group for group in groups if group is not None), key=lambda group: (group.low, group.high))
    if not found:
        return None
    each = max(min(large, MOST), sum(group.rows for group in found) / max(most, 1))
    alone = Counter[str]()
    for group in found:
        if group.low == group.high:
            alone[group.low] += group.rows
    apart = frozenset(device for device, rows in alone.items() if rows > min(large, each))
    usual = [group for group in found if group.low != group.high or group.low not in apart]
    parts = [part._replace(others=apart) for part in _cut(usual, most) if part.groups] if usual else []
    read, rows = sum(group.rows for part in parts for group in part.groups), sum(group.rows for group in usual)
    if read > rows * max(_MOST_READ, 1 + len(parts) / max(len(usual), 1)):
        return None
    return [*_of_large(found, apart, each, grid, look), *parts]


def _groups(path: str) -> Iterator[Group | None]:
    at, place = placed(path)
    with pq.ParquetFile(place, filesystem=at) as file:
        told = file.metadata
        names = [told.schema.column(i).path for i in range(told.num_columns)]
        device, first, last = (names.index(name) for name in ("device", "t_first", "t_last"))
        for number in range(told.num_row_groups):
            group = told.row_group(number)
            known, since, until = (group.column(i).statistics for i in (device, first, last))
            if known is None or not known.has_min_max or known.null_count or not isinstance(known.min, str):
                yield None
            elif group.num_rows:
                times = since.min if since else FIRST, until.max if until else LAST
                yield Group(path, number, group.num_rows, known.min, known.max, *times)


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


def _of_large(groups: Sequence[Group], apart: frozenset[str], each: float, grid: Grid, look: Look) -> Iterator[Part]:
    """Parts of each of these devices: cut where a row group begins, by time."""
    some = [group for group in groups if any(group.low <= device <= group.high for device in apart)]
    if not some:
        return
    told = look(some, apart, grid)
    for device in sorted(apart):
        mine = told.filter(pc.equal(told["device"], device)).sort_by([("since", "ascending"), ("group", "ascending")])
        yield from _of_device(device, mine, some, each, grid)


def _of_device(device: str, told: pa.Table, groups: Sequence[Group], each: float, grid: Grid) -> Iterator[Part]:
    numbers, since = told["group"].to_numpy(), told["since"].to_numpy()
    order = list(dict.fromkeys(numbers.tolist()))
    begins = {group: int(since[numbers == group].min()) for group in order}
    rows = np.cumsum([groups[group].rows for group in order])
    at = np.concatenate(([0], np.flatnonzero(np.diff(rows // each)) + 1))
    streams = {name: _of_stream(told, name, order) for name in sorted(set(told["stream"].to_pylist()))}
    begin, end = min(begins.values()), max(groups[group].until for group in order)
    frames = np.diff(grid.frame_of(np.array([begin, end])))[0] + grid.width
    at = at if is_dense(int(frames), int(rows[-1])) else at[:1]
    edges = _edges([lows[at] for lows, _ in streams.values()], grid.width)
    for low, high in pairwise(edges):
        pieces = {
            (device, name): Piece(int(low[i]), int(high[i]), base)
            for i, (name, (_, base)) in enumerate(streams.items())
        }
        wanted = [_wanted(pieces.values(), groups[group]._replace(since=begins[group]), grid) for group in order]
        yield Part(None, None, tuple(group for group in wanted if group is not None), frozenset(), pieces)


def _of_stream(told: pa.Table, name: str, order: Sequence[int]) -> tuple[Ints, float]:
    """The frame of the first reading in each row group or in a later one, and the center of the first of all."""
    mine = told.filter(pc.and_(pc.equal(told["stream"], name), pc.is_valid(told["frame"])))
    if not mine.num_rows:
        return np.full(len(order), LAST), 0.0
    place = {group: i for i, group in enumerate(order)}
    lows = np.full(len(order), LAST)
    for group, frame in zip(mine["group"].to_pylist(), mine["frame"].to_pylist(), strict=True):
        lows[place[group]] = frame
    first = mine.sort_by([(of, "ascending") for of in ("frame", "first", "center")])
    return np.minimum.accumulate(lows[::-1])[::-1], first["center"][0].as_py()


def _edges(lows: Sequence[Ints], width: int) -> Iterator[Ints]:
    """Of each stream the frames at which pieces begin: at no other, where one of them would be too short."""
    told = np.stack(lows)
    held = np.full(told.shape[0], FIRST)
    yield held
    held = told[:, 0]
    for low in told[:, 1:].T:
        if np.all((low == LAST) | (low - held >= LENGTHS * width)) and np.any(low < LAST):
            yield low
            held = low
    yield np.full(told.shape[0], LAST)


def _wanted(pieces: Iterable[Piece], group: Group, grid: Grid) -> Group | None:
    """The row group, if any of the pieces needs rows of it."""
    begin, end = grid.frame_of(np.array([group.since, group.until])).tolist()
    some = (piece for piece in pieces if piece.low < piece.high)
    return group if any(end >= piece.low and begin <= piece.high + grid.width for piece in some) else None


def looked(groups: Iterable[tuple[int, Group]], devices: frozenset[str], grid: Grid) -> Iterator[pa.RecordBatch]:
    """Rows of LOOKED of some row groups and their numbers."""
    for number, group in groups:
        at, place = placed(group.path)
        with pq.ParquetFile(place, filesystem=at, read_dictionary=["device", "stream"]) as file:
            names = ["device", "stream", "t_first", "first", "n", "center"]
            table = file.read_row_group(group.number, names, use_threads=False).unify_dictionaries().combine_chunks()
        column = table["device"].chunk(0)
        known = pc.is_in(column.dictionary, value_set=pa.array([*devices], column.dictionary.type))
        mine = np.asarray(known)[column.indices]
        some = table if mine.all() else table.filter(pa.array(mine))
        if some.num_rows:
            yield pa.RecordBatch.from_pylist([*_firsts(number, some, grid)], _SCHEMA)


def _firsts(number: int, table: pa.Table, grid: Grid) -> Iterator[dict[str, object]]:
    owner, devices, streams, _ = owners(table)
    time, n, first, center = (table[name].to_numpy() for name in ("t_first", "n", "first", "center"))
    frame = grid.frame_of(time)
    for at, (device, stream) in enumerate(zip(devices.to_pylist(), streams.to_pylist(), strict=True)):
        mine = np.flatnonzero(owner == at)
        row = {"group": number, "device": device, "stream": stream, "since": int(time[mine].min())}
        full = mine[n[mine] > 0]
        if full.size:
            least = full[frame[full] == frame[full].min()]
            least = least[np.lexsort((center[least], first[least]))[0]]
            row |= {"frame": int(frame[least]), "first": int(first[least]), "center": float(center[least])}
        yield row
