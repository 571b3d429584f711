"""A fleet with outages from readings to windows: boards, chunk documents, a table in two runs, every promise checked.

python -m bench.cloud.fleet [--devices 10000] [--hours 24] [--out bench/results/cloud_fleet.json]

Each device has a reading a minute, of quarters, so that sums are exact. Buckets hold 10 readings, documents six hours.
One device in ten is away for hours: its buckets are merged by fours and come in one late document. One document in a
hundred is lost, one in fifty comes twice. The first run takes what came by three quarters of the time, the second the
rest. Windows of some devices and all those of the fleet are compared with the readings that arrived.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pyarrow as pa
from bench.cloud.__main__ import clocked

from sluicegate.format.bucket import Bucket, Builder, merge
from sluicegate.format.chunk import Chunk, encode
from sluicegate_cloud.session import spark_session
from sluicegate_cloud.table import devices as known
from sluicegate_cloud.table import job, read
from sluicegate_cloud.table.versions import Store, Version

MINUTE, HOUR = 60_000_000, 3_600_000_000
#: 2026-11-01, 00:00 UTC.
BEGIN = 1_793_491_200_000_000
READINGS, BUCKETS, WIDTH = 10, 36, 6
ASKED = ("count", "sum", "mean", "std", "min", "max")
#: Of how many devices each window is compared.
SAMPLE = 200
Arrived = tuple[list[int], list[float]]


def device(folder: Path, number: int, hours: int) -> tuple[int, dict[str, int], Arrived]:
    """Write a device's documents into `now` and `late`; what was written, and the readings that are in them."""
    rng = random.Random(number)
    name, shift = f"board-{number:05d}", rng.randrange(MINUTE)
    times = [BEGIN + shift + MINUTE * at for at in range(60 * hours)]
    level, values = 80 + rng.randrange(40), []
    for _ in times:
        level += rng.choice((-1, 0, 0, 1))
        values.append(level / 4)
    builder, buckets = Builder(values[0]), []
    for at, (moment, value) in enumerate(zip(times, values, strict=True), 1):
        builder.add(value, moment)
        if at % READINGS == 0:
            buckets.append(builder.close())
    away = (0, 0)
    if number % 10 == 0:
        begin = rng.randrange(len(buckets) // 2)
        away = begin, begin + rng.randrange(24, len(buckets) // 2)
    told, arrived, ordinal = {"documents": 0, "bytes": 0, "lost": 0, "late": 0}, ([], []), 0
    for begin, end in _cuts(len(buckets), away):
        some, late = buckets[begin:end], (begin, end) == away
        if late:
            some = [_merged(some[at : at + 4]) for at in range(0, len(some), 4)]
        lost = rng.random() < 0.01
        if not lost:
            data = encode(Chunk(name, "temp", f"{number:016x}", values[0], some, [None] * len(some)))
            run = "late" if late or end > 3 * len(buckets) // 4 else "now"
            (folder / run / f"{name}-{begin}.json").write_bytes(data)
            if rng.random() < 0.02:
                (folder / "late" / f"{name}-{begin}-again.json").write_bytes(data)
            arrived[0].extend(times[begin * READINGS : end * READINGS])
            arrived[1].extend(values[begin * READINGS : end * READINGS])
            told = told | {"documents": told["documents"] + 1, "bytes": told["bytes"] + len(data)}
        told = told | {"lost": told["lost"] + lost, "late": told["late"] + late}
        ordinal = end
    return number, told | {"buckets": len(buckets), "readings": ordinal * READINGS}, arrived


def _cuts(size: int, away: tuple[int, int]) -> Iterator[tuple[int, int]]:
    """Documents of BUCKETS, and one of what was held while the device was away."""
    edges = sorted({*range(0, size, BUCKETS), size, *away} - {at for at in range(size) if away[0] < at < away[1]})
    yield from pairwise(edges)


def _merged(buckets: list[Bucket]) -> Bucket:
    out = buckets[0]
    for bucket in buckets[1:]:
        out = merge(out, bucket)
    return out


class Truth:
    """Windows of an hour's slide by the readings themselves: of sampled devices, and of all."""

    def __init__(self, hours: int) -> None:
        self.frames = hours + WIDTH
        self.count, self.sum = np.zeros(self.frames, np.int64), np.zeros(self.frames)
        self.min, self.max = np.full(self.frames, np.inf), np.full(self.frames, -np.inf)
        self.devices: dict[str, Any] = {}

    def take(self, number: int, arrived: Arrived, sampled: bool) -> None:
        """One device's readings."""
        hour, values = (np.array(arrived[0]) - BEGIN) // HOUR, np.array(arrived[1])
        np.add.at(self.count, hour, 1)
        np.add.at(self.sum, hour, values)
        np.minimum.at(self.min, hour, values)
        np.maximum.at(self.max, hour, values)
        if sampled:
            self.devices[f"board-{number:05d}"] = (hour, values)

    def window(self, name: str | None, start: int) -> dict[str, float] | None:
        """Of one device, or of all: what its readings come to; None where there are none."""
        first = (start - BEGIN) // HOUR
        if name is None:
            some = slice(max(first, 0), max(first + WIDTH, 0))
            if not (count := int(self.count[some].sum())):
                return None
            total = float(self.sum[some].sum())
            return {"count": count, "sum": total, "mean": total / count, "min": self.min[some].min(),
                    "max": self.max[some].max()}  # fmt: skip
        hour, values = self.devices[name]
        inside = values[(hour >= first) & (hour < first + WIDTH)]
        if not inside.size:
            return None
        return {"count": inside.size, "sum": inside.sum(), "mean": inside.mean(), "std": inside.std(),
                "min": inside.min(), "max": inside.max()}  # fmt: skip


def checked(store: Store, version: Version, truth: Truth) -> dict[str, Any]:
    """How many values of windows were compared, how many are outside, and how many said exact and were not."""
    told = {"compared": 0, "outside": 0, "false_exact": 0, "exact": 0, "missing_windows": 0}
    table, seen = read.rows_of(store, version), 0
    wanted = {None, *truth.devices}
    for batch in table.to_batches(1 << 16):
        keep = [at for at, name in enumerate(batch["device"].to_pylist()) if name in wanted]
        for row in batch.take(pa.array(keep, pa.int64())).to_pylist():
            of = truth.window(row["device"], row["window_start"])
            if of is None:
                told["outside"] += int(row["count_low"] > 0)
                continue
            seen += 1
            for name, value in of.items():
                room = 1e-9 * max(abs(value), 1)
                told["compared"] += 1
                told["outside"] += int(not row[f"{name}_low"] - room <= value <= row[f"{name}_high"] + room)
                told["exact"] += int(row[f"{name}_exact"])
                told["false_exact"] += int(row[f"{name}_exact"] and abs(row[name] - value) > room)
    starts = BEGIN + HOUR * np.arange(-WIDTH + 1, truth.frames)
    due = sum(truth.window(name, int(start)) is not None for name in wanted for start in starts)
    return told | {"missing_windows": due - seen, "rows": table.num_rows}


def size_of(folder: Path) -> int:
    """Bytes of all files below."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def main() -> None:
    """Run, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", type=int, default=10_000)
    parser.add_argument("--hours", type=int, default=24)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    folder = Path(mkdtemp(prefix="bench-fleet-"))
    try:
        told = _run(folder, asked.devices, asked.hours)
    finally:
        shutil.rmtree(folder)
    print(json.dumps(told, indent=2))
    if asked.out:
        asked.out.write_text(json.dumps(told, indent=2) + "\n")


def _run(folder: Path, devices: int, hours: int) -> dict[str, Any]:
    for name in ("now", "late"):
        (folder / name).mkdir()
    truth, sums, begun = Truth(hours), dict[str, int](), time.perf_counter()
    every = max(devices // SAMPLE, 1)
    with ProcessPoolExecutor(2) as pool:
        each = pool.map(device, [folder] * devices, range(devices), [hours] * devices, chunksize=50)
        for number, told, arrived in each:
            truth.take(number, arrived, number % every == number // every % 10)
            sums = {name: sums.get(name, 0) + value for name, value in told.items()}
    out: dict[str, Any] = {"devices": devices, "hours": hours, "cores": os.cpu_count(), **sums}
    out["simulated_s"] = round(time.perf_counter() - begun, 1)
    print(out, flush=True)
    spark = spark_session("local[2]", {"spark.driver.memory": "1g"})
    definition, table = job.definition_of(WIDTH * HOUR, HOUR, ASKED), folder / "table"
    try:
        steps = []
        for what, sources in (
            ("first run", ["now"]),
            ("second run", ["now", "late"]),
            ("nothing new", ["now", "late"]),
        ):
            row = clocked(lambda of=sources: job.merge(spark, [str(folder / one) for one in of], table, definition))
            steps.append({"what": what, **row})
            print(steps[-1], flush=True)
        found: list[str] = []
        steps.append({"what": "reconcile", **clocked(lambda: found.extend(job.reconcile(spark, table)))})
    finally:
        spark.stop()
    store = Store(table)
    version = job.opened(store, None)
    begun = time.perf_counter()
    rows = known.devices(store, version)
    steps.append({"what": "cloud devices", "s": round(time.perf_counter() - begun, 2), "rows": len(rows)})
    begun = time.perf_counter()
    told = checked(store, version, truth)
    steps.append({"what": "compared with the readings", "s": round(time.perf_counter() - begun, 2)})
    sizes = {"documents_bytes": size_of(folder / "now") + size_of(folder / "late"), "table_bytes": size_of(table)}
    missing = sum(row["missing"] for row in rows)
    return {**out, "load": os.getloadavg()[0], **sizes, "drifted": len(found), "missing": missing, "checked": told,
            "steps": steps}  # fmt: skip


if __name__ == "__main__":
    main()
