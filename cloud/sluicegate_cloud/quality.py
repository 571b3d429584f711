"""How much of what exists was merged, and how exact it is: counts of documents, completeness, shares of exact windows.

Completeness is readings merged / readings that ordinals and the source's sequence numbers say exist.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from sluicegate_cloud.dedupe import COPY, PROBLEMS, USED

#: Problems named in a summary; all of them are counted.
NAMED = 100


def tally(documents: DataFrame) -> list[dict[str, Any]]:
    """One row per device, stream and fate: `files`, `bytes`, `readings`, `gap`, `buckets`, `first_us`, `last_us`.

    `documents` as `dedupe.catalogue` gives them; refused ones belong to no stream. Runs one Spark job.
    """
    rows = documents.groupBy("device", "stream", "fate").agg(
        sf.count("*").alias("files"),
        sf.sum("size").alias("bytes"),
        *(sf.sum(name).alias(name) for name in ("readings", "buckets")),
        (sf.sum("gap") + sf.sum("hole")).alias("gap"),
        sf.min("t_first").alias("first_us"),
        sf.max("t_last").alias("last_us"),
    )
    return sorted((row.asDict() for row in rows.collect()), key=lambda row: (row["device"] or "", row["stream"] or ""))


def document_counts(tallied: Iterable[dict[str, Any]]) -> dict[str, int]:
    """`files` read, their `bytes`, how many are `used` (and `used_bytes`), and how many met each other fate."""
    counts = dict.fromkeys(("files", "bytes", "used_bytes", USED, COPY, *PROBLEMS), 0)
    for row in tallied:
        counts["files"] += row["files"]
        counts["bytes"] += row["bytes"]
        counts[row["fate"]] += row["files"]
        counts["used_bytes"] += row["bytes"] if row["fate"] == USED else 0
    return counts


def completeness(tallied: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Per device and stream: `readings`, `missing`, `completeness`, `buckets`, `first_us` and `last_us`."""
    for row in tallied:
        if row["fate"] == USED:
            kept = {name: row[name] for name in ("device", "stream", "readings", "buckets", "first_us", "last_us")}
            yield kept | _complete(row["readings"], max(row["gap"], 0))


def by_device(streams: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The completeness of each device over all its streams."""
    totals: dict[str, list[int]] = {}
    for stream in streams:
        total = totals.setdefault(stream["device"], [0, 0])
        total[0] += stream["readings"]
        total[1] += stream["missing"]
    return [{"device": device, "readings": held} | _complete(held, gone) for device, (held, gone) in totals.items()]


def exact_shares(windows: pa.Table, aggregates: Sequence[str]) -> dict[str, Any]:
    """`rows`, how many hold a reading, and for each aggregate the share of these whose answer is exact."""
    held = windows.filter(pc.greater(windows["count_high"], 0))
    shares = {name: pc.mean(held[f"{name}_exact"].cast(pa.int8())).as_py() for name in aggregates}
    return {"rows": windows.num_rows, "with_readings": held.num_rows, "exact": shares}


def problems(documents: DataFrame, limit: int = NAMED) -> list[dict[str, Any]]:
    """The first that were not used as they came: `fate` (refused, conflict, overlap), `path`, `id`, `reason`."""
    troubled = documents.where(sf.col("fate").isin(*PROBLEMS)).select("fate", "path", "id", "reason")
    return [row.asDict() for row in troubled.orderBy("fate", "path").limit(limit).collect()]


def _complete(readings: int, missing: int) -> dict[str, Any]:
    known = readings + missing
    return {"missing": missing, "completeness": readings / known if known else None}
