"""How small and how fast chunks are: bytes a reading all included on real readings, and readings a second.

python bench/chunks.py [--csv ../shared/data/weather_3stations.csv] [--readings 1024] [--bucket 8] [--json FILE]
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import time
import zlib
from array import array
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from sluicegate.format.bucket import Bucket, Builder
from sluicegate.format.chunk import Chunk, Readings, columns, decode, encode

METRICS = ("temp", "dewp", "humid", "wind_speed", "pressure", "precip")
WEATHER = Path(__file__).parents[2] / "shared/data/weather_3stations.csv"
Key = tuple[str, str]  # station, metric
Reading = tuple[int, float]  # time µs, value
Series = dict[Key, list[Reading]]


def weather(path: Path) -> Series:
    """The readings of each station and metric, NA left out."""
    series: Series = {}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            at = int(datetime.fromisoformat(row["time_hour"]).timestamp()) * 1_000_000
            for metric in METRICS:
                if row[metric] != "NA":
                    series.setdefault((row["origin"], metric), []).append((at, float(row[metric])))
    return series


def chunks(key: Key, readings: list[Reading], size: int, bucket: int, single: bool) -> Iterator[Chunk]:
    """Chunks of `size` readings in buckets of `bucket`, with their single readings or without."""
    builder = Builder(readings[0][1])
    for at in range(0, len(readings), size):
        buckets: list[Bucket] = []
        singles: list[Readings | None] = []
        part = readings[at : at + size]
        for start in range(0, len(part), bucket):
            run = part[start : start + bucket]
            for t, x in run:
                builder.add(x, t)
            buckets.append(builder.close())
            singles.append((array("q", [t for t, _ in run]), array("d", [x for _, x in run])) if single else None)
        yield Chunk(key[0], key[1], "0006282d3d4b8c00", builder.center, buckets, singles)


def timed(call: Callable[[Any], Any], items: list[Any]) -> float:
    """CPU seconds of the fastest of five rounds over all items."""
    best = math.inf
    for _ in range(5):
        start = time.process_time()
        for item in items:
            call(item)
        best = min(best, time.process_time() - start)
    return best


def measure(series: Series, size: int, bucket: int, single: bool) -> dict[str, Any]:
    """Bytes a reading, by metric and in all, and the rates of encode, decode and columns."""
    made = {key: list(chunks(key, readings, size, bucket, single)) for key, readings in series.items()}
    documents = {key: [encode(chunk) for chunk in some] for key, some in made.items()}
    n = sum(len(readings) for readings in series.values())
    by_metric = {}
    for metric in sorted({metric for _, metric in series}):
        keys = [key for key in series if key[1] == metric]
        total = sum(len(document) for key in keys for document in documents[key])
        by_metric[metric] = round(total / sum(len(series[key]) for key in keys), 3)
    every = [document for some in documents.values() for document in some]
    data = sum(len(json.loads(document)["data"]) for document in every)
    flat = [chunk for some in made.values() for chunk in some]
    return {
        "readings": n,
        "documents": len(every),
        "bytes_a_reading": round(sum(map(len, every)) / n, 3),
        "of_which_data": round(data / n, 3),
        "by_metric": by_metric,
        "readings_a_second": {
            "encode": round(n / timed(encode, flat)),
            "decode": round(n / timed(decode, every)),
            "columns": round(n / timed(columns, every)),
        },
    }


def raw_deflated(series: Series, size: int) -> float:
    """For comparison: times and values as arrays of 8 bytes, deflated at level 9, bytes a reading."""
    total = n = 0
    for readings in series.values():
        for at in range(0, len(readings), size):
            part = readings[at : at + size]
            total += len(zlib.compress(array("q", [t for t, _ in part]).tobytes(), 9))
            total += len(zlib.compress(array("d", [x for _, x in part]).tobytes(), 9))
            n += len(part)
    return round(total / n, 3)


def main() -> None:
    """Print the table and, where asked, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--csv", type=Path, default=WEATHER)
    parser.add_argument("--readings", type=int, default=1024)
    parser.add_argument("--bucket", type=int, default=8)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    series = weather(options.csv)
    results = {
        "single readings": measure(series, options.readings, options.bucket, True),
        "buckets only": measure(series, options.readings * 8, options.bucket * 8, False),
        "raw columns deflated": raw_deflated(series, options.readings),
    }
    for name, result in results.items():
        print(f"{name}: {json.dumps(result)}")
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
