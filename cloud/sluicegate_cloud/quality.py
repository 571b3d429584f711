"""How much of what exists was merged: counts of documents, completeness, and what was not used.

Completeness is readings merged / readings known to exist: by ordinals, by the source's sequence numbers, and in
documents that are left out. Readings in doubt may be repeats, so that both are taken without them: it is at least that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from sluicegate_cloud.schema import COPY, PROBLEMS, USED, ddl

#: Of a used document some readings are left out.
PARTLY = "partly"
#: Problems named in a summary; all of them are counted.
NAMED = 100


_SUMMED = ("readings", "buckets", "gap", "doubt", "hole", "lost")
#: What a row of `tally` is told by.
TOLD_BY = ("device", "stream", "incarnation", "key", "fate")
#: How the other columns of documents are added up.
_HOW = dict.fromkeys((*_SUMMED, PARTLY, "size", "files"), "sum")
_HOW |= {"t_first": "min", "t_last": "max", "id": "min", "of_lost": "min"}
_TALLIED = dict.fromkeys(TOLD_BY, "string") | dict.fromkeys(_HOW, "bigint") | dict.fromkeys(("id", "of_lost"), "string")
Row = dict[str, Any]


def tally(documents: DataFrame) -> list[Row]:
    """One row per TOLD_BY: how many `files`, their `bytes`, `first_us`, `last_us`, an `id`, and the sums of _SUMMED.

    `documents` as `dedupe.catalogue` gives them; refused ones belong to no stream. `id`: of one of them, of which
    readings are lost if they are of any. Runs one Spark job, without a shuffle: workers add up what they have.
    """
    told = documents.select(*TOLD_BY, *_SUMMED, "size", "t_first", "t_last", "id").mapInArrow(_tallied, ddl(_TALLIED))
    return named(added_up(told.toArrow()))


def marked(rows: pa.Table) -> pa.Table:
    """Documents, with what `added_up` adds up of them; `files`, where they have it: for how many each row stands."""
    lost = pc.greater(pc.fill_null(rows["lost"], 0), 0)
    partly = pc.cast(pc.and_(lost, pc.equal(rows["fate"], USED)), pa.int64())
    rows = rows.append_column(PARTLY, partly).append_column("of_lost", pc.if_else(lost, rows["id"], None))
    return rows if "files" in rows.column_names else rows.append_column("files", pa.repeat(1, rows.num_rows))


def added_up(rows: pa.Table) -> pa.Table:
    """Rows of `marked`, or of this → one per TOLD_BY."""
    found = rows.group_by([*TOLD_BY]).aggregate([*_HOW.items()])
    return found.select([*TOLD_BY, *map("_".join, _HOW.items())]).rename_columns([*_TALLIED])


def named(tallied: pa.Table) -> list[Row]:
    """The rows of `tally`, of those of `added_up`."""
    rows = []
    for row in tallied.to_pylist():
        told = {name: row[name] or 0 for name in (*_SUMMED, PARTLY, "files")} | {"bytes": row["size"] or 0}
        told |= {"first_us": row["t_first"], "last_us": row["t_last"], "id": row["of_lost"] or row["id"]}
        rows.append({name: row[name] for name in TOLD_BY} | told)
    return sorted(rows, key=lambda row: tuple(row[name] or "" for name in TOLD_BY))


def _tallied(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield from added_up(marked(pa.Table.from_batches([batch]))).to_batches()


def document_counts(tallied: Iterable[dict[str, Any]]) -> dict[str, int]:
    """`files` read, their `bytes`, how many are `used` (and `used_bytes`, PARTLY), and how many met each other fate."""
    counts = dict.fromkeys(("files", "bytes", "used_bytes", USED, PARTLY, COPY, *PROBLEMS), 0)
    for row in tallied:
        counts["files"] += row["files"]
        counts["bytes"] += row["bytes"]
        counts[row["fate"]] += row["files"]
        counts[PARTLY] += row[PARTLY]
        counts["used_bytes"] += row["bytes"] if row["fate"] == USED else 0
    return counts


def completeness(tallied: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Per device and stream in use: `readings`, `missing`, `doubt`, `completeness`, `buckets`, first and last time."""
    streams: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in tallied:
        streams.setdefault((row["device"], row["stream"]), []).append(row)
    for (device, stream), mine in streams.items():
        used = [row for row in mine if row["fate"] == USED]
        if not used:
            continue
        readings, doubt, gap, buckets = (
            sum(row[name] for row in used) for name in ("readings", "doubt", "gap", "buckets")
        )
        missing = max(gap + sum(row["hole"] for row in mine), 0)
        times = {"first_us": min(row["first_us"] for row in used), "last_us": max(row["last_us"] for row in used)}
        told = {"device": device, "stream": stream, "readings": readings, "buckets": buckets}
        yield told | times | _complete(readings, missing, doubt)


def by_device(streams: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The completeness of each device over all its streams."""
    totals: dict[str, list[int]] = {}
    for stream in streams:
        total = totals.setdefault(stream["device"], [0, 0, 0])
        for i, name in enumerate(("readings", "missing", "doubt")):
            total[i] += stream[name]
    return [{"device": device, "readings": total[0]} | _complete(*total) for device, total in totals.items()]


def problems(documents: DataFrame, limit: int = NAMED) -> list[dict[str, Any]]:
    """The first that were not used as they came: `fate`, `path`, `id`, `device`, `reason`.

    `fate`: refused, conflict, overlap, or used where readings of it are left out. Of a refused one `id` and `device`
    are what it claims, null where it says nothing that can be read.
    """
    troubled = documents.where(sf.col("fate").isin(*PROBLEMS) | _in_part())
    troubled = troubled.select("fate", "path", "id", "device", "reason")
    return [row.asDict() for row in troubled.orderBy("fate", "path").limit(limit).collect()]


def _in_part() -> Column:
    return (sf.col("fate") == USED) & (sf.col("lost") > 0)


def _complete(readings: int, missing: int, doubt: int) -> dict[str, Any]:
    certain = readings - doubt
    share = certain / (certain + missing) if certain + missing else 1.0 if readings else None
    return {"missing": missing, "doubt": doubt, "completeness": share}
