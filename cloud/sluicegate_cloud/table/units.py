"""Reads the documents of a table as rows of whole streams: what the windows to answer need, some streams at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sluicegate_cloud.documents import buffers_of, fields_of
from sluicegate_cloud.fleet.known import as_frames
from sluicegate_cloud.fleet.packed import HOLES, Missing, columns_of, with_missing
from sluicegate_cloud.fleet.wire import Fields, Rows
from sluicegate_cloud.grid import Grid, Ints
from sluicegate_cloud.losses import LATEST
from sluicegate_cloud.schema import BUCKET_FIELDS, RETIRED, USED
from sluicegate_cloud.table.ledger import used_columns
from sluicegate_cloud.table.ranges import merged
from sluicegate_cloud.table.settled.rows import of_runs, runs_of
from sluicegate_cloud.table.versions import Store

#: Bytes of packed buckets that are held at a time, and buckets that are answered together.
_HELD, _ROWS = 64 << 20, 1 << 16
_BYTES = 8 * len(BUCKET_FIELDS)
#: Buckets of one stream that are answered together: what has more is cut by time, and what windows share is read twice.
MOST = 1 << 18
#: What is kept of a document beside its row in the ledger; sorted, so that readers pass over what they do not need.
KEPT = (
    "digest", "device", "stream", "incarnation", "key", "center", "id", "first", "readings", "buckets", "t_first",
    "t_last", "tags", "packed", "extras",
)  # fmt: skip


class Unit(NamedTuple):
    """A stream and the windows of it that are answered: those that begin at frames `window`, both ends included.

    `rows`: positions in the ledger of the documents that this needs; `times`: between which, in µs, they are
    needed; `centers`: of the whole stream that of its first document, the least and the greatest.
    """

    device: str
    stream: str
    window: tuple[int, int]
    rows: Ints
    times: tuple[int, int]
    centers: tuple[float, float, float]


class Ledger:
    """A shard's ledger as arrays, its streams, and where their documents lie."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table
        self.of = used_columns(table)
        #: Which rows stand for several documents, and for how many each does.
        self.is_run = runs_of(table)
        self.documents = of_runs(table, "documents", np.ones(table.num_rows, np.int64))
        self.used = np.asarray(pc.equal(table["fate"], USED).combine_chunks())
        self.hole = numbers_of(table, "hole")
        hole_from, hole_to = (numbers_of(table, name) for name in ("hole_from", "hole_to"))
        self.hole_low, self.hole_high = np.minimum(hole_from, hole_to), np.maximum(hole_from, hole_to)
        self.loss_low, self.loss_high = (numbers_of(table, name) for name in ("loss_from", "loss_to"))
        #: Which tell of losses where these were (`losses`), and which told of any.
        self.tells = np.asarray(pc.is_valid(table["gaps"]).combine_chunks())
        told = np.asarray(pc.is_valid(table["loss_from"]).combine_chunks())
        retired = np.asarray(pc.equal(table["fate"], RETIRED).combine_chunks())
        # What nobody can place may lie in the windows that stay, too.
        anywhere = retired & told & (self.loss_high >= LATEST)
        self.losses = told & (self.used | (self.hole > 0)) | anywhere
        self.first = numbers_of(table, "first")
        self.center = np.asarray(table["center"].combine_chunks().to_numpy(zero_copy_only=False), np.float64)
        #: The rows of each stream that have a reading, a hole, or a loss of which nobody knows where it lies.
        self.streams = self._streams(self.used | (self.hole > 0) | anywhere)
        self._centered = self._streams(self.used | retired) if retired.any() else self.streams

    def _streams(self, wanted: Any) -> dict[tuple[str, str], Ints]:
        some = np.flatnonzero(wanted)
        codes = [
            self.table[name].combine_chunks().take(pa.array(some)).dictionary_encode() for name in ("device", "stream")
        ]
        key = np.asarray(codes[0].indices).astype(np.int64) * max(len(codes[1].dictionary), 1) + np.asarray(
            codes[1].indices
        )
        out: dict[tuple[str, str], Ints] = {}
        if not key.size:  # none of its documents could be read
            return out
        order = np.argsort(key, kind="stable")
        begins = np.flatnonzero(np.concatenate(([True], np.diff(key[order]) != 0)))
        for begin, end in zip(begins, [*begins[1:], key.size], strict=True):
            first = int(some[order[begin]])
            out[str(self.table["device"][first]), str(self.table["stream"][first])] = some[order[begin:end]]
        return out

    def runs(self, streams: Iterable[tuple[str, str]]) -> list[int]:
        """The rows of some streams that stand for several documents."""
        return [at for of in streams for at in self.streams[of][self.is_run[self.streams[of]]].tolist()]

    def runs_at(self, times: Mapping[tuple[str, str], Sequence[tuple[int, int]]]) -> list[int]:
        """Those that have a reading at or between some times of their stream, in µs."""
        out = []
        for of, ranges in times.items():
            runs = np.array(self.runs([of] if of in self.streams else []), np.int64)
            met = np.zeros(runs.size, bool)
            for low, high in merged(ranges) if runs.size else ():
                met |= (self.of["t_last"][runs] >= low) & (self.of["t_first"][runs] <= high)
            out += runs[met].tolist()
        return out

    def edges(self, rows: Ints) -> Ints:
        """The first and last times of those documents that are in use, ascending."""
        mine = rows[self.used[rows]]
        return np.asarray(np.unique(np.concatenate((self.of["t_first"][mine], self.of["t_last"][mine]))))

    def newest(self, of: tuple[str, str]) -> int:
        """The row of a stream's newest document that is, or was, in use."""
        mine = self._centered[of]
        return int(mine[np.lexsort((self.of["t_first"][mine], self.of["t_last"][mine]))[-1]])

    def centers(self, of: tuple[str, str]) -> tuple[float, float, float]:
        """Of the first of a stream's documents that are, or were, in use, and the least and greatest of all."""
        mine = self._centered.get(of, np.zeros(0, np.int64))
        mine = mine[~np.isnan(self.center[mine])]
        if not mine.size:
            return 0.0, 0.0, 0.0
        first = mine[np.lexsort((self.first[mine], self.of["t_first"][mine]))[0]]
        return float(self.center[first]), float(self.center[mine].min()), float(self.center[mine].max())

    def overlapping(self, rows: Ints, times: tuple[int, int]) -> Ints:
        """Those that have a bucket, a hole or a loss between the times."""
        low, high = times
        inside = self.have_buckets(rows, low, high)
        holes = (self.hole[rows] > 0) & (self.hole_high[rows] >= low) & (self.hole_low[rows] <= high)
        losses = self.losses[rows] & (self.loss_high[rows] >= low) & (self.loss_low[rows] <= high)
        return np.asarray(rows[inside | holes | losses])

    def have_buckets(self, rows: Ints, low: Ints | int, high: Ints | int) -> Any:
        """Which of them have a bucket in use between the times: what others say is missing needs none of theirs."""
        return self.used[rows] & (self.of["t_last"][rows] >= low) & (self.of["t_first"][rows] <= high)

    def cuts(self, rows: Ints, times: tuple[int, int]) -> list[int]:
        """Where those documents are cut between the times, so that no part has many more than MOST buckets."""
        mine = rows[self.have_buckets(rows, *times)]
        mine = mine[np.argsort(self.of["t_first"][mine], kind="stable")]
        part = np.cumsum(self.of["buckets"][mine]) // MOST
        return [int(time) for time in self.of["t_first"][mine][1:][np.diff(part) > 0]]


#: Packed buckets by the digest of their document.
Packed = dict[str, pa.Buffer]


class Kept(NamedTuple):
    """Where the buckets of documents are: in the files of their cells, or already at hand."""

    store: Store
    files: dict[str, list[str]]
    held: Packed


def gathered(
    kept: Kept, ledger: Ledger, units: Sequence[Unit], wanted: Fields, grid: Grid
) -> Iterator[tuple[list[Unit], Rows]]:
    """Units that are answered together, and the rows of buckets of them: owner i is unit i."""
    for some in _runs(units, ledger, _HELD // _BYTES):
        needed = (unit.rows[ledger.have_buckets(unit.rows, *unit.times)] for unit in some)
        packed = _packed(kept, ledger, np.unique(np.concatenate([*needed])))
        for few in _runs(some, ledger, _ROWS):
            yield few, _rows(few, ledger, packed, wanted, grid)


def _runs(units: Iterable[Unit], ledger: Ledger, most: int) -> Iterator[list[Unit]]:
    """At least so many buckets at a time, if there are."""
    held: list[Unit] = []
    size = 0
    for unit in units:
        held.append(unit)
        size += int(ledger.of["buckets"][unit.rows[ledger.have_buckets(unit.rows, *unit.times)]].sum())
        if size >= most:
            yield held
            held, size = [], 0
    if held:
        yield held


def packed_in_runs(kept: Kept, ledger: Ledger, rows: Ints) -> Iterator[dict[int, Any]]:
    """The buckets of those documents in use, by row of the ledger, some at a time."""
    part = np.cumsum(ledger.of["buckets"][rows]) // (_HELD // _BYTES)
    for some in np.split(rows, np.flatnonzero(np.diff(part)) + 1) if rows.size else ():
        yield _packed(kept, ledger, some)


def _packed(kept: Kept, ledger: Ledger, rows: Ints) -> dict[int, Any]:
    """The buckets of those documents in use, by row of the ledger."""
    rows = rows[ledger.used[rows]]
    table = ledger.table
    out: dict[int, Any] = {}
    whole = rows[~ledger.of["part"][rows]]
    for row in rows[ledger.of["part"][rows]].tolist():
        out[row] = table["part"][row]["packed"].as_buffer()
    if kept.held:
        there = [kept.held.get(digest) for digest in table["digest"].take(pa.array(whole)).to_pylist()]
        out |= {row: one for row, one in zip(whole.tolist(), there, strict=True) if one is not None}
        whole = whole[np.array([one is None for one in there], bool)]
    cells = numbers_of(table, "cell")[whole]
    for cell in np.unique(cells).tolist():
        mine = whole[cells == cell]
        digests = table["digest"].combine_chunks().take(pa.array(mine))
        devices = table["device"].combine_chunks().take(pa.array(mine))
        between = [("device", ">=", pc.min(devices).as_py()), ("device", "<=", pc.max(devices).as_py())]
        for name in kept.files[str(cell)]:
            found = kept.store.read(name, ["digest", "packed"], between)
            at = pc.index_in(found["digest"], value_set=digests)
            wanted = found["packed"].filter(pc.is_valid(at)) if at.null_count else found["packed"]
            for index, one in zip(at.drop_null().to_pylist(), buffers_of(wanted), strict=True):
                out[int(mine[index])] = one
    return out


def _rows(units: Sequence[Unit], ledger: Ledger, packed: dict[int, Any], wanted: Fields, grid: Grid) -> Rows:
    """Buckets and holes of the units, with the columns that the pass needs."""
    rows = np.concatenate([unit.rows for unit in units])
    owner = np.repeat(np.arange(len(units)), [unit.rows.size for unit in units])
    low, high = (np.array([unit.times[i] for unit in units])[owner] for i in (0, 1))
    used = ledger.have_buckets(rows, low, high)
    counts = ledger.of["buckets"][rows[used]]
    pieces = [fields_of(packed[row], count) for row, count in zip(rows[used].tolist(), counts.tolist(), strict=True)]
    of_bucket = np.repeat(np.arange(used.sum()), counts)
    columns = columns_of(pieces, wanted, grid)
    columns |= {"owner": owner[used][of_bucket], "center": ledger.center[rows[used]][of_bucket]}
    columns["gap"] = np.where(ledger.tells[rows[used]][of_bucket], 0, columns["gap"])
    kept = (columns["t_last"] >= low[used][of_bucket]) & (columns["t_first"] <= high[used][of_bucket])
    if not kept.all():
        columns = {name: column[kept] for name, column in columns.items()}
    at = np.flatnonzero(ledger.hole[rows] > 0)
    some = ledger.table.select(HOLES).take(pa.array(rows[at]))
    holes = Missing({name: numbers_of(some, name) for name in HOLES}, owner[at], ledger.center[rows[at]])
    at = np.flatnonzero(ledger.losses[rows])
    losses = buffers_of(ledger.table["losses"].take(pa.array(rows[at])))
    columns = with_missing(columns, holes, Missing(losses, owner[at], ledger.center[rows[at]]), grid)
    device, stream = (pa.array([unit[i] for unit in units], pa.string()) for i in (0, 1))
    with np.errstate(all="ignore"):
        return Rows(as_frames(columns, wanted.every), device, stream)


def numbers_of(table: pa.Table, name: str) -> Ints:
    """A column of integers, a null as 0."""
    return np.asarray(table[name].combine_chunks().fill_null(0).to_numpy(zero_copy_only=False)).astype(np.int64)
