"""A batch with results or intervals gives after each reading what the reading alone gives: to the bit, everywhere."""

from __future__ import annotations

import ctypes
import math
import random
from array import array
from itertools import chain
from typing import Any

import pytest
from exact_windows import CLOCKS, SHAPES, readings
from test_runs import EACH

import sluicegate as sg
from sluicegate.errors import BoundsError, InputError

#: Those whose intervals are compiled.
COMPILED = {
    "count": sg.count(), "sum": sg.sum(), "mean": sg.mean(), "min": sg.min(), "max": sg.max(), "first": sg.first(),
    "last": sg.last(), "range": sg.range(),
}  # fmt: skip


def number(value: Any) -> float:
    """As a column has it."""
    return math.nan if value is None else float(value)


def same(found: float, expected: float) -> bool:
    """To the bit; NaN: none."""
    return found == expected or (math.isnan(found) and math.isnan(expected))


@pytest.mark.parametrize(
    ("composition", "engine"),
    [(name, "amta") for name in EACH] + [(name, "recalc") for name in list(EACH)[::5] if not name.startswith("pairs")],
)
def test_each_result_and_interval_is_that_of_the_reading_alone(composition: str, engine: str) -> None:
    """Random batches over every shape and clock: values, and now and then intervals, against single inserts."""
    policy, histograms = EACH[composition]
    aggregates = {policy.up_to: COMPILED[policy.up_to]} if policy.up_to else COMPILED
    rng = random.Random(composition)
    for clock in CLOCKS:
        plain, bounded, single = (
            sg.Window(aggregates, policy=policy, histograms=histograms, engine=engine) for _ in range(3)
        )
        start = 0
        for shape in SHAPES:
            rows = [(x, start + t) for x, t in readings(rng, shape, clock, 110)]
            start += 1500
            while rows:
                size = rng.randrange(1, 90)
                part, rows = rows[:size], rows[size:]
                values, times = [x for x, _ in part], [t for _, t in part]
                results = plain.insert_many(values, times)
                columns = bounded.insert_many(values, times, bounds=True)
                for i, (x, t) in enumerate(part):
                    single.insert(x, t)
                    expected = single.query()
                    assert all(same(results[name][i], number(expected[name])) for name in aggregates), (clock, i)
                    for name, answer in (single.query(bounds=True) if i % 4 == 0 else {}).items():
                        found = [column[i] for column in columns[name]]
                        assert all(map(same, found, map(number, answer[:3]))), (clock, name, i)
            assert plain.snapshot() == bounded.snapshot() == single.snapshot()


def test_long_runs_in_a_large_window() -> None:
    """A thousand readings at once, the edge moving through large buckets; each interval holds the plain list's mean."""
    rng = random.Random(3)
    values = [round(rng.gauss(500, 40)) + i // 300 % 7 * 90.0 for i in range(40_000)]
    window = sg.Window({"mean": sg.mean(), "high": sg.max()}, policy=sg.policies.count(9_000),
                       histograms=[sg.SumLike(error=0.03, of="mean")])  # fmt: skip
    columns = window.insert_many(values, bounds=True)
    assert len(window) < 60
    total, single = 0.0, sg.Window({"mean": sg.mean(), "high": sg.max()}, policy=sg.policies.count(9_000),
                                   histograms=[sg.SumLike(error=0.03, of="mean")])  # fmt: skip
    for i, x in enumerate(values):
        total += x - (values[i - 9_000] if i >= 9_000 else 0.0)
        mean = total / min(i + 1, 9_000)
        assert columns["mean"].low[i] <= mean <= columns["mean"].high[i]
        assert columns["mean"].low[i] <= columns["mean"].value[i] <= columns["mean"].high[i]
        single.insert(x)
        if i % 700 == 0:
            answers = single.query(bounds=True)
            assert all([c[i] for c in columns[name]] == list(answers[name][:3]) for name in answers)


def test_several_dimensions_and_aggregates_that_take_the_long_way() -> None:
    """Each aggregate reads its own dimension; one without compiled bounds takes all of them the long way."""
    few = {"a": sg.mean("a"), "b": sg.max("b"), "c": sg.sum("b"), "n": sg.count()}
    rng = random.Random(5)
    rows = [(rng.gauss(20, 1), rng.gauss(-3, 4)) for _ in range(1500)]
    flat = memoryview(array("d", chain.from_iterable(rows))).cast("B").cast("d", (1500, 2))
    for aggregates in (few, few | {"spread": sg.std("a")}):
        windows = [
            sg.Window(aggregates, policy=sg.policies.count(400), histograms=[sg.SumLike(0.05), sg.Constrained(20)])
            for _ in range(2)
        ]
        columns = windows[0].insert_many(flat, bounds=True)
        for i, row in enumerate(rows):
            windows[1].insert(row)
            if i % 50 == 0:
                for name, answer in windows[1].query(bounds=True).items():
                    assert [each[i] for each in columns[name]] == [number(x) for x in answer[:3]], (i, name)


@pytest.mark.usefixtures("implementation_of_window")
def test_a_rule_of_ones_own_and_an_exact_window() -> None:
    """A callable policy and single readings give intervals in a batch too; a rule that declares nothing does not."""
    declared = sg.policies.custom(lambda total, old: total.count - old.count >= 40, monotone=True, remaining=True)
    plain = sg.policies.custom(lambda total, old: total.count - old.count >= 40)
    values = [float(i * 7919 % 101) for i in range(300)]
    for policy, histograms in ((declared, [sg.Constrained(6)]), (sg.policies.count(40), [])):
        batch, single = (sg.Window(COMPILED, policy=policy, histograms=histograms) for _ in range(2))
        columns = batch.insert_many(values, bounds=True)
        for i, x in enumerate(values):
            single.insert(x)
            for name, answer in single.query(bounds=True).items():
                assert [each[i] for each in columns[name]] == [number(end) for end in answer[:3]]
    window = sg.Window(COMPILED, policy=plain, histograms=[sg.Constrained(6)])
    with pytest.raises(BoundsError, match="monotone"):
        window.insert_many(values, bounds=True)
    assert window.accepted == 0
    with pytest.raises(InputError):
        batch.insert_many([1.0, math.nan], bounds=True)
    assert [len(column) for column in batch.insert_many([], bounds=True)["mean"]] == [0, 0, 0]


SLOT, LONG = ctypes.POINTER(ctypes.c_int64), ctypes.c_int64
RULE = ctypes.CFUNCTYPE(ctypes.c_int, SLOT, SLOT, ctypes.c_void_p)
UNTIL = ctypes.CFUNCTYPE(LONG, SLOT, ctypes.c_void_p)


class Tumbler:
    """At 200 readings the oldest 70 to 90 leave: (count, times, first ordinal) stand in slots 0 to 3."""

    def __init__(self) -> None:
        """It knows where the window begins, and how often it was asked."""
        self.first, self.asked = 0, 0
        self.rule, self.until = RULE(self._leaves), UNTIL(lambda total, context: self.first + 199)

    def _leaves(self, total: Any, old: Any, context: Any) -> int:
        self.asked += 1
        if total[3] + total[0] - self.first >= 200:
            self.first += 70 + self.first % 21
        return int(old[3] + old[0] <= self.first)

    def policy(self, says_until: bool) -> Any:
        """The compiled rule, with or without what says how long nothing leaves."""
        addresses = [ctypes.cast(function, ctypes.c_void_p).value or 0 for function in (self.rule, self.until)]
        return sg.policies.compiled(addresses[0], label="tumbler", monotone=True, remaining=True, keep=self,
                                    until=addresses[1] if says_until else 0)  # fmt: skip


@pytest.mark.parametrize(
    "histograms",
    [[], [sg.Hop()], [sg.Constrained(9)], [sg.Hop(), sg.Constrained(30)], [sg.Constrained(9, merge="pairs")]],
)
def test_a_rule_that_says_how_long_nothing_leaves(histograms: list[Any]) -> None:
    """The same answers and bytes as a rule that is asked after each reading, and by far fewer questions."""
    rng = random.Random(8)
    values = [rng.gauss(20, 3) for _ in range(6000)]
    told, asked = Tumbler(), Tumbler()
    quick, plain = (
        sg.Window(COMPILED, policy=each.policy(says), histograms=histograms)
        for each, says in ((told, True), (asked, False))
    )
    for at in range(0, 6000, 750):
        part = values[at : at + 750]
        columns = quick.insert_many(part, bounds=True) if histograms else quick.insert_many(part)
        for i, x in enumerate(part):
            plain.insert(x)
            if i % 5 == 0 and histograms:
                for name, answer in plain.query(bounds=True).items():
                    assert [each[i] for each in columns[name]] == [number(end) for end in answer[:3]], (at + i, name)
            elif not histograms:
                assert {name: column[i] for name, column in columns.items()} == plain.query()
        assert quick.snapshot() == plain.snapshot()
        restored = sg.Window.restore(quick.snapshot(), COMPILED, policy=told.policy(True), histograms=histograms)
        restored.insert(1.0)  # a window that was stored asks anew
        assert restored.accepted == at + 751
    assert asked.asked > 6000
    if type(quick._core).__module__ == "sluicegate.core.core":  # the readable twin asks after each reading
        assert told.asked < 3000
