"""No window of buckets may be certain of what is not so: constrained windows attacked with streams made to break them.

The oracle is a plain list of readings with the policy's own words: a FIFO from which the oldest leaves while the policy
says so. Values are integers times a power of two, so that the exact sum of a window is exact.
"""

from __future__ import annotations

import math
import random
from array import array
from collections import Counter, deque
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest
from thorough import number

import sluicegate as sg

AGGREGATES = {
    "count": sg.count(),
    "sum": sg.sum(),
    "mean": sg.mean(),
    "min": sg.min(),
    "max": sg.max(),
    "argmin": sg.argmin(),
    "argmax": sg.argmax(),
    "first": sg.first(),
    "last": sg.last(),
}
Reading = tuple[float, int]  # value, time


class Oracle:
    """Every reading of the window; `kind` and `limit` are the policy."""

    def __init__(self, kind: str, limit: int) -> None:
        """An empty window."""
        self.kind, self.limit = kind, limit
        self.readings: deque[Reading] = deque()
        self.newest = -(2**63)

    def insert(self, value: float, time: int) -> None:
        """Take a reading, then let the oldest leave while the policy says so."""
        late = self.kind == "time" and time <= self.newest - self.limit
        if not late:
            self.readings.append((value, time))
        self.newest = max(self.newest, time)
        if self.kind == "time":
            self.readings = deque(sorted(self.readings, key=lambda reading: reading[1]))
        while self.readings and self._leaves(self.readings[0][1]):
            self.readings.popleft()

    def _leaves(self, time: int) -> bool:
        if self.kind == "custom load":
            return sum(x for x, _ in self.readings) - self.readings[0][0] >= self.limit
        if self.kind in ("count", "custom count"):
            return len(self.readings) > self.limit
        newest = self.newest if self.kind == "time" else max(t for _, t in self.readings)
        return time <= newest - self.limit

    def results(self) -> dict[str, Any]:
        """The exact results."""
        values, times = [x for x, _ in self.readings], [t for _, t in self.readings]
        n, low, high = len(values), min(values), max(values)
        total = sum(map(Fraction, values))
        return {
            "count": n,
            "sum": total,
            "mean": total / n,
            "min": low,
            "max": high,
            "argmin": min(t for x, t in self.readings if x == low),
            "argmax": min(t for x, t in self.readings if x == high),
            "first": values[0],
            "last": values[-1],
            "times": times,
        }


def policy(kind: str, limit: int) -> Any:
    """The policy in Sluicegate's words."""
    if kind == "count":
        return sg.policies.count(limit)
    if kind == "time":
        return sg.policies.time(limit)
    if kind == "custom count":
        return sg.policies.custom(lambda total, old: total.count - old.count >= limit, monotone=True, remaining=True)
    return sg.policies.custom(lambda total, old: total.sum - old.sum >= limit, monotone=True, remaining=True)


def clock(rng: random.Random, shape: str) -> Iterator[int]:
    """Times: steady, bursts of one instant, a clock set back now and then, or wild in both directions."""
    time = rng.choice([0, 1_700_000_000_000_000, -50])
    while True:
        yield time
        if shape == "steady":
            time += rng.randrange(1, 4)
        elif shape == "bursts":
            time += rng.choice([0, 0, 0, 0, 25])
        elif shape == "set back":
            time += -rng.randrange(1, 60) if rng.random() < 0.03 else rng.randrange(0, 4)
        else:
            time += rng.randrange(-15, 18)


def values(rng: random.Random, shape: str) -> Iterator[float]:
    """Values: calm around an offset, few levels, spikes of a huge magnitude, staircases, or a sign that flips."""
    exponent = {"huge": 900, "load": 0}.get(shape, rng.choice([-40, 0, 0, 40]))
    offset, at = rng.randrange(-(2**40), 2**40), 0
    while True:
        at += 1
        if shape == "calm":
            unit = offset + rng.randrange(-(2**10), 2**10)
        elif shape == "load":
            unit = rng.choice([0, 1, 1, 2, 40])
        elif shape == "levels":
            unit = rng.choice([-3, -1, 0, 0, 2])
        elif shape == "spikes":
            unit = rng.randrange(-5, 5) + (rng.choice([-(2**50), 2**50]) if rng.random() < 0.05 else 0)
        elif shape == "stairs":
            unit = (at % 40) * rng.choice([1, 1, 1, 0]) * (1 if at // 40 % 2 else -1)
        else:
            unit = rng.randrange(-(2**52), 2**52)
        yield math.ldexp(unit, exponent)


CLOCKS = ("steady", "bursts", "set back", "wild")
SHAPES = ("calm", "levels", "spikes", "stairs", "signs", "huge")


def outside(got: dict[str, Any], want: dict[str, Any]) -> list[str]:
    """The aggregates whose exact result is not where the interval says, or whose value is not in its own interval."""
    wrong = []
    for name, (value, low, high, exact) in got.items():
        inside = low <= want[name] <= high and low <= value <= high
        if not inside or (exact and name not in ("sum", "mean") and low != high):
            wrong.append(f"{name}: {want[name]!r} is not in {low!r} … {high!r}, value {value!r}, exact {exact}")
    return wrong


def attack(seed: int, kind: str, steps: int, *, engine: str = "amta") -> Counter[str]:
    """One random window of buckets against the oracle, queried after each reading; answers, and cut ones."""
    rng = random.Random(seed)
    limit, buckets = rng.choice([2, 7, 30, 90, 200]), rng.choice([4, 5, 8, 16, 33])
    ticks, levels = clock(rng, rng.choice(CLOCKS)), values(rng, "load" if "load" in kind else rng.choice(SHAPES))
    center = 0.0 if "load" in kind else rng.choice([None, None, 0.0, 1e6])
    shape: dict[str, Any] = {"engine": engine, "histograms": [sg.Constrained(buckets)], "center": center}
    window = sg.Window(AGGREGATES, policy=policy(kind, limit), **shape)
    oracle, seen = Oracle(kind, limit), Counter[str]()
    for step in range(steps):
        value, time = next(levels), next(ticks)
        window.insert(value, time=time)
        oracle.insert(value, time)
        got = window.query(bounds=True)
        wrong = outside(got, oracle.results())
        assert not wrong, (seed, kind, limit, buckets, step, wrong)
        seen["windows"] += 1
        seen["cut"] += not got["count"].exact or not got["sum"].exact
        if step % 61 == 60:
            window = again(window, rng, kind, limit, shape)
    window.verify()
    return seen


def again(window: sg.Window, rng: random.Random, kind: str, limit: int, shape: dict[str, Any]) -> sg.Window:
    """The window after a restart: from a snapshot, or from state and leaves; its answers are the same."""
    if rng.random() < 0.5:
        restored = sg.Window.restore(window.snapshot(), AGGREGATES, policy=policy(kind, limit), **shape)
    else:
        changes = window.changes()
        leaves = [(changes.level, i, window.leaf(i)) for i in range(changes.head, changes.open)]
        restored = sg.Window.rebuild(
            AGGREGATES, policy=policy(kind, limit), state=window.state(), leaves=leaves, **shape
        )
    assert restored.query(bounds=True) == window.query(bounds=True)
    return restored


@pytest.mark.parametrize("engine", ["amta", "recalc"])
@pytest.mark.parametrize("kind", ["count", "time", "custom count", "custom load"])
def test_no_exact_result_is_outside_its_interval(kind: str, engine: str) -> None:
    """Clocks that go back, bursts, spikes of 2^50, magnitudes near the limit, restarts: every answer holds."""
    seen = Counter[str]()
    seeds = number(40, 9)
    for seed in range(seeds):
        seen += attack(seed, kind, 250, engine=engine)
    assert seen["windows"] == seeds * 250
    assert seen["cut"] > 0.1 * seen["windows"]


def test_dimensions_are_bounded_each_by_itself() -> None:
    """Two dimensions of one reading, of magnitudes far apart, in batches: both hold, whatever the other does."""
    rng = random.Random(3)
    aggregates = {"a": sg.mean("a"), "b": sg.sum("b"), "top": sg.max("b"), "n": sg.count()}
    window = sg.Window(aggregates, policy=sg.policies.count(50), histograms=[sg.Constrained(6)])
    readings: list[tuple[float, float]] = []
    for step in range(400):
        batch = [(rng.uniform(-1, 1), math.ldexp(rng.randrange(-(2**52), 2**52), 200)) for _ in range(1 + step % 3)]
        flat = memoryview(array("d", [x for row in batch for x in row])).cast("B").cast("d", shape=[len(batch), 2])
        window.insert_many(flat, list(range(step, step + len(batch))), results=False)
        readings += batch
        held = readings[-50:]
        a, b = ([Fraction(row[i]) for row in held] for i in (0, 1))
        want = {"a": sum(a) / len(a), "b": sum(b), "top": max(row[1] for row in held), "n": len(held)}
        got = window.query(bounds=True)
        for name in want:
            assert got[name].low <= want[name] <= got[name].high, (step, name, got[name])


def test_intervals_are_not_idle() -> None:
    """Over calm readings the mean's interval is a small part of the spread, and finite always."""
    rng = random.Random(4)
    window = sg.Window({"mean": sg.mean()}, policy=sg.policies.time(1_000), histograms=[sg.Constrained(32)])
    widths = []
    for step in range(5_000):
        window.insert(20 + math.sin(step / 300) + rng.gauss(0, 0.1), time=step)
        mean = window.query(bounds=True)["mean"]
        widths.append(mean.high - mean.low)
    assert all(map(math.isfinite, widths))
    assert sum(widths[1_000:]) / len(widths[1_000:]) < 0.05
