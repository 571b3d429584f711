"""One shard's part of a run: new documents into its ledger, and its touched windows and partials written anew.

A shard holds some streams whole, so that all of this is one task without a shuffle. It writes new files only, and a new
index that names them; these count once a version names the index.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sluicegate_cloud.documents import buffers_of
from sluicegate_cloud.extras.asked import asked_of
from sluicegate_cloud.extras.long import NONE
from sluicegate_cloud.fleet import wire
from sluicegate_cloud.fleet.sparse import ALL_TIME, Aside
from sluicegate_cloud.table import aside as asides
from sluicegate_cloud.table import horizon
from sluicegate_cloud.table import ledger as ledgers
from sluicegate_cloud.table.adding import Added, meets
from sluicegate_cloud.table.answering import Answers
from sluicegate_cloud.table.carried.pieces import longs, widened
from sluicegate_cloud.table.carried.windows import Carried
from sluicegate_cloud.table.grouping.groups import labels_of
from sluicegate_cloud.table.grouping.registry import of_version
from sluicegate_cloud.table.ranges import FIRST, LAST, Ranges, cut_at, merged, needed, rewritten, within
from sluicegate_cloud.table.settled.folding import folded
from sluicegate_cloud.table.settled.rows import Settled, load
from sluicegate_cloud.table.streams import streams_of
from sluicegate_cloud.table.units import KEPT, Kept, Ledger, Packed, Unit, gathered
from sluicegate_cloud.table.versions import Definition, Store, Version

#: Files of one cell beyond which a run makes one of them all.
MOST_FILES = 12
Index = dict[str, Any]
EMPTY: Index = {
    "ledger": None,
    "documents": {},
    "windows": {},
    "shares": {},
    "carried": {},
    "long": {},
    "spans": None,
    "streams": None,
    "marks": {},
    "refused": 0,
    "settled": [],
    asides.NAME: [],
}


def merge(
    store: Store, version: Version, number: int, new: pa.Table | None, refused: frozenset[str] = frozenset()
) -> tuple[str, dict[str, Any]]:
    """Take `new` documents (None: answer all windows anew) into a shard of `version`, for the version after it.

    `refused`: paths that a shard has as unreadable. The name of its new index, and what the run must know of it:
    `changed`, by stream the windows that were rewritten; `files`, the window files made; `again`, which of `refused`
    it read; counts of `documents`, `copies`, `refused` and `rows`.
    """
    definition, there = version.definition, version.shards.get(str(number))
    before: Index = EMPTY | (store.read_json(there) if there else {})
    index: Index = {key: dict(of) if isinstance(of, dict) else of for key, of in before.items()}
    table, settled = load(store, before["ledger"]) if before["ledger"] else ledgers.empty(), Settled(store)
    old_tags = _tags(store, before)
    told: dict[str, Any] = {"documents": 0, "copies": 0, "refused": 0}
    touched: ledgers.Touched = {}
    there_now: Packed = {}
    if new is not None:
        judged = ledgers.judge(
            table, new, definition.cell_us, lambda row: _one(store, before, row), settled, version.horizon_us
        )
        table, touched = judged.ledger, judged.touched
        told |= {"documents": new.num_rows, "copies": judged.copies, "refused": judged.refused}
        told["again"] = sorted(refused.intersection(new["path"].to_pylist())) if refused else []
        _keep_documents(store, definition, index, judged.fresh)
        there_now = dict(zip(judged.fresh["digest"].to_pylist(), buffers_of(judged.fresh["packed"]), strict=True))
    large = {*asides.large(definition, ledger := Ledger(table))}
    table = settled.opened(table, ledger.runs(large))  # what is set aside of a stream is known by its documents
    ledger = Ledger(table) if table.num_rows > ledger.table.num_rows else ledger
    aside = asides.found(definition, ledger, Kept(store, index["documents"], there_now))
    index[asides.NAME] = asides.to_index(aside)
    if new is not None and (table.num_rows or new.num_rows):
        index |= ledgers.written(store, folded(store, table, definition, large))
    ledger = Ledger(asides.without(table, aside)) if aside else ledger
    index["streams"], tags = streams_of(store, before["streams"], ledger, new, of_version(store, version))
    moved = {of for of in tags if tags[of] != old_tags.get(of)}
    turned = asides.turned(asides.of_index(before), aside)
    touched = {of: times for of, times in touched.items() if of not in aside or aside[of].since_us != ALL_TIME}
    opening = _Opening(settled, table, aside, ledger)
    opening.open(ledger.runs_at(touched))
    kept, asked = Kept(store, index["documents"], there_now), asked_of(definition.carried)
    long = longs(kept, opening.ledger, definition.grid) if asked else NONE
    index["long"] = {stream: of[None] for stream, of in long.where.items()}
    touched = widened(asked, opening.ledger, long, touched) if asked else touched
    ranges = _ranges(definition, opening.ledger, touched, new is None, moved, turned)
    of_all = _of_all(definition, ranges)
    with Carried(definition, kept, opening.ledger, tags, of_all, long) as carried:
        answers = Answers(definition, version.number + 1, ranges, of_all, tags, carried.columns)
        told |= _answer(index, opening, answers, kept, carried)
    if version.horizon_us is not None:
        horizon.trim(store, definition, index, version.horizon_us)
    name = store.write_json("index", index)
    store.settle()
    return name, told


def _one(store: Store, index: Index, row: dict[str, Any]) -> pa.Buffer:
    """The packed buckets of a document that is kept."""
    for name in index["documents"][str(row["cell"])]:
        filters = [("device", "==", row["device"]), ("digest", "==", row["digest"])]
        found = store.read(name, ["packed"], filters)
        if found.num_rows:
            return buffers_of(found["packed"])[0]
    raise ValueError(f"the buckets of {row['id']} are in no file of the table")


def _keep_documents(store: Store, definition: Definition, index: Index, fresh: pa.Table) -> None:
    """The new documents' buckets, in a file for each cell; where a cell has many, one of them all."""
    cells = pa.array(np.asarray(fresh["t_first"].to_numpy(zero_copy_only=False)).astype(np.int64) // definition.cell_us)
    by = [("cell", "ascending"), *((name, "ascending") for name in ("device", "stream", "first"))]
    order = pc.sort_indices(fresh.select(["device", "stream", "first"]).append_column("cell", cells), by)
    fresh, cells = fresh.select(KEPT).take(order), np.asarray(cells.take(order))
    begins = np.flatnonzero(np.concatenate(([True], np.diff(cells) != 0))) if cells.size else np.zeros(0, np.int64)
    for begin, end in pairwise([*begins.tolist(), cells.size]):
        cell, some = str(cells[begin]), fresh.slice(begin, end - begin)
        files = index["documents"].get(cell, [])
        if len(files) >= MOST_FILES:
            some, files = pa.concat_tables([some, *(store.read(name, list(KEPT)) for name in files)]), []
            some = some.sort_by(by[1:])
        rows = max(1, (8 << 20) // max(1, some.nbytes // some.num_rows))
        index["documents"][cell] = [*files, store.write("documents", some, rows)]


def _tags(store: Store, index: Index) -> dict[tuple[str, str], dict[str, str]]:
    if not index["streams"]:
        return {}
    rows = store.read(index["streams"], ["device", "stream", "tags"]).to_pylist()
    return {(row["device"], row["stream"]): dict(row["tags"] or []) for row in rows}


def _ranges(
    definition: Definition, ledger: Ledger, touched: ledgers.Touched, everything: bool, moved: set[tuple[str, str]],
    turned: set[tuple[str, str]],
) -> dict[tuple[str, str], Ranges]:  # fmt: skip
    """Of each stream of a device, which windows are answered anew: all, where more of it is set aside, or less."""
    out: dict[tuple[str, str], Ranges] = {of: [(FIRST, LAST)] for of in turned}
    if everything:
        return out | {of: [(FIRST, LAST)] for of in ledger.streams}
    for of, times in touched.items():
        rows = ledger.streams.get(of, np.zeros(0, np.int64))
        out.setdefault(of, rewritten(times, ledger.edges(rows), definition.grid))
    if definition.by:  # what has other tags now belongs to other roll-ups, with all its windows
        out |= {of: [(FIRST, LAST)] for of in moved if of in ledger.streams}
    return out


def _of_all(definition: Definition, ranges: dict[tuple[str, str], Ranges]) -> dict[str, Ranges]:
    """By label, which windows of groups are answered anew."""
    out: dict[str, Ranges] = {}
    for (_, stream), mine in ranges.items():
        for label in labels_of(definition.by, stream):
            out[label] = merged([*out.get(label, []), *mine])
    return out


class _Opening:
    """A ledger less what is set aside, with documents in place of the runs that windows need."""

    def __init__(self, settled: Settled, table: pa.Table, aside: Aside, ledger: Ledger) -> None:
        """`ledger`: of the table as it is."""
        self.ledger = ledger
        self._settled, self._table, self._aside = settled, table, aside

    def open(self, runs: Sequence[int]) -> bool:
        """Open them, if there are any."""
        if len(runs):
            self._table = self._settled.opened(self._table, runs)
            self.ledger = Ledger(asides.without(self._table, self._aside))
        return len(runs) > 0

    def units(
        self, definition: Definition, ranges: dict[tuple[str, str], Ranges], of_all: dict[str, Ranges]
    ) -> list[Unit]:
        """`_units`, none of which needs a run."""
        while True:
            units = _units(definition, self.ledger, ranges, of_all)
            needed = np.unique(np.concatenate([np.zeros(0, np.int64), *(unit.rows for unit in units)]))
            if not self.open(needed[self.ledger.is_run[needed]].tolist()):
                return units


def _answer(index: Index, opening: _Opening, answers: Answers, kept: Kept, carried: Carried) -> dict[str, Any]:
    """Write the windows that `answers` is for, and what they add to those of all devices."""
    store, definition, ranges = kept.store, answers.definition, answers.rewritten
    of_all = answers.of_all
    written = _Windows(store, definition, index, ranges, of_all)
    wanted = wire.fields(definition.aggregates, folded=False)
    units_of = opening.units(definition, ranges, of_all)
    ledger = opening.ledger
    with Added(answers) as added:
        for units, rows in gathered(kept, ledger, units_of, wanted, definition.grid):
            carried.take(units)
            for _ in answers.take(units, rows):
                if answers.full:
                    written.write(answers)
                added.spill()
        written.write(answers)
        written.finish()
        if definition.fleet:
            added.write(store, index, of_all)
            carried.write(store, index, of_all)
    if definition.fleet:
        _write_spans(store, index, answers, ranges)
        index["marks"] = _marks(index, answers, {stream for stream, mine in of_all.items() if mine == [(FIRST, LAST)]})
    return {"changed": of_all, "files": written.made, "rows": written.rows}


def _units(
    definition: Definition, ledger: Ledger, ranges: dict[tuple[str, str], Ranges], of_all: dict[str, Ranges]
) -> list[Unit]:
    """What to answer: the touched windows, and, where there are windows of all, those of every device beside them."""
    out: list[Unit] = []
    for of in sorted(ledger.streams):
        rows = ledger.streams[of]
        edges, grid = ledger.edges(rows), definition.grid
        labels = labels_of(definition.by, of[1])
        of_groups = merged(window for label in labels for window in of_all.get(label, []))
        for window in of_groups if definition.fleet else ranges.get(of, []):
            for piece in cut_at(window, ledger.cuts(rows, needed(window, edges, grid)), grid):
                times = needed(piece, edges, grid)
                mine = ledger.overlapping(rows, times)
                if ledger.used[mine].any():
                    out.append(Unit(*of, piece, mine, times, ledger.centers(of)))
    return out


class _Windows:
    """The files of windows: those of touched cells less the rows that are answered anew, and new ones."""

    def __init__(
        self, store: Store, definition: Definition, index: Index, ranges: dict[tuple[str, str], Ranges],
        of_all: dict[str, Ranges],
    ) -> None:  # fmt: skip
        self.made: list[str] = []
        self.rows = 0
        self._store, self._definition, self._index, self._ranges = store, definition, index, ranges
        self._old = {int(cell): list(names) for cell, names in index["windows"].items()}
        self._new: dict[int, list[str]] = {}
        self._hull = {"": merged(window for mine in of_all.values() for window in mine)}

    def write(self, answers: Answers) -> None:
        """What `answers` holds, as files; it holds nothing then."""
        for cell, batches in answers.cells.items():
            table = pa.Table.from_batches(batches)
            name = self._store.write("windows", table)
            self._new.setdefault(cell, []).append(name)
            self.made.append(name)
            self.rows += table.num_rows
        answers.cells, answers.held = {}, 0

    def finish(self) -> None:
        """Name the files of each cell; what is left of an old file is one file with what is new of its cell."""
        for cell, names in self._old.items():
            if not meets(cell, self._definition, self._hull):
                continue
            kept = [table for name in names if (table := self._kept(name)) is not None]
            rows = [of for of in kept if of.num_rows]
            self._index["windows"][str(cell)] = [self._store.write("windows", pa.concat_tables(rows))] if rows else []
        for cell, names in self._new.items():
            self._index["windows"][str(cell)] = [*self._index["windows"].get(str(cell), []), *names]

    def _kept(self, name: str) -> pa.Table | None:
        """The rows that are not answered anew."""
        table = self._store.read(name)
        device, stream = (table[name].combine_chunks().dictionary_encode() for name in ("device", "stream"))
        key = np.asarray(device.indices).astype(np.int64) * len(stream.dictionary) + np.asarray(stream.indices)
        frame = self._definition.grid.frame_of(table["window_start"].to_numpy())
        kept = np.ones(table.num_rows, bool)
        begins = np.flatnonzero(np.concatenate(([True], np.diff(key) != 0))) if key.size else np.zeros(0, np.int64)
        for begin, end in zip(begins.tolist(), [*begins[1:].tolist(), key.size], strict=True):
            of = str(table["device"][begin]), str(table["stream"][begin])
            if of in self._ranges:
                kept[begin:end] = ~within(frame[begin:end], self._ranges[of])
        return table.filter(pa.array(kept))


def _write_spans(store: Store, index: Index, answers: Answers, ranges: dict[tuple[str, str], Ranges]) -> None:
    kept = list(answers.spans)
    if index["spans"]:
        old = store.read(index["spans"])
        owner = zip(old["device"].to_pylist(), old["stream"].to_pylist(), old["frame"].to_pylist(), strict=True)
        stays = [not within(np.array([frame]), ranges.get((device, stream), []))[0] for device, stream, frame in owner]
        kept.append(old.filter(pa.array(stays, pa.bool_())))
    rows = [table for table in kept if table.num_rows]
    index["spans"] = store.write("spans", pa.concat_tables(rows)) if rows else None


def _marks(index: Index, answers: Answers, whole: set[str]) -> dict[str, list[int]]:
    """By stream, the blocks of frames (`spans`) in which a reading is known to be; a superset, where any went.

    `whole`: streams all of whose windows are answered anew.
    """
    known = {stream: set(blocks) for stream, blocks in index["marks"].items() if stream not in whole}
    for stream, blocks in answers.marks.items():
        known.setdefault(stream, set()).update(blocks)
    return {stream: sorted(blocks) for stream, blocks in known.items()}
