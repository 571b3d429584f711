"""What a late reading costs, beside one in order: exact windows by time, reading by reading.

taskset -c 1 python -m bench.late_cost

A window of 100,000 readings by `insert`; half of the late stream's readings come behind so many newer ones. Queue
engines take the stream in order only. The least processor time of a hundred chunks of 2,000 readings, in nanoseconds
each, the call from Python included.
"""

from __future__ import annotations

import random
import time
from array import array

import sluicegate as sg

HELD, TAKEN, CHUNK, RUNS = 100_000, 40_000, 2_000, 5
DISTANCES = (1, 10, 100, 1_000, 10_000)


def cost(engine: str, distance: int, late: float = 0.5) -> float:
    """Nanoseconds a reading where a share comes behind `distance` newer ones (0: all in order)."""
    best = float("inf")
    for run in range(RUNS):
        rng = random.Random(run)
        window = sg.Window(sg.sum(), policy=sg.policies.time(2 * HELD), engine=engine)
        times = array("q", range(0, 2 * HELD, 2))
        window.insert_many(array("d", [1.0]) * HELD, times, results=False)
        if distance:
            window.insert(1.0, times[-1] - 1)  # the leaves move now, not in what is measured
        now, stream = times[-1], []
        for _ in range(TAKEN):
            now += 2
            stream.append(now - 2 * distance - 1 if distance and rng.random() < late else now)
        insert, clock = window.insert, time.process_time_ns
        for first in range(0, TAKEN, CHUNK):
            begin = clock()
            for when in stream[first : first + CHUNK]:
                insert(1.0, when)
            best = min(best, (clock() - begin) / CHUNK)
    return best


def main() -> None:
    """Run by command."""
    for engine in ("amta", "two_stacks_lite", "daba_lite", "two_stacks", "daba", "fiba"):
        print(f"{engine:<16}in order {cost(engine, 0):8.1f} ns")
    base = cost("fiba", 0)
    for distance in DISTANCES:
        half = cost("fiba", distance)
        late = 2 * half - base  # half of the readings are in order
        print(f"fiba, {distance:>6} newer ones: {late:8.1f} ns a late reading, {late / base:.2f} x in order")


if __name__ == "__main__":
    main()
