"""What a table's ledger costs: bytes that a run reads, writes and holds, once a shard has had many documents.

python -m bench.cloud.ledger [--documents 62500] [--devices 62] [--out FILE]

One shard in this process, without Spark: of a table of 16 shards it has a sixteenth of a million documents. They come
in ten runs, a bucket each; the run that is measured has one new document a device.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import time
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pyarrow as pa
from bench.cloud.buckets import SLIDE_US, bucket_columns

from sluicegate_cloud.documents import ARROW
from sluicegate_cloud.schema import BUCKET_FIELDS
from sluicegate_cloud.table import shard
from sluicegate_cloud.table.versions import DAY_US, Definition, Store, Version

DEFINITION = Definition(60 * SLIDE_US, SLIDE_US, 0, ("count", "mean", "min", "max"), 1, DAY_US)


def documents(devices: int, numbers: range) -> pa.Table:
    """The documents of these numbers of each device, a bucket in each."""
    return pa.Table.from_pylist([_row(of, number) for of in range(devices) for number in numbers], ARROW)


def _row(device: int, number: int) -> dict[str, Any]:
    fields = bucket_columns(np.array([number]), np.zeros(1, np.int64))
    packed = b"".join(np.ascontiguousarray(fields[name]).tobytes() for name in BUCKET_FIELDS)
    name, first, readings = f"device-{device:06d}", int(fields["first"][0]), int(fields["n"][0])
    digests = np.random.default_rng([device, number]).bytes(64).hex()
    head = {"path": f"{name}-{number}.json", "id": f"{name}::temp::{'0' * 16}::{first:016d}", "device": name}
    head |= {"stream": "temp", "incarnation": "0" * 16, "center": 20.0, "first": first, "readings": readings}
    head |= {"t_first": int(fields["t_first"][0]), "t_last": int(fields["t_last"][0]), "buckets": 1, "size": 300}
    return head | {"gap": 0, "doubt": 0, "gaps": b"", "digest": digests[:64], "content": digests[64:], "packed": packed}


def main() -> None:
    """Fill a shard, measure a run, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=62_500)
    parser.add_argument("--devices", type=int, default=62)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    folder = Path(mkdtemp(prefix="bench-ledger-"))
    try:
        row = _measured(Store(folder), asked.devices, asked.documents // asked.devices)
    finally:
        shutil.rmtree(folder)
    print(json.dumps(row))
    if asked.out:
        asked.out.write_text(json.dumps(row, indent=2) + "\n")


def _measured(store: Store, devices: int, each: int) -> dict[str, Any]:
    version, step = Version(0, DEFINITION), max(each // 10, 1)
    for begin in range(0, each, step):
        version = _taken(store, version, documents(devices, range(begin, min(begin + step, each))))
    before, held = set(store.place.names("ledger")), _resident()
    index = store.read_json(version.shards["0"])
    read = pa.BufferReader(store.place.read(index["ledger"])).size()
    new = documents(devices, range(each, each + 1))
    begun = time.process_time()
    version = _taken(store, version, new)
    seconds = time.process_time() - begun
    written = {*store.place.names("ledger")} - before
    sizes = {name: pa.BufferReader(store.place.read(name)).size() for name in written}
    ledger = store.read(store.read_json(version.shards["0"])["ledger"])
    return {
        "documents": devices * (each + 1), "devices": devices, "rows": ledger.num_rows, "rows_bytes": ledger.nbytes,
        "read_bytes": read, "written_bytes": sum(sizes.values()), "run_cpu_s": round(seconds, 2),
        "on_disk_bytes": sum(len(store.place.read(of)) for of in (index["ledger"], *index.get("settled", ()))),
        "peak_more_mb": round(_peak() - held),
    }  # fmt: skip


def _taken(store: Store, version: Version, new: pa.Table) -> Version:
    name, told = shard.merge(store, version, 0, new)
    return store.commit(Version(version.number + 1, DEFINITION, shards={"0": name}, told=told | {"files": []}))


def _resident() -> float:
    """MB held now; the peak begins anew."""
    Path("/proc/self/clear_refs").write_text("5")
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6


def _peak() -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1e3 for line in lines if line.startswith("VmHWM"))


if __name__ == "__main__":
    main()
