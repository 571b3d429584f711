"""A table's runs: all documents of a fleet, one new document a device, all windows anew; beside the rows of `ways`.

python -m bench.cloud.table [--buckets 10000000] [--devices 1000] [--out bench/results/cloud_table.json]

The documents come as the rows into which files are decoded, so that reading JSON is not timed; windows are written to
Parquet and synced. Peak memory is that of the greatest worker.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from bench.cloud.__main__ import clocked
from bench.cloud.buckets import SLIDE_US, bucket_columns

from sluicegate_cloud.documents import ARROW, DOCUMENTS
from sluicegate_cloud.schema import BUCKET_FIELDS
from sluicegate_cloud.session import spark_session
from sluicegate_cloud.table import job

_BUCKETS = 500
SIX = ("count", "sum", "mean", "std", "min", "max")


def documents(devices: range, buckets: range) -> Iterator[pa.RecordBatch]:
    """Documents of these buckets of each device, at most _BUCKETS in one."""
    for begin in range(buckets.start, buckets.stop, _BUCKETS):
        index = np.arange(begin, min(begin + _BUCKETS, buckets.stop))
        for device in devices:
            fields = bucket_columns(index, np.zeros_like(index))
            fields["total"] = fields["total"] + (device % 7) * 0.25
            yield pa.RecordBatch.from_pylist([_row(device, fields)], ARROW)


def _row(device: int, fields: dict[str, Any]) -> dict[str, Any]:
    packed = b"".join(np.ascontiguousarray(fields[name]).tobytes() for name in BUCKET_FIELDS)
    first, name = int(fields["first"][0]), f"device-{device:06d}"
    head = {"path": f"{name}-{first}", "id": f"{name}::temp::{first}", "device": name, "stream": "temp", "center": 20.0}
    head |= {"incarnation": "0" * 16, "first": first, "readings": int(fields["n"].sum()), "buckets": fields["n"].size}
    head |= {"t_first": int(fields["t_first"][0]), "t_last": int(fields["t_last"][-1]), "size": len(packed) // 6}
    return head | {"gap": 0, "doubt": 0, "digest": f"{name}-{first}", "content": f"{name}-{first}", "packed": packed}


def write(path: Path, devices: range, buckets: range) -> Path:
    """A Parquet file of documents."""
    with pq.ParquetWriter(path, ARROW, compression="zstd", compression_level=1) as file:
        held: list[pa.RecordBatch] = []
        for batch in documents(devices, buckets):
            held.append(batch)
            if len(held) == 64:
                file.write_table(pa.Table.from_batches(held))
                held = []
        if held:
            file.write_table(pa.Table.from_batches(held))
    return path


def main() -> None:
    """Run, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--buckets", type=int, default=1_000_000)
    parser.add_argument("--devices", type=int, default=1_000)
    parser.add_argument("--widths", default="60,3600")
    parser.add_argument("--new", type=int, default=6, help="buckets of each device's new document")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    spark = spark_session("local[2]", {"spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "16"})
    folder = Path(mkdtemp(prefix="bench-table-"))
    told: list[dict[str, Any]] = []
    try:
        for width in map(int, asked.widths.split(",")):
            for row in _of_width(spark, folder, asked, width):
                told.append(row)
                _keep(asked, told)
    finally:
        spark.stop()
        shutil.rmtree(folder)


def _keep(asked: Any, told: list[dict[str, Any]]) -> None:
    """Write what is measured so far, where that is asked for."""
    if asked.out:
        settings = {"buckets": asked.buckets, "devices": asked.devices, "cores": os.cpu_count(), "new": asked.new}
        asked.out.write_text(json.dumps(settings | {"load": os.getloadavg()[0], "rows": told}, indent=2) + "\n")


def _of_width(spark: Any, folder: Path, asked: Any, width: int) -> Iterator[dict[str, Any]]:
    each, devices = asked.buckets // asked.devices, range(asked.devices)
    definition = job.definition_of(width * SLIDE_US, SLIDE_US, SIX)
    small = write(folder / "small.parquet", range(16), range(20))
    job.take(spark, spark.read.schema(DOCUMENTS).parquet(str(small)), folder / f"warm-{width}", definition)
    file = write(folder / "all.parquet", devices, range(each))
    news = write(folder / "new.parquet", devices, range(each, each + asked.new))
    table = folder / f"table-{width}"

    def taken(of: Path) -> Callable[[], Any]:
        return lambda: job.take(spark, spark.read.schema(DOCUMENTS).parquet(str(of)), table, definition)

    for what, way in (
        ("all documents", taken(file)),
        ("one new document a device", taken(news)),
        ("all windows anew", lambda: job.rebuild(spark, table)),
    ):
        row = {"what": what, "width": width, **clocked(way)}
        print(f"{what:<30}{width:>6} frames{row['s']:>9.2f} s{row['cpu_s']:>9.2f} s of CPU", flush=True)
        yield row
    shutil.rmtree(table)


if __name__ == "__main__":
    main()
