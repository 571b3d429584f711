"""The cloud half's work through the cloud's own calls, and its windows read back as rows for the comparison."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sluicegate_demo.truth import AGGREGATES

FOLDER = "merged"
_BATCH = 20_000


def merge(source: str, out: Path, length_us: int, slide_us: int) -> None:
    """Merge the chunks at `source` into windows, per device and fleet-wide, in `out/merged`. Raises CloudError."""
    from pyspark.sql import SparkSession

    from sluicegate_cloud import job

    job.merge([source], out / FOLDER, length_us, slide_us, AGGREGATES)
    if (session := SparkSession.getActiveSession()) is not None:
        session.stop()


def report(out: Path, summary: Path) -> Path:
    """Write `out/report.html` of the merged windows and the demo's summary; its path."""
    from sluicegate_cloud.report import write_report

    page = out / "report.html"
    write_report(out / FOLDER, page, summary)
    return page


def window_count(out: Path) -> int:
    """How many rows `windows` has."""
    return int(_table(out).count_rows())


def windows(out: Path) -> Iterator[dict[str, Any]]:
    """Every window row of the Parquet tables, some thousands in memory at a time."""
    ends = ("", "_low", "_high", "_exact")
    columns = ["device", "stream", "window_start", "window_end"]
    columns += [aggregate + end for aggregate in AGGREGATES for end in ends]
    for batch in _table(out).to_batches(columns=columns, batch_size=_BATCH):
        yield from batch.to_pylist()


def _table(out: Path) -> Any:
    import pyarrow as pa
    import pyarrow.dataset as dataset

    by_stream = dataset.partitioning(pa.schema([("stream", pa.string())]), flavor="hive")
    return dataset.dataset(out / FOLDER / "windows", format="parquet", partitioning=by_stream)
