"""What a table says of itself, as `cloud merge --out` says it in summary.json: for the report. Needs no Spark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from sluicegate_cloud import alarms, quality, shares
from sluicegate_cloud.errors import SinkError
from sluicegate_cloud.extras.asked import asked_of
from sluicegate_cloud.extras.windows import arrow
from sluicegate_cloud.places.folder import Folder
from sluicegate_cloud.report.told import Told
from sluicegate_cloud.schema import PROBLEMS, RETIRED, USED
from sluicegate_cloud.table import aside as asides
from sluicegate_cloud.table import read
from sluicegate_cloud.table.ledger import used_columns
from sluicegate_cloud.table.settled.rows import load, of_runs
from sluicegate_cloud.table.versions import Store, Version

Row = dict[str, Any]


def of_table(store: Store, version: Version) -> Told:
    """The windows of devices and of all of them, without roll-ups by tags, and their summary. Raises SinkError."""
    windows = _windows(store, version)
    tallied, problems = _tallied(store, version)
    streams = [*quality.completeness(tallied)]
    definition = version.definition
    raised = [*alarms.alarms(tallied), *alarms.set_aside(tallied, set_aside(store, version))]
    aggregates = (*definition.aggregates, *(name for each in asked_of(definition.carried) for name in each.names))
    ends = ["count_high", "windows", *(f"{name}_exact" for name in aggregates)]
    told: dict[str, Any] = {name: getattr(definition, name) for name in ("window_us", "slide_us", "origin_us")}
    told |= {"documents": quality.document_counts(tallied), "problems": problems}
    told |= {"windows": shares.exact_shares(windows.to_batches(columns=ends), aggregates)}
    told |= {"alarms": raised[: alarms.NAMED], "alarms_in_all": len(raised)}
    return Told(str(store.root), told | {"devices": quality.by_device(streams), "streams": streams}, windows)


def tally(ledger: pa.Table) -> list[Row]:
    """The rows of `quality.tally`, of a shard's ledger; what retention took out is not among them."""
    rows = ledger.filter(pc.not_equal(ledger["fate"], RETIRED))
    for name, column in used_columns(rows).items():
        if name in rows.column_names:
            rows = rows.set_column(rows.column_names.index(name), name, pa.array(column))
    files = of_runs(rows, "documents", np.ones(rows.num_rows, np.int64))
    return quality.named(quality.added_up(quality.marked(rows.append_column("files", pa.array(files)))))


def _tallied(store: Store, version: Version) -> tuple[list[Row], list[Row]]:
    """Of all shards, and the first documents that were not used as they came."""
    tallied: list[Row] = []
    problems: list[Row] = []
    for ledger in ledgers(store, version):
        tallied += tally(ledger)
        lost = pc.and_(pc.equal(ledger["fate"], USED), pc.greater(pc.fill_null(ledger["lost"], 0), 0))
        some = ledger.filter(pc.or_(pc.is_in(ledger["fate"], value_set=pa.array(PROBLEMS)), lost))
        some = some.select(["fate", "path", "id", "device", "reason"])
        problems += some.sort_by([("fate", "ascending"), ("path", "ascending")]).slice(0, quality.NAMED).to_pylist()
    first = sorted(problems, key=lambda row: (row["fate"], row["path"]))[: quality.NAMED]
    return sorted(tallied, key=lambda row: tuple(row[name] or "" for name in quality.TOLD_BY)), first


def ledgers(store: Store, version: Version, columns: list[str] | None = None) -> Iterator[pa.Table]:
    """The ledger of each shard that has one, without what is set aside; or some columns of it, of all."""
    for index in map(store.read_json, version.shards.values()):
        if index["ledger"]:
            if columns:
                yield store.read(index["ledger"], columns)
            else:
                yield asides.without(load(store, index["ledger"]), asides.of_index(index))


def set_aside(store: Store, version: Version) -> dict[tuple[str, str], str]:
    """The streams of which something is set aside, and why."""
    indexes = map(store.read_json, version.shards.values())
    return {of: rest.why for index in indexes for of, rest in asides.of_index(index).items()}


def _windows(store: Store, version: Version) -> ds.Dataset:
    names = [*read.window_files(store, version)]
    if not names:
        raise SinkError(f"the table {store.root} holds no windows yet")
    schema = arrow(read.schema_of(version.definition))
    if isinstance(store.place, Folder):
        found = ds.dataset([str(store.root / name) for name in names], schema=schema, format="parquet")
    else:
        found = ds.dataset(read.rows_of(store, version))
    rollup = ds.field(read.ROLLUP)
    return found.filter(rollup.is_null() | (rollup == ""))
