"""A fleet's buckets, made in columns and kept in one Parquet file for every way of answering: no reading is made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sluicegate_cloud.schema import BUCKET_FIELDS, OWNER

READINGS, EVERY_US = 60, 10_000_000
#: How long a bucket is, and a frame.
SLIDE_US = READINGS * EVERY_US


def write(path: Path, buckets: int, devices: int, *, crossing: bool, hot: bool = False) -> None:
    """One bucket a frame of each device, in frames that begin with it, or (`crossing`) at any time.

    `hot`: the middle one of the devices has nine tenths of the buckets.
    """
    per = buckets // devices
    kinds = {"string": pa.string(), "bigint": pa.int64(), "double": pa.float64()}
    schema = pa.schema([(name, kinds[kind]) for name, kind in {**OWNER, **BUCKET_FIELDS, "chunk": "string"}.items()])
    at_a_time = max(1, 500_000 // per)
    with pq.ParquetWriter(path, schema, compression="zstd", compression_level=1) as file:

        def add(some: Any, index: Any) -> None:
            file.write_table(pa.table(_columns(some, index, crossing=crossing), schema), row_group_size=1 << 18)

        if hot:
            few = max(1, per // 10)
            add(np.arange(devices // 2), np.arange(few))
            for begin in range(0, buckets * 9 // 10, 500_000):
                add(np.array([devices // 2]), np.arange(begin, min(begin + 500_000, buckets * 9 // 10)))
            add(np.arange(devices // 2 + 1, devices), np.arange(few))
            return
        for begin in range(0, devices, at_a_time):
            add(np.arange(begin, min(begin + at_a_time, devices)), np.arange(per))


def _columns(devices: Any, each: Any, *, crossing: bool) -> dict[str, Any]:
    rows = devices.size * each.size
    index, device = np.tile(each, devices.size), np.repeat(devices, each.size)
    fields = bucket_columns(index, device if crossing else np.zeros_like(device))
    names = pa.array([f"device-{i:06d}" for i in devices.tolist()]).take(pa.array(device - devices[0]))
    owner = {"device": names, "stream": pa.repeat("temp", rows), "incarnation": pa.repeat("0" * 16, rows)}
    owner |= {"key": pa.nulls(rows, pa.string()), "center": np.full(rows, 20.0)}
    return {**owner, **fields, "chunk": pa.nulls(rows, pa.string())}


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
