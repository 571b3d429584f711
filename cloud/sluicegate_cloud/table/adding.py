"""Writes what a shard adds to the windows of all devices, a file a cell, with a bounded number held in memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sluicegate_cloud.table.answering import Answers
from sluicegate_cloud.table.grouping.groups import label_of
from sluicegate_cloud.table.ranges import Ranges, within
from sluicegate_cloud.table.versions import Definition, Store

#: Rows that are held, some 100 MB: where there are more, they go to this machine's disk, by cell.
_HELD = 1 << 19
#: Rows of a row group of `shares`: of what a reader takes it takes whole ones.
SHARES = 1 << 14


class Added:
    """What `answers` adds. A context: what it has on this machine's disk goes at its end."""

    def __init__(self, answers: Answers) -> None:
        self._answers, self._definition = answers, answers.definition
        self._spilled: dict[int, list[Path]] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Added:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def spill(self) -> None:
        """Hold no more than may be held."""
        if self._answers.added < _HELD:
            return
        folder = Path(self._stack.enter_context(TemporaryDirectory(prefix="sluicegate-shares-")))
        for cell, some in by_cell(self._answers.shares(), self._definition):
            pq.write_table(some, folder / f"{cell}.parquet", compression="zstd", compression_level=1)
            self._spilled.setdefault(cell, []).append(folder / f"{cell}.parquet")

    def write(self, store: Store, index: dict[str, Any], of_all: dict[str, Ranges]) -> None:
        """The files of all cells that are touched, with those rows of old ones that are not answered anew."""
        new = dict(by_cell(self._answers.shares(), self._definition))
        old = {int(cell): name for cell, name in index["shares"].items()}
        met = {cell for cell in old if meets(cell, self._definition, of_all)}
        for cell in sorted({*new, *self._spilled, *met}):
            some = [pq.ParquetFile(path).read() for path in self._spilled.get(cell, [])]
            some += [new[cell]] if cell in new else []
            rows = [self._answers.together(some)] if len(some) > 1 else some
            if cell in old:
                table = store.read(old[cell])
                rows.append(table.filter(pa.array(~touched_shares(table, of_all))))
            kept = [table for table in rows if table.num_rows]
            index["shares"].pop(str(cell), None)
            if kept:
                index["shares"][str(cell)] = store.write("shares", by_group(pa.concat_tables(kept)), SHARES)


def by_cell(table: pa.Table, definition: Definition) -> Iterator[tuple[int, pa.Table]]:
    """The rows of each cell."""
    cells = definition.grid.start_us(table["frame"].to_numpy()) // definition.cell_us
    order = np.argsort(cells, kind="stable")
    cells, table = cells[order], table.take(pa.array(order))
    begins = np.flatnonzero(np.concatenate(([True], np.diff(cells) != 0))) if cells.size else cells
    for begin, end in zip(begins.tolist(), [*begins[1:].tolist(), cells.size], strict=False):
        yield int(cells[begin]), table.slice(begin, end - begin)


def touched_shares(table: pa.Table, of_all: dict[str, Ranges]) -> Any:
    """Which rows are of windows that are answered anew."""
    if not table.num_rows:
        return np.zeros(0, bool)
    encoded = table["group"].combine_chunks().dictionary_encode()
    frame, code = table["frame"].to_numpy(), np.asarray(encoded.indices)
    order, counts = np.argsort(code, kind="stable"), np.bincount(code, minlength=len(encoded.dictionary))
    out = np.zeros(table.num_rows, bool)
    for at, name in zip(np.split(order, np.cumsum(counts)[:-1]), encoded.dictionary.to_pylist(), strict=True):
        out[at] = within(frame[at], of_all.get(label_of(name), []))
    return out


def by_group(table: pa.Table) -> pa.Table:
    """Sorted by it, so that a reader of some groups passes over the others."""
    encoded = table["group"].combine_chunks().dictionary_encode()
    ranks = np.argsort(np.argsort(np.array(encoded.dictionary.to_pylist(), object)))
    rank = ranks[np.asarray(encoded.indices)]
    return table if np.all(rank[1:] >= rank[:-1]) else table.take(pa.array(np.argsort(rank, kind="stable")))


def meets(cell: int, definition: Definition, of_all: dict[str, Ranges]) -> bool:
    """Whether any of the windows that are answered anew is in a cell."""
    low, high = frames_of(cell, definition)
    return any(a <= high and low <= b for ranges in of_all.values() for a, b in ranges)


def frames_of(cell: int, definition: Definition) -> tuple[int, int]:
    """The frames whose windows are in a cell, both ends included."""
    grid, begin = definition.grid, cell * definition.cell_us
    first = -(-(begin - grid.origin_us) // grid.slide_us)
    return first, -(-(begin + definition.cell_us - grid.origin_us) // grid.slide_us) - 1
