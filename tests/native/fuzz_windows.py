"""Random windows of several engines, given the same readings in every way there is, against the plain readings.

    make fuzz                             a minute of all kinds of windows
    make fuzz SECONDS=600 SEED=7 KIND=late
    .venv/bin/python tests/native/fuzz_windows.py --again 7:1234 --kind late

Each engine is given each stretch in a way of its own: batches as arrays, lists or views, with results or without,
`slide`, `insert` and `query`. Between them readings are evicted by hand, windows are stored and taken up again.
Lengths, results after readings picked by chance, answers, structure and (AMTA) the stored state are compared. Ends at
the first that differs, with the seed that gives it again.
"""

from __future__ import annotations

import argparse
import math
import random
import time
from array import array
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, NamedTuple

import batch_twins
from event_time_oracle import EventTime
from plain_windows import answer

import sluicegate as sg
from sluicegate import errors

ENGINES = ("amta", "fiba", "two_stacks_lite", "daba_lite", "soe")
NEED_ORDER = ("two_stacks_lite", "daba_lite")  # they go out of a round with the first late reading that belongs
ASKED = 6  # readings of a stretch whose results are compared with those reckoned anew
Gaps = Callable[[random.Random, int], Iterator[int]]
Results = dict[str, "array[float]"]
ASKS: dict[str, tuple[str, ...]] = {
    "sum": ("sum",),
    "max": ("max",),
    "min": ("min",),
    "std": ("std",),
    "geometric mean": ("geometric_mean",),
    "mean and max": ("mean", "max"),
    "count and first": ("count", "first", "last"),
    "many": ("count", "sum", "mean", "min", "max", "variance", "argmax", "max_count"),
}


def steady_with_gaps(rng: random.Random, size: int) -> Iterator[int]:
    """A step apart for long, as sensors send, but for gaps and a clock that is set back."""
    while True:
        yield from [1_000] * rng.randrange(1, 4_000)
        yield 1_000 * rng.choice((0, 2, 3, size // 2 + 1, size, 2 * size, -1, -7, -size)) + rng.choice((0, 0, 7))


def late(rng: random.Random, size: int) -> Iterator[int]:
    """Some come late, by a little or by more than the window's length, and the others as if nothing was."""
    behind, share = 0, rng.choice((0.001, 0.01, 0.1, 0.5))
    while True:
        lag = rng.choice((1, 1_000, 5_000, size * 500, size * 2_000)) if rng.random() < share else 0
        yield rng.choice((1_000, 1_000, 900, 1_100)) + behind - lag
        behind = lag


GAPS: dict[str, Gaps] = {
    "count": batch_twins.even,  # the policy is by count
    "even": batch_twins.even,
    "jitter": batch_twins.jitter,
    "walk": batch_twins.walk,
    "independent": batch_twins.geometric,
    "bursts": batch_twins.bursts,
    "backwards": batch_twins.backwards,
    "gaps": steady_with_gaps,
    "late": late,
}


class Case(NamedTuple):
    """What windows are made of, from a seed alone."""

    kind: str
    asked: str
    size: int

    @property
    def policy(self) -> Any:
        return sg.policies.count(self.size) if self.kind == "count" else sg.policies.time(self.size * 1_000)

    def window(self, engine: str) -> sg.Window:
        """A new one."""
        return sg.Window(self.aggregates(), policy=self.policy, engine=engine)

    def aggregates(self) -> dict[str, sg.Monoid]:
        """By name of its kind."""
        return {kind: getattr(sg, kind)() for kind in ASKS[self.asked]}


class Held:
    """What the window holds by definition: its newest readings, or those that `event_time` finds among all."""

    def __init__(self, case: Case) -> None:
        self.case, self.readings = case, 0
        self.newest: list[tuple[float, int]] = []
        self.timed = None if case.kind == "count" else EventTime(case.size * 1_000)
        self.comes_late = False  # some reading came late, and yet into the window

    def take(self, x: float, at: int) -> None:
        """One reading in, and what leaves with it."""
        self.readings += 1
        if self.timed is None:
            self.newest.append((x, at))
            del self.newest[: -self.case.size]
            return
        now = self.timed.now
        self.comes_late = self.comes_late or (now is not None and self.timed.cutoff < at < now)
        self.timed.insert(x, at)

    def evict(self, count: int) -> None:
        """So many of the oldest leave by hand."""
        del self.newest[:count]
        if self.timed is not None:
            self.timed.evict(count)

    def column(self) -> list[tuple[float, int]]:
        """Value and time of what is inside, by (time, ordinal) where the window goes by time."""
        if self.timed is None:
            return self.newest
        self.timed.evict(0)  # what is out stays out: time never goes back
        return [(reading.value, reading.time) for reading in self.timed.all]


class Right(NamedTuple):
    """What is right at one moment."""

    answers: dict[str, Any]
    rounding: float  # what a sum in any order may be off by (error-algebra: 2·n·ε·Σ|x|)

    @classmethod
    def of(cls, held: Held) -> Right:
        """As the window is now."""
        column = held.column()
        rounding = 2 * (len(column) + 1) * batch_twins.EPSILON * math.fsum(abs(x) for x, _ in column)
        return cls({kind: answer(kind, column) for kind in ASKS[held.case.asked]}, rounding)


def in_batches(make: Callable[[Any], Any]) -> Callable[..., Results | None]:
    """Values and times as `make` has them."""

    def give(window: sg.Window, values: array[float], times: array[int], results: bool) -> Results | None:
        return window.insert_many(make(values), make(times), results=results)

    return give


def by_slide(window: sg.Window, values: array[float], times: array[int], results: bool) -> Results:
    """One call a reading."""
    names = list(window.query())
    rows = [window.slide(x, at) for x, at in zip(values, times, strict=True)]
    return {name: array("d", (number(row[name] if len(names) > 1 else row) for row in rows)) for name in names}


def by_insert(window: sg.Window, values: array[float], times: array[int], results: bool) -> Results:
    """Two calls a reading."""
    found: Results = {name: array("d") for name in window.query()}
    for x, at in zip(values, times, strict=True):
        window.insert(x, at)
        for name, value in window.query().items():
            found[name].append(number(value))
    return found


def number(value: float | None) -> float:
    """As a column has it."""
    return math.nan if value is None else float(value)


WAYS: dict[str, Callable[..., Results | None]] = {
    "array": in_batches(lambda column: column),
    "view": in_batches(memoryview),
    "list": in_batches(list),
    "tuple": in_batches(tuple),
    "slide": by_slide,
    "insert": by_insert,
}
BATCHES, SINGLY = ("array", "array", "view", "list", "tuple"), ("slide", "insert")


class Round:
    """The windows of one seed."""

    def __init__(self, seed: str, kind: str | None) -> None:
        self.seed, self.rng = seed, random.Random(seed)
        sizes = (self.rng.randrange(1, 66), int(2 ** self.rng.uniform(0, 13)), self.rng.randrange(1, 1_200))
        self.case = Case(kind or self.rng.choice(list(GAPS)), self.rng.choice(list(ASKS)), self.rng.choice(sizes))
        self.windows = {engine: self.case.window(engine) for engine in ENGINES if self.takes(engine)}
        self.single = self.case.window("amta")
        self.held, self.now = Held(self.case), 0
        self.gaps = GAPS[self.case.kind](self.rng, self.case.size)
        self.whole_numbers = self.rng.random() < 0.5
        self.doing = "made"

    def takes(self, engine: str) -> bool:
        """Whether the engine has these aggregates: Subtract-on-Evict has no extremes."""
        try:
            self.case.window(engine)
        except errors.ConfigurationError:
            return False
        return True

    def run(self) -> int:
        """Some stretches; how many readings."""
        for _ in range(self.rng.randrange(3, 14)):
            self.stretch()
            if self.rng.random() < 0.2:
                self.evict()
            if self.rng.random() < 0.1:
                self.store()
        return self.held.readings

    def stretch(self) -> None:
        """Readings into each window, in a way of its own."""
        count = int(2 ** self.rng.uniform(0, self.rng.choice((3, 7, 11, 14))))
        values, times = self.readings(count), array("q")
        before = self.held.readings
        for gap in islice(self.gaps, count):
            self.now += gap
            times.append(self.now)
        picked = {0, count - 1, *(self.rng.randrange(count) for _ in range(ASKED))}
        right: dict[int, Right] = {}
        for i, (x, at) in enumerate(zip(values, times, strict=True)):
            self.held.take(x, at)
            self.single.slide(x, at)
            if i in picked:
                right[i] = Right.of(self.held)
        for engine, window in list(self.windows.items()):
            way = self.rng.choice(BATCHES if count > 700 else BATCHES + SINGLY)
            results = self.rng.random() < 0.8
            self.doing = f"{engine}: {count} readings as {way}, {results=}, after {before}"
            try:
                found = WAYS[way](window, values, times, results)
            except errors.InputError as error:
                self.sure(engine in NEED_ORDER and self.held.comes_late, f"refused: {error}")
                del self.windows[engine]
                continue
            for i, expected in right.items() if found else ():
                self.compare({name: column[i] for name, column in found.items()}, expected, i)
        self.agree()

    def readings(self, count: int) -> array[float]:
        """Halves, whose sums are exact, or numbers whose sums depend on the order; positive for a geometric mean."""
        if self.case.asked == "geometric mean":
            return array("d", (self.rng.choice((0.5, 1.0, self.rng.uniform(1e-3, 1e3))) for _ in range(count)))
        if self.whole_numbers or self.case.asked in ("std", "many"):
            return array("d", (self.rng.randrange(-2_000, 2_000) / 2 for _ in range(count)))
        return batch_twins.readings(self.rng, count)

    def evict(self) -> None:
        """Some by hand, often all or none."""
        there = len(self.held.column())
        gone = min(there, self.rng.choice((0, 1, there, self.rng.randrange(there + 1))))
        for window in (*self.windows.values(), self.single):
            window.evict(gone)
        self.held.evict(gone)
        self.doing = f"{gone} evicted"
        self.agree()

    def store(self) -> None:
        """Each taken up again from what it stored, where it stores anything."""
        for engine, window in self.windows.items():
            self.doing = f"{engine}: taken up again"
            try:
                stored = window.snapshot()
            except errors.ConfigurationError:  # keeps no leaves
                continue
            self.windows[engine] = sg.Window.restore(
                stored, self.case.aggregates(), policy=self.case.policy, engine=engine
            )
            self.sure(self.windows[engine].snapshot() == stored, "another snapshot")
        self.agree()

    def agree(self) -> None:
        """Lengths, answers and structure; AMTA's state is that of single readings."""
        expected, there, before = Right.of(self.held), len(self.held.column()), self.doing
        for engine, window in self.windows.items():
            self.doing = f"{engine} after: {before}"
            self.sure(len(window) == there, f"{len(window)} readings, {there} expected")
            self.compare(window.query(), expected, None)
            window.verify()
        self.sure(self.windows["amta"].snapshot() == self.single.snapshot(), "another state than of single readings")

    def compare(self, found: dict[str, Any], right_now: Right, i: int | None) -> None:
        """Extremes and counts to the bit, sums within rounding."""
        expected, rounding = right_now
        for name, value in expected.items():
            got = found[name]
            if value is None:
                right = got is None or math.isnan(got)
            elif name in ("variance", "std", "geometric_mean"):
                right = math.isclose(got, value, rel_tol=1e-9, abs_tol=1e-6)
            elif name in ("sum", "mean"):
                right = abs(got - value) <= (rounding if name == "sum" else rounding / max(1, expected_count(expected)))
            else:
                right = got == value
            self.sure(right, f"{name} at {i}: {got!r}, {value!r} expected")

    def sure(self, right: bool, what: str) -> None:
        """Ends with all that is needed to see it again."""
        if not right:
            raise AssertionError(f"seed {self.seed}, {self.case}: {self.doing}: {what}")


def expected_count(expected: dict[str, Any]) -> int:
    """Of a mean's readings, where it is known: else its rounding is a sum's."""
    return int(expected.get("count", 1))


def fuzz(seed: int, seconds: float, kind: str | None = None, rounds: int = 10**9) -> tuple[int, int]:
    """Windows and readings that were compared. Raises AssertionError with the seed of the first that differs."""
    begin, done, readings = time.monotonic(), 0, 0
    while done < rounds and time.monotonic() - begin < seconds:
        readings += Round(f"{seed}:{done}", kind).run()
        done += 1
    return done, readings


def main() -> None:
    """From the shell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--kind", choices=GAPS, default=None)
    parser.add_argument("--again", metavar="SEED:ROUND", help="the round that was named, alone")
    asked = parser.parse_args()
    if asked.again:
        print(f"{Round(asked.again, asked.kind).run():,} readings, none differs")
        return
    windows, readings = fuzz(asked.seed, asked.seconds, asked.kind)
    print(f"{windows:,} windows, {readings:,} readings, none differs")


if __name__ == "__main__":
    main()
