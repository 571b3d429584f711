"""Windows by key: readings/s of `insert_many`, bytes a key, and the same by one window a key and by pandas.

taskset -c 1 python -m bench.keys [--keys 1000] [--readings 2000000] [--length 1000]

Keys are random, times in order; windows are full when measuring begins. Processor time, the best of three. `a dict of
windows`: one `sg.Window` a key, `insert` for each reading. `pandas`: group-by and rolling over the whole batch, which
answers at each reading and keeps nothing for the next batch.
"""

from __future__ import annotations

import argparse
import random
import resource
import subprocess
import sys
import time
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sluicegate as sg

AGGREGATES: dict[str, Any] = {"sum": sg.sum(), "sum and max": {"sum": sg.sum(), "max": sg.max()}}
FEW = 200_000  # readings for what takes them one by one


def best(call: Callable[[], object], runs: int = 3) -> float:
    """Least seconds of processor time."""
    found = []
    for _ in range(runs):
        begin = time.process_time()
        call()
        found.append(time.process_time() - begin)
    return min(found)


class Stream:
    """Random keys and values, a time each."""

    def __init__(self, keys: int, readings: int) -> None:
        rng = random.Random(1)
        self.keys = array("q", (rng.randrange(keys) for _ in range(readings)))
        self.texts = [f"sensor/{key:06}" for key in self.keys]
        self.values = array("d", (rng.gauss(0, 1) for _ in range(readings)))
        self.now = 0

    def times(self, late: bool = False) -> array[int]:
        """The next ones; every twentieth is late, by up to 64 readings of its key."""
        begin, self.now = self.now, self.now + len(self.keys)
        step = len(set(self.keys)) * 64 // 20
        return array("q", (i - (i % step if late and i % 20 == 0 else 0) for i in range(begin, self.now)))


def ours(stream: Stream, texts: bool = False, late: bool = False, **told: Any) -> tuple[float, Any]:
    """Readings/s, and the windows."""
    windows = sg.KeyedWindows(**told)
    keys = stream.texts if texts else stream.keys
    windows.insert_many(keys, stream.values, stream.times())
    batches = [stream.times(late) for _ in range(3)]
    took = best(lambda: windows.insert_many(keys, stream.values, batches.pop(0)))
    return len(stream.keys) / took, windows


def dict_of_windows(stream: Stream, aggregates: Any, policy: Any) -> float:
    """Readings/s."""
    windows = {key: sg.Window(aggregates, policy=policy) for key in set(stream.keys)}
    rows = list(zip(stream.keys[:FEW], stream.values[:FEW], stream.times()[:FEW], strict=True))

    def insert() -> None:
        for key, value, when in rows:
            windows[key].insert(value, when)

    return len(rows) / best(insert, 1)


def by_pandas(stream: Stream, aggregates: Any, length: int) -> float | None:
    """Readings/s; None without pandas."""
    try:
        import pandas
    except ImportError:
        return None
    frame = pandas.DataFrame({"key": stream.keys, "value": stream.values})
    names = list(aggregates) if isinstance(aggregates, dict) else ["sum"]
    rolling = frame.groupby("key")["value"].rolling(length)
    return len(frame) / best(lambda: [getattr(rolling, name)() for name in names], 1)


def report(stream: Stream, keys: int, length: int) -> None:
    """A line for each definition, then the others beside it."""
    by_count, by_time = sg.policies.count(length), sg.policies.time(length * keys)
    cases: dict[str, dict[str, Any]] = {
        "by count": {"policy": by_count},
        "by time": {"policy": by_time},
        "by time, keys are texts": {"policy": by_time, "texts": True},
        "by time, 5 % late": {"policy": by_time, "late": True},
        "by time, 16 buckets": {"policy": by_time, "buckets": 16},
    }
    for name, aggregates in AGGREGATES.items():
        rates = {}
        for case, told in cases.items():
            rates[case], windows = ours(stream, aggregates=aggregates, **told)
            answered = best(lambda: list(windows.query_all()), 1) / len(windows)  # noqa: B023  called at once
            print(
                f"{name:<12} {case:<24} {rates[case] / 1e6:6.1f} M readings/s  {windows.nbytes / len(windows):9,.0f} "
                f"bytes a key  {answered * 1e6:5.1f} us an answer",
                flush=True,
            )
        full = rates["by count"]
        other = dict_of_windows(stream, aggregates, by_count)
        print(f"{name:<12} a dict of windows        {other / 1e6:6.1f} M readings/s  x {full / other:.1f}")
        rolled = by_pandas(stream, aggregates, length)
        if rolled is not None:
            print(f"{name:<12} pandas                   {rolled / 1e6:6.1f} M readings/s  x {full / rolled:.1f}")


COUNT = 100_000


def fixed_cost() -> None:
    """Bytes for each of 100,000 keys with one reading each, and when their windows are empty, as the windows count."""
    windows = sg.KeyedWindows(sg.sum(), policy=sg.policies.time(10))
    windows.insert_many(array("q", range(COUNT)), array("d", [1.0]) * COUNT, array("q", [0]) * COUNT)
    one = windows.nbytes
    windows.advance(100)
    print(f"{COUNT:,} keys: {windows.nbytes / COUNT:.0f} bytes each without readings, {one / COUNT:.0f} with one")


def resident() -> None:
    """The same as the process's resident memory grows by it; in a process of its own."""
    keys, values, times = array("q", range(COUNT)), array("d", [1.0]) * COUNT, array("q", [0]) * COUNT
    few = sg.KeyedWindows(sg.sum(), policy=sg.policies.time(10))
    few.insert_many(keys[:64], values[:64], times[:64])  # what the first call takes is no key's
    before = _resident()
    windows = sg.KeyedWindows(sg.sum(), policy=sg.policies.time(10))
    windows.insert_many(keys, values, times)
    with_one = (_resident() - before) / COUNT
    windows.advance(100)
    print(f"{COUNT:,} keys, resident: {(_resident() - before) / COUNT:.0f} bytes each after their readings have left, "
          f"{with_one:.0f} with one reading of 24 bytes")  # fmt: skip


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def main() -> None:
    """Run by command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=1_000)
    parser.add_argument("--readings", type=int, default=2_000_000)
    parser.add_argument("--length", type=int, default=1_000)
    parser.add_argument("--resident", action="store_true", help="only what 100,000 keys add to resident memory")
    told = parser.parse_args()
    if told.resident:
        resident()
        return
    report(Stream(told.keys, told.readings), told.keys, told.length)
    fixed_cost()
    subprocess.run([sys.executable, "-m", "bench.keys", "--resident"], check=True, cwd=Path(__file__).parents[1])


if __name__ == "__main__":
    main()
