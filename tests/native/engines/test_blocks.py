"""A batch through an exact window is taken in blocks: the same bits as reading by reading, whatever the borders."""

from __future__ import annotations

import random
from array import array
from typing import Any

import pytest
from exact_windows import ALL, CLOCKS, SHAPES, Exact, readings
from twins import core as pure

import sluicegate as sg
import sluicegate.window.configure
from sluicegate.core import core as compiled

count, time = sg.policies.count, sg.policies.time
AGGREGATES: dict[str, Any] = {
    "sum": sg.sum(), "max": sg.max(), "min": sg.min(), "mean": sg.mean(), "std": sg.std(), "count": sg.count(),
    "split": {"sum": sg.sum(), "max": sg.max(), "std": sg.std(), "range": sg.range()},
    "all": ALL,
}  # fmt: skip
SIZES = [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 100, 127, 129, 255, 257, 500, 1023, 1025, 2000]


def both(aggregates: Any, policy: Any) -> tuple[sg.Window, sg.Window]:
    """The same window twice."""
    return sg.Window(aggregates, policy=policy), sg.Window(aggregates, policy=policy)


def same(column: Any, values: list[Any], within: float = 0.0) -> None:
    """A column of a batch against the answers of single calls: to the bit, or so far apart at most."""
    expected = array("d", [float("nan") if value is None else float(value) for value in values])
    if within:
        assert all(abs(x - y) <= within for x, y in zip(column, expected, strict=True))
    else:
        assert bytes(memoryview(column)) == expected.tobytes()


def follow(batch: sg.Window, single: sg.Window, rows: list[tuple[float, int]], within: float = 0.0) -> None:
    """The same rows as one batch and one by one: results after each, and to the bit all that is stored."""
    results = batch.insert_many([x for x, _ in rows], [t for _, t in rows])
    answers = []
    for x, t in rows:
        single.insert(x, t)
        answers.append(single.query())
    for name, column in results.items():
        same(column, [answer[name] for answer in answers], within)
    assert batch.snapshot() == single.snapshot()
    batch.verify()


@pytest.mark.parametrize("kind", AGGREGATES)
def test_count_windows_of_many_sizes(kind: str) -> None:
    """Every operator, sizes around the powers of two, batches of random length: no bit differs but of sums."""
    rng = random.Random(kind)
    for size in SIZES:
        batch, single = both(AGGREGATES[kind], count(size))
        rows = [(rng.gauss(0, 1) * 10 ** rng.randrange(3), i) for i in range(min(2 * size, 1100) + 300)]
        while rows:
            n = rng.choice([1, 3, 4, 40, 700])
            follow(batch, single, rows[:n], 1e-10 if kind in ("sum", "mean", "std") else 0.0)
            rows = rows[n:]


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("kind", ["sum", "split", "all", "count"])
def test_time_windows_over_every_clock(kind: str, clock: str) -> None:
    """Gaps that let much leave at once, late readings that block what is behind them, windows that run empty."""
    rng = random.Random(clock)
    for span in (1, 9, 60, 700, 3000):
        policy, start = time(span), 0
        batch, single = both(AGGREGATES[kind], policy)
        exact = Exact(policy)
        for shape in SHAPES[:4]:
            rows = [(x, start + t) for x, t in readings(rng, shape, clock, 150)]
            start += rng.choice([0, 300, 10_000])
            follow(batch, single, rows, 1e-10 if kind == "sum" else 0.0)
            for row in rows:
                exact.insert(*row)
            assert len(batch) == exact.results()["count"]


def test_a_hopping_window_lets_many_leave_at_once() -> None:
    """By count and by time, a hop's readings leave together."""
    rng = random.Random(4)
    for policy in (count(100, hop=7), count(1000, hop=400), time(300, hop=50), time(2000, hop=900)):
        batch, single = both(sg.sum(), policy)
        for _ in range(3):
            first = single.accepted
            follow(batch, single, [(rng.random(), 3 * (first + i)) for i in range(900)])


@pytest.mark.parametrize("policy", [count(700), time(700)], ids=["count", "time"])
@pytest.mark.parametrize("kind", ["sum", "std", "all", "count"])
def test_the_twin_stores_the_same_bytes(kind: str, policy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Snapshots of the compiled window and of the readable twin, over gaps and late readings, are equal."""
    stored = []
    for module in (compiled, pure):
        monkeypatch.setattr(sluicegate.window.configure, "Core", module.Core)
        window, rng = sg.Window(AGGREGATES[kind], policy=policy), random.Random(9)
        for clock in ("gaps", "going back"):
            rows = list(readings(rng, SHAPES[0], clock, 600))
            window.insert_many([x for x, _ in rows], [t for _, t in rows])
        stored.append(window.snapshot())
    assert stored[0] == stored[1]


def test_a_restored_window_goes_on_to_the_bit() -> None:
    """Whatever the times, while none is late: sums of late ones are added in another order after a restart."""
    rng = random.Random(3)
    for clock in CLOCKS[:-1]:
        rows, policy = list(readings(rng, SHAPES[5], clock, 900)), time(400)
        window = sg.Window({"sum": sg.sum(), "last": sg.last()}, policy=policy)
        window.insert_many([x for x, _ in rows[:500]], [t for _, t in rows[:500]])
        again = sg.Window.restore(window.snapshot(), {"sum": sg.sum(), "last": sg.last()}, policy=policy)
        follow(window, again, rows[500:])


def test_batches_cut_anywhere_leave_the_same_window() -> None:
    """What a restart cuts differently ends the same: the borders of batches are in no bit of a window."""
    rng = random.Random(8)
    values = array("d", [rng.gauss(20, 3) for _ in range(6000)])
    stored = set()
    for most in (6000, 1000, 511, 100, 7):
        window, i = sg.Window({"mean": sg.mean(), "std": sg.std()}, policy=count(900)), 0
        while i < len(values):
            n = rng.randrange(1, most + 1)
            window.insert_many(values[i : i + n], results=False)
            i += n
        stored.add(window.snapshot())
    assert len(stored) == 1


def test_no_drift_and_no_poisoning() -> None:
    """A value of 10¹⁶ leaves no trace once it has left, and sums stay within rounding of the exact ones."""
    values = array("d", [1e16 if i == 2000 else (i % 10) / 8 for i in range(9000)])
    window = sg.Window({"sum": sg.sum()}, policy=count(1000))
    column = window.insert_many(values)["sum"]
    for i in (1999, 3000, 3001, 8999):
        assert column[i] == sum(values[max(0, i - 999) : i + 1])
    assert column[2500] == pytest.approx(1e16, rel=1e-12)
