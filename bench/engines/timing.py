"""How everything here is timed: CPU nanoseconds a reading, subjects taking turns, the least of some rounds."""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from random import Random
from types import MappingProxyType
from typing import NamedTuple

#: Feeds so many readings; CPU nanoseconds for all of them.
Feed = Callable[[int], float]
POOL = 1 << 20


class Effort(NamedTuple):
    """How much a run may take."""

    seconds: float  # of one measurement of one subject
    rounds: int
    most: int  # readings in one measurement
    quick: bool


FULL = Effort(0.02, 3, 1 << 17, False)
QUICK = Effort(0.004, 2, 1 << 16, True)
TINY = Effort(0.0005, 1, 256, True)


@cache
def pool() -> array[float]:
    """Readings from 1 to 101, as in the DABA paper's driver, in no order."""
    source = Random(1)
    return array("d", (float(source.randrange(1, 102)) for _ in range(POOL)))


def cpu() -> float:
    """CPU nanoseconds of this thread."""
    return time.clock_gettime_ns(time.CLOCK_THREAD_CPUTIME_ID)


def timed(call: Callable[[], object]) -> float:
    """CPU nanoseconds of one call."""
    start = cpu()
    call()
    return cpu() - start


def affordable(feed: Feed, effort: Effort, least: int = 8) -> tuple[int, float]:
    """How many readings fit into one measurement, and what one took, found by doubling.

    The first are not timed: with them a window slides for the first time, and Two-Stacks turns over all it holds.
    """
    feed(least)
    count, taken = least, feed(least)
    while count < effort.most and taken < effort.seconds * 1e8:
        count = min(2 * count, effort.most)
        taken = feed(count)
    each = max(taken / count, 0.1)
    return max(least, min(effort.most, int(effort.seconds * 1e9 / each))), each


def alternated(
    subjects: Mapping[str, Feed], effort: Effort, counts: Mapping[str, int] = MappingProxyType({})
) -> dict[str, float]:
    """Nanoseconds a reading of each subject, the least of rounds in which they take turns; `counts`: known numbers.

    In its turn each first takes as many that are not timed: else it is measured with the caches of the one before.
    """
    counts = {name: counts.get(name) or affordable(feed, effort)[0] for name, feed in subjects.items()}
    best = dict.fromkeys(subjects, float("inf"))
    for _ in range(effort.rounds):
        for name, feed in subjects.items():
            feed(counts[name])
            best[name] = min(best[name], feed(counts[name]) / counts[name])
    return best


def quantiles(values: Iterable[float], shares: Iterable[float]) -> list[float]:
    """The value that so many shares of all do not exceed."""
    ranked = sorted(values)
    return [ranked[min(len(ranked) - 1, int(share * len(ranked)))] for share in shares]
