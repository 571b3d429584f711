"""What each aggregate costs: nanoseconds a reading in a batch (insert, evict, answer), and bytes a partial.

python bench/aggregates.py [--window 1024] [--readings 100000] [--json FILE]

The default engine over a count window, CPU time, the fastest of some rounds; those over Python objects get a hundredth
of the readings. A column of numbers is answered for every reading, other results once a batch.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import time
from array import array
from pathlib import Path
from typing import Any

import sluicegate as sg
from sluicegate.monoids.monoid import OBJECTS
from sluicegate.monoids.objects import Collect

ROUNDS = 5
AGGREGATES = {
    "count": sg.count(), "sum": sg.sum(), "sum compensated": sg.sum(compensated=True), "mean": sg.mean(),
    "geometric_mean": sg.geometric_mean(), "variance": sg.variance(), "std": sg.std(), "min": sg.min(), "max": sg.max(),
    "range": sg.range(), "argmin": sg.argmin(), "argmax": sg.argmax(), "min_count": sg.min_count(),
    "max_count": sg.max_count(), "first": sg.first(), "last": sg.last(), "rate": sg.rate(), "frequency": sg.frequency(),
    "longest_run": sg.longest_run(), "histogram 10 bins": sg.histogram([0, 40], bins=10),
    "histogram 100 bins": sg.histogram([0, 40], bins=100), "bloom_filter 1024 bits": sg.bloom_filter(1024),
    "bloom_filter 4096 bits": sg.bloom_filter(4096), "top_k 1": sg.top_k(1), "top_k 10": sg.top_k(10),
    "distinct_count lg_k 8": sg.distinct_count(lg_k=8), "distinct_count lg_k 10": sg.distinct_count(),
    "distinct_count lg_k 12": sg.distinct_count(lg_k=12), "collect 100": sg.collect(100),
    "quantiles k 200": sg.quantiles(), "custom": sg.custom(Collect(1)),
}  # fmt: skip


def measure(aggregate: sg.Monoid, size: int, values: array[float]) -> tuple[float, int]:
    """Nanoseconds a reading of the fastest round, once the window is full; bytes of a partial."""
    objects = aggregate.kind in OBJECTS
    batch = values[: len(values) // 100] if objects else values
    window = sg.Window({"it": aggregate}, policy=sg.policies.count(size))
    window.insert_many(values[: size + 1], results=False)
    best = math.inf
    for _ in range(2 if objects else ROUNDS):
        begun = time.process_time()
        window.insert_many(batch)
        window.query()
        best = min(best, time.process_time() - begun)
    return best / len(batch) * 1e9, 0 if objects else len(window._core.total())


def main() -> None:
    """Print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--window", type=int, default=1024)
    parser.add_argument("--readings", type=int, default=100_000)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    source, rows = random.Random(1), dict[str, Any]()
    values = array("d", [round(source.gauss(20, 3), 2) for _ in range(options.readings)])
    for name, aggregate in AGGREGATES.items():
        cost, width = measure(aggregate, options.window, values)
        rows[name] = {"ns": cost, "bytes": width}
        print(f"{name:24s} {cost:10.1f} ns {width or '':>8} bytes", flush=True)
    if options.json:
        options.json.write_text(json.dumps({"window": options.window, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
