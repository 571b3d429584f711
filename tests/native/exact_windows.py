"""The exact window by another way: a plain list and slices of it, and the streams the tests run over."""

from __future__ import annotations

import math
import random
from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import Any

import sluicegate as sg

Reading = tuple[float, int]
ALL = {
    "count": sg.count(), "sum": sg.sum(), "mean": sg.mean(), "min": sg.min(), "max": sg.max(),
    "argmin": sg.argmin(), "argmax": sg.argmax(), "first": sg.first(), "last": sg.last(),
}  # fmt: skip


class Exact:
    """What a window must hold: the newest n in order of arrival, or those of the last span, in order of time."""

    def __init__(self, policy: Any) -> None:
        self.policy, self.values, self.times = policy, [], []  # type: ignore[var-annotated]
        self.begin, self.newest = 0, -(2**62)
        self.late = 0  # belonged to the window no more when they came

    def insert(self, value: float, time: int) -> None:
        """Take a reading and evict."""
        hop = self.policy.hop
        if hasattr(self.policy, "limit"):
            self.values.append(value)
            self.times.append(time)
            self.newest = max(self.newest, time)
            self.begin = max(self.begin, len(self.values) // hop * hop - self.policy.limit)
            return
        if time <= self.newest // hop * hop - self.policy.span:
            self.late += 1
            return
        at = bisect_right(self.times, time)
        self.values.insert(at, value)
        self.times.insert(at, time)
        self.newest = max(self.newest, time)
        self.begin = bisect_right(self.times, self.newest // hop * hop - self.policy.span)

    def results(self) -> dict[str, Any]:
        """Every aggregate of what is inside, recomputed."""
        values, times = self.values[self.begin :], self.times[self.begin :]
        if not values:
            return {name: {"count": 0, "sum": 0.0}.get(name) for name in ALL}
        total, low, high = math.fsum(values), min(values), max(values)
        return {
            "count": len(values), "sum": total, "mean": total / len(values), "min": low, "max": high,
            "argmin": min(t for x, t in zip(values, times, strict=True) if x == low),
            "argmax": min(t for x, t in zip(values, times, strict=True) if x == high),
            "first": values[0], "last": values[-1],
        }  # fmt: skip


def of_the_last(readings: list[Reading], cutoff: int) -> list[Reading]:
    """Those after `cutoff`, in order of time, equal ones by arrival."""
    return sorted((reading for reading in readings if reading[1] > cutoff), key=lambda reading: reading[1])


def calm(rng: random.Random, i: int) -> float:
    """A sensor at rest."""
    return 20 + rng.gauss(0, 0.3)


def steps(rng: random.Random, i: int) -> float:
    """A level that jumps now and then."""
    return float(i // 37 % 5 * 10) + rng.random()


def ramp(rng: random.Random, i: int) -> float:
    """Steadily up."""
    return i * 0.25 - 40


def constant(rng: random.Random, i: int) -> float:
    """Always the same."""
    return 7.25


def repeated(rng: random.Random, i: int) -> float:
    """Few different values, both signs."""
    return float(rng.randrange(-2, 3))


def signs(rng: random.Random, i: int) -> float:
    """Around zero, so that sums cancel."""
    return rng.choice([-1, 1]) * rng.expovariate(1)


def huge(rng: random.Random, i: int) -> float:
    """About 10¹²."""
    return rng.uniform(-1, 3) * 1e12


def tiny(rng: random.Random, i: int) -> float:
    """About 10⁻¹²."""
    return rng.uniform(-3, 1) * 1e-12


def mixed(rng: random.Random, i: int) -> float:
    """Magnitudes from 10⁻¹² to 10¹²."""
    return rng.gauss(0, 1) * 10.0 ** rng.randrange(-12, 13)


SHAPES: list[Callable[[random.Random, int], float]] = [
    calm, steps, ramp, constant, repeated, signs, huge, tiny, mixed
]  # fmt: skip
CLOCKS = ("even", "repeating", "irregular", "gaps", "going back")


def readings(rng: random.Random, shape: Callable[[random.Random, int], float], clock: str, n: int) -> Iterator[Reading]:
    """A stream of n readings."""
    time = rng.randrange(-1000, 1000)
    for i in range(n):
        time += _tick(rng, clock)
        yield shape(rng, i), time


def _tick(rng: random.Random, clock: str) -> int:
    if clock == "even":
        return 2
    if clock == "repeating":
        return rng.choice([0, 0, 1])
    if clock == "gaps":
        return rng.choice([1] * 30 + [200])
    if clock == "going back" and rng.random() < 0.05:
        return -rng.randrange(40)
    return rng.randrange(0, 9)
