"""Answers the windows of a shard's streams and what they add to the windows of all devices, in one pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa

from sluicegate_cloud.estimates.components import INTEGERS, answer, families, names
from sluicegate_cloud.estimates.lower import lower
from sluicegate_cloud.fleet.block import Block, blocks
from sluicegate_cloud.fleet.part import Part, parts
from sluicegate_cloud.fleet.wire import Rows, numbers
from sluicegate_cloud.grid import Columns, Ints
from sluicegate_cloud.merging.answers import as_arrow
from sluicegate_cloud.merging.combining import added_up
from sluicegate_cloud.spans import block_of
from sluicegate_cloud.table.grouping.groups import across_keys, groups_of, label_of
from sluicegate_cloud.table.ranges import Ranges, within
from sluicegate_cloud.table.units import Unit
from sluicegate_cloud.table.versions import Definition

#: Windows that are held before they become files, and before what they add to all is added up.
_HELD, _ADDED = 1 << 20, 1 << 17
_INT = pa.int64()
#: The column that says in which version a row was answered last.
REVISION = "revision"


@dataclass
class Answers:
    """What comes of a shard's units: `cells`, batches of window rows by cell; sums by group and frame; `spans`
    of devices; `marks`: by stream, the blocks of frames in which a reading is known to be.

    `revision`: the version they are for; `rewritten`: of each stream of a device the windows that are answered anew;
    `of_all`: those of groups, by label; `tags`: of each stream of a device; `beside`: of windows of units that are
    taken (unit, frame, windows each) more columns.
    """

    definition: Definition
    revision: int
    rewritten: dict[tuple[str, str], Ranges]
    of_all: dict[str, Ranges]
    tags: dict[tuple[str, str], dict[str, str]]
    beside: Callable[[Ints, Ints, Ints], dict[str, pa.Array]]
    cells: dict[int, list[pa.RecordBatch]] = field(default_factory=dict)
    held: int = 0
    spans: list[pa.Table] = field(default_factory=list)
    marks: dict[str, set[int]] = field(default_factory=dict)
    _groups: dict[str, int] = field(default_factory=dict)
    _parts: list[Columns] = field(default_factory=list)
    _size: int = 0

    def __post_init__(self) -> None:
        self._needed: tuple[ModuleType, ...] = families(self.definition.aggregates)
        self._names = names(self._needed)
        self._across = any(map(across_keys, self.definition.by))

    @property
    def full(self) -> bool:
        """Whether it is time to write what is held."""
        return self.held >= _HELD

    @property
    def added(self) -> int:
        """How many rows there are, at least, of what the units add to the windows of groups."""
        return self._parts[0]["frame"].size if self._parts else 0

    def take(self, units: Sequence[Unit], rows: Rows) -> Iterator[None]:
        """Answer the units, whose buckets are `rows`, some windows after others: what is held may go between."""
        with np.errstate(all="ignore"):
            named = ("base", "center_low", "center_high")
            told = {name: np.array([unit.centers[i] for unit in units]) for i, name in enumerate(named)}
            for owners, block in blocks(rows.columns, self.definition.grid, self.definition.max_empty, told):
                self._mark(units, owners, block)
                for part in parts(block, self.definition.max_empty):
                    self._take(units, part, owners[part.owner], answer(part, self._needed))
                    yield

    def _mark(self, units: Sequence[Unit], owners: Ints, block: Block) -> None:
        owner = np.searchsorted(block.owners.lane, block.points, side="right") - 1
        own = (block.points - block.owners.shift[owner]) // block_of(self.definition.max_empty)
        changed = np.flatnonzero(np.concatenate(([True], (np.diff(own) != 0) | (np.diff(owner) != 0))))
        for of, mark in zip(owners[owner[changed]].tolist(), own[changed].tolist(), strict=True):
            self.marks.setdefault(units[of].stream, set()).add(mark)

    def _take(self, units: Sequence[Unit], part: Part, owner: Ints, found: Columns) -> None:
        frame = part.axis.first - part.block.owners.shift[part.owner]
        low, high = (np.array([unit.window[i] for unit in units])[owner] for i in (0, 1))
        inside = (frame >= low) & (frame <= high)
        if self.definition.fleet:
            some = _those(inside & (part.axis.windows == 1))
            self._add(units, owner[some], frame[some], {name: found[name][some] for name in self._names})
        own = inside & self._own(units, owner, frame)
        if not own.any():
            return
        mine = _those(own)
        told = lower({name: of[mine] for name, of in found.items()}, self.definition.aggregates)
        windows, frame, owner = part.axis.windows[mine], frame[mine], owner[mine]
        self._keep(units, owner, frame, windows, told)
        if self.definition.fleet and (windows > 1).any():
            self._keep_spans(units, owner, frame, windows, {name: found[name][mine] for name in self._names})

    def _own(self, units: Sequence[Unit], owner: Ints, frame: Ints) -> Any:
        """Which windows are to be rewritten, and not only added to those of all."""
        out = np.zeros(frame.size, bool)
        for number in np.unique(owner).tolist():
            ranges = self.rewritten.get((units[number].device, units[number].stream), [])
            at = owner == number
            out[at] = within(frame[at], ranges)
        return out

    def _of_groups(self, groups: Sequence[str], owner: Ints, frame: Ints) -> Any:
        """Which windows are to be added to the unit's group, where others of it are answered for other labels."""
        if not self._across:
            return slice(None)
        out = np.zeros(frame.size, bool)
        for number in np.unique(owner).tolist():
            at = owner == number
            out[at] = within(frame[at], self.of_all.get(label_of(groups[number]), []))
        return _those(out)

    def _keep(self, units: Sequence[Unit], owner: Ints, frame: Ints, windows: Ints, told: Columns) -> None:
        definition, grid = self.definition, self.definition.grid
        start = grid.start_us(frame)
        named = {
            name: pa.array([unit[i] for unit in units]).take(pa.array(owner))
            for i, name in ((0, "device"), (1, "stream"))
        }
        times = {"window_start": start, "window_end": start + (windows + grid.width - 1) * grid.slide_us}
        batch = pa.RecordBatch.from_pydict(
            named
            | times
            | as_arrow(told, definition.aggregates)
            | self.beside(owner, frame, windows)
            | {"windows": windows, REVISION: np.full(windows.size, self.revision)}
        )
        self.held += batch.num_rows
        cell = start // definition.cell_us
        begins = np.flatnonzero(np.concatenate(([True], np.diff(cell) != 0)))
        for begin, end in zip(begins.tolist(), [*begins[1:].tolist(), cell.size], strict=True):
            self.cells.setdefault(int(cell[begin]), []).append(batch.slice(begin, end - begin))

    def _keep_spans(self, units: Sequence[Unit], owner: Ints, frame: Ints, windows: Ints, found: Columns) -> None:
        some = np.flatnonzero(windows > 1)
        head: dict[str, Any] = {
            "device": [units[at].device for at in owner[some]],
            "stream": [units[at].stream for at in owner[some]],
        }
        groups = [self._groups_of(units[at]) for at in owner[some]]
        head |= {"groups": pa.array(groups, pa.list_(pa.string())), "frame": frame[some], "windows": windows[some]}
        self.spans.append(pa.table(head | {name: column(name, found[name][some]) for name in self._names}))

    def _add(self, units: Sequence[Unit], owner: Ints, frame: Ints, found: Columns) -> None:
        """To the windows of every group that a unit belongs to."""
        for groups in zip(*map(self._groups_of, units), strict=True):
            numbered = np.array([self._groups.setdefault(name, len(self._groups)) for name in groups], np.int64)
            some = self._of_groups(groups, owner, frame)
            part = {name: of[some] for name, of in (found | {"group": numbered[owner], "frame": frame}).items()}
            self._parts.append(part)
            self._size += part["frame"].size
        if self._size >= max(_ADDED, self.added):  # what cannot be added up further is not folded each time
            self._fold()

    def _groups_of(self, unit: Unit) -> list[str]:
        tags = self.tags.get((unit.device, unit.stream))
        return groups_of(self.definition.by, unit.device, unit.stream, tags)

    def _fold(self) -> None:
        self._parts, self._size = [added_up(self._parts, ("group", "frame"), self._needed)], 0

    def shares(self) -> pa.Table:
        """What the units added, since it was asked last, to each window of each group: `group`, `frame`, components."""
        if not self._parts:
            return pa.table({"group": pa.array([], pa.string()), "frame": pa.array([], _INT)})
        self._fold()
        part, self._parts = self._parts[0], []
        return self._told(part, pa.array([*self._groups], pa.string()))

    def together(self, tables: Sequence[pa.Table]) -> pa.Table:
        """Several of `shares`, added up."""
        table = pa.concat_tables(tables)
        encoded = table["group"].combine_chunks().dictionary_encode()
        part = {name: numbers(table[name]) for name in (*self._names, "frame")}
        part["group"] = np.asarray(encoded.indices).astype(np.int64)
        return self._told(added_up([part], ("group", "frame"), self._needed), encoded.dictionary)

    def _told(self, part: Columns, groups: pa.Array) -> pa.Table:
        columns = {name: column(name, part[name]) for name in self._names}
        return pa.table({"group": groups.take(pa.array(part["group"])), "frame": part["frame"], **columns})


def _those(wanted: Any) -> Any:
    """Which entries to take: nothing is copied where it is all of them."""
    return slice(None) if wanted.all() else wanted


def column(name: str, values: Any) -> pa.Array:
    """A component as files have it."""
    return pa.array(values, _INT if name in INTEGERS else pa.float64(), safe=False)
