"""What a late reading costs, beside one in order: exact windows by time, reading by reading.

taskset -c 1 python -m bench.late_cost [--beside PROGRAM [--name bfinger4]]

A window of 100,000 readings by `insert`; half of the late stream's readings come behind so many newer ones. Queue
engines take the stream in order only. The least processor time of a hundred chunks of 2,000 readings, in nanoseconds
each, the call from Python included.

`--beside`: a program that takes NAME, FUNCTION, WINDOW, DISTANCE and ITERATIONS and runs evict, insert so far behind
the newest, query, as the authors' driver of FiBA does. Ours are batches by `insert_many` with a result after each
reading, half of them late; the program's are the mean of a run in order and of one at that distance. Both in processor
time, the least of rounds in turns, what filling the window takes left out.
"""

from __future__ import annotations

import argparse
import random
import resource
import subprocess
import time
from array import array
from pathlib import Path

import sluicegate as sg

HELD, TAKEN, CHUNK, RUNS = 100_000, 40_000, 2_000, 5
BATCHED, BATCH, STEPS = 1_000_000, 50_000, 4_000_000
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


def in_batches(engine: str, distance: int) -> float:
    """Nanoseconds a reading by `insert_many`, half of them behind `distance` newer ones (0: all in order)."""
    window = sg.Window(sg.sum(), policy=sg.policies.time(2 * HELD), engine=engine)
    times = array("q", range(0, 2 * HELD, 2))
    window.insert_many(array("d", [1.0]) * HELD, times, results=False)
    rng, now, stream = random.Random(1), times[-1], array("q")
    for _ in range(BATCHED):
        now += 2
        stream.append(now - 2 * distance - 1 if distance and rng.random() < 0.5 else now)
    values, best = array("d", [1.0]) * BATCH, float("inf")
    for first in range(0, BATCHED, BATCH):
        begin = time.process_time_ns()
        window.insert_many(values, stream[first : first + BATCH])
        best = min(best, (time.process_time_ns() - begin) / BATCH)
    return best


def of_program(program: Path, name: str, distance: int) -> float:
    """Nanoseconds a step of the program: a long run less a short one."""
    short, long = (_seconds(program, name, distance, HELD + distance + steps) for steps in (1, STEPS))
    return (long - short) / STEPS * 1e9


def _seconds(program: Path, name: str, distance: int, iterations: int) -> float:
    command = [str(program), name, "sum", str(HELD), str(distance), str(iterations)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def beside(program: Path, name: str) -> None:
    """Both in turns."""
    found: dict[int, list[tuple[float, float]]] = {distance: [] for distance in (0, *DISTANCES)}
    for _ in range(RUNS):
        for distance, rounds in found.items():
            rounds.append((in_batches("fiba", distance), of_program(program, name, distance)))
    least = {distance: [min(each) for each in zip(*rounds, strict=True)] for distance, rounds in found.items()}
    for distance, (ours, its) in least.items():
        theirs = its if not distance else (its + least[0][1]) / 2
        print(f"{distance:>6} newer ones, half of the readings: fiba {ours:7.1f} ns, {name} {theirs:7.1f} ns, "
              f"{ours / theirs:.2f} x")  # fmt: skip


def main() -> None:
    """Run by command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--beside", type=Path, metavar="PROGRAM", help="another finger B-tree to run in turns")
    parser.add_argument("--name", default="bfinger4", help="which of the program's engines")
    options = parser.parse_args()
    if options.beside is not None:
        beside(options.beside, options.name)
        return
    for engine in ("amta", "two_stacks_lite", "daba_lite", "two_stacks", "daba", "fiba"):
        print(f"{engine:<16}in order {cost(engine, 0):8.1f} ns")
    base = cost("fiba", 0)
    for distance in DISTANCES:
        half = cost("fiba", distance)
        late = 2 * half - base  # half of the readings are in order
        print(f"fiba, {distance:>6} newer ones: {late:8.1f} ns a late reading, {late / base:.2f} x in order")


if __name__ == "__main__":
    main()
