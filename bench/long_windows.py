"""What a result costs, by the length of its window: hopping windows in slices, and sliding ones that a count triggers.

taskset -c 1 python -m bench.long_windows

Four readings a hop, so that most of what is measured is the beginning and the result of windows. Processor time, the
least of some rounds in which the lengths take turns.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import sluicegate as sg
from sluicegate.windowing.operators import Aggregate
from sluicegate.windowing.slices import Slices

HOPS, LENGTHS, READINGS, ROUNDS = (10, 50, 500, 5_000), (100, 1_000, 10_000, 100_000), 4, 7
TAKEN = 400  # hops, or triggers, a round


def hopping(hops: int, lateness: int) -> Callable[[], float]:
    """A full window of so many hops; a round of it: µs a hop, with its readings and what results there are."""
    hop = 1_000
    slices = Slices(sg.WindowSpec(kind="hopping", evict=sg.policies.time(hops * hop, hop=hop), lateness=lateness))
    at = [0]

    def fed(count: int) -> None:
        times = [at[0] + i * hop // READINGS for i in range(count * READINGS)]
        at[0] += count * hop
        slices.insert_many([float(time % 7) for time in times], times)

    fed(hops)
    return lambda: _least(lambda: fed(TAKEN))


def sliding(length: int) -> Callable[[], float]:
    """A window of so many readings; a round of it: µs a trigger, which every fourth reading is."""
    spec = sg.WindowSpec(kind="sliding", evict=sg.policies.count(length), trigger=sg.triggers.count(READINGS))
    mean = Aggregate(spec, {"mean": sg.mean(), "max": sg.max()}, clock=lambda: 0)
    for i in range(length):
        mean.insert(float(i % 7))

    def fed() -> None:
        for i in range(TAKEN * READINGS):
            mean.insert(float(i % 7))

    return lambda: _least(fed)


def _least(act: Callable[[], None]) -> float:
    begin = time.process_time_ns()
    act()
    return (time.process_time_ns() - begin) / TAKEN / 1000


def main() -> None:
    """Run by command."""
    for name, subjects in {
        "hopping, final results, hops a window": {hops: hopping(hops, 0) for hops in HOPS},
        "hopping, results at the end and final ones, hops a window": {hops: hopping(hops, 3_000) for hops in HOPS},
        "sliding, a trigger, readings a window": {length: sliding(length) for length in LENGTHS},
    }.items():
        rounds = [{size: run() for size, run in subjects.items()} for _ in range(ROUNDS)]
        least = {size: min(each[size] for each in rounds) for size in subjects}
        first = next(iter(least.values()))
        print(f"{name}: " + ", ".join(f"{size:,}: {cost:.1f} us, x {cost / first:.2f}" for size, cost in least.items()))


if __name__ == "__main__":
    main()
