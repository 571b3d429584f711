"""Brute force against the certain intervals: every aggregate of random windows of buckets beside the exact result.

python -m bench.intervals [--windows 10000000] [--seed 0]

A window counts once for each aggregate that is asked of it. Values are whole numbers times a power of two, so sums and
squares are exact integers and the true result is a fraction, which is compared without rounding (geometric means: the
mean of the logarithms' exact sum). Streams are calm, stepped, rising, constant, repeated, of both signs, of 10^±12 and
of mixed magnitudes; clocks even, repeating, irregular, with gaps and going back;
buckets of several histograms; policies by count, by time (hopping too) and declared ones. Prints a table by aggregate:
windows, how many lie outside (must be 0), in how many the edge cuts a bucket, and the median width of those, as a share
of the greater end. Exit code 1 where one lies outside.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import sys
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, NamedTuple

import sluicegate as sg

AT_ONCE = 400  # readings a stream
Widths = defaultdict[str, "array[float]"]
KINDS = {
    "count": sg.count(), "sum": sg.sum(), "mean": sg.mean(), "min": sg.min(), "max": sg.max(),
    "argmin": sg.argmin(), "argmax": sg.argmax(), "first": sg.first(), "last": sg.last(), "variance": sg.variance(),
    "sample variance": sg.variance(ddof=1), "std": sg.std(), "range": sg.range(), "min_count": sg.min_count(),
    "max_count": sg.max_count(), "geometric_mean": sg.geometric_mean(),
}  # fmt: skip
SHAPES: dict[str, Callable[[random.Random, int], int]] = {
    "calm": lambda rng, i: 20_000 + round(rng.gauss(0, 300)),
    "steps": lambda rng, i: i // 37 % 5 * 10_000 + rng.randrange(1, 1000),
    "ramp": lambda rng, i: i * 250 - 40_000,
    "constant": lambda rng, i: 7_250,
    "repeated": lambda rng, i: rng.randrange(-2, 3),
    "levels": lambda rng, i: rng.randrange(1, 5),
    "signs": lambda rng, i: rng.choice([-1, 1]) * round(rng.expovariate(0.001)),
    "far": lambda rng, i: 2**50 + rng.randrange(-4, 5),
    "spikes": lambda rng, i: rng.randrange(1, 9) + (2**44 if rng.random() < 0.03 else 0),
    "mixed": lambda rng, i: round(rng.gauss(0, 1) * 10.0 ** rng.randrange(1, 15)),
}
CLOCKS = ("even", "repeating", "irregular", "gaps", "going back")


def clock(rng: random.Random, kind: str) -> Iterator[int]:
    """Times without end."""
    time = rng.randrange(-1000, 1000)
    while True:
        yield time
        if kind == "going back" and rng.random() < 0.05:
            time -= rng.randrange(40)
        elif kind == "repeating":
            time += rng.choice([0, 0, 1])
        elif kind == "gaps":
            time += rng.choice([1] * 30 + [200])
        else:
            time += 2 if kind == "even" else rng.randrange(0, 9)


class Reading(NamedTuple):
    """Sorts by time, then by arrival."""

    time: int
    ordinal: int
    unit: int
    logarithm: int  # of its value, times 2⁹⁰; 0 where there is none


class Facts(NamedTuple):
    """What a window's exact results follow from: whole numbers, in order of time."""

    n: int
    low: int
    high: int
    total: int
    deviation: int  # n² variances
    logarithms: int
    units: list[int]
    times: list[int]


EXACT: dict[str, Callable[[Facts], int]] = {
    "count": lambda of: of.n, "sum": lambda of: of.total, "min": lambda of: of.low, "max": lambda of: of.high,
    "first": lambda of: of.units[0], "last": lambda of: of.units[-1], "range": lambda of: of.high - of.low,
    "min_count": lambda of: of.units.count(of.low), "max_count": lambda of: of.units.count(of.high),
}  # fmt: skip
SCALED = {"sum", "mean", "min", "max", "first", "last", "range", "std", "variance", "sample variance"}


class Truth:
    """All readings there were; what the window holds of them is looked up anew each time, by its definition."""

    def __init__(self, policy: Any, exponent: int) -> None:
        self.policy, self.exponent = policy, exponent
        self.all: list[Reading] = []
        self.now = -(2**62)

    def insert(self, unit: int, time: int) -> None:
        """A reading arrives; one that is out of the window by time when it comes is late, and never in it."""
        if self.by_time and time <= self.cutoff:
            return
        logarithm = int(math.ldexp(math.log(math.ldexp(unit, self.exponent)), 90)) if unit > 0 else 0
        self.all.append(Reading(time, len(self.all), unit, logarithm))
        self.now = max(self.now, time)

    @property
    def by_time(self) -> bool:
        """Whether the window holds what is of the last span, and not the newest n."""
        return hasattr(self.policy, "span")

    @property
    def cutoff(self) -> int:
        """By time: readings of this time or earlier are out; a hop of time passes at once."""
        hop = self.policy.hop
        return int(self.now // hop * hop - self.policy.span)

    @property
    def limit(self) -> int:
        """How many readings a policy by count keeps."""
        return int(getattr(self.policy, "limit", 0) or self.policy.rule.limit)

    def inside(self) -> list[Reading]:
        """By time those of the last span, by (time, ordinal); else the newest n in order of arrival, by whole hops."""
        if self.by_time:
            cutoff = self.cutoff
            return sorted([reading for reading in self.all if reading.time > cutoff])
        hop = getattr(self.policy, "hop", 1)
        return self.all[max(0, len(self.all) // hop * hop - self.limit) :]

    def facts(self, inside: list[Reading]) -> Facts:
        """What the exact results of one or more readings follow from."""
        units, times = [reading.unit for reading in inside], [reading.time for reading in inside]
        n, s = len(units), sum(units)
        deviation = n * sum([unit * unit for unit in units]) - s * s
        logarithms = sum([reading.logarithm for reading in inside])
        return Facts(n, min(units), max(units), s, deviation, logarithms, units, times)

    def holds(self, answers: dict[str, Any], facts: Facts | None = None) -> Iterator[tuple[str, bool]]:
        """Whether each exact result lies in its interval, and the value as well; an empty window has none.

        `facts`: of the window, where they are known already.
        """
        facts = self.facts(self.inside()) if facts is None else facts
        plain, squared = -self.exponent, -2 * self.exponent
        for name, (value, least, greatest, _) in answers.items():
            if value is None:
                yield name, name == "sample variance" and facts.n < 2
                continue
            if name in SCALED:
                scale = squared if "variance" in name else plain
                a, b, x = math.ldexp(least, scale), math.ldexp(greatest, scale), math.ldexp(value, scale)
            else:
                a, b, x = least, greatest, value
            yield name, a <= x <= b and self._within(name, a, b, facts)

    def _within(self, name: str, a: Any, b: Any, facts: Facts) -> bool:
        n, low, high, s, deviation, logarithms, units, times = facts
        if name == "mean":
            return between(a, b, s, n)
        if name == "variance":
            return between(a, b, deviation, n * n)
        if name == "sample variance":
            return n < 2 or between(a, b, deviation, n * (n - 1))
        if name == "std":
            (p, q), (u, v) = a.as_integer_ratio(), (b if b < math.inf else 2.0**900).as_integer_ratio()
            return bool(p * p * n * n <= deviation * q * q and deviation * v * v <= u * u * n * n)
        if name == "geometric_mean":
            return bool(a <= math.exp(math.ldexp(logarithms / n, -90)) <= b)
        if name in ("argmin", "argmax"):
            extreme = low if name == "argmin" else high
            return bool(a <= min([t for x, t in zip(units, times, strict=True) if x == extreme]) <= b)
        return bool(a <= EXACT[name](facts) <= b)  # Python compares an int and a float exactly


def between(a: float, b: float, above: int, below: int) -> bool:
    """Whether above/below lies in a … b, without rounding; b may be infinite."""
    p, q = a.as_integer_ratio()
    if p * below > above * q:
        return False
    if b == math.inf:
        return True
    u, v = b.as_integer_ratio()
    return above * v <= u * below


class Newest:
    """The newest `limit`, declared as a callable: monotone, and dependent only on what remains."""

    monotone = remaining = True

    def __init__(self, limit: int) -> None:
        self.limit = limit

    def __call__(self, total: Any, old: Any) -> bool:
        """Whether enough remain without the oldest."""
        return bool(total.count - old.count >= self.limit)


def some_policy(rng: random.Random) -> Any:
    """By count, by time, or declared."""
    limit = rng.choice([1, 2, 3, 5, 8, 17, 40, 64, 100, 150])
    if rng.random() < 0.1:
        return sg.policies.as_policy(Newest(limit))
    hop = rng.choice([1, 1, 1, 7])
    by_time = sg.policies.time(limit * rng.choice([1, 3, 5]), hop=hop)
    return sg.policies.count(limit, hop=hop) if rng.random() < 0.4 else by_time


def some_histograms(rng: random.Random, hop: int) -> list[Any]:
    """Mostly a constrained footprint, at times beside one that decides."""
    limit, merge = rng.choice([4, 5, 6, 8, 16, 33, 64]), rng.choice(["levels", "pairs"])
    found: list[Any] = [sg.Constrained(limit, merge=merge)]
    if hop > 1 and rng.random() < 0.5:
        found.append(sg.Hop())
    if rng.random() < 0.3:
        found.append(
            sg.SumLike(rng.choice([0.01, 0.1, 0.5])) if rng.random() < 0.5 else sg.MaxLike(rng.choice([4, 16]))
        )
    return found


def stream(seed: int, kinds: dict[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, bool], str]]:
    """One random window after each of its readings: the answers, whether they hold, and what it was."""
    rng = random.Random(seed)
    shape, ticks = rng.choice(list(SHAPES)), clock(rng, rng.choice(CLOCKS))
    policy, exponent = some_policy(rng), rng.choice([-10, 0, -50, 30])
    histograms = some_histograms(rng, getattr(policy, "hop", 1))
    positive = rng.random() < 0.5 and shape not in ("ramp",)
    asked = {name: kind for name, kind in kinds.items() if positive or name != "geometric_mean"}
    window = sg.Window(asked, policy=policy, histograms=histograms, center=rng.choice([None, None, None, 0.0, 1e3]))
    truth = Truth(policy, exponent)
    for i, time in zip(range(AT_ONCE), ticks, strict=False):
        unit = SHAPES[shape](rng, i)
        unit = abs(unit) + 1 if positive else unit
        window.insert(math.ldexp(unit, exponent), time)
        truth.insert(unit, time)
        if truth.inside():
            answers = window.query(bounds=True)
            held = dict(truth.holds(answers))
            yield answers, held, f"seed {seed}, reading {i}, {shape}, {policy}, {histograms}"


def attack(windows: int, seed: int, kinds: dict[str, Any]) -> tuple[Counter[str], Counter[str], Widths]:
    """Windows asked and those outside by aggregate, and the widths of those that are cut."""
    asked, outside = Counter[str](), Counter[str]()
    widths: Widths = defaultdict(lambda: array("d"))
    for each in count(seed * 10**9):
        for answers, held, where in stream(each, kinds):
            asked.update(answers.keys())
            for name, holds in held.items():
                if not holds:
                    outside[name] += 1
                    print(f"{name} outside: {answers[name]}, {where}", file=sys.stderr)
            for name, (value, low, high, exact) in answers.items():
                if value is not None and not exact:
                    widths[name].append(share(low, high))
        if asked.total() >= windows:
            return asked, outside, widths
    raise AssertionError("count() ends never")


def share(low: float, high: float) -> float:
    """An interval's width as a share of the greater end."""
    return (high - low) / (max(abs(low), abs(high)) or 1.0)


def table(asked: Counter[str], outside: Counter[str], widths: Widths) -> Iterator[str]:
    """One line an aggregate."""
    yield f"{'aggregate':<16}{'windows':>12}{'outside':>9}{'cut':>12}{'median width of the cut':>25}"
    for name, windows in asked.items():
        width = f"{100 * statistics.median(widths[name]):.3f} %" if widths[name] else "—"
        yield f"{name:<16}{windows:>12,}{outside[name]:>9}{len(widths[name]):>12,}{width:>25}"
    yield f"{'all':<16}{asked.total():>12,}{outside.total():>9}{sum(map(len, widths.values())):>12,}"


def main() -> int:
    """Run by command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--windows", type=int, default=10_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", choices=list(KINDS), default=list(KINDS))
    options = parser.parse_args()
    asked, outside, widths = attack(options.windows, options.seed, {name: KINDS[name] for name in options.only})
    print("\n".join(table(asked, outside, widths)))
    return 1 if outside.total() else 0


if __name__ == "__main__":
    sys.exit(main())
