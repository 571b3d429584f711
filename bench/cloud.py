"""How long a merge takes: synthetic buckets of many devices → frames → 24-hour windows sliding by an hour.

    python bench/cloud.py [--buckets 1000000] [--devices 100] [--out bench/results/cloud.json]

Work grows with buckets, not with readings: every bucket stands for 60 readings, and none is made. Prints a table and
JSON: seconds to fold the buckets into frames, and to answer all windows per device and fleet-wide.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from sluicegate_cloud.frames import merge_frames
from sluicegate_cloud.names import ALL
from sluicegate_cloud.schema import BUCKET_FIELDS, BUCKETS
from sluicegate_cloud.session import spark_session
from sluicegate_cloud.windows import sliding_windows

HOUR = 3_600_000_000
READINGS, EVERY_US = 60, 10_000_000


def synthetic(spark: SparkSession, buckets: int, devices: int) -> DataFrame:
    """`buckets` rows in all: ordered buckets of 60 readings, one reading each 10 s, made in Arrow batches."""
    per_device = buckets // devices

    def make(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            number = batch.column("id").to_numpy()
            columns = bucket_columns(number % per_device, number // per_device)
            names = pa.array([f"device-{i:05d}" for i in range(devices)]).take(pa.array(number // per_device))
            rows = batch.num_rows
            owner = {"device": names, "stream": pa.repeat("temp", rows), "incarnation": pa.repeat("0" * 16, rows)}
            owner |= {"key": pa.nulls(rows, pa.string()), "center": np.full(rows, 20.0)}
            yield pa.RecordBatch.from_pydict({**owner, **columns, "chunk": pa.nulls(rows, pa.string())})

    return spark.range(per_device * devices).mapInArrow(make, BUCKETS)


def bucket_columns(index: Any, device: Any) -> dict[str, Any]:
    """The fields of the `index`-th bucket of each device: a daily wave about the center, extremes at both ends."""
    first = index * READINGS
    start = first * EVERY_US + device * 1_000_003
    end = start + (READINGS - 1) * EVERY_US
    level = 5 * np.sin(index / 144 * 2 * np.pi)
    low, high = 20 + level - 1, 20 + level + 1
    fields: dict[str, Any] = {"first": first, "n": np.full_like(index, READINGS), "t_first": start, "t_last": end}
    fields |= {"total": READINGS * level, "pre_low": np.minimum(level, 59 * level) - 1}
    fields |= {"pre_high": np.maximum(level, 59 * level) + 1, "low": low, "high": high, "x_first": low, "x_last": high}
    for name, moment, ordinal in (("low", start, first), ("high", end, first + READINGS - 1)):
        fields |= {f"{name}_t_first": moment, f"{name}_t_last": moment}
        fields |= {f"{name}_o_first": ordinal, f"{name}_o_last": ordinal}
    fields |= {"gap": np.zeros_like(index), "doubt": np.zeros_like(index), "flags": np.ones_like(index)}
    level_log = np.log(20 + level) - np.log(20.0)
    fields |= {"m2": np.full(index.shape, 20.0), "low_n": np.ones_like(index), "high_n": np.ones_like(index)}
    fields |= {"low_pre": np.full(index.shape, np.inf), "low_suf": low + 0.1, "high_pre": high - 0.1}
    fields |= {"high_suf": np.full(index.shape, -np.inf), "log_total": READINGS * level_log}
    fields |= {"log_pre_low": np.minimum(level_log, 59 * level_log) - 0.1}
    fields |= {"log_pre_high": np.maximum(level_log, 59 * level_log) + 0.1}
    return {name: fields[name] for name in BUCKET_FIELDS}


def timed(frame: DataFrame) -> float:
    """Seconds to compute every row of `frame` and throw it away."""
    begun = time.perf_counter()
    frame.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - begun


def measure(spark: SparkSession, buckets: int, devices: int) -> dict[str, Any]:
    """One row of the table."""
    source = synthetic(spark, buckets, devices).persist()
    made = timed(source)
    frames = merge_frames(source, HOUR)
    windows = sliding_windows(frames, 24)
    row = {"buckets": buckets, "devices": devices, "readings": buckets * READINGS, "source_s": round(made, 2)}
    row |= {"frames_s": round(timed(frames), 2), "frames": frames.count()}
    row |= {"windows_s": round(timed(windows), 2), "windows": windows.count()}
    row |= {"all_aggregates_s": round(timed(sliding_windows(frames, 24, ALL)), 2)}
    source.unpersist()
    return row


def main() -> None:
    """Warm up on a hundredth, then measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--buckets", type=int, default=1_000_000)
    parser.add_argument("--devices", type=int, default=100)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    spark = spark_session()
    measure(spark, max(options.buckets // 100, options.devices), options.devices)
    row = {**measure(spark, options.buckets, options.devices), "cores": os.cpu_count(), "load": os.getloadavg()[0]}
    for name, value in row.items():
        print(f"{name:>12}  {value:,}")
    text = json.dumps(row, indent=2)
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(text + "\n")
    print(text)
    spark.stop()


if __name__ == "__main__":
    main()
