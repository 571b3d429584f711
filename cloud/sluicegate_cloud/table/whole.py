"""Adds up the windows of all devices, and of roll-ups by tags, from what the shards have, cell by cell."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sluicegate_cloud.estimates.components import families, names
from sluicegate_cloud.estimates.lower import lower
from sluicegate_cloud.extras.asked import asked_of
from sluicegate_cloud.extras.long import NONE, Longs, together
from sluicegate_cloud.fleet.groups import Groups
from sluicegate_cloud.fleet.wire import numbers
from sluicegate_cloud.grid import Axis, Columns, Ints, expand_ranges, stretches
from sluicegate_cloud.merging.answers import as_arrow
from sluicegate_cloud.merging.combining import added_up, combined
from sluicegate_cloud.names import SILENT
from sluicegate_cloud.spans import block_of, cut_spans
from sluicegate_cloud.table.adding import frames_of, touched_shares
from sluicegate_cloud.table.answering import REVISION, column
from sluicegate_cloud.table.carried.windows import OfAll
from sluicegate_cloud.table.grouping.groups import column_of, columns_of, label_of, labels_of, stream_of
from sluicegate_cloud.table.grouping.silence import SilentDevices
from sluicegate_cloud.table.ranges import Ends, Ranges, crossing
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
    carried = [name for index in indexes if (name := index.get("carried", {}).get(str(number)))]
    long = _longs(indexes, version.definition)
    runs = {label: near(of, version.definition) for label, of in marks_of(indexes, version.definition).items()}

    def part(some: Some) -> pa.Table:
        found = [_of_groups(store, name, some) for name in shares]
        found += _of_spans(store, version.definition, number, indexes, runs, some)
        table = _of_groups(store, old, some) if old else None
        more = (_of_groups(store, name, some) for name in carried)
        touched = (of.filter(pa.array(touched_shares(of, of_all))) for of in more)
        beside = OfAll(touched, asked_of(version.definition.carried), long)
        silence = SilentDevices(_of_groups(store, str(version.heard), some))
        return _part(version, found, table, of_all, beside, silence)

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


def _longs(indexes: list[dict[str, Any]], definition: Definition) -> Longs:
    """By label, where what any device's buckets carry has no answer."""
    found: dict[str, list[tuple[int, int]]] = {}
    for index in indexes:
        for stream, ranges in index.get("long", {}).items():
            for label in labels_of(definition.by, stream):
                found.setdefault(label, []).extend(map(tuple, ranges))
    return Longs(0, {label: {None: together(ranges)} for label, ranges in found.items()})


def _part(
    version: Version, shares: Sequence[pa.Table], old: pa.Table | None, of_all: dict[str, Ranges], beside: OfAll,
    silence: SilentDevices,
) -> pa.Table:  # fmt: skip
    """The windows of some groups: those of `of_all` answered anew, and those that stay."""
    some = [table.filter(pa.array(touched_shares(table, of_all))) for table in shares if table.num_rows]
    rows = [table for table in some if table.num_rows]
    needed = [*names(families(version.definition.aggregates))]
    out = [_added(pa.concat_tables(rows), version, needed, beside, silence)] if rows else []
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
    table, marks, needed = (
        pa.concat_tables(tables),
        marks_of(indexes, definition),
        [*names(families(definition.aggregates))],
    )
    out, nothing = [], OfAll((), asked_of(definition.carried), NONE)
    silence = SilentDevices(store.read(str(version.heard)))
    at, groups_of = _exploded(table)
    for of in np.unique(groups_of).tolist():
        mine = _columns(table.take(pa.array(at[groups_of == of])), needed)
        axis, of_stream = Axis(mine["frame"], mine["windows"]), marks.get(label_of(of), np.zeros(0, np.int64))
        entry, first, windows = cut_spans(axis, of_stream, definition.grid.width, definition.max_empty).lasting
        if not entry.size:
            continue
        order = np.lexsort((windows, first))
        entry, first, windows = entry[order], first[order], windows[order]
        groups = Groups.of(first, windows)
        with np.errstate(all="ignore"):
            added = combined({name: mine[name][entry] for name in needed}, groups, families(definition.aggregates))
        of_group = np.zeros(groups.begin.size, np.int64)
        of_spans = first[groups.begin], windows[groups.begin]
        out.append(_rows([of], of_group, *of_spans, added, version, nothing, silence))
    return store.write("fleet", pa.concat_tables(out)) if out else None


def _exploded(table: pa.Table) -> tuple[Ints, Any]:
    """(row, group) for each group of each row of `spans`."""
    groups = table["groups"].combine_chunks()
    return np.asarray(groups.value_parent_indices()), np.asarray(groups.flatten().to_numpy(zero_copy_only=False))


def marks_of(indexes: list[dict[str, Any]], definition: Definition) -> Marks:
    """By label, the blocks of frames in which a device is known to be."""
    out: dict[str, set[int]] = {}
    for index in indexes:
        for stream, blocks in index["marks"].items():
            for label in labels_of(definition.by, stream):
                out.setdefault(label, set()).update(blocks)
    return {label: np.array(sorted(blocks), np.int64) for label, blocks in out.items()}


def near(marks: Ints, definition: Definition) -> tuple[Ints, Ints]:
    """The first and last windows of each run that all devices' windows are answered one by one in."""
    block = block_of(definition.max_empty)
    return stretches(
        np.concatenate((marks * block, marks * block + block - 1)), definition.grid.width, definition.max_empty
    )


def _of_spans(
    store: Store, definition: Definition, number: int, indexes: list[dict[str, Any]], runs: Mapping[str, Ends],
    some: Some,
) -> Iterator[pa.Table]:  # fmt: skip
    """What devices' spans may add to the windows of a cell that are answered one by one: rows as of `shares`."""
    low, high = frames_of(number, definition)
    for name in (index["spans"] for index in indexes if index["spans"]):
        table = store.read(name)
        first, last = table["frame"].to_numpy(), table["frame"].to_numpy() + table["windows"].to_numpy() - 1
        met = (first <= high) & (last >= low)
        for stream in table["stream"].filter(pa.array(met)).unique().to_pylist():
            mine = np.flatnonzero(met & np.asarray(pc.equal(table["stream"], stream).combine_chunks()))
            ends = np.maximum(first[mine], low), np.minimum(last[mine], high)
            for label in (one for one in labels_of(definition.by, stream) if one in runs):
                parts = crossing(ends, runs[label])
                yield from _one_by_one(table.take(pa.array(mine)), label, parts, definition, some)


def _one_by_one(
    spans: pa.Table, label: str, parts: tuple[Ints, Ints, Ints], definition: Definition, some: Some
) -> Iterator[pa.Table]:
    """Spans of one stream as rows of windows of the groups of a label, added up, as many at a time as are held.

    `parts`: of which span, from which window to which. Between two edges of these all windows are alike.
    """
    at, group = _exploded(spans)
    between = [name for name in set(group) if name >= some[0] and (some[1] is None or name < some[1])]
    wanted = np.isin(group, [name for name in between if label_of(name) == label])
    groups, code = np.unique(group[wanted].astype(str), return_inverse=True)
    span, since, until = parts
    which, part = expand_ranges(np.searchsorted(span, at[wanted]), np.searchsorted(span, at[wanted], side="right") - 1)
    edges, needed = np.unique(np.concatenate((since, until + 1))), families(definition.aggregates)
    columns = {name: numbers(spans[name]) for name in names(needed)}
    first, last = np.searchsorted(edges, since[part]), np.searchsorted(edges, until[part] + 1) - 1
    for low, high in _steps(first, last, edges.size):
        row, alike = expand_ranges(np.maximum(first, low), np.minimum(last, high))
        if not row.size:
            continue
        rows = {name: of[span[part[row]]] for name, of in columns.items()}
        added = added_up([rows | {"group": code[which[row]], "frame": alike}], ("group", "frame"), needed)
        of, frame = expand_ranges(edges[added["frame"]], edges[added["frame"] + 1] - 1)
        named = pa.array(groups.tolist(), pa.string()).take(pa.array(added["group"][of]))
        yield pa.table({"group": named, "frame": frame, **{name: column(name, added[name][of]) for name in columns}})


def _steps(first: Ints, last: Ints, size: int) -> Iterator[tuple[int, int]]:
    """From where to where about MOST rows lie, each of which is at `first` … `last` of 0 … `size` − 1."""
    counts = np.cumsum(np.bincount(first, minlength=size + 1) - np.bincount(last + 1, minlength=size + 1))
    step = np.cumsum(counts) // MOST
    begins = np.flatnonzero(np.concatenate(([True], np.diff(step) != 0)))
    yield from zip(begins.tolist(), (np.append(begins[1:], size) - 1).tolist(), strict=True)


def _added(table: pa.Table, version: Version, needed: list[str], beside: OfAll, silence: SilentDevices) -> pa.Table:
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
    return _rows(encoded.dictionary.to_pylist(), code[groups.begin], frame, windows, added, version, beside, silence)


def _rows(
    groups: Sequence[str], code: Ints, frame: Ints, windows: Ints, components: Columns, version: Version, beside: OfAll,
    silence: SilentDevices,
) -> pa.Table:  # fmt: skip
    """Windows as `windows.window_columns` has them, with `group`, and the tags of the roll-up; `code`: whose."""
    definition, grid = version.definition, version.definition.grid
    with np.errstate(all="ignore"):
        values_of = as_arrow(lower(components, definition.aggregates), definition.aggregates)
    start = grid.start_us(frame)
    end = start + (windows + grid.width - 1) * grid.slide_us
    split, at = [*map(json.loads, groups)], pa.array(code)
    told = [{column_of(word): value for word, value in words.items()} for _, words in split]

    def of_group(values: list[str | None]) -> pa.Array:
        return pa.array(values, pa.string()).take(at)

    head = {
        "group": of_group([*groups]),
        "device": pa.nulls(frame.size, pa.string()),
        "stream": of_group([stream_of(label) for label, _ in split]),
        "rollup": of_group([",".join(words) for _, words in split]),
        **{name: of_group([values.get(name) for values in told]) for name in columns_of(definition.by)},
    }
    return pa.table(
        head
        | {"window_start": start, "window_end": end}
        | values_of
        | beside.columns(groups, [label for label, _ in split], code, frame, windows)
        | {SILENT: silence.of(groups, code, frame), "windows": windows, REVISION: np.full(windows.size, version.number)}
    )


def _rewritten(table: pa.Table, definition: Definition, of_all: dict[str, Ranges]) -> Any:
    frame = definition.grid.frame_of(table["window_start"].to_numpy())
    return touched_shares(pa.table({"group": table["group"], "frame": frame}), of_all)


def _columns(table: pa.Table, needed: list[str]) -> Columns:
    return {name: numbers(table[name]) for name in table.column_names if name in needed or name in ("frame", "windows")}
