"""How fast a batch goes through a window: insert, evict and query after each reading, beside a Python loop and pandas.

python bench/window.py [--readings 1000000] [--json FILE]

CPU nanoseconds a reading, the fastest of some rounds; then what is held in memory and how it is given back. The Python
loop is the best for the question (a running sum, a monotone deque); pandas is `rolling`. Each of these knows one
aggregate, the window any associative ones at once.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import time
from array import array
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sluicegate as sg

SIZES = (16, 1024, 2**17)
ROUNDS = 5


def readings(count: int) -> tuple[array[float], array[int]]:
    """A noisy sensor, one reading a millisecond."""
    source = random.Random(1)
    return array("d", [source.gauss(20, 3) for _ in range(count)]), array("q", range(0, 1000 * count, 1000))


def timed(call: Callable[[], Any], count: int) -> float:
    """CPU nanoseconds a reading of the fastest round."""
    best = math.inf
    for _ in range(ROUNDS):
        start = time.process_time()
        call()
        best = min(best, time.process_time() - start)
    return best / count * 1e9


def through(values: array[float], times: array[int] | None, aggregates: Any, **options: Any) -> Callable[[], Any]:
    """A whole batch through a new window, a result column for each aggregate."""
    return lambda: sg.Window(aggregates, **options).insert_many(values, times)


def python_sum(values: array[float], size: int) -> list[float]:
    """A running sum over a deque."""
    window: deque[float] = deque()
    total, out = 0.0, []
    for x in values:
        window.append(x)
        total += x
        if len(window) > size:
            total -= window.popleft()
        out.append(total)
    return out


def python_max(values: array[float], size: int) -> list[float]:
    """A deque of candidates in falling order."""
    falling: deque[tuple[int, float]] = deque()
    out = []
    for i, x in enumerate(values):
        while falling and falling[-1][1] <= x:
            falling.pop()
        falling.append((i, x))
        if falling[0][0] <= i - size:
            falling.popleft()
        out.append(falling[0][1])
    return out


def pandas_rolling(values: array[float], size: int, kind: str) -> Callable[[], Any] | None:
    """The same by pandas, where it is installed."""
    try:
        import pandas as pd
    except ImportError:
        return None
    series = pd.Series(values)
    return lambda: getattr(series.rolling(size, min_periods=1), kind)()


def single_calls(values: array[float], size: int) -> Callable[[], Any]:
    """One Python call a reading, with its result."""

    def loop() -> None:
        window = sg.Window(sg.sum(), policy=sg.policies.count(size))
        for x in values[:100_000]:
            window.insert(x)
            window.query()

    return loop


def slid(values: array[float], size: int) -> Callable[[], Any]:
    """The same by `slide`, which does both."""

    def loop() -> None:
        slide = sg.Window(sg.sum(), policy=sg.policies.count(size)).slide
        for x in values[:100_000]:
            slide(x)

    return loop


def exact_rows(values: array[float], times: array[int]) -> list[dict[str, Any]]:
    """Exact windows by count and by time, against the loop and pandas."""
    rows = []
    for kind, loop in (("sum", python_sum), ("max", python_max)):
        for size in SIZES:
            row = {"window": f"{kind}, newest {size}", "amta": timed(count_window(values, kind, size), len(values))}
            row["amta by time"] = timed(time_window(values, times, kind, size), len(values))
            row["python"] = timed(lambda loop=loop, size=size: loop(values, size), len(values))  # type: ignore[misc]
            if (pandas := pandas_rolling(values, size, kind)) is not None:
                row["pandas"] = timed(pandas, len(values))
            rows.append(row)
    return rows


def count_window(values: array[float], kind: str, size: int) -> Callable[[], Any]:
    """A count window of one aggregate."""
    return through(values, None, getattr(sg, kind)(), policy=sg.policies.count(size))


def time_window(values: array[float], times: array[int], kind: str, size: int) -> Callable[[], Any]:
    """The time window that holds as many."""
    return through(values, times, getattr(sg, kind)(), policy=sg.policies.time(1000 * size))


def other_rows(values: array[float], times: array[int]) -> list[dict[str, Any]]:
    """Several aggregates at once, buckets, and one call a reading."""
    several = {"sum": sg.sum(), "mean": sg.mean(), "min": sg.min(), "max": sg.max()}
    hour = sg.policies.time(1000 * 3600)
    exact = timed(through(values, times, several, policy=hour), len(values))
    buckets = timed(through(values, times, several, policy=hour, histograms=[sg.Constrained(64)]), len(values))
    return [
        {"window": "sum, mean, min, max of 3600, exact", "amta by time": exact},
        {"window": "the same in 64 buckets with their bounds", "amta by time": buckets},
        {"window": "sum, newest 1024, insert and query by call", "amta": timed(single_calls(values, 1024), 100_000)},
        {"window": "sum, newest 1024, slide", "amta": timed(slid(values, 1024), 100_000)},
    ]


def memory_rows() -> list[dict[str, Any]]:
    """Bytes a reading, how long half of a great window takes to leave, and what is still held 2,000 readings later."""
    rows: list[dict[str, Any]] = []
    for exponent in (10, 14, 17, 20, 22):
        by_count, by_time = (
            filled(sg.policies.count(2**exponent), exponent),
            filled(sg.policies.time(2**exponent), exponent),
        )
        row = {"window": f"bytes a reading, sum of 2^{exponent}"}
        row |= {"amta": held(by_count), "amta by time": held(by_time)}  # type: ignore[dict-item]
        rows.append(row)
    size, leaving = 2**23, []
    for _ in range(3):
        window = filled(sg.policies.time(size), 23)
        start = time.perf_counter()
        window.slide(1.0, 2 * size + size // 2)
        leaving.append((time.perf_counter() - start) * 1e6)
        for i in range(2000):
            window.slide(1.0, 2 * size + size // 2 + i)
    rows.append({"window": "us until half of 2^23 has left at once", "amta by time": min(leaving)})
    rows.append({"window": "bytes a reading 2,000 readings later", "amta by time": held(window)})
    return rows


def filled(policy: Any, exponent: int) -> sg.Window:
    """A window that twice as many sums went through as it holds, one a µs."""
    window, step = sg.Window(sg.sum(), policy=policy), min(2**exponent, 2**18)
    for begin in range(0, 2 * 2**exponent, step):
        window.insert_many(array("d", [1.0]) * step, array("q", range(begin, begin + step)), results=False)
    return window


def held(window: sg.Window) -> float:
    """Bytes of partials and times a reading in the window."""
    return window.footprint.bytes / len(window)


def with_ratios(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """How many times slower the loop and pandas are."""
    for row in rows:
        for other in ("python", "pandas"):
            if other in row:
                row[f"{other} / amta"] = row[other] / row["amta"]
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    """The figures, a row a window."""
    columns = ["amta", "amta by time", "python", "pandas", "python / amta", "pandas / amta"]
    lines = [f"{'CPU ns a reading':44}" + "".join(f"{name:>15}" for name in columns)]
    for row in rows:
        cells = (f"{row[name]:.1f}" if name in row else "" for name in columns)
        lines.append(f"{row['window']:44}" + "".join(f"{cell:>15}" for cell in cells))
    return "\n".join(lines)


def main() -> None:
    """Measure, print, and write JSON where asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--readings", type=int, default=1_000_000)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    values, times = readings(options.readings)
    rows = with_ratios([*exact_rows(values, times), *other_rows(values, times), *memory_rows()])
    print(table(rows))
    if options.json:
        options.json.write_text(json.dumps({"readings": options.readings, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
