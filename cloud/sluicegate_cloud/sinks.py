"""Windows → Parquet, partitioned by stream: a rerun gives the same rows, a failed run leaves the former.

OUT/windows/stream=<name>/part-….parquet     rows sorted by device and window_start
OUT/summary.json                             what was read, how complete and how exact it is
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
from pyspark.sql import DataFrame

from sluicegate_cloud.errors import SinkError

WINDOWS, SUMMARY = "windows", "summary.json"


def prepare(out: Path) -> None:
    """Make the folder `out`, and see that it can be written. Raises SinkError before any work is spent."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        probe = out / f".probe-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise SinkError(f"cannot write {str(out)!r}: {error.strerror}; choose a folder that you may write") from error


def write_windows(windows: DataFrame, out: Path) -> Path:
    """Replace OUT/windows by the rows of `windows`, one file a stream. Raises SinkError as `prepare` does."""
    prepare(out)
    final, new, old = (out / name for name in (WINDOWS, ".windows-new", ".windows-old"))
    ordered = windows.repartition("stream").sortWithinPartitions("stream", "device", "window_start")
    ordered.write.mode("overwrite").partitionBy("stream").parquet(new.absolute().as_uri())
    shutil.rmtree(old, ignore_errors=True)
    if final.exists():
        final.rename(old)
    new.rename(final)
    shutil.rmtree(old, ignore_errors=True)
    return final


def read_windows(out: Path, columns: list[str] | None = None) -> pa.Table:
    """The rows that `write_windows` stored, or some of their columns, without Spark. Raises SinkError for none."""
    return windows_at(out).to_table(columns)


def windows_at(out: Path) -> ds.Dataset:
    """The same, to be read a batch at a time; a stream "007" stays text. Raises SinkError when there are none."""
    if not (out / WINDOWS).is_dir():
        raise SinkError(f"{str(out)!r} holds no windows: give the folder that `sluicegate cloud merge --out` wrote")
    stream = ds.partitioning(pa.schema([("stream", pa.string())]), flavor="hive")
    return ds.dataset(out / WINDOWS, format="parquet", partitioning=stream)


def write_summary(summary: dict[str, Any], out: Path) -> Path:
    """Replace OUT/summary.json by rename. Raises SinkError."""
    path, new = out / SUMMARY, out / f".{SUMMARY}-new"
    try:
        new.write_text(json.dumps(summary, indent=2, ensure_ascii=False, allow_nan=False) + "\n")
        new.replace(path)
    except OSError as error:
        raise SinkError(f"cannot write {str(path)!r}: {error.strerror}") from error
    return path
