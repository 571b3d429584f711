"""Windows of every engine, and windows of buckets, against the list of their readings; one difference ends it."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import sluicegate as sg
from sluicegate.catalogue import FACTS

#: Values are whole numbers, so that sums are exact in any order.
_LARGEST = 1 << 20
_ASKED: dict[str, Any] = {"count": sg.count(), "sum": sg.sum(), "min": sg.min(), "max": sg.max()}


class Reading(NamedTuple):
    """A value at a time in µs."""

    value: float
    time: int


class DifferenceError(Exception):
    """An answer that the definition does not give."""


def exact(seconds: float, seed: int = 1) -> int:
    """Answers of exact windows that were compared: each engine by count and by time, for about so many seconds.

    Raises:
        DifferenceError: an answer is another than that of the window's readings.
    """
    makers = [_exact_maker(engine, by_time=by_time) for engine in sg.ENGINES for by_time in (False, True)]
    return _in_turns(makers, _same, seconds, seed, late=0.0)


def bounded(seconds: float, seed: int = 1) -> int:
    """Answers of windows of buckets that were compared, a twentieth of their readings late.

    Raises:
        DifferenceError: an interval does not hold the result of the window's readings.
    """
    return _in_turns([_bounded_maker(buckets) for buckets in (4, 16, 64)], _inside, seconds, seed, late=0.05)


class _Made(NamedTuple):
    name: str
    window: Any
    length: int
    by_time: bool


def _exact_maker(engine: str, *, by_time: bool) -> Callable[[random.Random], _Made]:
    def make(rng: random.Random) -> _Made:
        length = rng.choice((1, 2, 3, 7, 8, 33, 100, 257))
        policy = (sg.policies.time if by_time else sg.policies.count)(length)
        aggregates = dict(_ASKED if not FACTS[engine].deducts else {"count": sg.count(), "sum": sg.sum()})
        return _Made(f"{engine}, {policy}", sg.Window(aggregates, policy=policy, engine=engine), length, by_time)

    return make


def _bounded_maker(buckets: int) -> Callable[[random.Random], _Made]:
    def make(rng: random.Random) -> _Made:
        length = rng.choice((30, 100, 400))
        window = sg.Window(_ASKED, policy=sg.policies.time(length), histograms=[sg.Constrained(buckets)])
        return _Made(f"{buckets} buckets, {length} µs", window, length, by_time=True)

    return make


def _in_turns(
    makers: list[Callable[[random.Random], _Made]], check: Callable[[_Made, list[Reading]], None], seconds: float,
    seed: int, late: float,
) -> int:  # fmt: skip
    """Every maker at least once, then on until the time is over."""
    rng = random.Random(seed)  # noqa: S311 - readings to try windows with, not secrets
    compared, ends, round_ = 0, time.monotonic() + seconds, 0
    while round_ == 0 or time.monotonic() < ends:
        for make in makers:
            compared += _run(make(rng), rng, check, late)
        round_ += 1
    return compared


def _run(made: _Made, rng: random.Random, check: Callable[[_Made, list[Reading]], None], late: float) -> int:
    readings: list[Reading] = []
    newest = compared = 0
    for reading in _stream(rng, 3 * made.length + 50, made.length, late):
        if made.by_time and reading.time <= newest - made.length:
            made.window.insert(reading.value, time=reading.time)  # it comes too late for this window
            continue
        newest = max(newest, reading.time)
        made.window.insert(reading.value, time=reading.time) if made.by_time else made.window.insert(reading.value)
        readings.append(reading)
        if made.by_time:
            readings = [each for each in readings if each.time > newest - made.length]
        else:
            readings = readings[-made.length :]
        check(made, readings)
        compared += 1
    made.window.verify()
    return compared


def _stream(rng: random.Random, count: int, length: int, late: float) -> Iterator[Reading]:
    now = 0
    for _ in range(count):
        now += rng.choice((0, 1, 1, 1, 2, rng.randrange(1, length + 2)))
        back = rng.randrange(2 * length) if rng.random() < late else 0
        yield Reading(float(rng.randrange(-_LARGEST, _LARGEST)), max(now - back, 0))


def _results(readings: list[Reading]) -> dict[str, float]:
    values = [reading.value for reading in readings]
    return {"count": len(values), "sum": sum(values), "min": min(values), "max": max(values)}


def _same(made: _Made, readings: list[Reading]) -> None:
    found, expected = made.window.query(), _results(readings)
    if any(value != expected[name] for name, value in found.items()):
        raise DifferenceError(f"{made.name}: {found} is not {expected}")


def _inside(made: _Made, readings: list[Reading]) -> None:
    expected = _results(readings)
    for name, answer in made.window.query(bounds=True).items():
        true = expected[name]
        if not answer.low <= true <= answer.high or (answer.exact and answer.value != true):
            raise DifferenceError(f"{made.name}: {name} {answer} does not hold {true}")
