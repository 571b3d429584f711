"""Brute force against windows by event time: whatever order readings come in, every answer beside the definition's.

python -m bench.event_time [--answers 1000000] [--seed 0] [--json FILE]

Streams come in order, with equal times, shuffled, 5 % late by up to three windows, with times that come again, with a
clock that is set back, and with single readings far ahead. Windows are exact (every engine that takes late readings),
of buckets of several histograms, of buckets in a store, and several over one stream's buckets; lengths hop or slide.
Readings come one by one and in batches, time goes on without any, windows are stored and taken up again. The truth is
looked up among all readings, with integers (`bench.intervals`). Prints by kind of stream how many answers there were,
how many lie outside their interval and how many are called exact and are not; exit code 1 where one is. `--json` keeps
the same table beside those of other seeds, written anew every few minutes, so that a run that is ended says how far it
came.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from bench.intervals import KINDS, SHAPES, Facts, Truth, some_histograms

import sluicegate as sg
from sluicegate.records import Bounded

READINGS = 150  # a stream
ENGINES = [name for name in sg.ENGINES if name not in ("two_stacks_lite", "daba_lite", "soe")]  # take extremes, late
KEPT = ("exact", "buckets", "buckets", "stored", "shared")  # the kinds of windows, by how often they come
ARRIVALS = ("in order", "equal times", "shuffled", "late", "duplicated", "clock set back", "far ahead")
ROUNDED = ("sum", "mean", "variance", "sample variance", "std", "geometric_mean")
ROUNDING = 1e-9  # of what the magnitudes of all the stream's readings give
KEPT_EVERY = 1_000_000  # answers
Answers = dict[str, Bounded]
Tallies = tuple[Counter[str], Counter[str], Counter[str]]


def times(rng: random.Random, kind: str, length: int) -> Iterator[int]:
    """Times without end, about forty to a window."""
    now, step, recent = rng.randrange(-1000, 10**6), max(length // 40, 1), list[int]()
    held: list[int] = []
    for i in count():
        now += rng.choice((0, 0, step)) if kind == "equal times" else rng.randrange(2 * step + 1)
        time = now
        if kind == "clock set back" and i % 61 == 60:
            now = time = now - rng.randrange(2 * length)
        elif kind == "far ahead" and rng.random() < 0.02:
            time += rng.randrange(3 * length)
        elif kind == "late" and rng.random() < 0.05:
            time -= rng.randrange(3 * length)
        elif kind == "duplicated" and recent and rng.random() < 0.2:
            time = rng.choice(recent)
        recent = [*recent, time][-30:]
        if kind != "shuffled":
            yield time
            continue
        held.append(time)
        if len(held) == 16:
            rng.shuffle(held)
            yield from held
            held = []


class Timed(Truth):
    """The definition, also where time goes on without readings."""

    greatest = 0  # magnitude of a reading

    def insert(self, unit: int, time: int) -> None:
        """A reading arrives."""
        super().insert(unit, time)
        self.greatest = max(self.greatest, abs(unit))

    def advance(self, time: int) -> None:
        """It is at least this late."""
        self.now = max(self.now, time)


class Subject:
    """One window, however it is kept; `truths` by the name of each answer's window."""

    def __init__(self, rng: random.Random, asked: dict[str, Any], exponent: int) -> None:
        self.rng, self.asked = rng, asked
        length, hop = rng.choice((40, 90, 1_000, 4_000)), rng.choice((1, 1, 7))
        self.length, policy = length, sg.policies.time(length, hop=hop)
        self.kept = rng.choice(KEPT)
        self.given: dict[str, Any] = {"policy": policy}
        spans = {"": length}
        if self.kept == "exact":
            self.given["engine"] = rng.choice(ENGINES)
        elif self.kept == "stored":
            self.given["histograms"] = [rng.choice((sg.SumLike(0.1), sg.MaxLike(8)))]
            self.store = sg.stores.Memory(sg.stores.Plan(2, 4))
        else:
            self.given["histograms"] = some_histograms(rng, hop)
        if self.kept == "shared":
            spans = {"whole": length, "half": length // 2, "tenth": length // 10}
            policies = {name: sg.policies.time(span, hop=hop) for name, span in spans.items()}
            self.given["histograms"] = [sg.Constrained(16, merge=rng.choice(("levels", "pairs")))]
            self.windows = sg.Windows(asked, policies=policies, histograms=self.given["histograms"])
            self.window = self.windows.longest
        else:
            stored = {"store": self.store} if self.kept == "stored" else {}
            self.window = sg.Window(asked, **self.given, **stored)
        self.truths = {name: Timed(sg.policies.time(span, hop=hop), exponent) for name, span in spans.items()}

    def take_up_again(self) -> None:
        """As after a restart."""
        if self.kept == "stored":
            self.window.close()
            again = sg.stores.Memory(self.store.plan)
            again.rows, self.store = self.store.rows, again
            self.window = sg.Window.open(again)
        elif self.kept != "shared":
            self.window = sg.Window.restore(self.window.snapshot(), self.asked, **self.given)

    def advance(self, by: int) -> None:
        """Time goes on."""
        now = max(truth.now for truth in self.truths.values()) + by
        self.window.advance(now)
        for truth in self.truths.values():
            truth.advance(now)

    def answers(self) -> Iterator[tuple[Timed, Answers]]:
        """What each window says now."""
        if self.kept == "shared":
            for name, found in self.windows.query(bounds=True).items():
                yield self.truths[name], found
        else:
            yield self.truths[""], self.window.query(bounds=True)

    def insert(self, readings: list[tuple[int, int]], exponent: int) -> Iterator[tuple[Timed, Answers]]:
        """Readings one by one or as a batch, and what is said after each."""
        if len(readings) == 1 or self.kept == "shared":
            for unit, time in readings:
                self.window.insert(math.ldexp(unit, exponent), time)
                self.note(unit, time)
                yield from self.answers()
            return
        values = [math.ldexp(unit, exponent) for unit, _ in readings]
        columns = self.window.insert_many(values, [time for _, time in readings], bounds=True)
        for i, (unit, time) in enumerate(readings):
            self.note(unit, time)
            yield (
                self.truths[""],
                {
                    name: Bounded(*(None if math.isnan(column[i]) else column[i] for column in columns[name]), False)
                    for name in self.asked
                },
            )
        yield from self.answers()

    def note(self, unit: int, time: int) -> None:
        """A reading that the window was given."""
        for truth in self.truths.values():
            truth.insert(unit, time)


class Judged(NamedTuple):
    """One answer."""

    arrival: str
    name: str
    inside: bool
    honest: bool
    what: str
    found: Bounded


def judge(truth: Timed, answers: Answers, arrival: str, what: str) -> Iterator[Judged]:
    """Whether every interval holds the exact result, and what is called exact is it."""
    inside = truth.inside()
    if not inside:
        empty = {"count": 0, "sum": 0.0}
        for name, found in answers.items():
            right = found.value == empty.get(name)
            yield Judged(arrival, name, right, right, what, found)
        return
    facts = truth.facts(inside)
    for name, holds in truth.holds(answers, facts):
        found = answers[name]
        honest = not found.exact or found.value is None or is_exact(truth, facts, name, found.value)
        yield Judged(arrival, name, holds, honest, what, found)


def is_exact(truth: Timed, facts: Facts, name: str, value: float) -> bool:
    """Whether a value is the result, rounding of sums aside."""
    if name not in ROUNDED:
        return dict(truth.holds({name: Bounded(value, value, value, True)}, facts))[name]
    scale = math.ldexp(truth.greatest or 1, truth.exponent)  # a center may be any reading
    slack = ROUNDING * (scale * scale if "variance" in name else scale * (facts.n if name == "sum" else 1))
    if name == "std":
        slack = max(slack, math.sqrt(ROUNDING) * scale)
    low, high = value - slack, value + slack
    told = Bounded(value, max(low, 0.0) if name == "std" else low, high, True)
    return dict(truth.holds({name: told}, facts))[name]


def stream(seed: int) -> Iterator[Judged]:
    """One window of one stream, judged after every reading."""
    rng = random.Random(seed)
    arrival, shape, exponent = ARRIVALS[seed % len(ARRIVALS)], rng.choice(list(SHAPES)), rng.choice((-10, 0, 30))
    positive = rng.random() < 0.5 and shape != "ramp"
    asked = {name: kind for name, kind in KINDS.items() if positive or name != "geometric_mean"}
    subject = Subject(rng, asked, exponent)
    come = times(rng, arrival, subject.length)
    done = 0
    while done < READINGS:
        size = rng.choice((1, 1, 1, 3, 12))
        units = [SHAPES[shape](rng, done + i) for i in range(size)]
        readings = [(abs(unit) + 1 if positive else unit, time) for unit, time in zip(units, come, strict=False)]
        what = f"seed {seed}, reading {done}: {arrival}, {shape}, {subject.kept}, {subject.given}"
        for truth, answers in subject.insert(readings, exponent):
            yield from judge(truth, answers, arrival, what)
        done += size
        if rng.random() < 0.03:
            subject.advance(rng.randrange(2 * subject.length))
            for truth, answers in subject.answers():
                yield from judge(truth, answers, arrival, f"after silence, {what}")
        if rng.random() < 0.05:
            subject.take_up_again()


def attack(answers: int, seed: int, file: Path | None = None) -> Tallies:
    """By kind of stream: answers judged, those outside, those called exact that are not."""
    asked, outside, dishonest = Counter[str](), Counter[str](), Counter[str]()
    kept = 0
    for each in count(seed * 10**9):
        for found in stream(each):
            asked[found.arrival] += 1
            outside[found.arrival] += not found.inside
            dishonest[found.arrival] += not found.honest
            if not (found.inside and found.honest):
                print(
                    f"{found.name} {'outside' if not found.inside else 'not exact'}: {found.found}, {found.what}",
                    file=sys.stderr,
                )
        ends = asked.total() >= answers
        if file and (ends or asked.total() >= kept + KEPT_EVERY):
            kept = asked.total()
            keep(file, table((asked, outside, dishonest), seed))
        if ends:
            break
    return asked, outside, dishonest


def table(found: Tallies, seed: int) -> dict[str, Any]:
    """What is printed, as JSON has it."""
    rows = {
        kind: dict(zip(("answers", "outside", "falsely_exact"), (each[kind] for each in found), strict=True))
        for kind in ARRIVALS
    }
    total = dict(zip(("answers", "outside", "falsely_exact"), (each.total() for each in found), strict=True))
    return {"seed": seed, "streams": rows, "all": total}


def keep(file: Path, run: dict[str, Any]) -> None:
    """The run among those that the file has, in the place of one of the same seed, and all of them together."""
    kept = json.loads(file.read_text())["runs"] if file.exists() else []
    runs = [each for each in kept if each["seed"] != run["seed"]] + [run]
    total = {name: sum(each["all"][name] for each in runs) for name in run["all"]}
    file.write_text(json.dumps({"runs": runs, "all": total}, indent=1) + "\n")


def main() -> int:
    """Run by command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answers", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    asked, outside, dishonest = attack(options.answers, options.seed, options.json)
    print(f"{'stream':<16}{'answers':>14}{'outside':>9}{'exact that is not':>19}")
    for kind in (*ARRIVALS, "all"):
        row = [each.total() if kind == "all" else each[kind] for each in (asked, outside, dishonest)]
        print(f"{kind:<16}{row[0]:>14,}{row[1]:>9}{row[2]:>19}")
    return 1 if outside.total() or dishonest.total() else 0


if __name__ == "__main__":
    sys.exit(main())
