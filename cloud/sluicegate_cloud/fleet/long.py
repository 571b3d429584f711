"""Cuts a stream with more rows than a task may hold by time, into parts that overlap.

Rows come by time. A part answers the windows that no later row can touch, up to the frame of a reading: the window
that begins there holds it, so that no span lies in two parts. What reaches into later windows is held for the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from sluicegate_cloud.fleet.block import Block
from sluicegate_cloud.fleet.spread import FIRST, LAST
from sluicegate_cloud.fleet.wire import Piece, Rows, Stream
from sluicegate_cloud.grid import Columns, Grid, Ints, require_few

#: Whose rows are held.
_Name = tuple[Stream, Piece | None]


@dataclass
class _Held:
    """Rows of one stream, of which the windows that begin before frame `low` are answered, and those from `high` on
    are not asked for; `base`: its first center.
    """

    rows: Columns
    base: float | None = None
    low: int = FIRST
    high: int = LAST


def in_pieces(streams: Iterable[Rows], grid: Grid) -> Iterator[Rows]:
    """`streams`, those of which a part comes at a time, or only a piece, as parts with `limits` and `centers`."""
    long = _Long(grid)
    for rows in streams:
        yield from long.take(rows)
    yield from long.rest(None)


class _Long:
    """The streams of which more may come; usually none."""

    def __init__(self, grid: Grid) -> None:
        self._grid = grid
        self._held: dict[_Name, _Held] = {}

    def take(self, given: Rows) -> Iterator[Rows]:
        """What can be answered, with rows that are given."""
        owners = [*zip(given.devices.to_pylist(), given.streams.to_pylist(), strict=True)]
        names = [*zip(owners, given.pieces or [None] * len(owners), strict=True)]
        apart = given.until_us is not None
        mine = [at for at, name in enumerate(names) if apart or name[1] is not None or name in self._held]
        for number in mine:
            at = given.columns["owner"] == number
            some = slice(None) if at.all() else at
            self._add(names[number], {of: column[some] for of, column in given.columns.items()})
        yield from self.rest(given.until_us)
        if not mine:
            yield given
        elif len(mine) < len(names):
            others = ~np.isin(given.columns["owner"], mine)
            yield given._replace(columns={of: column[others] for of, column in given.columns.items()})

    def rest(self, until_us: int | None) -> Iterator[Rows]:
        """Of all that is held, what can be answered where no later row begins before `until_us`; None: all of it."""
        for name in [*self._held]:
            yield from self._part(name, until_us)

    def _add(self, name: _Name, rows: Columns) -> None:
        if name not in self._held:
            none, piece = {of: column[:0] for of, column in rows.items()}, name[1]
            self._held[name] = _Held(none, piece.base, piece.low, piece.high) if piece else _Held(none)
        held = self._held[name]
        held.rows = {of: _joined(column, rows[of]) for of, column in held.rows.items()}
        full = np.flatnonzero(held.rows["n"] > 0)
        if held.base is None and full.size:
            order = np.lexsort(tuple(held.rows[of][full] for of in ("first", "first_frame")))
            held.base = float(held.rows["center"][full[order[0]]])

    def _part(self, name: _Name, until_us: int | None) -> Iterator[Rows]:
        held = self._held[name]
        high = held.high if until_us is None else min(held.high, self._edge(held.rows, until_us))
        if until_us is None:
            del self._held[name]
        if high <= held.low:
            return
        rows = held.rows | {"owner": np.zeros(held.rows["n"].size, np.int64)}
        device, stream = (pa.array([of], pa.string()) for of in name[0])
        yield Rows(rows, device, stream, None, (held.low, high - 1), _centers(held))
        later = held.rows["last_frame"] >= high
        held.rows, held.low = {of: column[later] for of, column in held.rows.items()}, high

    def _edge(self, rows: Columns, until_us: int) -> int:
        """The last frame of a reading that only windows which are known whole begin before."""
        until = int(self._grid.frame_of(np.array([until_us]))[0])
        frames = rows["first_frame"][rows["n"] > 0]
        return int(frames[frames <= until - self._grid.width + 1].max(initial=FIRST))


def _joined(column: Any, more: Any) -> Any:
    """One after the other; a column that takes no room (`wire.unknown`) still takes none."""
    if not column.size:
        return more
    if column.strides == more.strides == (0,):
        return np.broadcast_to(column[:1].reshape(()), column.size + more.size)
    return np.concatenate((column, more))


def _centers(held: _Held) -> Columns:
    """Of `blocks`: sums are taken from the whole stream's first center."""
    base = np.array([0.0 if held.base is None else held.base])
    known = np.concatenate((held.rows["center"][held.rows["n"] > 0], base))
    return {"base": base, "center_low": known.min(keepdims=True), "center_high": known.max(keepdims=True)}


def within(frames: Ints, limits: tuple[int, int]) -> slice:
    """Which of the windows that begin at these frames of its own, ascending, a part of a stream answers."""
    begin, end = np.searchsorted(frames, (limits[0], limits[1] + 1)).tolist()
    return slice(begin, end)


class Counted:
    """How many windows each stream has in all, also of those that come in parts to one task (`grid.MAX_WINDOWS`)."""

    def __init__(self, max_empty: int) -> None:
        self._max_empty = max_empty
        self._told: dict[Stream, tuple[int, int]] = {}

    def add(self, rows: Rows, owners: Ints, block: Block) -> None:
        """A block of them, before any of its windows is made. Raises ValueError for a stream of too many."""
        if rows.limits is None:
            windows, frames = block.counts(self._max_empty)
            most = int(np.argmax(windows - frames))
            self._require(rows, int(owners[most]), (int(windows[most]), int(frames[most])))
            return
        low, high = rows.limits
        begins, ends = block.stretches(self._max_empty)
        windows = np.maximum(np.minimum(ends, high) - np.maximum(begins, low) + 1, 0).sum()
        name = rows.devices[0].as_py(), rows.streams[0].as_py()
        before = self._told.get(name, (0, 0))
        self._told[name] = before[0] + int(windows), before[1] + block.points[within(block.points, rows.limits)].size
        self._require(rows, 0, self._told[name])

    def _require(self, rows: Rows, owner: int, told: tuple[int, int]) -> None:
        require_few(*told, f"{rows.streams[owner].as_py()} of {rows.devices[owner].as_py()}")
