"""What a reading costs in a batch through a histogram: joining a bucket, opening one, allocating.

python -m bench.histograms joining [--quick] [--json FILE]

CPU nanoseconds a reading, the least of several runs, in the steady state and without results. "engine" is the engine's
insert alone of the same partial: a window of so many buckets that its limit is never reached. Allocations: the greatest
growth of Python's memory (tracemalloc) and of malloc's (mallinfo2) over a batch into a warm window, in bytes.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import math
import random
import time
import tracemalloc
from array import array
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import sluicegate as sg

Row = dict[str, Any]
WINDOW = 100_000
count = sg.policies.count
MEAN, PEAK = {"mean": sg.mean()}, {"max": sg.max()}
PAIRS, MANY_PAIRS = (sg.Constrained(limit, merge="pairs") for limit in (64, 1000))
JOINING: dict[str, tuple[Any, Any, list[Any]]] = {
    "constrained, mean": (MEAN, count(WINDOW), [sg.Constrained(64)]),
    "constrained by pairs, mean": (MEAN, count(WINDOW), [sg.Constrained(64, merge="pairs")]),
    "constrained, variance": ({"variance": sg.variance()}, count(WINDOW), [sg.Constrained(64)]),
    "constrained, geometric mean": ({"mean": sg.geometric_mean()}, count(WINDOW), [sg.Constrained(64)]),
    "sum-like, mean (sum and count)": (MEAN, count(WINDOW), [sg.SumLike(0.1)]),
    "sum-like, count alone": (MEAN, count(WINDOW), [sg.SumLike(0.1, of="count")]),
    "max-like": (PEAK, count(WINDOW), [sg.MaxLike(block=1000)]),
    "hop": (MEAN, count(WINDOW, hop=WINDOW // 3), [sg.Hop(hint=WINDOW // 3)]),
    "sum-like and constrained": (MEAN, count(WINDOW), [sg.SumLike(0.1), sg.Constrained(64)]),
}
OPENING: dict[str, tuple[Any, Any, list[Any]]] = {
    "sum-like, mean": (MEAN, count(WINDOW), [sg.SumLike(1e-12)]),
    "max-like": (PEAK, count(WINDOW), [sg.MaxLike(block=2**40)]),
    "by pairs, three of four merged, 64": (MEAN, count(240), [PAIRS]),
    "by pairs, three of four merged, 1,000": (MEAN, count(3900), [MANY_PAIRS]),
}


def readings(number: int) -> array[float]:
    """A sensor with noise."""
    rng = random.Random(1)
    return array("d", (rng.gauss(20, 3) for _ in range(number)))


def falling(number: int) -> array[float]:
    """What no later reading hides: each opens a bucket of a max-like histogram that has no fit yet."""
    return array("d", (float(-i) for i in range(number)))


def warm(values: array[float], aggregates: Any, policy: Any, histograms: list[Any]) -> sg.Window:
    """A window in its steady state."""
    window = sg.Window(aggregates, policy=policy, histograms=histograms)
    window.insert_many(values, results=False)
    return window


def timed(window: sg.Window, values: array[float], runs: int) -> Row:
    """Nanoseconds a reading of the fastest run, and the share of readings that opened a bucket."""
    before, best = window.footprint.created, math.inf
    for _ in range(runs):
        start = time.process_time()
        window.insert_many(values, results=False)
        best = min(best, time.process_time() - start)
    opened = (window.footprint.created - before) / runs / len(values)
    return {"ns": best / len(values) * 1e9, "opened": opened}


FIELDS = ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")


class _Mallinfo(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_size_t) for name in FIELDS)


def in_use() -> int:
    """Bytes that malloc has given out, 0 where the C library does not tell."""
    tell = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if tell is None:
        return 0
    tell.restype = _Mallinfo
    told = tell()
    return int(told.uordblks + told.hblkhd)


def grown(window: sg.Window, values: array[float]) -> tuple[int, int]:
    """Bytes by which Python's memory grew over a batch, at its peak, and malloc's over another, at its end."""
    tracemalloc.start()
    window.insert_many(values[:10], results=False)
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    window.insert_many(values, results=False)
    python = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()
    least = in_use()
    window.insert_many(values, results=False)
    return python, in_use() - least


def joins(values: array[float], runs: int) -> list[Row]:
    """Each composition in which most readings join."""
    rows = []
    for name, how in JOINING.items():
        window = warm(values, *how)
        row = {"row": f"join: {name}", **timed(window, values, runs), "limit, ns": 10}
        python, malloc = grown(window, values)
        rows.append({**row, "python bytes": python, "malloc bytes": malloc})
    return rows


def opens(values: array[float], runs: int) -> list[Row]:
    """Each composition in which every reading opens a bucket, beside the engine's insert of it, and of one sum."""
    rows, one = [], timed(warm(values, {"sum": sg.sum()}, count(WINDOW), []), values, runs)["ns"]
    for name, (aggregates, policy, histograms) in OPENING.items():
        given = falling(len(values)) if "max" in aggregates else values
        engine = timed(warm(given, aggregates, policy, [sg.Constrained(8 * WINDOW)]), given, runs)["ns"]
        row = {"row": f"open: {name}", **timed(warm(given, aggregates, policy, histograms), given, runs)}
        row |= {"engine, ns": engine, "times the engine": row["ns"] / engine}
        rows.append({**row, "one slot, ns": one, "times one slot": row["ns"] / one})
    return rows


COLUMNS = (
    "ns",
    "limit, ns",
    "opened",
    "engine, ns",
    "times the engine",
    "one slot, ns",
    "times one slot",
    "python bytes",
    "malloc bytes",
)
PARTS: tuple[Callable[[array[float], int], list[Row]], ...] = (joins, opens)


def table(rows: list[Row]) -> str:
    """A row a composition."""
    lines = [f"{'':44}" + "".join(f"{name:>18}" for name in COLUMNS)]
    for row in rows:
        cells = ("" if name not in row else f"{row[name]:.4g}" for name in COLUMNS)
        lines.append(f"{row['row']:44}" + "".join(f"{cell:>18}" for cell in cells))
    return "\n".join(lines)


def measure(number: int, runs: int) -> list[Row]:
    """All rows, over so many readings a run."""
    values = readings(number)
    return [row for part in PARTS for row in part(values, runs)]


def main(arguments: Sequence[str]) -> None:
    """Measure, print, and write JSON where asked to."""
    parser = argparse.ArgumentParser(prog="joining", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    rows = measure(*((200_000, 5) if options.quick else (1_000_000, 9)))
    print(table(rows))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
