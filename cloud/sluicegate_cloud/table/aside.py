"""Finds the streams of a shard that make too many windows, from its ledger alone, and marks their documents."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sluicegate_cloud import grid as grids
from sluicegate_cloud.fleet import sparse
from sluicegate_cloud.fleet.sparse import ALL_TIME, Aside, Count, Rest, of_document
from sluicegate_cloud.fleet.wire import Stream
from sluicegate_cloud.grid import Grid, Ints, stretches
from sluicegate_cloud.schema import REFUSED, USED
from sluicegate_cloud.table.ledger import used_columns
from sluicegate_cloud.table.units import Kept, Ledger, numbers_of, packed_in_runs
from sluicegate_cloud.table.versions import Definition

#: Of the index of a shard: device, stream, reason and first time in µs of each stream that is set aside from then on.
NAME = "aside"
Index = dict[str, Any]
#: After all times.
LATEST = (1 << 63) - 1
#: Of runs of windows: when the document of each begins, in µs, first and last windows, buckets counted with it.
Runs = tuple[Ints, Ints, Ints, Ints]


def found(definition: Definition, ledger: Ledger, kept: Kept) -> Aside:
    """Of a shard's streams (`sparse.too_many`); `ledger` has all of them, of `large` ones a row a document."""
    grid, most = definition.grid, definition.max_empty
    counts = {of: _count(_runs(ledger, kept, of, grid, most), most) for of in large(definition, ledger)}
    out = {}
    for of, room in sparse.too_many(counts).items():
        since, *runs = _runs(ledger, kept, of, grid, most)
        order, reach = np.argsort(since, kind="stable"), sparse.Reach(room, most)
        reach.take(since[order], *(column[order] for column in runs))
        out[of] = sparse.rest_of(of, counts[of], reach.since_us())
    return out


def of_index(index: Index) -> Aside:
    """What `found` found when the shard was last merged."""
    told = index.get(NAME, ())
    return {(device, stream): Rest(since[0] if since else ALL_TIME, why) for device, stream, why, *since in told}


def to_index(aside: Aside) -> list[list[str | int]]:
    """The same for an index."""
    return [[*of, rest.why, rest.since_us] for of, rest in sorted(aside.items())]


def turned(before: Aside, now: Aside) -> set[Stream]:
    """The streams of which more is set aside than before, or less."""
    times = [{(of, rest.since_us) for of, rest in aside.items()} for aside in (before, now)]
    return {of for of, _ in times[0] ^ times[1]}


def without(table: pa.Table, aside: Aside) -> pa.Table:
    """A ledger whose documents in use that are set aside are refused with the reason: their readings are missing.

    Where nothing of a stream is left, nothing of it is missing.
    """
    if not aside:
        return table
    rests = [aside.get(of) for of in zip(table["device"].to_pylist(), table["stream"].to_pylist(), strict=True)]
    is_whole = np.array([rest is not None and rest.since_us == ALL_TIME for rest in rests], bool)
    since = np.array([LATEST if rest is None else rest.since_us for rest in rests], np.int64)
    of, used = used_columns(table), np.asarray(pc.equal(table["fate"], USED).combine_chunks())
    gone = used & (of["t_first"] >= since)
    first, last, hole, lost = (numbers_of(table, name) for name in ("hole_from", "hole_to", "hole", "lost"))
    first, last = np.minimum(first, last), np.maximum(first, last)
    has_hole = hole > 0
    changes = {
        "reason": pa.array([rest.why if rest else None for rest in rests], pa.string()),
        "fate": pa.repeat(REFUSED, table.num_rows),
        "hole_from": np.where(has_hole, np.minimum(first, of["t_first"]), of["t_first"]),
        "hole_to": np.where(has_hole, np.maximum(last, of["t_last"]), of["t_last"]),
    }
    told = {name: pc.if_else(pa.array(gone), new, table[name].combine_chunks()) for name, new in changes.items()}
    told["hole"] = pa.array(np.where(is_whole, 0, hole + gone * of["readings"]))
    told["lost"] = pa.array(np.where(is_whole | gone, 0, lost))
    for name in ("losses", "loss_from", "loss_to"):
        kind = table.schema.field(name).type
        told[name] = pc.if_else(pa.array(is_whole), pa.scalar(None, kind), table[name].combine_chunks())
    for name, column in told.items():
        at = table.column_names.index(name)
        table = table.set_column(at, table.schema.field(at), column)
    return table


def large(definition: Definition, ledger: Ledger) -> list[Stream]:
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


def _count(runs: Runs, max_empty: int) -> Count:
    _, first, last, buckets = runs
    begins, ends = sparse.joined(first, last, max_empty)
    return Count(int((ends - begins + 1).sum()), int(buckets.sum()))


def _runs(ledger: Ledger, kept: Kept, of: Stream, grid: Grid, max_empty: int) -> Runs:
    """A document's buckets are read only where its times alone do not tell its windows."""
    rows = ledger.streams[of]
    used = rows[ledger.used[rows]]
    first_us, last_us, buckets = (ledger.of[name] for name in ("t_first", "t_last", "buckets"))
    is_short = sparse.is_short(first_us[used], last_us[used], grid, max_empty)
    short = used[is_short]
    first, last = grid.frame_of(first_us[short]) - (grid.width - 1), grid.frame_of(last_us[short])
    found = [(first_us[short], first, last, buckets[short])]
    for some in packed_in_runs(kept, ledger, used[~is_short]):
        for row, packed in some.items():
            begins, ends = of_document(packed, int(buckets[row]), grid, max_empty)
            found.append(_of_one(int(first_us[row]), begins, ends, int(buckets[row])))
    found += _of_holes(ledger, rows, (int(first_us[used].min()), int(last_us[used].max())), grid, max_empty)
    since, first, last, count = (np.concatenate(column) for column in zip(*found, strict=True))
    return since, first, last, count


def _of_one(since_us: int, begins: Ints, ends: Ints, buckets: int) -> Runs:
    counted = np.zeros_like(begins)
    counted[:1] = buckets
    return np.full_like(begins, since_us), begins, ends, counted


def _of_holes(ledger: Ledger, rows: Ints, ends: tuple[int, int], grid: Grid, max_empty: int) -> list[Runs]:
    """The windows of what is missing, as far as the stream reaches."""
    some = rows[ledger.hole[rows] > 0]
    times = np.stack([np.clip(of[some], *ends) for of in (ledger.hole_low, ledger.hole_high)], axis=1)
    runs = (stretches(grid.frame_of(pair), grid.width, max_empty) for pair in times)
    return [_of_one(int(pair[0]), *run, 0) for pair, run in zip(times, runs, strict=True)]
