"""What the units of a shard carry: columns of devices' windows, and what they add to the windows of all devices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sluicegate_cloud.extras.asked import Asked, asked_of
from sluicegate_cloud.extras.long import Longs
from sluicegate_cloud.extras.piece import Share, added
from sluicegate_cloud.extras.stored import STORED, of_row, to_row
from sluicegate_cloud.extras.windows import answered, arrow, columns_of, shares
from sluicegate_cloud.grid import Ints
from sluicegate_cloud.table.adding import SHARES, by_cell, by_group, meets, touched_shares
from sluicegate_cloud.table.carried.pieces import documents, pieces
from sluicegate_cloud.table.grouping.groups import groups_of, label_of
from sluicegate_cloud.table.ranges import Ranges, within
from sluicegate_cloud.table.units import Kept, Ledger, Unit
from sluicegate_cloud.table.versions import Definition, Store

#: Windows of groups of devices that are held: where there are more, they go to this machine's disk.
_HELD = 1 << 13
#: Rows of windows that are held as objects: more are columns, a tenth of the size.
_ROWS = 1 << 12
_SHARES = pa.schema([("group", pa.string()), ("frame", pa.int64()), *STORED])
Sums = dict[tuple[str, int], Share]


class Carried:
    """What is answered from what buckets carry, for some units at a time. A context: its files go at its end.

    `tags`: of each stream of a device; `of_all`: by label, which windows of groups are answered; `long`: of which
    windows there is no answer.
    """

    def __init__(
        self, definition: Definition, kept: Kept, ledger: Ledger, tags: dict[tuple[str, str], dict[str, str]],
        of_all: dict[str, Ranges], long: Longs,
    ) -> None:  # fmt: skip
        self._of_all = of_all
        self._definition, self._kept, self._ledger, self._tags, self._long = definition, kept, ledger, tags, long
        self._asked = asked_of(definition.carried)
        self._schema = arrow(columns_of(self._asked))
        self._rows: list[dict[str, Any]] = []
        self._told = self._schema.empty_table()
        self._at: dict[tuple[int, int], int] = {}
        self._sums: Sums = {}
        self._spilled: dict[int, list[Path]] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Carried:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def take(self, units: Sequence[Unit]) -> None:
        """Answer the windows of these units, for `columns`, and add them to those of all devices."""
        self._rows, self._told, self._at = [], self._schema.empty_table(), {}
        rows = [self._needed(unit) for unit in units] if self._asked else []
        if not rows:
            return
        grid, read = self._definition.grid, documents(self._kept, self._ledger, np.concatenate(rows))
        for number, (unit, mine) in enumerate(zip(units, rows, strict=True)):
            groups = self._groups_of(unit) if self._definition.fleet else []
            some = pieces(self._ledger, read, mine, self._asked)
            for share in shares(some, grid, self._asked, unit.window):
                frame = (share.start - grid.origin_us) // grid.slide_us
                self._at[number, frame] = self._told.num_rows + len(self._rows)
                self._rows.append(answered(unit.device, unit.stream, share, self._asked, self._long))
                for of, ranges in groups:
                    if within(np.array([frame]), ranges)[0]:
                        _add(self._sums, (of, frame), share, self._asked)
                if len(self._rows) >= _ROWS:
                    self._tell()
                if len(self._sums) >= _HELD:
                    self._spill()
        self._tell()

    def _groups_of(self, unit: Unit) -> list[tuple[str, Ranges]]:
        """Its groups, and which windows of each are answered."""
        groups = groups_of(self._definition.by, unit.device, unit.stream, self._tags.get((unit.device, unit.stream)))
        return [(of, self._of_all.get(label_of(of), [])) for of in groups]

    def _tell(self) -> None:
        """The rows as columns."""
        self._told = pa.concat_tables([self._told, pa.Table.from_pylist(self._rows, self._schema)])
        self._rows = []

    def columns(self, unit: Ints, frame: Ints, windows: Ints) -> dict[str, pa.Array]:
        """Of windows of the units of `take`; null in spans, and where no reading can be."""
        if not self._asked:
            return {}
        keys = zip(unit.tolist(), frame.tolist(), windows.tolist(), strict=True)
        at = pa.array([self._at.get((of, first)) if count == 1 else None for of, first, count in keys], pa.int64())
        return {name: self._told[name].take(at).combine_chunks() for name in self._schema.names}

    def _needed(self, unit: Unit) -> Ints:
        """The documents whose buckets may say something of its windows: also where others begin where these end."""
        if not any(each.kind == "time_weighted_mean" for each in self._asked):
            return unit.rows
        mine = unit.rows[self._ledger.used[unit.rows]]
        if not mine.size:
            return unit.rows
        ends = int(self._ledger.of["t_first"][mine].min()), int(self._ledger.of["t_last"][mine].max())
        every = self._ledger.streams[unit.device, unit.stream]
        return np.asarray(every[self._ledger.have_buckets(every, *ends)])

    def _spill(self) -> None:
        folder = Path(self._stack.enter_context(TemporaryDirectory(prefix="sluicegate-carried-")))
        for cell, some in by_cell(_table(self._sums), self._definition):
            pq.write_table(some, folder / f"{cell}.parquet", compression="zstd", compression_level=1)
            self._spilled.setdefault(cell, []).append(folder / f"{cell}.parquet")
        self._sums = {}

    def write(self, store: Store, index: dict[str, Any], of_all: dict[str, Ranges]) -> None:
        """The files of what is added, of all cells that are touched, with what of old ones is not answered anew."""
        new, old = dict(by_cell(_table(self._sums), self._definition)), dict(index["carried"])
        met = {int(cell) for cell in old if meets(int(cell), self._definition, of_all)}
        for cell in sorted({*new, *self._spilled, *met}):
            some = [pq.ParquetFile(path).read() for path in self._spilled.get(cell, [])]
            some += [new[cell]] if cell in new else []
            rows = [_table(folded(some, self._asked))] if len(some) > 1 else some
            if str(cell) in old:
                table = store.read(old[str(cell)])
                rows.append(table.filter(pa.array(~touched_shares(table, of_all))))
            kept = [table for table in rows if table.num_rows]
            index["carried"].pop(str(cell), None)
            if kept:
                index["carried"][str(cell)] = store.write("carried", by_group(pa.concat_tables(kept)), SHARES)


class OfAll:
    """The columns of windows of all devices, and of roll-ups by tags, of what some shards have of them."""

    def __init__(self, tables: Iterable[pa.Table], asked: Sequence[Asked], long: Longs) -> None:
        self._sums, self._asked, self._long = folded(tables, asked), asked, long

    def columns(
        self, groups: Sequence[str], labels: Sequence[str], code: Ints, frame: Ints, windows: Ints
    ) -> dict[str, pa.Array]:
        """Of windows of groups; `code`: which of `groups`, and of their `labels`, each is of."""
        if not self._asked:
            return {}
        rows = []
        for of, first, count in zip(code.tolist(), frame.tolist(), windows.tolist(), strict=True):
            share = self._sums.get((groups[of], first)) if count == 1 else None
            rows.append({} if share is None else answered(None, labels[of], share, self._asked, self._long))
        return _columns(rows, arrow(columns_of(self._asked)))


def folded(tables: Iterable[pa.Table], asked: Sequence[Asked]) -> Sums:
    """What several have, added up in their order."""
    out: Sums = {}
    for table in tables:
        for row in table.to_pylist():
            _add(out, (row["group"], row["frame"]), of_row(row), asked)
    return out


def _add(sums: Sums, of: tuple[str, int], share: Share, asked: Sequence[Asked]) -> None:
    sums[of] = added(sums[of], share, asked) if of in sums else share


def _table(sums: Sums) -> pa.Table:
    rows = [{"group": of, "frame": frame, **to_row(share)} for (of, frame), share in sums.items()]
    return pa.Table.from_pylist(rows, _SHARES)


def _columns(rows: Sequence[dict[str, Any]], schema: pa.Schema) -> dict[str, pa.Array]:
    return {of.name: pa.array([row.get(of.name) for row in rows], of.type) for of in schema}
