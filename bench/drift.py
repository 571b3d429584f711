"""How far a sum drifts from the exact one: a plain running total, and each engine, over up to a billion updates.

python bench/drift.py [--updates 1000000000] [--window 16384] [--engines amta,soe] [--json FILE]

Readings of a noisy sensor go through a count window, all new ones to the end; at each power of ten the window's sum is
held against `math.fsum` of what is inside. "after 1e12": one reading of 10^12 has been in each batch, and has left by
then. Errors are in units of the last place of the exact sum; 0.5 is correctly rounded.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import sluicegate as sg

BATCH = 1_000_000


class RunningTotal:
    """What is usually written: add the new reading, subtract the oldest; one float64 addition after the other."""

    def __init__(self, window: int) -> None:
        self.total, self.before = 0.0, np.zeros(window)

    def insert(self, values: Any) -> None:
        """A batch, by a cumulative sum of x₁, −old₁, x₂, −old₂ …"""
        old = np.concatenate([self.before, values])[: len(values)]
        steps = np.empty(2 * len(values) + 1)
        steps[0], steps[1::2], steps[2::2] = self.total, values, -old
        self.total = float(np.cumsum(steps)[-1])
        self.before = np.concatenate([self.before, values])[-len(self.before) :]

    def answer(self) -> float:
        """The running total."""
        return self.total


class Through:
    """A window of the package."""

    def __init__(self, window: int, engine: str, compensated: bool) -> None:
        aggregate = {"sum": sg.sum(compensated=compensated)}
        self.window = sg.Window(aggregate, policy=sg.policies.count(window), engine=engine)

    def insert(self, values: Any) -> None:
        """A batch, without the results in between."""
        self.window.insert_many(values, results=False)

    def answer(self) -> float:
        """The window's sum."""
        return float(self.window.query()["sum"])


def batches(updates: int, window: int, spike: bool) -> Iterator[Any]:
    """A level that wanders a little under noise; never the same readings twice."""
    rng, level = np.random.default_rng(1), 20.0
    for _ in range(0, updates, BATCH):
        level += rng.normal(0, 0.1)
        values = rng.normal(level, 0.3, BATCH)
        if spike:
            values[BATCH // 2 - window] = 1e12
        yield values


def measure(each: Any, updates: int, window: int, spike: bool) -> tuple[dict[int, float], float]:
    """Errors in units of the last place by number of updates, and nanoseconds an update."""
    found, spent, due = {}, 0.0, BATCH
    for i, values in enumerate(batches(updates, window, spike), 1):
        begun = time.process_time()
        each.insert(values)
        spent += time.process_time() - begun
        if i * BATCH == due:
            exact = math.fsum(values[-window:])
            found[due] = abs(each.answer() - exact) / math.ulp(exact)
            due *= 10
    return found, spent / updates * 1e9


def main() -> None:
    """Print a line for each way of summing and kind of stream."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--updates", type=int, default=100_000_000)
    parser.add_argument("--window", type=int, default=2**14)
    parser.add_argument("--engines", default=",".join(name for name in ("amta", "soe") if name in sg.ENGINES))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    ways = {"running total": lambda: RunningTotal(options.window)}
    for engine in options.engines.split(","):
        for compensated in (False, True):
            name = f"{engine}, compensated" if compensated else engine
            ways[name] = lambda engine=engine, compensated=compensated: Through(options.window, engine, compensated)
    rows = []
    for spike in (False, True):
        for name, make in ways.items():
            errors, cost = measure(make(), options.updates, options.window, spike)
            rows.append({"sum": name, "spike": spike, "errors": errors, "ns": cost})
            cells = "  ".join(f"{n:.0e}: {error:12.3g}" for n, error in errors.items())
            print(f"{name:20s} {'after 1e12' if spike else 'calm':10s}  {cells}  ({cost:.1f} ns)", flush=True)
    if options.json:
        options.json.write_text(json.dumps({"window": options.window, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
