"""Documents that nothing new changes become runs: what a run of the table reads and holds grows with these.

So a stream costs a few rows, however many documents it had. A document may be in a run where those before it in its
line end by its first ordinal, those after it begin by its end and end later, none of it is left out, and no window at
the stream's end needs its buckets. What is new is judged by what the run tells as it would be by its documents; where
it may belong into the run, or before it, the run is opened (`rows.Settled`).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sluicegate_cloud.documents import buffers_of
from sluicegate_cloud.grid import Ints
from sluicegate_cloud.losses import LATEST, NOTHING, RECENT, After
from sluicegate_cloud.schema import REFUSED, RETIRED, USED
from sluicegate_cloud.table.settled.rows import (
    LEDGER,
    RUN,
    Settled,
    in_order,
    ints,
    is_known,
    line_numbers,
    of_runs,
    packed_after,
    runs_of,
)
from sluicegate_cloud.table.versions import Definition, Store

#: Documents that become runs together, at least: so many, and so many for each line.
LEAST, EACH = 4_096, 8
#: Documents in a run, at least; cells whose documents are in one, at most; and files of such a time, at most.
SHORTEST, CELLS, MOST_FILES = 4, 64, 8
#: Documents at a line's end: so many of its last cell stay rows, and so many more than its newest windows need.
OF_CELL, MORE = 32, 2
#: Rows of a row group: of what a reader takes it takes whole ones.
_GROUP = 2_048
_MOST = np.iinfo(np.int64).max
Streams = Collection[tuple[str, str]]


def folded(store: Store, table: pa.Table, definition: Definition, beside: Streams = ()) -> pa.Table:
    """A shard's ledger, with runs in place of documents where these are enough; `beside`: streams without runs.

    What is refused comes last. What buckets carry is answered of documents alone: there are no runs where it is asked.
    """
    if definition.carried:
        return table
    is_refused = pc.equal(table["fate"], REFUSED)
    placed, refused = table.filter(pc.invert(is_refused)), table.filter(is_refused)
    run = _runs_to_be(placed, definition, beside)
    if (run >= 0).sum() < _least(placed):
        return table
    fuller = _with_full_times(Settled(store), placed, placed.filter(pa.array(run >= 0)), definition)
    if fuller.num_rows > placed.num_rows:
        placed, run = fuller, _runs_to_be(fuller, definition, beside)
    rows = placed.filter(pa.array(run >= 0))
    runs = _runs(store, rows, run[run >= 0], _times(rows, definition))
    left = placed.filter(pa.array(run < 0))
    return pa.concat_tables([in_order(pa.concat_tables([left, runs])), refused])


def _least(placed: pa.Table) -> int:
    lines = line_numbers(placed)
    return max(LEAST, EACH * int(lines[-1] + 1 if lines.size else 0))


def _times(rows: pa.Table, definition: Definition) -> Ints:
    """In which stretch of CELLS each begins."""
    return ints(rows, "t_first") // (CELLS * definition.cell_us)


def _with_full_times(settled: Settled, placed: pa.Table, rows: pa.Table, definition: Definition) -> pa.Table:
    """With the documents of runs of those times of `rows` that have too many files already: they become one."""
    is_run, times = runs_of(placed), _times(placed, definition)
    files = np.asarray(placed["run"].combine_chunks().field("file").to_numpy(zero_copy_only=False), object)
    full = np.zeros(placed.num_rows, bool)
    for time in np.unique(_times(rows, definition)).tolist():
        mine = is_run & (times == time)
        if len({*files[mine]}) >= MOST_FILES:
            full |= mine
    return settled.opened(placed, np.flatnonzero(full).tolist())


def _runs_to_be(placed: pa.Table, definition: Definition, beside: Streams) -> Ints:
    """Of each document the number of the run that it may be in, ascending; −1: of none."""
    out = np.full(placed.num_rows, -1)
    if not placed.num_rows:
        return out
    line = line_numbers(placed)
    may = _alone(placed, line) & _plain(placed, beside) & _one_key(placed, line) & _old(placed, line, definition)
    some = np.flatnonzero(may)
    if not some.size:
        return out
    told = [line, np.asarray(placed["fate"].combine_chunks().dictionary_encode().indices), _times(placed, definition)]
    told.append(placed["center"].combine_chunks().to_numpy(zero_copy_only=False).view(np.int64))
    ends = np.diff(some) != 1
    for of in told:
        ends |= np.diff(of[some]) != 0
    number = np.concatenate(([0], np.cumsum(ends)))
    long = np.bincount(number)[number] >= SHORTEST
    out[some[long]] = number[long]
    return out


def _plain(placed: pa.Table, beside: Streams) -> Any:
    """Documents that are, or were, used as they came, and of whose losses it is known where they lie."""
    out = np.asarray(pc.is_in(placed["fate"], value_set=pa.array([USED, RETIRED])).combine_chunks()) & ~runs_of(placed)
    out &= np.asarray(pc.is_null(placed["part"]).combine_chunks()) & (ints(placed, "lost") == 0)
    out &= np.asarray(placed["reached"].combine_chunks().fill_null(False)) & (ints(placed, "loss_to") < LATEST)
    if beside:
        owners = zip(placed["device"].to_pylist(), placed["stream"].to_pylist(), strict=True)
        out &= np.array([of not in beside for of in owners], bool)
    return out


def _alone(placed: pa.Table, line: Ints) -> Any:
    """Documents that share no ordinal with others of their line, and after which none ends as early."""
    first, last = ints(placed, "first"), ints(placed, "t_last")
    end = of_runs(placed, "end", first + ints(placed, "readings"))
    same = np.diff(line) == 0
    out = np.ones(placed.num_rows, bool)
    out[1:] &= ~same | ((_so_far(end, line)[:-1] <= first[1:]) & (first[:-1] < first[1:]))
    out[:-1] &= ~same | ((end[:-1] <= first[1:]) & (first[:-1] < first[1:]))
    out[:-1] &= ~same | (last[:-1] < -_so_far(-last[::-1], line[-1] - line[::-1])[::-1][1:])
    return out


def _so_far(values: Ints, line: Ints) -> Ints:
    """The greatest of those of a line up to each."""
    known, rank = np.unique(values, return_inverse=True)
    return np.asarray(known[np.maximum.accumulate(rank + line * known.size) - line * known.size])


def _one_key(placed: pa.Table, line: Ints) -> Any:
    """Of lines that one board wrote: two boards' documents are judged by all that both sent."""
    key = np.asarray(placed["key"].combine_chunks().fill_null("").dictionary_encode().indices)
    begins = _begins(line)
    return (np.minimum.reduceat(key, begins) == np.maximum.reduceat(key, begins))[line]


def _old(placed: pa.Table, line: Ints, definition: Definition) -> Any:
    """Documents that the windows at their line's end do not need; one far ahead in time keeps no later one here."""
    last, ends = ints(placed, "t_last"), np.append(_begins(line)[1:], placed.num_rows)[line]
    newest, of_end = last[ends - 1], np.arange(placed.num_rows) >= ends - OF_CELL
    needed = last > newest - 2 * definition.window_us
    needed |= of_end & (last > newest - definition.cell_us)
    for _ in range(MORE):
        needed[:-1] |= needed[1:] & (np.diff(line) == 0)
    return ~needed


def _begins(number: Ints) -> Ints:
    return np.flatnonzero(np.concatenate(([True], np.diff(number) != 0)))


def _runs(store: Store, rows: pa.Table, run: Ints, times: Ints) -> pa.Table:
    """A row for each run of documents, whose own rows are written."""
    begins = _begins(run)
    ends = np.append(begins[1:], run.size)
    names = np.empty(begins.size, object)
    for time in np.unique(times).tolist():
        names[times[begins] == time] = store.write("ledger", rows.filter(pa.array(times == time)), _GROUP)
    head = rows.take(pa.array(begins))
    columns: dict[str, Any] = {of.name: pa.nulls(begins.size, of.type) for of in LEDGER}
    columns |= {name: head[name] for name in ("id", "device", "stream", "incarnation", "key", "center", "fate")}
    columns |= {name: head[name] for name in ("first", "cell", "reached")}
    summed = ("size", "readings", "buckets", "gap", "doubt", "hole", "lost")
    columns |= {name: np.add.reduceat(ints(rows, name), begins) for name in summed}
    columns |= {"t_first": np.minimum.reduceat(ints(rows, "t_first"), begins)}
    columns |= {"t_last": np.maximum.reduceat(ints(rows, "t_last"), begins)}
    columns |= {"tags": rows["tags"].take(pa.array(ends - 1))}
    columns |= _holes(rows, begins) | _losses(rows, begins, ends)
    columns["run"] = pa.StructArray.from_arrays(_told(rows, begins, ends, names), fields=[*RUN])
    return pa.table([_as(columns[of.name], of.type) for of in LEDGER], schema=LEDGER)


def _as(column: Any, kind: pa.DataType) -> Any:
    return column if isinstance(column, pa.Array | pa.ChunkedArray) else pa.array(column, kind)


def _holes(rows: pa.Table, begins: Ints) -> dict[str, Ints]:
    """Between which times all of them lie."""
    low, high = _ends_of_holes(rows)
    is_hole = ints(rows, "hole") > 0
    some = np.logical_or.reduceat(is_hole, begins)
    low = np.minimum.reduceat(np.where(is_hole, low, _MOST), begins)
    high = np.maximum.reduceat(np.where(is_hole, high, -_MOST), begins)
    return {"hole_from": np.where(some, low, 0), "hole_to": np.where(some, high, 0)}


def _ends_of_holes(rows: pa.Table) -> tuple[Ints, Ints]:
    a, b = ints(rows, "hole_from"), ints(rows, "hole_to")
    return np.minimum(a, b), np.maximum(a, b)


def _losses(rows: pa.Table, begins: Ints, ends: Ints) -> dict[str, Any]:
    """All that they tell, and between which times."""
    is_told = np.asarray(pc.is_valid(rows["losses"]).combine_chunks())
    packed = buffers_of(rows["losses"])
    losses = [
        b"".join(map(bytes, packed[begin:end])) if is_told[begin:end].any() else None
        for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)
    ]
    known = np.asarray(pc.is_valid(rows["loss_from"]).combine_chunks())
    none = pa.array(~np.logical_or.reduceat(known, begins))
    low = np.minimum.reduceat(np.where(known, ints(rows, "loss_from"), _MOST), begins)
    high = np.maximum.reduceat(np.where(known, ints(rows, "loss_to"), -_MOST), begins)
    null = pa.scalar(None, pa.int64())
    times = {name: pc.if_else(none, null, pa.array(of)) for name, of in (("loss_from", low), ("loss_to", high))}
    return {"losses": losses, **times}


def _told(rows: pa.Table, begins: Ints, ends: Ints, names: Any) -> list[pa.Array]:
    """The fields of RUN."""
    first, last, hole = ints(rows, "first"), ints(rows, "t_last"), ints(rows, "hole")
    times = np.stack(_ends_of_holes(rows), axis=1)
    gaps, has_gaps = buffers_of(rows["gaps"]), np.asarray(pc.is_valid(rows["gaps"]).combine_chunks())
    out: dict[str, list[Any]] = {name: [] for name in ("lasts", "holes", "after")}
    for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
        mine = last[begin:end]
        out["lasts"].append(mine[-RECENT:].tobytes())
        out["holes"].append(times[begin:end][hole[begin:end] > 0].tobytes())
        after = NOTHING
        for at in range(end - 1, begin - 1, -1):
            after = After.of(bytes(gaps[at]) if has_gaps[at] else None, int(last[at])).then(after)
            if is_known(after):
                break
        out["after"].append(packed_after(after))
    end = (first + ints(rows, "readings"))[ends - 1]
    told = [ends - begins, end, *out.values(), names]
    return [pa.array(of, one.type) for of, one in zip(told, RUN, strict=True)]
