"""The pass over Arrow batches: rows of whole streams → windows of devices, or what a task adds to those of all.

`devices` gives the rows of the table. `shares` gives components, a row for each window of all devices that a task has,
which `whole` adds up: never a row for a device and a window goes through a shuffle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sluicegate_cloud.estimates.components import INTEGERS, answer, families, names
from sluicegate_cloud.estimates.lower import lower
from sluicegate_cloud.fleet.block import Block, blocks
from sluicegate_cloud.fleet.long import Counted, in_pieces, within
from sluicegate_cloud.fleet.part import Part, parts
from sluicegate_cloud.fleet.spread import LAST
from sluicegate_cloud.fleet.wire import Rows, Source
from sluicegate_cloud.grid import Columns, Grid, Ints
from sluicegate_cloud.merging.combining import added_up
from sluicegate_cloud.names import ENDS, SILENT
from sluicegate_cloud.sinks import Sink
from sluicegate_cloud.spans import block_of

Batches = Iterable[pa.RecordBatch]
Pass = Callable[[Batches], Iterator[pa.RecordBatch]]
#: What a row of `shares` is: a block of frames in which a device is known to be, in which frame how many devices were
#: heard of last, a device's span, or windows of some.
MARK, HEARD, SPAN, WINDOW = 0, 1, 2, 3
#: What a row of `both` may be besides: a file of windows.
NAMED = -1
#: Takes some windows' components: whose rows, by number whose, which windows.
Beside = Callable[[Rows, Ints, Part, Columns], None]
#: Windows of devices that are added up at a time in a task: some 100 MB.
ADDED = 1 << 18
#: Windows that travel to the JVM at a time, about 8 MB: it takes them one batch after the other.
BATCH = 1 << 15
_INT = pa.int64()


def devices(grid: Grid, source: Source, aggregates: Sequence[str], max_empty: int, *, bounded: bool = True) -> Pass:
    """What `source` takes → rows of `windows.window_columns`, those of each device.

    `bounded`: raise ValueError for a stream of too many windows (`grid.MAX_WINDOWS`), which nobody set aside before.
    """
    needed = families(aggregates)

    def answered(batches: Batches) -> Iterator[pa.RecordBatch]:
        for rows, owners, block in _blocks(source(batches), grid, max_empty, bounded):
            for part in parts(block, max_empty):
                with np.errstate(all="ignore"):
                    found = answer(part, needed)
                yield _of_devices(rows, owners, part, found, grid, aggregates)

    return answered


def _of_devices(
    rows: Rows, owners: Ints, part: Part, found: Columns, grid: Grid, aggregates: Sequence[str]
) -> pa.RecordBatch:
    """The rows of a part's windows; `found`: their components."""
    with np.errstate(all="ignore"):
        told = lower(found, aggregates)
    whose = pa.array(owners[part.owner])
    head = {"device": rows.devices.take(whose), "stream": rows.streams.take(whose), **_placed(part, grid)}
    windows = {SILENT: pa.nulls(part.size, _INT), "windows": part.axis.windows}
    batch = pa.RecordBatch.from_pydict(head | as_arrow(told, aggregates) | windows)
    mine = slice(0, batch.num_rows) if rows.limits is None else within(part.axis.first, rows.limits)
    return batch.slice(mine.start, mine.stop - mine.start)


def shares(
    grid: Grid,
    source: Source,
    aggregates: Sequence[str],
    max_empty: int,
    beside: Beside = lambda *_: None,
    *,
    bounded: bool = True,
) -> Pass:
    """What `source` takes → what the devices of a task add to the windows of all: rows of `share_columns`.

    `beside`: is given each part and its components first; `bounded`: as `devices` has it.
    """
    needed = families(aggregates)

    def answered(batches: Batches) -> Iterator[pa.RecordBatch]:
        held = _Held(needed)
        for rows, owners, block in _blocks(source(batches), grid, max_empty, bounded):
            held.name(rows.streams, owners)
            yield from held.marks(block, max_empty)
            if not _goes_on(rows):
                yield held.heard(block)
            for part in parts(block, max_empty):
                with np.errstate(all="ignore"):
                    found = answer(part, needed)
                    beside(rows, owners, part, found)
                    mine = slice(None) if rows.limits is None else within(part.axis.first, rows.limits)
                    yield from held.take(part, mine, found)
        yield from held.told()

    return answered


def both(
    grid: Grid, source: Source, aggregates: Sequence[str], max_empty: int, sink: Sink, *, bounded: bool = True
) -> Pass:
    """`devices` into a sink, and `shares`, in one pass: rows of `share_columns` with `name`, null but where NAMED."""

    def answered(batches: Batches) -> Iterator[pa.RecordBatch]:
        with sink.opened() as files:

            def take(rows: Rows, owners: Ints, part: Part, found: Columns) -> None:
                files.take(_of_devices(rows, owners, part, found, grid, aggregates))

            for batch in shares(grid, source, aggregates, max_empty, take, bounded=bounded)(batches):
                yield batch.append_column("name", pa.nulls(batch.num_rows, pa.string()))
        yield _named(files.names, share_columns(aggregates))

    return answered


def unnamed(windows: Pass, sink: Sink) -> Pass:
    """Rows of `both` of some streams → the names of their files, and of those of all devices, which `windows` answers
    and the sink takes.
    """

    def written(batches: Batches) -> Iterator[pa.RecordBatch]:
        names = list[str]()

        def rest() -> Iterator[pa.RecordBatch]:
            for batch in batches:
                is_name = pc.is_valid(batch["name"])
                names.extend(batch["name"].filter(is_name).to_pylist())
                yield batch.filter(pc.invert(is_name)).drop_columns(["name"])

        yield from sink(windows(rest()))
        yield pa.RecordBatch.from_pydict({"name": pa.array(names, pa.string())})

    return written


def _named(names: Sequence[tuple[str, str]], columns: Mapping[str, str]) -> pa.RecordBatch:
    """A row for each file, of its stream: whoever adds up a stream's windows passes on what its files are called."""
    size, kinds = len(names), {"bigint": np.int64, "double": np.float64, "string": object}
    told: dict[str, Any] = {name: np.zeros(size, kinds[kind]) for name, kind in columns.items()}
    told |= {"stream": pa.array([stream for stream, _ in names], pa.string()), "kind": np.full(size, NAMED)}
    return pa.RecordBatch.from_pydict(told | {"name": pa.array([name for _, name in names], pa.string())})


def share_columns(aggregates: Sequence[str]) -> dict[str, str]:
    """The columns of `shares` and their SQL types."""
    kinds = {name: "bigint" if name in INTEGERS else "double" for name in names(families(aggregates))}
    return {"stream": "string", "kind": "bigint", "frame": "bigint", "windows": "bigint", **kinds}


def as_arrow(answers: Columns, aggregates: Sequence[str]) -> dict[str, Any]:
    """Columns in the order of `window_columns`; NaN, which means that there is no such number, becomes null."""
    columns = {f"{name}{end}": name.endswith("count") and end != ENDS[-1] for name in aggregates for end in ENDS}
    columns |= {"completeness": False, "resolution_us": False, "buckets": True}
    return {name: _array(answers[name], _INT if whole else None) for name, whole in columns.items()}


def _array(values: Any, kind: pa.DataType | None) -> pa.Array:
    """Most columns have no NaN, which the least of a column would be: looking is cheaper than making nulls."""
    if values.dtype != np.float64 or np.isnan(values.min(initial=np.inf)):
        return pa.array(values, kind, from_pandas=True)
    return pa.array(values if kind is None else values.astype(np.int64))


def _blocks(streams: Iterable[Rows], grid: Grid, max_empty: int, bounded: bool) -> Iterator[tuple[Rows, Ints, Block]]:
    counted = Counted(max_empty) if bounded else None
    for rows in in_pieces(streams, grid):
        with np.errstate(all="ignore"):
            for owners, block in blocks(rows.columns, grid, max_empty, rows.centers, goes_on=_goes_on(rows)):
                if counted is not None:
                    counted.add(rows, owners, block)
                yield rows, owners, block


def _goes_on(rows: Rows) -> bool:
    """Whether more of the stream comes, here or in another task."""
    return rows.limits is not None and rows.limits[1] < LAST - 1


def _placed(part: Part, grid: Grid) -> dict[str, Any]:
    length = (part.axis.windows + grid.width - 1) * grid.slide_us
    return {"window_start": part.start_us, "window_end": part.start_us + length}


class _Held:
    """Components of windows of devices, until there are enough of them to be added up."""

    def __init__(self, needed: Sequence[ModuleType]) -> None:
        self._needed = needed
        self._streams: dict[str, int] = {}
        self._parts: list[Columns] = []
        self._size = 0
        self._owner_stream: Ints = np.zeros(0, np.int64)

    def name(self, streams: pa.Array, owners: Ints) -> None:
        """Of the block that comes: the stream of each of its owners."""
        told = streams.take(pa.array(owners)).to_pylist()
        self._owner_stream = np.array([self._streams.setdefault(name, len(self._streams)) for name in told], np.int64)

    def marks(self, block: Block, max_empty: int) -> Iterator[pa.RecordBatch]:
        """The blocks of frames in which a device is known to be."""
        owner = np.searchsorted(block.owners.lane, block.points, side="right") - 1
        own = (block.points - block.owners.shift[owner]) // block_of(max_empty)
        stream = self._owner_stream[owner]
        changed = np.flatnonzero(np.concatenate(([True], (np.diff(own) != 0) | (np.diff(stream) != 0))))
        found = np.unique(np.stack((stream[changed], own[changed])), axis=1)
        yield self._batch(MARK, found[0], found[1], np.zeros_like(found[0]), {})

    def heard(self, block: Block) -> pa.RecordBatch:
        """Of each stream the frames in which devices were heard of last, and how many: a row a frame."""
        keys = np.stack((self._owner_stream, block.last - block.owners.shift))
        found, devices = np.unique(keys, axis=1, return_counts=True)
        return self._batch(HEARD, found[0], found[1], devices, {})

    def take(self, part: Part, mine: slice, found: Columns) -> Iterator[pa.RecordBatch]:
        """Add those windows of a part; spans go as they are."""
        stream, windows = self._owner_stream[part.owner][mine], part.axis.windows[mine]
        frame = (part.axis.first - part.block.owners.shift[part.owner])[mine]
        found = {name: found[name][mine] for name in names(self._needed)}
        spans = windows > 1
        if spans.any():
            some = {name: found[name][spans] for name in names(self._needed)}
            yield self._batch(SPAN, stream[spans], frame[spans], windows[spans], some)
            found = {name: found[name][~spans] for name in names(self._needed)}
            stream, frame = stream[~spans], frame[~spans]
        self._parts.append(found | {"stream": stream, "frame": frame})
        self._size += frame.size
        if self._size >= ADDED:
            yield from self.told()

    def told(self) -> Iterator[pa.RecordBatch]:
        """What is held, a row for each window of a stream."""
        if not self._size:
            return
        added = added_up(self._parts, ("stream", "frame"), self._needed)
        self._parts, self._size = [], 0
        for at in range(0, added["frame"].size, BATCH):
            some = {name: of[at : at + BATCH] for name, of in added.items()}
            yield self._batch(WINDOW, some["stream"], some["frame"], np.ones_like(some["frame"]), some)

    def _batch(self, kind: int, stream: Ints, frame: Ints, windows: Ints, columns: Columns) -> pa.RecordBatch:
        told = pa.array([*self._streams], pa.string()).take(pa.array(stream))
        head = {"stream": told, "kind": np.full(frame.size, kind), "frame": frame, "windows": windows}
        none = np.zeros(frame.size)
        every = {name: columns.get(name, none) for name in names(self._needed)}
        arrays = {
            name: pa.array(of, _INT if name in INTEGERS else pa.float64(), safe=False) for name, of in every.items()
        }
        return pa.RecordBatch.from_pydict(head | arrays)
