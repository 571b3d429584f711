"""Which streams of a shard have too many windows, by its ledger alone, and the ledger as readers see it then."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sluicegate_cloud import grid as grids
from sluicegate_cloud.fleet import sparse
from sluicegate_cloud.fleet.sparse import Aside, Count, of_document
from sluicegate_cloud.fleet.wire import Stream
from sluicegate_cloud.grid import Ints, stretches
from sluicegate_cloud.schema import REFUSED, USED
from sluicegate_cloud.table.units import Kept, Ledger, packed_in_runs
from sluicegate_cloud.table.versions import Definition

#: Of the index of a shard: device, stream and reason of each stream that is set aside.
NAME = "aside"
Index = dict[str, Any]


def found(definition: Definition, ledger: Ledger, kept: Kept) -> Aside:
    """Those of a shard's streams (`sparse.too_many`); `ledger` has all of them."""
    return sparse.too_many({of: _count(definition, ledger, kept, of) for of in _large(definition, ledger)})


def of_index(index: Index) -> Aside:
    """What `found` found when the shard was last merged."""
    return {(device, stream): why for device, stream, why in index.get(NAME, ())}


def to_index(aside: Aside) -> list[list[str]]:
    """The same for an index."""
    return [[*of, why] for of, why in sorted(aside.items())]


def without(table: pa.Table, aside: Aside) -> pa.Table:
    """A ledger whose documents in use of these streams are refused with the reason, and miss nothing."""
    if not aside:
        return table
    why = [aside.get(of) for of in zip(table["device"].to_pylist(), table["stream"].to_pylist(), strict=True)]
    reasons = pa.array(why, pa.string())
    mine = pc.is_valid(reasons)
    used = pc.and_(mine, pc.equal(table["fate"].combine_chunks(), USED))
    changes = {
        "reason": pc.if_else(used, reasons, table["reason"].combine_chunks()),
        "fate": pc.if_else(used, pa.scalar(REFUSED), table["fate"].combine_chunks()),
        **{name: pc.if_else(mine, pa.scalar(0, pa.int64()), table[name].combine_chunks()) for name in ("hole", "lost")},
    }
    for name, column in changes.items():
        at = table.column_names.index(name)
        table = table.set_column(at, table.schema.field(at), column)
    return table


def _large(definition: Definition, ledger: Ledger) -> list[Stream]:
    """The streams of devices whose times allow so many windows."""
    names = [*ledger.streams]
    if not names:
        return []
    rows = np.concatenate([ledger.streams[of] for of in names])
    begin = np.cumsum([0, *(ledger.streams[of].size for of in names[:-1])])
    used, none = ledger.used[rows], np.iinfo(np.int64)
    first = np.minimum.reduceat(np.where(used, ledger.of["t_first"][rows], none.max), begin)
    last = np.maximum.reduceat(np.where(used, ledger.of["t_last"][rows], none.min), begin)
    buckets = np.add.reduceat(np.where(used, ledger.of["buckets"][rows], 0), begin)
    there = np.flatnonzero(first <= last)
    many = sparse.at_most(first[there], last[there], buckets[there], definition.grid)
    if many.sum(dtype=np.float64) <= grids.MAX_WINDOWS:
        return []
    return sparse.doubtful([names[at] for at in there.tolist()], many.tolist())


def _count(definition: Definition, ledger: Ledger, kept: Kept, of: Stream) -> Count:
    """A document's buckets are read only where its times alone do not tell its windows."""
    grid, rows = definition.grid, ledger.streams[of]
    used = rows[ledger.used[rows]]
    first_us, last_us = ledger.of["t_first"][used], ledger.of["t_last"][used]
    short = sparse.is_short(first_us, last_us, grid, definition.max_empty)
    runs = [(grid.frame_of(first_us[short]) - (grid.width - 1), grid.frame_of(last_us[short]))]
    for some in packed_in_runs(kept, ledger, used[~short]):
        for row, packed in some.items():
            runs.append(of_document(packed, int(ledger.of["buckets"][row]), grid, definition.max_empty))
    runs += _of_holes(definition, ledger, rows, (int(first_us.min()), int(last_us.max())))
    first, last = (np.concatenate([run[end] for run in runs]) for end in (0, 1))
    begins, ends = sparse.joined(first, last, definition.max_empty)
    return Count(int((ends - begins + 1).sum()), int(ledger.of["buckets"][used].sum()))


def _of_holes(definition: Definition, ledger: Ledger, rows: Ints, ends: tuple[int, int]) -> list[tuple[Ints, Ints]]:
    """The windows of what is missing, as far as the stream reaches."""
    grid, some = definition.grid, rows[ledger.hole[rows] > 0]
    times = (np.clip(of[some], *ends) for of in (ledger.hole_low, ledger.hole_high))
    pairs = zip(*(grid.frame_of(of) for of in times), strict=True)
    return [stretches(np.array(pair), grid.width, definition.max_empty) for pair in pairs]
