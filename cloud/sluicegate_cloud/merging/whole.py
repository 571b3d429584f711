"""Adds up what tasks have of the windows of all devices, a bounded number of windows at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from operator import itemgetter
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from sluicegate_cloud.estimates.components import families, names
from sluicegate_cloud.estimates.lower import lower
from sluicegate_cloud.fleet.groups import Groups
from sluicegate_cloud.fleet.spread import FIRST, LAST
from sluicegate_cloud.fleet.wire import numbers
from sluicegate_cloud.grid import Axis, Columns, Grid, Ints
from sluicegate_cloud.merging.answers import ADDED, BATCH, HEARD, MARK, SPAN, WINDOW, Batches, Pass, as_arrow
from sluicegate_cloud.merging.combining import combined
from sluicegate_cloud.merging.silence import LastHeard
from sluicegate_cloud.names import SILENT
from sluicegate_cloud.spans import Cut, Pieces, between, cut_spans, steps


def whole(grid: Grid, aggregates: Sequence[str], max_empty: int) -> Pass:
    """Rows of `answers.shares`, all of some streams, by stream, kind and frame → rows of `windows.window_columns`."""
    needed = families(aggregates)

    def answered(batches: Batches) -> Iterator[pa.RecordBatch]:
        for stream, some in groupby(_by_stream(batches), itemgetter(0)):
            for placed, found, silent in _of_all((rows for _, rows in some), grid, max_empty, needed):
                with np.errstate(all="ignore"):
                    told = as_arrow(lower(found, aggregates), aggregates)
                rows = placed.size
                head = {"device": pa.nulls(rows, pa.string()), "stream": pa.repeat(stream, rows)}
                times = {"window_start": grid.start_us(placed.first)}
                times["window_end"] = grid.start_us(placed.last) + grid.width * grid.slide_us
                yield pa.RecordBatch.from_pydict(head | times | told | {SILENT: silent, "windows": placed.windows})

    return answered


def _by_stream(batches: Batches) -> Iterator[tuple[str, Columns]]:
    """The rows of one stream after the other, as they come."""
    for batch in batches:
        key = batch.column("stream").dictionary_encode().indices.to_numpy()
        edges = [0, *(np.flatnonzero(np.diff(key)) + 1).tolist(), batch.num_rows]
        for begin, end in pairwise(edges):
            if begin < end:
                some = batch.slice(begin, end - begin)
                columns = {name: numbers(some.column(name)) for name in some.schema.names if name != "stream"}
                yield batch.column("stream")[begin].as_py(), columns


def _of_all(
    rows: Iterable[Columns], grid: Grid, max_empty: int, needed: Sequence[ModuleType]
) -> Iterator[tuple[Axis, Columns, Ints]]:
    """The windows and spans of all devices of one stream, ascending, and how many devices are silent in each.

    `rows`: its marks, when devices were heard of, spans, and windows by frame.
    """
    others: list[Columns] = []
    spans: _Spans | None = None
    low = FIRST
    for windows, is_last in _windows(rows, others):
        if spans is None:  # no window comes before the last of what is none
            spans = _Spans.of(others, grid, max_empty)
        high = LAST if is_last else int(windows["frame"][-1]) + 1
        for axis, found in spans.among(windows, low, high, needed):
            yield axis, found, spans.heard.silent(axis.first)
        low = high


def _windows(rows: Iterable[Columns], others: list[Columns]) -> Iterator[tuple[Columns, bool]]:
    """Windows, of each frame all, some at a time, and whether these are the last; what is none goes to `others`."""
    held: list[Columns] = []
    size = 0
    for some in rows:
        is_window = some["kind"] == WINDOW
        others.append(_those(some, ~is_window))
        held.append(_those(some, is_window))
        size += held[-1]["frame"].size
        if size >= ADDED:
            windows = _together(held)
            upto = int(np.searchsorted(windows["frame"], windows["frame"][-1]))
            if upto:
                yield _those(windows, slice(0, upto)), False
            held = [_those(windows, slice(upto, None))]
            size = held[0]["frame"].size
    yield _together(held), True


class _Spans(NamedTuple):
    """The devices' spans and how the fleet has them; `edges`: frames with not too many windows of spans between;
    `heard`: when its devices were heard of last.
    """

    rows: Columns
    cut: Cut
    edges: Ints
    heard: LastHeard

    @classmethod
    def of(cls, others: Sequence[Columns], grid: Grid, max_empty: int) -> _Spans:
        """Of the rows that are no windows."""
        rows = _together(others)
        last = _those(rows, rows["kind"] == HEARD)
        marks, rows = np.unique(rows["frame"][rows["kind"] == MARK]), _those(rows, rows["kind"] == SPAN)
        cut = cut_spans(Axis(rows["frame"], rows["windows"]), marks, grid.width, max_empty)
        return cls(rows, cut, steps(cut.runs, ADDED), LastHeard.of(last["frame"], last["windows"]))

    def among(
        self, windows: Columns, low: int, high: int, needed: Sequence[ModuleType]
    ) -> Iterator[tuple[Axis, Columns]]:
        """What begins at the frames `low` … `high` − 1, where the devices' `windows` are these."""
        edges = [low, *self.edges[(self.edges > low) & (self.edges < high)].tolist(), high]
        at = np.searchsorted(windows["frame"], edges[:-1]).tolist()
        for since, upto, begin, end in zip(edges, edges[1:], at, [*at[1:], windows["frame"].size], strict=False):
            yield from self._added(_those(windows, slice(begin, end)), between(self.cut, since, upto), needed)

    def _added(self, windows: Columns, parts: Pieces, needed: Sequence[ModuleType]) -> Iterator[tuple[Axis, Columns]]:
        frame = np.concatenate((windows["frame"], parts.first))
        lasting = np.concatenate((windows["windows"], parts.windows))
        held = {name: np.concatenate((windows[name], self.rows[name][parts.entry])) for name in names(needed)}
        order = np.lexsort((held["total"], held["ref"], lasting, frame))
        frame, lasting = frame[order], lasting[order]
        groups = Groups.of(frame, lasting)
        at = np.searchsorted(groups.begin, np.arange(0, frame.size, BATCH))
        edges = groups.begin[np.unique(at[at < groups.begin.size])]
        for begin, end in zip(edges.tolist(), [*edges[1:].tolist(), frame.size], strict=True):
            some = {name: of[order[begin:end]] for name, of in held.items()}
            here = Groups.of(frame[begin:end], lasting[begin:end])
            with np.errstate(all="ignore"):
                yield Axis(frame[begin:end][here.begin], lasting[begin:end][here.begin]), combined(some, here, needed)


def _those(rows: Columns, wanted: Any) -> Columns:
    return {name: of[wanted] for name, of in rows.items()}


def _together(some: Sequence[Columns]) -> Columns:
    return {name: np.concatenate([of[name] for of in some]) for name in some[0]}
