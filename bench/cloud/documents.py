"""Chunk documents: how fast they are read, listed where they are many and small, and taken in by one micro-batch.

python -m bench.cloud.documents [--buckets 200000] [--small 100000] [--out bench/results/cloud_documents.json]

Documents of 500 buckets are decoded in this process (buckets a second of its processor, best of three), and again where
each fifth bucket tells of a loss. Small ones of two buckets are listed, decoded and told apart by Spark on two cores.
The micro-batch has 100,000 buckets of 200 devices: `cloud stream` from a folder into windows of 60 frames, after one on
a small folder.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pyarrow as pa
from bench.cloud.__main__ import clocked

from sluicegate.format.bucket import Bucket, Builder
from sluicegate.format.chunk import Chunk, encode
from sluicegate_cloud.documents import decode_files
from sluicegate_cloud.session import QUICK, spark_session
from sluicegate_cloud.sources import read_buckets
from sluicegate_cloud.table import job
from sluicegate_cloud.table import stream as streaming

SECOND, READINGS, LARGE, FEW, BATCH = 1_000_000, 10, 500, 2, 100_000
ASKED = ("count", "sum", "mean", "std", "min", "max")


def buckets_of(count: int, every: int | None = None) -> list[Bucket]:
    """So many buckets of a reading a second, quarters that go up and down; in `every` so manieth three are lost."""
    builder, out = Builder(20.0), []
    for at in range(count * READINGS):
        is_lost = every is not None and at % (every * READINGS) == READINGS // 2
        builder.add(20 + (at * 7 % 40) / 4, 1_793_491_200 * SECOND + at * SECOND, 3 if is_lost else 0)
        if at % READINGS == READINGS - 1:
            out.append(builder.close())
    return out


def write(folder: Path, documents: int, buckets: list[Bucket]) -> list[str]:
    """A document of these buckets for each of so many devices; the paths."""
    folder.mkdir()
    paths = []
    for at in range(documents):
        data = encode(Chunk(f"board-{at:06d}", "temp", f"{at:016x}", 20.0, buckets, [None] * len(buckets)))
        path = folder / f"{at:06d}.json"
        path.write_bytes(data)
        paths.append(str(path))
    return paths


def read(paths: list[str]) -> float:
    """Seconds of this process's processor for decoding them, the least of three."""
    took = []
    for _ in range(3):
        begun, rows = time.process_time(), 0
        for batch in decode_files([pa.RecordBatch.from_pydict({"path": paths})]):
            if batch["reason"].null_count != batch.num_rows:
                raise SystemExit(f"not all could be read: {batch['reason']}")
            rows += batch.num_rows
        took.append(time.process_time() - begun)
        if rows != len(paths):
            raise SystemExit(f"{rows} of {len(paths)} documents were read")
    return min(took)


def measured(folder: Path, buckets: int, small: int) -> Iterator[dict[str, Any]]:
    """The three, one after the other; what is made is removed."""
    large = buckets_of(LARGE)
    for what, some in (("decoded", large), ("decoded, each fifth with a loss", buckets_of(LARGE, 5))):
        paths = write(folder / "large", max(buckets // LARGE, 1), some)
        size = sum(Path(path).stat().st_size for path in paths)
        seconds = read(paths)
        row: dict[str, Any] = {"what": what, "documents": len(paths), "buckets": len(paths) * LARGE, "bytes": size}
        yield row | {"cpu_s": round(seconds, 3), "buckets_a_core": round(row["buckets"] / seconds)}
        shutil.rmtree(folder / "large")
    spark = spark_session("local[2]", {**QUICK, "spark.driver.memory": "1g"})
    try:
        write(folder / "few", 100, large[:FEW])
        _listed(spark, folder / "few")
        write(folder / "small", small, large[:FEW])
        row = {"what": "small ones listed and read", "documents": small}
        yield row | clocked(lambda: _listed(spark, folder / "small"))
        shutil.rmtree(folder / "small")
        _streamed(spark, folder / "few", folder / "warm")
        write(folder / "batch", BATCH // LARGE, large)
        row = {"what": "a micro-batch", "documents": BATCH // LARGE, "buckets": BATCH}
        yield row | clocked(lambda: _streamed(spark, folder / "batch", folder / "table"))
    finally:
        spark.stop()


def _listed(spark: Any, folder: Path) -> None:
    read_buckets(spark, str(folder)).write.format("noop").mode("overwrite").save()


def _streamed(spark: Any, source: Path, table: Path) -> None:
    frame = READINGS * SECOND
    definition = job.definition_of(60 * frame, frame, ASKED)
    streaming.finish(lambda: streaming.stream(spark, str(source), str(table), definition))


def main() -> None:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--buckets", type=int, default=200_000)
    parser.add_argument("--small", type=int, default=100_000)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    folder, rows = Path(mkdtemp(prefix="bench-documents-")), []
    try:
        for row in measured(folder, asked.buckets, asked.small):
            rows.append(row | {"load": round(os.getloadavg()[0], 1)})
            print(json.dumps(rows[-1]), flush=True)
    finally:
        shutil.rmtree(folder)
    if asked.out:
        asked.out.write_text(json.dumps({"cores": os.cpu_count(), "rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
