"""Slope, intercept, covariance and correlation of single readings are those of their definitions, however merged."""

from __future__ import annotations

import csv
import math
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sluicegate as sg
from sluicegate.monoids import comoments

pytestmark = pytest.mark.usefixtures("implementation_of_window")
DATA = Path(__file__).resolve().parents[4] / "shared" / "data"
BASE = 1_700_000_000_000_000
LINES = {"slope": sg.slope(), "first": sg.intercept(), "last": sg.intercept(at="last")}
PAIRS = {
    "covariance": sg.covariance("a", "b"), "sample": sg.covariance("a", "b", ddof=1), "r": sg.correlation("a", "b"),
}  # fmt: skip
Offsets = st.sampled_from([0.0, 1e9, -1e9, 1e-3])
Values = st.one_of(st.integers(-9, 9).map(float), st.floats(-1000, 1000))
Readings = st.lists(st.tuples(Values, st.integers(0, 40)), min_size=1, max_size=40)
Pairs = st.lists(st.tuples(Values, Values), min_size=1, max_size=40)


def sums(us: list[Fraction], vs: list[Fraction]) -> tuple[Fraction, Fraction, Fraction, Fraction, Fraction]:
    """Means of both, and Σ of squared deviations and of products, as the definitions have them."""
    u, v = sum(us) / len(us), sum(vs) / len(vs)
    return (u, v, sum(((x - u) ** 2 for x in us), Fraction()), sum(((y - v) ** 2 for y in vs), Fraction()),
            sum(((x - u) * (y - v) for x, y in zip(us, vs, strict=True)), Fraction()))  # fmt: skip


def line(readings: list[tuple[float, int]]) -> dict[str, Fraction | None]:
    """The line of least squares, per second, by its definition in fractions."""
    times, values = [Fraction(t) for _, t in readings], [Fraction(x) for x, _ in readings]
    t, x, tt, _, tx = sums(times, values)
    if not tt:
        return dict.fromkeys(LINES)
    slope = tx / tt
    return {"slope": slope * 10**6, "first": x + slope * (min(times) - t), "last": x + slope * (max(times) - t)}


def pair(readings: list[tuple[float, float]]) -> dict[str, float | Fraction | None]:
    """Covariances and correlation by their definitions."""
    n = len(readings)
    _, _, xx, yy, xy = sums([Fraction(a) for a, _ in readings], [Fraction(b) for _, b in readings])
    square = float(xy * xy / (xx * yy)) if xx and yy else 0.0
    r = square**0.5 if xy >= 0 else -(square**0.5)
    return {"covariance": xy / n, "sample": xy / (n - 1) if n > 1 else None, "r": r if xx and yy else None}


def near(found: Any, exact: Any, scale: float) -> bool:
    """Within 10^-11 of what the readings' spread allows; both None, or a result that only rounding tells from none."""
    return found is None if exact is None else found is not None and abs(found - exact) <= 1e-11 * max(scale, 1e-300)


@settings(max_examples=60, deadline=None)
@given(Readings, st.integers(1, 30), st.booleans(), Offsets)
def test_a_line_is_its_definition(steps: list[tuple[float, int]], size: int, by_time: bool, offset: float) -> None:
    """In windows by count and by time, times repeated, out of order and long after 1970; the interval holds it."""
    tested = sg.Window(LINES, policy=sg.policies.time(size) if by_time else sg.policies.count(size))
    inside: list[tuple[float, int]] = []
    newest = BASE
    for value, ahead in steps:
        x, time = value + offset, BASE + ahead
        newest = max(newest, time)
        tested.insert(x, time)
        inside.append((x, time))
        inside = [each for each in inside if each[1] > newest - size] if by_time else inside[-size:]
        exact, values = line(inside), [y for y, _ in inside]
        scale = (max(values) - min(values)) + abs(offset) * 1e-4
        for name, (answer, low, high, sure) in tested.query(bounds=True).items():
            true = exact[name]
            assert near(answer, true, scale * (1e6 if name == "slope" else 1.0)), (name, answer, true)
            assert sure
            assert true is None or low <= true <= high, name


@settings(max_examples=60, deadline=None)
@given(Pairs, st.integers(1, 30), Offsets, Offsets)
def test_a_pair_is_its_definition(steps: list[tuple[float, float]], size: int, first: float, second: float) -> None:
    """Covariances and correlation of the last readings, with values far from 0; their intervals hold the exact ones."""
    tested = sg.Window(PAIRS, policy=sg.policies.count(size))
    rows = [(a + first, b + second) for a, b in steps]
    for i, (a, b) in enumerate(rows):
        tested.insert({"a": a, "b": b})
        inside = rows[max(0, i + 1 - size) : i + 1]
        exact, found = pair(inside), tested.query(bounds=True)
        for name in ("covariance", "sample"):
            answer, low, high, _ = found[name]
            assert near(answer, exact[name], 1e6), name
            assert exact[name] is None or low <= exact[name] <= high
        answer, low, high, _ = found["r"]
        if exact["r"] is not None and answer is not None:
            assert low - 1e-15 <= exact["r"] <= high + 1e-15
            assert low <= answer <= high


@settings(max_examples=60, deadline=None)
@given(Readings, st.randoms(use_true_random=False), Offsets)
def test_any_merge_tree_gives_the_same_line(steps: list[tuple[float, int]], rng: Any, offset: float) -> None:
    """Neighbours merged in random order agree with the definition over all readings."""
    readings = [(x + offset, BASE + t) for x, t in steps]
    parts = [comoments.lift_line(*each) for each in readings]
    while len(parts) > 1:
        at = rng.randrange(len(parts) - 1)
        parts[at : at + 2] = [comoments.combine_line(parts[at], parts[at + 1])]
    exact = line(readings)
    values = [x for x, _ in readings]
    scale = (max(values) - min(values)) + abs(offset) * 1e-4
    assert near(comoments.slope(parts[0], 1e6), exact["slope"], 1e6 * scale)
    assert near(comoments.intercept(parts[0], "last"), exact["last"], scale)


def test_a_far_value_keeps_its_digits() -> None:
    """A rise of 1 in 10^9 a minute, at 10^9, long after 1970: eleven digits of the slope are right."""
    tested = sg.Window(sg.slope(per="1m"), policy=sg.policies.count(1000))
    for i in range(2000):
        tested.insert(1e9 + i * 0.5 + (i % 2), BASE + i * 60_000_000)
    exact = line([(1e9 + i * 0.5 + (i % 2), i) for i in range(1000, 2000)])["slope"]
    assert tested.query()["slope"] == pytest.approx(float(exact or 0) / 1e6, rel=1e-11)


def test_what_has_no_line_has_none() -> None:
    """One reading, one time, a dimension that stands still, too few for a sample: no result, not 0."""
    tested = sg.Window(LINES, policy=sg.policies.count(9))
    assert set(tested.query().values()) == {None}
    for _ in range(3):
        tested.insert(1.5, 7)
        assert set(tested.query().values()) == {None}
    still = sg.Window(PAIRS, policy=sg.policies.count(9))
    assert set(still.query().values()) == {None}
    still.insert({"a": 1.0, "b": 2.0})
    assert still.query() == {"covariance": 0.0, "sample": None, "r": None}
    still.insert({"a": 1.0, "b": 3.0})
    assert still.query() == {"covariance": 0.0, "sample": 0.0, "r": None}


@pytest.mark.parametrize("scale", [1e200, 5e-324])
def test_nothing_is_certain_of_moments_beyond_float64(scale: float) -> None:
    """Values that go together have a correlation: that the window has none to tell is no exact answer."""
    pairs = sg.Window(sg.correlation("a", "b"), policy=sg.policies.count(9))
    for x in (1.0, 2.0, 4.0):
        pairs.insert({"a": x * scale, "b": x * scale})
    assert pairs.query(bounds=True)["correlation"] == (None, None, None, False)


def test_a_tiny_correlation_and_mean_over_time_lie_in_their_intervals() -> None:
    """Where squares and quotients fall below float64's normal numbers."""
    values = [1e150, 1.0, -1e150, 3.0, 1e-150]
    pairs = sg.Window(sg.correlation("a", "b"), policy=sg.policies.count(9))
    for a, b in zip(values, [0.0, 1e-150, 0.0, 0.0, 0.0], strict=True):
        pairs.insert({"a": a, "b": b})
    found = pairs.query(bounds=True)["correlation"]
    n, x, y = 5, [Fraction(each) for each in values], Fraction(1e-150)
    both, first, second = x[1] * y - sum(x) * y / n, sum(each**2 for each in x) - sum(x) ** 2 / n, y**2 - y**2 / n
    assert found.high < 0 or found.low > 0
    assert min(found.low**2, found.high**2) <= both**2 / first / second <= max(found.low**2, found.high**2)
    for histograms in ([], [sg.Constrained(4)]):
        level = sg.Window(sg.time_weighted_mean(), policy=sg.policies.count(9), histograms=histograms)
        level.insert_many([5e-324, 0.0, 0.0], [0, 1, 3])
        found = level.query(bounds=True)["time_weighted_mean"]
        assert found.low <= Fraction(5e-324) / 3 <= found.high


def test_columns_and_storage() -> None:
    """A batch gives a column each, as readings one by one do; restored, a window goes on bit for bit."""
    one, many = (sg.Window(LINES, policy=sg.policies.count(16)) for _ in range(2))
    values, times = [float(i * 7 % 11) for i in range(60)], [BASE + i * 10 for i in range(60)]
    columns = many.insert_many(values, times)
    for i, (x, time) in enumerate(zip(values, times, strict=True)):
        one.insert(x, time)
        for name, value in one.query().items():
            assert (
                columns[name][i] == pytest.approx(value, rel=1e-9)
                if value is not None
                else math.isnan(columns[name][i])
            )
    again = sg.Window.restore(one.snapshot(), LINES, policy=sg.policies.count(16))
    for each in (one, again):
        each.insert(3.0, BASE + 10_000)
    assert one.query() == again.query()


@pytest.mark.parametrize(
    "wrong",
    [lambda: sg.intercept(at="middle"), lambda: sg.covariance("a", None), lambda: sg.slope(per="never")],  # type: ignore[arg-type]
)
def test_wrong_options_are_refused(wrong: Any) -> None:
    """With what was expected."""
    with pytest.raises(sg.errors.ConfigurationError, match="expected"):
        wrong()


@pytest.mark.skipif(not DATA.exists(), reason="no readings beside this checkout (shared/data)")
def test_a_machine_that_warms_up() -> None:
    """The trend of a day of a real machine's temperature, every hour, is that of the definition."""
    with (DATA / "machine_temperature.csv").open() as file:
        rows = [(float(row["value"]), datetime.fromisoformat(row["timestamp"])) for row in csv.DictReader(file)][:2000]
    readings = [(x, int(t.timestamp()) * 1_000_000) for x, t in rows]
    tested = sg.Window(LINES, policy=sg.policies.count(288))
    for i, (x, time) in enumerate(readings):
        tested.insert(x, time)
        if i % 97 == 0:
            exact = line(readings[max(0, i - 287) : i + 1])
            for name, value in tested.query().items():
                assert near(value, exact[name], 100.0), (i, name)
