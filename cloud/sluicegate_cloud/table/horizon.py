"""What a table that keeps a limited time leaves out: windows that begin before its horizon, and documents before it.

A row that stands for many windows keeps those from the horizon on: where its first one lies depends on documents that
may be gone. Windows from there on need no reading from before it, and of every stream's incarnation a document stays
that begins before it, so that they are answered as if all were there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sluicegate_cloud.grid import Ints
from sluicegate_cloud.lines.placing import OWNED_BY
from sluicegate_cloud.schema import REFUSED, RETIRED, USED
from sluicegate_cloud.table.versions import Definition, Store

Index = dict[str, Any]
#: The columns of a ledger that say which documents can go.
NEEDED = (*OWNED_BY, "fate", "key", "first", "readings", "t_first", "t_last")


def trim(store: Store, definition: Definition, index: Index, horizon_us: int) -> int:
    """Leave rows before the horizon out of a shard's files, in place; how many rows of windows went."""
    gone = 0
    for cell in _before(index["windows"], definition, horizon_us):
        kept: list[str] = []
        for name in index["windows"].pop(cell):
            file, rows = _trimmed(store, "windows", name, definition, horizon_us)
            kept, gone = kept + file, gone + rows
        if kept:
            index["windows"][cell] = kept
    for kind in ("shares", "carried"):
        of_cells = index.get(kind, {})
        for cell in _before(of_cells, definition, horizon_us):
            table = store.read(of_cells.pop(cell))
            rows = table.filter(pa.array(definition.grid.start_us(table["frame"].to_numpy()) >= horizon_us))
            if rows.num_rows:
                of_cells[cell] = store.write(kind, rows)
    if index["spans"]:
        table = store.read(index["spans"])  # whole ones: all devices' are cut alike where a device is near (`spans`)
        last = table["frame"].to_numpy() + table["windows"].to_numpy() - 1
        rows = table.filter(pa.array(definition.grid.start_us(last) >= horizon_us))
        if rows.num_rows < table.num_rows:
            index["spans"] = store.write("spans", rows) if rows.num_rows else None
    return gone


def between(table: pa.Table, definition: Definition, since_us: int | None, until_us: int | None) -> pa.Table:
    """Rows of windows that begin between the times, None where there is no such end; of a row for many, those of them.

    Both lie on the grid of the definition.
    """
    slide, window = definition.slide_us, definition.window_us
    start, last = table["window_start"].to_numpy(), table["window_end"].to_numpy() - window
    low = start if since_us is None else np.maximum(start, since_us)
    high = last if until_us is None else np.minimum(last, until_us - slide)
    columns = {"window_start": low, "window_end": high + window, "windows": (high - low) // slide + 1}
    for name, values in columns.items():
        table = table.set_column(table.column_names.index(name), name, pa.array(values, pa.int64()))
    return table.filter(pa.array(low <= high))


def trim_fleet(store: Store, definition: Definition, fleet: dict[str, str], horizon_us: int) -> dict[str, str]:
    """The files of the fleet's windows by cell, without rows before the horizon."""
    out = dict(fleet)
    for cell in _before(fleet, definition, horizon_us):
        kept, _ = _trimmed(store, "fleet", out.pop(cell), definition, horizon_us)
        if kept:
            out[cell] = kept[0]
    return out


def trim_file(store: Store, definition: Definition, name: str | None, horizon_us: int) -> str | None:
    """A file of the fleet's rows without those before the horizon; None where none is left."""
    kept = _trimmed(store, "fleet", name, definition, horizon_us)[0] if name else []
    return kept[0] if kept else None


def _before(cells: dict[str, Any], definition: Definition, horizon_us: int) -> list[str]:
    return [cell for cell in cells if int(cell) * definition.cell_us < horizon_us]


def _trimmed(store: Store, kind: str, name: str, definition: Definition, horizon_us: int) -> tuple[list[str], int]:
    """The file, another one or none, and how many rows went."""
    table = store.read(name)
    if np.all(table["window_start"].to_numpy() >= horizon_us):
        return [name], 0
    rows = between(table, definition, horizon_us, None)
    return [store.write(kind, rows)] if rows.num_rows else [], table.num_rows - rows.num_rows


def retirable(ledger: pa.Table, horizon_us: int) -> Any:
    """Which documents of a shard's ledger can go: of each line a beginning that nothing after it will ask for again.

    That is one whose readings all lie before the horizon, whose ordinals end where the next document begins, and after
    which one in use begins before the horizon: so there is a reading from where on the stream has windows. All of a
    line that two boards wrote stays: they are judged by everything both sent.
    """
    out = np.zeros(ledger.num_rows, bool)
    placed = np.flatnonzero(np.asarray(pc.not_equal(ledger["fate"], REFUSED).combine_chunks()))
    rows = ledger.take(pa.array(placed))
    first, readings, since, last = (_ints(rows, name) for name in ("first", "readings", "t_first", "t_last"))
    used = np.asarray(pc.equal(rows["fate"], USED).combine_chunks()) & (since < horizon_us)
    key = np.asarray(rows["key"].combine_chunks().fill_null("").dictionary_encode().indices)
    for begin, end in _lines(rows):
        if end - begin < 2 or np.any(key[begin:end] != key[begin]):
            continue
        ends = np.maximum.accumulate(first[begin:end] + readings[begin:end])
        clean = (ends[:-1] <= first[begin + 1 : end]) & (np.maximum.accumulate(last[begin:end])[:-1] < horizon_us)
        at = np.flatnonzero(clean & used[begin + 1 : end])
        if at.size:
            out[placed[begin : begin + int(at[-1]) + 1]] = True
    return out & np.asarray(pc.not_equal(ledger["fate"], RETIRED).combine_chunks())


def _lines(rows: pa.Table) -> list[tuple[int, int]]:
    """Where the rows of each line begin and end; the ledger is sorted by them."""
    if not rows.num_rows:
        return []
    changes = np.zeros(rows.num_rows - 1, bool)
    for name in OWNED_BY:
        changes |= np.diff(np.asarray(rows[name].combine_chunks().dictionary_encode().indices)) != 0
    begins = [0, *(np.flatnonzero(changes) + 1).tolist()]
    return [*zip(begins, [*begins[1:], rows.num_rows], strict=True)]


def too_late(new: pa.Table, known: pa.ChunkedArray, horizon_us: int) -> pa.Table:
    """Documents as they come, refused where all their readings lie before the horizon; not copies of `known` ones."""
    late = np.asarray(pc.fill_null(pc.less(new["t_last"], horizon_us), False).combine_chunks())
    late = late & ~np.asarray(pc.is_in(new["digest"], value_set=known.combine_chunks()).combine_chunks())
    if not late.any():
        return new
    text = f"its readings lie before the time that the table keeps (from {horizon_us} us on)"
    reason = pc.if_else(pa.array(late), pc.coalesce(new["reason"], pa.scalar(text)), new["reason"])
    return new.set_column(new.column_names.index("reason"), "reason", reason)


def _ints(table: pa.Table, name: str) -> Ints:
    return np.asarray(table[name].combine_chunks().fill_null(0).to_numpy(zero_copy_only=False)).astype(np.int64)
