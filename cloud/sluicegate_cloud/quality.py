"""How much of what exists was merged: counts of documents, completeness, and what was not used.

Completeness is readings merged / readings known to exist: by ordinals, by the source's sequence numbers, and in
documents that are left out. Readings in doubt may be repeats, so that both are taken without them: it is at least that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from sluicegate_cloud.schema import COPY, PROBLEMS, USED

#: Of a used document some readings are left out.
PARTLY = "partly"
#: Problems named in a summary; all of them are counted.
NAMED = 100


_SUMMED = ("readings", "buckets", "gap", "doubt", "hole", "lost")
#: What a row of `tally` is told by.
TOLD_BY = ("device", "stream", "incarnation", "key", "fate")


def tally(documents: DataFrame) -> list[dict[str, Any]]:
    """One row per TOLD_BY: how many `files`, their `bytes`, `first_us`, `last_us`, an `id`, and the sums of _SUMMED.

    `documents` as `dedupe.catalogue` gives them; refused ones belong to no stream. `id`: of one of them, of which
    readings are lost if they are of any. Runs one Spark job.
    """
    rows = documents.groupBy(*TOLD_BY).agg(
        sf.count("*").alias("files"),
        sf.sum("size").alias("bytes"),
        *(sf.sum(sf.coalesce(name, sf.lit(0))).alias(name) for name in _SUMMED),
        sf.sum((_in_part()).cast("bigint")).alias(PARTLY),
        sf.min("t_first").alias("first_us"),
        sf.max("t_last").alias("last_us"),
        sf.coalesce(sf.min(sf.when(sf.col("lost") > 0, sf.col("id"))), sf.min("id")).alias("id"),
    )
    return sorted((row.asDict() for row in rows.collect()), key=lambda row: tuple(row[name] or "" for name in TOLD_BY))


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
