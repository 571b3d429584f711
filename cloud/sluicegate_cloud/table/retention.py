"""`cloud retain`: what is older than a horizon leaves a table, and stays as windows of an hour, a day, in one version.

The roll-ups are answered from the documents by the same functions as the table's own windows, before the documents go:
they are as exact as windows of that length ever were. Late documents whose readings all lie before the horizon are
refused from then on, with that reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sluicegate_cloud.errors import TableError
from sluicegate_cloud.schema import RETIRED
from sluicegate_cloud.table import aside, horizon, read, run, shard
from sluicegate_cloud.table import ledger as ledgers
from sluicegate_cloud.table.grouping.registry import of_version
from sluicegate_cloud.table.settled.folding import folded
from sluicegate_cloud.table.settled.rows import Settled, load
from sluicegate_cloud.table.streams import streams_of
from sluicegate_cloud.table.units import Ledger
from sluicegate_cloud.table.versions import Store, Version

#: How long windows of a length are kept: µs, None for ever.
Levels = Mapping[int, int | None]


def horizon_of(version: Version, before_us: int, levels: Levels) -> int:
    """The latest time not after `before_us` at which windows of all levels begin. Raises TableError for odd levels."""
    definition, step = version.definition, version.definition.slide_us
    for level in sorted(levels):
        if level % step:
            raise TableError(f"a roll-up of {level} us is no whole number of {step} us: choose others")
        step = level
    return int((before_us - definition.origin_us) // step * step + definition.origin_us)


def plan(store: Store, version: Version, horizon_us: int) -> dict[str, int]:
    """What `retain` would do: `documents` and `buckets` that go, `rows` of devices' windows that do."""
    told = {"documents": 0, "buckets": 0, "rows": 0}
    for name in version.shards.values():
        index = store.read_json(name)
        if index["ledger"]:
            ledger = Settled(store).whole(load(store, index["ledger"]))
            gone = horizon.retirable(ledger, horizon_us)
            told["documents"] += int(gone.sum())
            told["buckets"] += int(pc.sum(ledger["buckets"].filter(pa.array(gone))).as_py() or 0)
        for cell, names in index["windows"].items():
            if int(cell) * version.definition.cell_us < horizon_us:
                ends = (store.read(file, ["window_end"])["window_end"].to_numpy() for file in names)
                told["rows"] += sum(int((of - version.definition.window_us < horizon_us).sum()) for of in ends)
    return told


def retain(spread: run.Over, store: Store, version: Version, horizon_us: int, levels: Levels, now_us: int) -> Version:
    """The next version, without what lies before the horizon; the same where that is no later than it was.

    `horizon_us`: of `horizon_of`. `now_us`: by which roll-ups are too old. Raises TableError where another run was
    first: nothing of this one counts then.
    """
    if version.horizon_us is not None and horizon_us <= version.horizon_us:
        return version
    rollups = [of for of in version.rollups if not _is_old(of, levels, now_us)]
    for level in sorted(levels):
        rollups.append(_rolled_up(spread, store, version, level, horizon_us))

    def work(number: int) -> run.Task:
        return _shard(store, version, number, horizon_us)

    done = spread(work, sorted(map(int, version.shards)))
    counts = {name: sum(told[name] for _, (_, told) in done) for name in ("documents", "buckets", "rows")}
    definition = version.definition
    now = replace(
        version,
        number=version.number + 1,
        shards={str(number): name for number, (name, _) in done if name},
        fleet=horizon.trim_fleet(store, definition, version.fleet, horizon_us),
        spans=horizon.trim_file(store, definition, version.spans, horizon_us),
        told=counts | {"copies": 0},
        horizon_us=horizon_us,
        rollups=tuple(rollups),
    )
    return store.commit(now)


def _is_old(rollup: dict[str, Any], levels: Levels, now_us: int) -> bool:
    kept = levels.get(rollup["level_us"])
    return kept is not None and rollup["until_us"] <= now_us - kept


def _shard(store: Store, version: Version, number: int, horizon_us: int) -> run.Task:
    """A shard without the documents and windows that go."""
    index = store.read_json(version.shards[str(number)])
    told = {"documents": 0, "buckets": 0}
    if index["ledger"]:
        ledger = Settled(store).whole(load(store, index["ledger"]))
        gone = horizon.retirable(ledger, horizon_us)
        told = {"documents": int(gone.sum()), "buckets": int(np.asarray(ledger["buckets"].fill_null(0))[gone].sum())}
        if gone.any():
            _drop(store, index, ledger.filter(pa.array(gone)))
            kept = _retired(ledger, gone)
            left_out = aside.of_index(index)
            index |= ledgers.written(store, folded(store, kept, version.definition, left_out))
            seen = Ledger(aside.without(kept, left_out))
            index["streams"], _ = streams_of(store, index["streams"], seen, None, of_version(store, version))
    told["rows"] = horizon.trim(store, version.definition, index, horizon_us)
    name = store.write_json("index", index)
    store.settle()
    return name, told


def _retired(ledger: pa.Table, gone: Any) -> pa.Table:
    """The ledger, whose rows `gone` only say that such documents were there, and where they end."""
    empty = {"fate": pa.scalar(RETIRED), "hole": pa.scalar(0, pa.int64()), "part": None}
    for name, value in empty.items():
        at = ledger.column_names.index(name)
        column = ledger[name].combine_chunks()
        if value is None:
            value = pa.scalar(None, column.type)
            kept = pa.concat_arrays([column, pa.nulls(1, column.type)])
            chosen = np.where(gone, len(column), np.arange(len(column)))
            ledger = ledger.set_column(at, ledger.schema.field(at), kept.take(pa.array(chosen)))
        else:
            ledger = ledger.set_column(at, ledger.schema.field(at), pc.if_else(pa.array(gone), value, column))
    return ledger


def _drop(store: Store, index: dict[str, Any], gone: pa.Table) -> None:
    """Leave documents out of the files of their cells."""
    digests, cells = gone["digest"].combine_chunks(), {str(cell) for cell in gone["cell"].unique().to_pylist()}
    for cell in cells & {*index["documents"]}:
        kept = []
        for name in index["documents"].pop(cell):
            table = store.read(name)
            rows = table.filter(pc.invert(pc.is_in(table["digest"], value_set=digests)))
            if rows.num_rows == table.num_rows:
                kept.append(name)
            elif rows.num_rows:
                kept.append(store.write("documents", rows))
        if kept:
            index["documents"][cell] = kept


def _rolled_up(spread: run.Over, store: Store, version: Version, level_us: int, until_us: int) -> dict[str, Any]:
    """Windows of a level from the horizon that was to the one that is to be, of devices, all and roll-ups by tags."""
    definition = replace(version.definition, window_us=level_us, slide_us=level_us)
    since_us = version.horizon_us
    if since_us is not None:  # a level that was not asked before has no window that begins before: its documents went
        since_us += (definition.origin_us - since_us) % level_us
    of = replace(version, definition=definition, horizon_us=None, rollups=())

    def answered(number: int) -> run.Task:
        return shard.merge(store, of, number, None)

    numbers = sorted(map(int, version.shards))
    anew = run.following(store, of, spread(answered, numbers), spread, everything=True)
    files = [*read.window_files(store, anew)]

    def cut(number: int) -> run.Task:
        table = read.as_asked(store.read(files[number]), definition)
        rows = horizon.between(table, definition, since_us, until_us)
        name = store.write("rollups", rows) if rows.num_rows else None
        store.settle()
        return name, {"rows": rows.num_rows}

    made = [(name, told["rows"]) for _, (name, told) in spread(cut, range(len(files))) if name]
    store.discard(anew, version)
    told = {"level_us": level_us, "since_us": since_us, "until_us": until_us}
    return told | {"files": [name for name, _ in made], "rows": sum(rows for _, rows in made)}


def levels_of(told: Sequence[tuple[int, int | None]]) -> dict[int, int | None]:
    """Levels as they are asked, each once. Raises TableError where one is kept no longer than it lasts."""
    out = dict(told)
    for level, kept in out.items():
        if kept is not None and kept <= level:
            raise TableError(f"a roll-up of {level} us kept for {kept} us holds no window: keep it longer")
    return out
