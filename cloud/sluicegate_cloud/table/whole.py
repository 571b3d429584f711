"""Adds up the windows of all devices, and of roll-ups by tags, from what the shards have, cell by cell."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from sluicegate_cloud.estimates.components import families, names
from sluicegate_cloud.estimates.lower import lower
from sluicegate_cloud.fleet.groups import Groups
from sluicegate_cloud.fleet.wire import numbers
from sluicegate_cloud.grid import Axis, Columns, Ints, expand_ranges, stretches
from sluicegate_cloud.merging.answers import as_arrow
from sluicegate_cloud.merging.combining import combined
from sluicegate_cloud.spans import block_of, cut_spans
from sluicegate_cloud.table.adding import frames_of, touched_shares
from sluicegate_cloud.table.answering import REVISION
from sluicegate_cloud.table.ranges import Ranges
from sluicegate_cloud.table.versions import Definition, Store, Version

#: Rows of shares and of windows that are held at a time, about.
MOST = 1 << 19
_NONE = pa.table({})
Marks = dict[str, Ints]
#: From which group on, and up to which (None: to the last).
Some = tuple[str, str | None]


def cell(
    store: Store,
    version: Version,
    number: int,
    indexes: list[dict[str, Any]],
    old: str | None,
    of_all: dict[str, Ranges],
) -> str | None:
    """The file of a cell's windows of all devices, those of `of_all` answered anew; None where there is none.

    `version`: the one that is being made, with its new shards.
    """
    shares = [name for index in indexes if (name := index["shares"].get(str(number)))]
    runs = {stream: near(of, version.definition) for stream, of in marks_of(indexes).items()}

    def part(some: Some) -> pa.Table:
        found = [_of_groups(store, name, some) for name in shares]
        found += _of_spans(store, version.definition, number, indexes, runs, some)
        table = _of_groups(store, old, some) if old else None
        return _part(version, found, table, of_all)

    name = store.write_parts("fleet", map(part, _slices(store, [*shares, *([old] if old else [])])))
    store.settle()
    return name


def _slices(store: Store, files: Sequence[str]) -> list[Some]:
    """Between which groups about MOST rows of the files lie: a device may have any number of streams."""
    cuts, held = [""], 0
    for least, rows in sorted(one for name in files for one in store.row_groups(name, "group")):
        if held >= MOST and least > cuts[-1]:
            cuts.append(least)
            held = 0
        held += rows
    return [*pairwise([*cuts, None])]  # type: ignore[list-item]  # the last alone has no end


def _of_groups(store: Store, name: str, some: Some) -> pa.Table:
    """The rows of a file of groups between two."""
    low, high = some
    if not low and high is None:
        return store.read(name)
    return store.read(name, None, [("group", ">=", low), *([] if high is None else [("group", "<", high)])])


def _part(version: Version, shares: Sequence[pa.Table], old: pa.Table | None, of_all: dict[str, Ranges]) -> pa.Table:
    """The windows of some groups: those of `of_all` answered anew, and those that stay."""
    some = [table.filter(pa.array(touched_shares(table, of_all))) for table in shares if table.num_rows]
    rows = [table for table in some if table.num_rows]
    needed = [*names(families(version.definition.aggregates))]
    out = [_added(pa.concat_tables(rows), version, needed)] if rows else []
    if old is not None:
        out.append(old.filter(pa.array(~_rewritten(old, version.definition, of_all))))
    kept = [table for table in out if table.num_rows]
    return pa.concat_tables(kept).sort_by([("group", "ascending"), ("window_start", "ascending")]) if kept else _NONE


def long_spans(store: Store, version: Version, indexes: list[dict[str, Any]]) -> str | None:
    """The file of the spans of all devices: runs of windows in which no device is known to be, a row each."""
    definition = version.definition
    tables = [store.read(index["spans"]) for index in indexes if index["spans"]]
    if not tables:
        return None
    table, marks, needed = pa.concat_tables(tables), marks_of(indexes), [*names(families(definition.aggregates))]
    out = []
    at, groups_of = _exploded(table)
    for of in np.unique(groups_of).tolist():
        mine = _columns(table.take(pa.array(at[groups_of == of])), needed)
        axis, of_stream = Axis(mine["frame"], mine["windows"]), marks.get(json.loads(of)[0], np.zeros(0, np.int64))
        entry, first, windows = cut_spans(axis, of_stream, definition.grid.width, definition.max_empty).lasting
        if not entry.size:
            continue
        order = np.lexsort((windows, first))
        entry, first, windows = entry[order], first[order], windows[order]
        groups = Groups.of(first, windows)
        with np.errstate(all="ignore"):
            added = combined({name: mine[name][entry] for name in needed}, groups, families(definition.aggregates))
        of_group = np.zeros(groups.begin.size, np.int64)
        out.append(_rows([of], of_group, first[groups.begin], windows[groups.begin], added, version))
    return store.write("fleet", pa.concat_tables(out)) if out else None


def _exploded(table: pa.Table) -> tuple[Ints, Any]:
    """(row, group) for each group of each row of `spans`."""
    groups = table["groups"].combine_chunks()
    return np.asarray(groups.value_parent_indices()), np.asarray(groups.flatten().to_numpy(zero_copy_only=False))


def marks_of(indexes: list[dict[str, Any]]) -> Marks:
    """By stream, the blocks of frames in which a device is known to be."""
    out: dict[str, set[int]] = {}
    for index in indexes:
        for stream, blocks in index["marks"].items():
            out.setdefault(stream, set()).update(blocks)
    return {stream: np.array(sorted(blocks), np.int64) for stream, blocks in out.items()}


def near(marks: Ints, definition: Definition) -> tuple[Ints, Ints]:
    """The first and last windows of each run that all devices' windows are answered one by one in."""
    block = block_of(definition.max_empty)
    return stretches(
        np.concatenate((marks * block, marks * block + block - 1)), definition.grid.width, definition.max_empty
    )


def meeting(runs: Mapping[str, tuple[Ints, Ints]], stream: str, first: int, last: int) -> Iterator[tuple[int, int]]:
    """Those of a stream's `runs` (`near`) that have a window of `first` … `last`: a device may have any number."""
    if stream in runs:
        begins, ends = runs[stream]
        some = slice(int(np.searchsorted(ends, first)), int(np.searchsorted(begins, last, side="right")))
        yield from zip(begins[some].tolist(), ends[some].tolist(), strict=True)


def _of_spans(
    store: Store, definition: Definition, number: int, indexes: list[dict[str, Any]],
    runs: Mapping[str, tuple[Ints, Ints]], some: Some,
) -> list[pa.Table]:  # fmt: skip
    """What devices' spans may add to the windows of a cell that are answered one by one: rows as of `shares`."""
    low, high = frames_of(number, definition)
    out = []
    for name in (index["spans"] for index in indexes if index["spans"]):
        table = store.read(name)
        frame, windows = table["frame"].to_numpy(), table["windows"].to_numpy()
        table = table.filter(pa.array((frame <= high) & (frame + windows > low)))
        kept = [of for of in table.column_names if of not in ("device", "stream", "groups", "frame", "windows")]
        for at in range(table.num_rows):
            row = table.slice(at, 1)
            first, count = row["frame"][0].as_py(), row["windows"][0].as_py()
            since, until = max(low, first), min(high, first + count - 1)
            pairs = np.array([*meeting(runs, row["stream"][0].as_py(), since, until)], np.int64).reshape(-1, 2)
            frames = expand_ranges(np.maximum(pairs[:, 0], since), np.minimum(pairs[:, 1], until))[1]
            groups = row["groups"][0].as_py() if frames.size else ()
            for of in (of for of in groups if of >= some[0] and (some[1] is None or of < some[1])):
                repeated = row.select(kept).take(pa.array(np.zeros(frames.size, np.int64)))
                columns = {name: repeated[name] for name in kept}
                out.append(pa.table({"group": pa.repeat(of, frames.size), "frame": frames, **columns}))
    return out


def _added(table: pa.Table, version: Version, needed: list[str]) -> pa.Table:
    """Rows of `shares` → rows of windows, a row for each window of each group."""
    encoded = table["group"].combine_chunks().dictionary_encode()
    code = np.asarray(encoded.indices)
    rows = _columns(table, needed)
    order = np.lexsort((rows["total"], rows["ref"], rows["frame"], code))
    rows, code = {name: of[order] for name, of in rows.items()}, code[order]
    groups = Groups.of(code, rows["frame"])
    with np.errstate(all="ignore"):
        added = combined({name: rows[name] for name in needed}, groups, families(version.definition.aggregates))
    frame = rows["frame"][groups.begin]
    windows = np.ones(frame.size, np.int64)
    return _rows(encoded.dictionary.to_pylist(), code[groups.begin], frame, windows, added, version)


def _rows(
    groups: Sequence[str], code: Ints, frame: Ints, windows: Ints, components: Columns, version: Version
) -> pa.Table:
    """Windows as `windows.window_columns` has them, with `group`, and the tags of the roll-up; `code`: whose."""
    definition, grid = version.definition, version.definition.grid
    with np.errstate(all="ignore"):
        told = as_arrow(lower(components, definition.aggregates), definition.aggregates)
    start = grid.start_us(frame)
    end = start + (windows + grid.width - 1) * grid.slide_us
    split, at = [*map(json.loads, groups)], pa.array(code)

    def of_group(values: list[str | None]) -> pa.Array:
        return pa.array(values, pa.string()).take(at)

    every = dict.fromkeys(name for by in definition.by for name in by)
    head = {
        "group": of_group([*groups]),
        "device": pa.nulls(frame.size, pa.string()),
        "stream": of_group([stream for stream, _ in split]),
        "rollup": of_group([",".join(tags) for _, tags in split]),
        **{f"tag_{name}": of_group([tags.get(name) for _, tags in split]) for name in every},
    }
    return pa.table(
        head
        | {"window_start": start, "window_end": end}
        | told
        | {"windows": windows, REVISION: np.full(windows.size, version.number)}
    )


def _rewritten(table: pa.Table, definition: Definition, of_all: dict[str, Ranges]) -> Any:
    frame = definition.grid.frame_of(table["window_start"].to_numpy())
    return touched_shares(pa.table({"group": table["group"], "frame": frame}), of_all)


def _columns(table: pa.Table, needed: list[str]) -> Columns:
    return {name: numbers(table[name]) for name in table.column_names if name in needed or name in ("frame", "windows")}
