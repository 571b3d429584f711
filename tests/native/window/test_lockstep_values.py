"""Values at the ends of what is taken, and real readings: every engine stays within the rounding of the window itself.

Huge values that have left poison nothing, denormals and −0.0 are kept, equal times are told apart by order.
"""

from __future__ import annotations

import csv
import functools
import itertools
import math
import random
from array import array
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from engine_windows import LITE
from lockstep import CASES
from plain_windows import Column, Plain, answer

import sluicegate as sg
from sluicegate import errors

pytestmark = pytest.mark.usefixtures("implementation_of_window")
DATA = Path(__file__).resolve().parents[4] / "shared" / "data"
HUGE = 2.0**960
TINY = 5e-324
ROUNDING = 2.0**-52
AGGREGATES = {
    "count": sg.count(), "sum": sg.sum(), "mean": sg.mean(), "min": sg.min(), "max": sg.max(), "argmin": sg.argmin(),
    "argmax": sg.argmax(), "first": sg.first(), "last": sg.last(), "range": sg.range(), "max_count": sg.max_count(),
}  # fmt: skip
POLICIES = ("count 2", "count 13", "count hopping", "time", "newer than the maximum", "callable", "compiled one by one")
Stream = Iterator[tuple[float, int]]


def huge_and_small(rng: random.Random) -> Stream:
    """The greatest values there may be, now and then, among ordinary ones."""
    for i in itertools.count():
        yield rng.choice([HUGE, -HUGE, HUGE / 3]) if rng.random() < 0.1 else rng.uniform(-1, 1), i


def denormal(rng: random.Random) -> Stream:
    """The least magnitudes there are, with both zeros."""
    for i in itertools.count():
        yield rng.choice([TINY, -TINY, 3 * TINY, 0.0, -0.0, 2.0**-1022]), i // 3


def cancelling(rng: random.Random) -> Stream:
    """Sums that cancel to nothing, at equal and at falling times."""
    for i in itertools.count():
        yield rng.choice([1e16, -1e16, 1.0, -1.0, 1e-16]), i // 4 - 9 * (i % 31 == 30)


def machine(rng: random.Random) -> Stream:
    """A machine's temperature, a reading in five minutes, from one place or another."""
    return _real("machine_temperature.csv", rng, 300)


def road(rng: random.Random) -> Stream:
    """Speeds on a road, at irregular times with gaps."""
    return _real("road_speed.csv", rng, 1800)


def in_order(readings: Stream) -> Stream:
    """The same values, none at an earlier time than one before it."""
    newest = -(2**61)
    for x, time in readings:
        newest = max(newest, time)
        yield x, newest


def _real(name: str, rng: random.Random, unit: int) -> Stream:
    rows = _rows(name)
    begin = rng.randrange(len(rows) - 400)
    return ((x, time // unit) for x, time in rows[begin : begin + 400])


@functools.cache
def _rows(name: str) -> list[tuple[float, int]]:
    if not (DATA / name).exists():
        pytest.skip(f"{name} is not here")
    with (DATA / name).open(newline="") as file:
        return [(float(row["value"]), _seconds(row["timestamp"])) for row in csv.DictReader(file)]


def _seconds(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


def check(results: dict[str, Any], column: Column) -> None:
    """Selections to the bit, sums within the rounding of what is inside."""
    inside = math.fsum(abs(x) for x, _ in column)
    for name, found in results.items():
        expected = answer(name, column)
        if name in ("sum", "mean") and column:
            slack = len(column) * ROUNDING * inside / (1 if name == "sum" else len(column))
            assert abs(found - expected) <= slack, (name, found, expected)
        else:
            assert found == expected, (name, found, expected, column)


@pytest.mark.parametrize(
    "values", [huge_and_small, denormal, cancelling, machine, road], ids=lambda each: each.__name__
)
@pytest.mark.parametrize("engine", sg.ENGINES)
def test_values_at_the_ends_and_real_ones(engine: str, values: Any) -> None:
    """Single readings and batches, through policies that evict one, many, by value and by the user's rule."""
    for number, name in enumerate(POLICIES):
        rng = random.Random(number)
        try:
            window = sg.Window(AGGREGATES, policy=CASES[name].policy(), engine=engine)
        except errors.ConfigurationError:
            continue
        plain, readings = Plain(CASES[name].leaving()), values(rng)
        if engine in LITE:
            readings = in_order(readings)
        for size in (1, 5, 1, 1, 40, 1, 1, 17, 1, 33):
            batch = list(itertools.islice(readings, size))
            window.insert_many(array("d", [x for x, _ in batch]), array("q", [t for _, t in batch]), results=False)
            for x, time in batch:
                plain.insert({None: x}, time)
            check(window.query(), plain.column(None))
            window.verify()


@pytest.mark.parametrize("engine", sg.ENGINES)
@pytest.mark.parametrize("kind", ["sum", "mean", "variance", "std"])
def test_a_huge_value_that_has_left_leaves_nothing_behind(engine: str, kind: str) -> None:
    """After 2^960 and −2^960 have come and gone the window answers for what is inside, as if they had never been."""
    window = sg.Window({kind: getattr(sg, kind)()}, policy=sg.policies.count(8), engine=engine, center=0.0)
    calm = [1.0, 2.5, -3.0, 4.0, 0.5, 2.0, 7.0, -1.0]
    for extremes in ([HUGE], [-HUGE], [HUGE, -HUGE], [1e30, -1e30, HUGE]):
        for x in (*extremes, *calm):
            window.insert(x)
        found, expected = window.query()[kind], answer(kind, [(x, 0) for x in calm])
        assert math.isclose(found, expected, rel_tol=1e-12), extremes


@pytest.mark.parametrize("kind", ["sum", "max", "variance"])
@pytest.mark.parametrize("engine", sg.ENGINES)
def test_what_leaves_within_a_batch_is_read_before_its_memory_goes_back(
    engine: str, kind: str, implementation_of_window: str
) -> None:
    """After most of a large window has left at once, chunks go back to the system while a batch slides on over them."""
    if implementation_of_window == "pure":
        pytest.skip("the readable twin has no chunks")
    n = 60_000
    try:
        window = sg.Window({kind: getattr(sg, kind)()}, policy=sg.policies.time(n), engine=engine)
    except errors.ConfigurationError:
        pytest.skip("the engine refuses the aggregate")
    window.insert_many(array("d", [float(i % 7) for i in range(n)]), array("q", range(n)), results=False)
    window.insert(1.0, 2 * n - 9000)
    times = range(2 * n - 9000, 2 * n - 3000)
    window.insert_many(array("d", [1.0] * len(times)), array("q", times), results=engine != "recalc")
    window.verify()
    inside = [(float(i % 7), i) for i in range(times[-1] - n + 1, n)] + [(1.0, 0)] * (len(times) + 1)
    assert len(window) == len(inside)
    assert math.isclose(window.query()[kind], answer(kind, inside), rel_tol=1e-9)
