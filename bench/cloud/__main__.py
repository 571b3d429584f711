"""Times of a fleet's merge, and how they grow; every way on the same buckets in one run.

python -m bench.cloud [--buckets 1000000] [--only PATTERN] [--out bench/results/cloud.json]
python -m bench.cloud --buckets 100000000 --only 'ours$'

Seconds on the clock, and seconds of processor of this process and all below it (Spark's Java and its workers), which
say more on a machine that is not idle. The session is up, and each way has run once on a small file. What was measured
is written after each case; a later run with other cases of as many buckets adds to it. Buckets are made in 500,000 at a
time, into a file of Parquet in TMPDIR (20 to 84 bytes a bucket) that goes as soon as no case needs it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.cloud import ways
from bench.cloud.buckets import write
from bench.cloud.processes import watched

from sluicegate_cloud.names import AGGREGATES, ALL
from sluicegate_cloud.session import spark_session

#: (what, way, devices, how the buckets are, width)
Case = tuple[str, ways.Way | None, int, str, int]
EVEN, CROSSING, HOT = "even", "crossing", "hot"


def clocked(work: Callable[[], Any]) -> dict[str, float]:
    """What `work` takes: seconds on the clock and of processor, MB at most of all processes and of one worker."""
    with watched() as usage:
        clock = time.perf_counter()
        work()
        seconds = time.perf_counter() - clock
    told = {"cpu_s": round(usage.cpu_s, 2), "peak_mb": round(usage.peak_mb), "worker_mb": round(usage.worker_mb)}
    return {"s": round(seconds, 2), **told}


def cases(spark: Any, buckets: int, *, quick: bool) -> Iterator[Case]:
    """The four ways at each width, then what ours grows with."""
    mine, plain = ways.ours(spark), ways.plain_spark(spark)
    usual = max(buckets // 10_000, 1)
    for width in (60,) if quick else (60, 3_600):
        yield "ours", mine, usual, EVEN, width
        yield "plain Spark", plain, usual, EVEN, width
        yield "DuckDB", ways.duckdb(), usual, EVEN, width
        yield "Polars", ways.polars(), usual, EVEN, width
    yield "ours, buckets cross frames", mine, usual, CROSSING, 60
    yield "ours, of a DataFrame", ways.ours_of_rows(spark), usual, EVEN, 60
    yield "ours, with the fleet's windows", ways.ours(spark, fleet=True), usual, EVEN, 60
    yield "ours, five aggregates", ways.ours(spark, AGGREGATES), usual, EVEN, 60
    yield "ours, eleven aggregates", ways.ours(spark, ALL), usual, EVEN, 60
    yield "ours, one stream of nine tenths", mine, usual, HOT, 60
    yield "ours, of a DataFrame, one stream of nine tenths", ways.ours_of_rows(spark, spread=True), usual, HOT, 60
    for width in (2, 60):  # 100 buckets of a stream have 101 windows of two frames, 159 of 60
        for devices in (10, 1_000) if quick else (100, max(buckets // 100, 100)):
            yield f"ours, {devices:,} devices", mine, devices, EVEN, width


def main() -> None:
    """Warm up, run every case, print a table and JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--buckets", type=int, default=1_000_000)
    parser.add_argument("--quick", action="store_true", help="fewer cases")
    parser.add_argument(
        "--only", default="", metavar="PATTERN", help="the cases whose name has this: a regular expression"
    )
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    spark = spark_session("local[2]", {"spark.driver.memory": "1g"})
    told = _told(asked.out, asked.buckets)
    with TemporaryDirectory() as folder:
        wanted = [of for of in cases(spark, asked.buckets, quick=asked.quick) if re.search(asked.only, of[0])]
        for at, case in enumerate(wanted):
            if case[1] is None:
                print(f"{case[0]}: not installed, left out")
                continue
            row = _of(case, case[1], Path(folder), asked.buckets)
            if case[2:4] not in [later[2:4] for later in wanted[at + 1 :]]:
                _path(Path(folder), asked.buckets, case).unlink()
            told[row["what"], row["devices"], row["width"]] = row
            _write(asked.out, asked.buckets, list(told.values()))
    spark.stop()


def _of(case: Case, way: ways.Way, folder: Path, buckets: int) -> dict[str, Any]:
    what, _, devices, kind, width = case
    path, small = (_path(folder, size, case) for size in (buckets, 2_000))
    for file, size in ((path, buckets), (small, 2_000)):
        if not file.exists():
            write(file, max(size, devices), devices, crossing=kind == CROSSING, hot=kind == HOT)
    way(small, width)
    used = clocked(lambda: way(path, width))
    row = {"what": what, "devices": devices, "width": width, **used, "load": round(os.getloadavg()[0], 1)}
    row["file_mb"] = round(path.stat().st_size / 1e6)
    print(
        f"{what:<32}{devices:>8,} devices{width:>7,} frames{row['s']:>9.2f} s{row['cpu_s']:>9.2f} s of CPU"
        f"{row['peak_mb']:>7,} MB, a worker {row['worker_mb']:,}",
        flush=True,
    )
    return row


def _path(folder: Path, buckets: int, case: Case) -> Path:
    """The file of buckets that a case is asked of."""
    return folder / f"{buckets}-{case[2]}-{case[3]}.parquet"


def _told(out: Path | None, buckets: int) -> dict[tuple[str, int, int], dict[str, Any]]:
    """What an earlier run with as many buckets measured."""
    if out is None or not out.exists():
        return {}
    known = json.loads(out.read_text())
    rows = known["rows"] if known["buckets"] == buckets else []
    return {(row["what"], row["devices"], row["width"]): row for row in rows}


def _write(out: Path | None, buckets: int, rows: list[dict[str, Any]]) -> None:
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps({"buckets": buckets, "cores": os.cpu_count(), "rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
