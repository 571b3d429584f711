"""Many small buckets opened, closed and answered at once leave the bits of single readings and of the twin."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import Any

import pytest
from test_answered_runs import UNTIL, Tumbler, number, same
from test_pairs import made

import sluicegate as sg
from sluicegate.core import core as compiled
from sluicegate.reference import core as pure

LONG = os.environ.get("SLUICEGATE_LOCKSTEP") == "long"
SHARES = (0.4, 0.9, 1.1, 1.9, 2.2, 3.1, 4.5, 9.0, 40.0)  # readings that a limit allows, more or less
#: Window, aggregate, histogram: limits are taken anew after 40 to 110 readings, the leftmost tree falls often.
CASES: dict[str, tuple[int, sg.Monoid, sg.SumLike]] = {
    "a mean": (2600, sg.mean(), sg.SumLike(atol=10.0)),
    "a sum": (5000, sg.sum(), sg.SumLike(atol=900.0)),
    "a share": (7000, sg.mean(), sg.SumLike(8e-4)),
    "a share that allows three readings": (3000, sg.mean(), sg.SumLike(9e-4)),
    "a share that allows two": (3000, sg.mean(), sg.SumLike(5e-4)),
    "every reading a bucket": (3000, sg.mean(), sg.SumLike(1e-15)),
    "so few that they open one by one": (60, sg.mean(), sg.SumLike(atol=10.0)),
}


def stream(seed: str, size: int, limit: float, about: float) -> list[float]:
    """Stretches of which a bucket takes one, two, three or many; equal values, zeros of both signs, both signs."""
    rng = random.Random(seed)
    found: list[float] = []
    while len(found) < size:
        step = limit / rng.choice(SHARES)
        for _ in range(rng.choice((7, 25, 60, 250))):
            kind = rng.random()
            x = step * (1.0 if kind < 0.3 else rng.uniform(0.5, 1.5)) * rng.choice((1, 1, 1, -1))
            found.append(rng.choice((0.0, -0.0)) if kind > 0.98 else about + x)
    return found[:size]


def times_of(rng: random.Random, start: int, n: int) -> list[int]:
    """Now and then several at once, or a late one."""
    found = []
    for _ in range(n):
        start += rng.randrange(3)
        found.append(start - 60 if rng.random() < 0.002 else start)
    return found


@pytest.mark.parametrize("timed", [False, True], ids=["by ordinal", "late ones too"])
@pytest.mark.parametrize("name", CASES)
def test_a_batch_gives_what_single_readings_and_the_twin_give(name: str, timed: bool) -> None:
    """Each value after each reading, and after each batch the snapshot; now and then nobody asks."""
    size, aggregate, histogram = CASES[name]
    rng, about = random.Random(name), 1000.0 if name.startswith("a share") else 0.0
    limit = {"a sum": 900.0}.get(name, 10.0 * size if histogram.atol else about * size * (histogram.error or 0.0))
    values = stream(name + str(timed), size + (40_000 if LONG else 5_000), limit, about)
    batch, single, twin = (
        made(core, {"x": aggregate}, sg.policies.count(size), [histogram])
        for core in (compiled.Core, compiled.Core, pure.Core)
    )
    at = time = 0
    while at < len(values):
        part = values[at : at + rng.choice((1, 33, 400, 1500, 3000))]
        times = times_of(rng, time, len(part)) if timed else None
        results = rng.random() < 0.9
        found = batch.insert_many(part, times, results=results)
        for window in (single, twin):
            _one_by_one(window, part, times, found if window is single else None)
        assert batch.snapshot() == single.snapshot() == twin.snapshot(), at
        at, time = at + len(part), max(times) if times else 0
    batch.verify()


class Third(Tumbler):
    """A rule that lets about a third of so many readings go when they are in."""

    def __init__(self, most: int) -> None:
        """It says until when it sleeps."""
        super().__init__()
        self.most = most
        self.until = UNTIL(lambda total, context: self.first + self.most - 1)

    def _leaves(self, total: Any, old: Any, context: Any) -> int:
        if total[3] + total[0] - self.first >= self.most:
            self.first += self.most // 3 + self.first % 21
        return int(old[3] + old[0] <= self.first)


def by_count(size: int) -> Callable[[], Any]:
    """A policy for each window."""
    return lambda: sg.policies.count(size)


def by_rule(size: int) -> Callable[[], Any]:
    """The same, with a rule of its own."""
    return lambda: Third(size).policy(True)


#: Policy, readings, aggregate, histogram: what a bucket takes is known from the limit, or while the rule sleeps.
LIMITED: dict[str, tuple[Callable[[], Any], int, sg.Monoid, Any]] = {
    "three readings each": (by_count(2500), 7_000, sg.mean(), sg.Constrained(900)),
    "many each": (by_count(4000), 8_000, sg.sum(), sg.Constrained(200)),
    "too many": (by_count(4500), 8_000, sg.mean(), sg.Constrained(42)),
    "where it hangs on what leaves": (by_count(2485), 7_000, sg.mean(), sg.Constrained(500)),
    "a limit never reached": (by_count(1500), 4_000, sg.mean(), sg.Constrained(5000)),
    "one more each as it fills": (by_rule(3000), 8_000, sg.mean(), sg.Constrained(950)),
    "many, by a rule": (by_rule(4000), 9_000, sg.sum(), sg.Constrained(150)),
    "a few, by a rule": (by_rule(1500), 7_000, sg.mean(), sg.Constrained(70)),
    "a rule, and a limit never reached": (by_rule(1500), 4_000, sg.sum(), sg.Constrained(5000)),
    "a rule, and a sum that decides": (by_rule(2500), 6_000, sg.mean(), sg.SumLike(atol=10.0)),
    "a sum that lets many join": (by_count(3000), 7_000, sg.mean(), sg.SumLike(atol=1.8)),
}


@pytest.mark.parametrize("timed", [False, True], ids=["by ordinal", "late ones too"])
@pytest.mark.parametrize("name", LIMITED)
def test_where_a_limit_decides_or_a_rule_sleeps_the_bits_are_those_of_single_readings(name: str, timed: bool) -> None:
    """Level evictions, hops, limits that change and results that nobody asks for among them."""
    policy, readings, aggregate, histogram = LIMITED[name]
    rng = random.Random(name)
    values = stream(name + str(timed), readings, 3_000.0, 5.0)
    batch, single, twin = (
        made(core, {"x": aggregate}, policy(), [histogram]) for core in (compiled.Core, compiled.Core, pure.Core)
    )
    at = time = 0
    while at < len(values):
        part = values[at : at + rng.choice((1, 33, 400, 1500, 3000))]
        times = times_of(rng, time, len(part)) if timed else None
        found = batch.insert_many(part, times, results=rng.random() < 0.9)
        for window in (single, twin):
            _one_by_one(window, part, times, found if window is single else None)
        assert batch.snapshot() == single.snapshot() == twin.snapshot(), at
        at, time = at + len(part), max(times) if times else 0
        if batch.limit and rng.random() < 0.1:
            limit = max(batch.limit * 2 // 3, 40)
            for window in (batch, single, twin):
                window.limit_to(limit)
    batch.verify()


def _one_by_one(window: sg.Window, values: list[float], times: list[int] | None, found: Any) -> None:
    for i, x in enumerate(values):
        window.insert(x, times[i]) if times else window.insert(x)
        assert found is None or same(found["x"][i], number(window.query()["x"])), (window.accepted, found["x"][i])


def test_a_batch_that_finds_the_window_as_it_was_restored_goes_on_so() -> None:
    """After a restart the next buckets are opened at once, too: the results of R0 and R1 are those of before."""
    size, aggregate, histogram = CASES["a mean"]
    values = stream("restart", 12_000, 10.0 * size, 0.0)
    window = sg.Window({"x": aggregate}, policy=sg.policies.count(size), histograms=[histogram])
    window.insert_many(values[:9_000])
    again = sg.Window.restore(
        window.snapshot(), {"x": aggregate}, policy=sg.policies.count(size), histograms=[histogram]
    )
    for at in range(9_000, 12_000, 1000):
        assert window.insert_many(values[at : at + 1000])["x"] == again.insert_many(values[at : at + 1000])["x"]
        assert window.snapshot() == again.snapshot()


def test_buckets_of_a_time_with_a_lower_limit_leave_later() -> None:
    """While buckets are the oldest that are far longer than the new ones, what these take hangs on them."""
    batch, single, twin = (
        made(core, {"x": sg.mean()}, sg.policies.count(2650), [sg.Constrained(900)])
        for core in (compiled.Core, compiled.Core, pure.Core)
    )
    values = stream("lower", 9_000, 3_000.0, 5.0)
    for at in range(0, len(values), 1500):
        found = batch.insert_many(values[at : at + 1500])
        for window in (single, twin):
            _one_by_one(window, values[at : at + 1500], None, found if window is single else None)
            window.limit_to(42 if at == 3000 else 900)
        batch.limit_to(42 if at == 3000 else 900)
        assert batch.snapshot() == single.snapshot() == twin.snapshot(), at


@pytest.mark.parametrize("late", [3500, 4111, 4802])
def test_a_single_late_reading_among_buckets_that_are_opened_at_once_is_known_as_such(late: int) -> None:
    """What is out of order says so, in its bucket and in all that is made of it."""
    batch, single, twin = (
        made(core, {"x": sg.mean()}, sg.policies.count(2500), [sg.SumLike(atol=10.0)])
        for core in (compiled.Core, compiled.Core, pure.Core)
    )
    values, times = stream("late", 5_000, 25_000.0, 0.0), list(range(5_000))
    times[late] -= 40
    for at in range(0, len(values), 1250):
        part, when = values[at : at + 1250], times[at : at + 1250]
        found = batch.insert_many(part, when)
        for window in (single, twin):
            _one_by_one(window, part, when, found if window is single else None)
        assert batch.snapshot() == single.snapshot() == twin.snapshot(), at
