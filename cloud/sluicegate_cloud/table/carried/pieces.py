"""Documents of a table → pieces: the buckets of a device's stream with what they carry, in the order of their times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sluicegate_cloud.documents import ARROW, fields_of
from sluicegate_cloud.extras.asked import Asked
from sluicegate_cloud.extras.long import LONG, MOST, Longs, is_long, least_us, of_stretches, stretches
from sluicegate_cloud.extras.piece import Piece
from sluicegate_cloud.extras.windows import piece_of, rows_of
from sluicegate_cloud.grid import Grid, Ints
from sluicegate_cloud.schema import BUCKET_FIELDS
from sluicegate_cloud.table.ledger import Touched
from sluicegate_cloud.table.ranges import FIRST, LAST
from sluicegate_cloud.table.units import Kept, Ledger, numbers_of, packed_in_runs

_HEAD = ("device", "stream", "incarnation", "key", "center", "id")
_SCHEMA = pa.schema([ARROW.field(name) for name in (*_HEAD, "buckets", "packed", "extras")])
_FIRST, _LAST = (list(BUCKET_FIELDS).index(name) for name in ("t_first", "t_last"))
#: By row of the ledger what a document carries, and its buckets.
Read = dict[int, dict[str, Any]]


def documents(kept: Kept, ledger: Ledger, rows: Ints) -> Read:
    """Of those documents in use."""
    rows = np.unique(rows[ledger.used[rows]])
    cells, out = numbers_of(ledger.table, "cell")[rows], Read()
    for cell in np.unique(cells).tolist():
        mine = rows[cells == cell]
        some = ledger.table.select(["digest", "device"]).take(pa.array(mine)).combine_chunks()
        ends = pc.min_max(some["device"])
        between = [("device", ">=", ends["min"].as_py()), ("device", "<=", ends["max"].as_py())]
        for name in kept.files[str(cell)]:
            found = kept.store.read(name, ["digest", "packed", "extras"], between)
            at = pc.index_in(found["digest"], value_set=some["digest"].combine_chunks())
            wanted = found.filter(pc.is_valid(at))
            for index, row in zip(at.drop_null().to_pylist(), wanted.to_pylist(), strict=True):
                out[int(mine[index])] = row
    return out


def pieces(ledger: Ledger, read: Read, rows: Ints, asked: Sequence[Asked]) -> list[Piece]:
    """The buckets of one device's stream, of those documents in use; whole buckets of a document used in part."""
    rows = rows[ledger.used[rows]]
    table = ledger.table.select([*_HEAD, "part"]).take(pa.array(rows)).to_pylist()
    heads = []
    for row, head in zip(rows.tolist(), table, strict=True):
        part = head.pop("part")
        packed = part["packed"] if ledger.of["part"][row] else read[row]["packed"]
        heads.append(
            head | {"packed": packed, "buckets": int(ledger.of["buckets"][row]), "extras": read[row]["extras"]}
        )
    if not heads:
        return []
    batch = pa.RecordBatch.from_pylist(heads, _SCHEMA)
    told = (row for some in rows_of(asked)([batch]) for row in some.to_pylist())
    found = [(row["t_first"], row["incarnation"], row["first"], piece_of(row)) for row in told]
    found.sort(key=itemgetter(0, 1, 2))
    return [piece for *_, piece in found]


def longs(kept: Kept, ledger: Ledger, grid: Grid) -> Longs:
    """The buckets of a shard's streams that touch too many windows (`extras.long`)."""
    some = np.flatnonzero(ledger.used & (ledger.of["t_last"] - ledger.of["t_first"] >= least_us(grid)))
    rows = sorted(_longs(kept, ledger, some, grid), key=lambda row: [row[name] for name in LONG.names[:3]])
    return of_stretches(row for of in stretches([pa.RecordBatch.from_pylist(rows, LONG)]) for row in of.to_pylist())


def _longs(kept: Kept, ledger: Ledger, some: Ints, grid: Grid) -> Iterator[dict[str, Any]]:
    names = ledger.table.select(["device", "stream"])
    for part in packed_in_runs(kept, ledger, some):
        for row, packed in part.items():
            told, of = fields_of(packed, int(ledger.of["buckets"][row])), names.slice(row, 1).to_pylist()[0]
            for since, until in zip(told[_FIRST].tolist(), told[_LAST].tolist(), strict=True):
                if is_long(since, until, grid):
                    yield of | {"t_first": since, "t_last": until, "buckets": 1}


def widened(asked: Sequence[Asked], ledger: Ledger, long: Longs, touched: Touched) -> Touched:
    """The times within which a change reaches what buckets carry.

    Where it is asked which reading holds until which, a bucket says less if another begins where it ends: so a change
    reaches as far as the documents that it touches. Where a stream has so many long buckets that they are one stretch,
    it reaches everywhere.
    """
    held = any(each.kind == "time_weighted_mean" for each in asked)
    out: Touched = {}
    for of, times in touched.items():
        rows = ledger.streams.get(of, np.zeros(0, np.int64))
        more = [(FIRST, LAST)] if len(long.where.get(of[1], {}).get(of[0], ())) >= MOST else []
        for low, high in times if held else ():
            mine = rows[ledger.have_buckets(rows, low, high)]
            if mine.size:
                more.append((int(ledger.of["t_first"][mine].min()), int(ledger.of["t_last"][mine].max())))
        out[of] = [*times, *more]
    return out
