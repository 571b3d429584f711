"""Times of a fleet's merge, and how they grow; every way on the same buckets in one run.

python -m bench.cloud [--buckets 1000000] [--quick] [--out bench/results/cloud.json]

Seconds on the clock, and seconds of processor of this process and all below it (Spark's Java and its workers), which
say more on a machine that is not idle. The session is up, and each way has run once on a small file.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.cloud import ways
from bench.cloud.buckets import write

from sluicegate_cloud.names import ALL
from sluicegate_cloud.session import spark_session

_TICKS = os.sysconf("SC_CLK_TCK")


def processor_seconds() -> float:
    """Of this process and its descendants, those that have ended among them where their parents waited for them."""
    parents, used = {}, {}
    for at in Path("/proc").iterdir():
        if at.name.isdigit():
            try:
                fields = (at / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has ended since
                continue
            parents[int(at.name)], used[int(at.name)] = int(fields[1]), sum(map(int, fields[11:15]))
    mine, before = {os.getpid()}, 0
    while len(mine) > before:
        before = len(mine)
        mine |= {process for process, parent in parents.items() if parent in mine}
    return sum(used.get(process, 0) for process in mine) / _TICKS


def timed(way: ways.Way, path: Path, width: int) -> dict[str, float]:
    """Seconds on the clock and of processor."""
    return clocked(lambda: way(path, width))


def clocked(work: Callable[[], Any]) -> dict[str, float]:
    """Seconds on the clock and of processor that `work` takes."""
    clock, used = time.perf_counter(), processor_seconds()
    work()
    return {"s": round(time.perf_counter() - clock, 2), "cpu_s": round(processor_seconds() - used, 2)}


def cases(spark: Any, buckets: int, *, quick: bool) -> Iterator[tuple[str, ways.Way | None, int, bool, int]]:
    """(what, way, devices, whether buckets cross frames, width)."""
    mine, plain = ways.ours(spark), ways.plain_spark(spark)
    for width in (60,) if quick else (60, 3_600):
        devices = max(buckets // 10_000, 1)
        yield "ours", mine, devices, False, width
        yield "ours, buckets cross frames", mine, devices, True, width
        yield "plain Spark", plain, devices, False, width
        yield "DuckDB", ways.duckdb(), devices, False, width
        yield "Polars", ways.polars(), devices, False, width
    yield "ours, with the fleet's windows", ways.ours(spark, fleet=True), max(buckets // 10_000, 1), False, 60
    yield "ours, all aggregates", ways.ours(spark, ALL), max(buckets // 10_000, 1), False, 60
    for devices in (10, 1_000) if quick else (100, 10_000):
        yield f"ours, {devices:,} devices", mine, devices, False, 60


def main() -> None:
    """Warm up, run every case, print a table and JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--buckets", type=int, default=1_000_000)
    parser.add_argument("--quick", action="store_true", help="fewer cases")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    spark = spark_session("local[2]", {"spark.driver.memory": "1g"})
    told: list[dict[str, Any]] = []
    with TemporaryDirectory() as folder:
        for what, way, devices, crossing, width in cases(spark, asked.buckets, quick=asked.quick):
            if way is None:
                print(f"{what}: not installed, left out")
                continue
            path, small = (Path(folder, f"{size}-{devices}-{crossing}.parquet") for size in (asked.buckets, 2_000))
            for file, size in ((path, asked.buckets), (small, 2_000)):
                if not file.exists():
                    write(file, max(size, devices), devices, crossing=crossing)
            way(small, width)
            told.append({"what": what, "devices": devices, "width": width, **timed(way, path, width)})
            row = told[-1]
            print(
                f"{what:<34}{devices:>8,} devices{width:>7,} frames{row['s']:>9.2f} s{row['cpu_s']:>9.2f} s of CPU",
                flush=True,
            )
    spark.stop()
    text = json.dumps(
        {"buckets": asked.buckets, "cores": os.cpu_count(), "load": os.getloadavg()[0], "rows": told}, indent=2
    )
    if asked.out:
        asked.out.parent.mkdir(parents=True, exist_ok=True)
        asked.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
