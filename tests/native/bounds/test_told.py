"""Over buckets, what Python tells lies in intervals that hold the definition's result over all readings, always."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import pytest
from aggregate_oracles import time_weighted_mean
from exact_windows import CLOCKS, SHAPES, Exact, of_the_last, readings
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import number

import sluicegate as sg
from sluicegate.bounds.spans import Span

pytestmark = pytest.mark.usefixtures("implementation_of_window")
Values = st.one_of(st.integers(-5, 5).map(float), st.floats(-100, 100))
KEPT = {
    "slope": sg.slope(), "first": sg.intercept(), "last": sg.intercept(at="last"), "held": sg.time_weighted_mean(),
    "bins": sg.histogram([0.0, 10.0, 20.0]),
}  # fmt: skip
PAIRS = {"cov": sg.covariance("a", "b"), "sample": sg.covariance("a", "b", ddof=1), "r": sg.correlation("a", "b")}


def moments(us: list[float], vs: list[float]) -> tuple[float, float, float, float, float]:
    """Means, and sums of squares and products around them, in two passes."""
    n = len(us)
    u, v = math.fsum(us) / n, math.fsum(vs) / n
    return (u, v, math.fsum((x - u) ** 2 for x in us), math.fsum((y - v) ** 2 for y in vs),
            math.fsum((x - u) * (y - v) for x, y in zip(us, vs, strict=True)))  # fmt: skip


def expected(inside: list[tuple[float, int]]) -> dict[str, float | None]:
    """The definitions, over a plain list."""
    times = [float(time - inside[0][1]) for _, time in inside]
    t, x, tt, _, tx = moments(times, [value for value, _ in inside])
    held = time_weighted_mean(inside)
    if not tt:
        return {"slope": None, "first": None, "last": None, "held": held}
    at = {"first": min(times), "last": max(times)}
    return {"slope": tx / tt * 1e6, **{name: x + tx / tt * (when - t) for name, when in at.items()}, "held": held}


def check(found: dict[str, Any], exact: dict[str, Any], scale: float, place: Any) -> int:
    """Each exact result lies in its interval, but for the oracle's own rounding; how many intervals were finite."""
    known = 0
    for name, true in exact.items():
        value, low, high, sure = found[name]
        slack = 1e-9 * (abs(true or 0.0) + scale * (1e6 if name == "slope" else 1.0))
        if low is None:
            assert value is None or not sure, (name, place)
            assert not sure or true is None or abs(true) <= slack, (name, place)
            continue
        assert low <= value <= high, (name, place)
        assert true is None or low - slack <= true <= high + slack, (name, true, found[name], place)
        assert not sure or true is None or abs(value - true) <= slack, (name, place)
        known += high < math.inf and not sure
    return known


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_lines_and_means_over_time_lie_inside(shape: Callable[[random.Random, int], float], clock: str) -> None:
    """Windows by count and by time, of few buckets, over every shape and clock, late readings too."""
    rng, known = random.Random(clock), 0
    for policy, merge in ((sg.policies.count(40), "levels"), (sg.policies.time(90), "pairs")):
        tested, exact = sg.Window(KEPT, policy=policy, histograms=[sg.Constrained(8, merge=merge)]), Exact(policy)
        for i, (value, time) in enumerate(readings(rng, shape, clock, number(120, 70))):
            tested.insert(value, time)
            exact.insert(value, time)
            inside = list(zip(exact.values[exact.begin :], exact.times[exact.begin :], strict=True))
            if inside and i % 3 == 0:
                scale = max(abs(x) for x, _ in inside)
                known += check(tested.query(bounds=True), expected(inside), scale, (policy, merge, time))
    assert known > number(30, 15)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(Values, st.integers(-5, 30)), max_size=60),
    st.integers(1, 50), st.booleans(), st.sampled_from([4, 6]), st.sampled_from([0.0, 1e9]),
)  # fmt: skip
def test_any_stream_lies_inside(steps: list[Any], size: int, by_time: bool, limit: int, offset: float) -> None:
    """Both signs, repeated times, steps back and late readings, around 0 and around 10^9."""
    policy = sg.policies.time(size) if by_time else sg.policies.count(size)
    tested = sg.Window(KEPT, policy=policy, histograms=[sg.Constrained(limit)])
    arrived: list[tuple[float, int]] = []
    time = newest = 1_700_000_000_000_000
    for x, ahead in steps:
        time += ahead
        newest = max(newest, time)
        if by_time and time <= newest - size:
            continue
        tested.insert(x + offset, time)
        arrived.append((x + offset, time))
        inside = of_the_last(arrived, newest - size) if by_time else arrived[-size:]
        check(tested.query(bounds=True), expected(inside), abs(offset) + 100.0, len(arrived))
    if arrived:
        again = sg.Window.restore(tested.snapshot(), KEPT, policy=policy, histograms=[sg.Constrained(limit)])
        assert again.query(bounds=True) == tested.query(bounds=True)


@pytest.mark.parametrize("by_time", [False, True], ids=["count", "time"])
def test_pairs_lie_inside(by_time: bool) -> None:
    """Covariance and correlation of dimensions that go together, against each other, and that stand still."""
    rng, known = random.Random(5), 0
    policy = sg.policies.time(50) if by_time else sg.policies.count(50)
    tested = sg.Window(PAIRS, policy=policy, histograms=[sg.Constrained(12)])
    rows: list[tuple[float, float, int]] = []
    time = 0
    for i in range(600):
        time += rng.choice([0, 1, 1, 2, 7])
        a = rng.gauss(1e6, 2.0) if i % 200 < 150 else 1e6
        b = {0: 3.0 * a, 1: -a, 2: 7.0}[i // 200] + rng.random()
        tested.insert({"a": a, "b": b}, time)
        rows.append((a, b, time))
        inside = [row for row in rows if row[2] > time - 50] if by_time else rows[-50:]
        _, _, xx, yy, xy = moments([a for a, _, _ in inside], [b for _, b, _ in inside])
        n = len(inside)
        exact = {"cov": xy / n, "sample": xy / (n - 1) if n > 1 else None}
        exact["r"] = xy / math.sqrt(xx * yy) if xx > 1e-9 and yy > 1e-9 else None
        known += check(tested.query(bounds=True), exact, 1.0, i)
    assert known > 500


def test_an_edge_in_a_bucket_costs_what_its_readings_can_change() -> None:
    """Σ of deviations from what is inside, of the cut bucket alone, bounds the width; no box of extremes does."""
    rng, cut = random.Random(8), 0
    tested = sg.Window(PAIRS, policy=sg.policies.count(200), histograms=[sg.Constrained(12)])
    rows: list[tuple[float, float]] = []
    for i in range(500):
        a = rng.gauss(0.0, 1.0)
        rows.append((a, a + rng.gauss(0.0, 1.0)))
        tested.insert({"a": a, "b": rows[-1][1]}, i)
        found, first = tested.query(bounds=True)["cov"], tested.buckets()[0].count
        n = sum(each.count for each in tested.buckets())
        begin, inside = len(rows) - n, rows[len(rows) - n + first :]
        if found.exact or i < 250:
            continue
        cut += 1
        mean = [sum(each) / len(inside) for each in zip(*inside, strict=True)]
        squares = [sum((row[k] - mean[k]) ** 2 for row in rows[begin : begin + first]) for k in range(2)]
        assert found.high is not None
        assert found.low is not None
        assert found.high - found.low < 1.5 * math.sqrt(squares[0] * squares[1]) / len(inside)
    assert cut > 100


def test_columns_are_what_each_query_says() -> None:
    """A batch has the value, low and high that a query has after each reading; what is no number has no column."""
    one, many = (sg.Window(KEPT, policy=sg.policies.count(30), histograms=[sg.Constrained(6)]) for _ in range(2))
    values, times = [float(i * i % 17) for i in range(120)], [i * 3 for i in range(120)]
    columns = many.insert_many(values, times, bounds=True)
    assert set(columns) == set(KEPT) - {"bins"}
    for i, (x, time) in enumerate(zip(values, times, strict=True)):
        one.insert(x, time)
        for name, found in one.query(bounds=True).items():
            if name != "bins":
                told = [math.nan if each is None else each for each in found[:3]]
                for column, each in zip(columns[name], told, strict=True):
                    assert column[i] == each or (column[i] != column[i] and each != each), (i, name)
    plain = sg.Window(KEPT, policy=sg.policies.count(30), histograms=[sg.Constrained(6)])
    assert set(plain.insert_many(values, times)) == set(columns)


def test_the_bound_of_a_trend_is_of_use() -> None:
    """A steady rise over 64 buckets: the slope is known to a tenth, the mean over time to a hundredth of the range."""
    tested = sg.Window(KEPT, policy=sg.policies.time("1h"), histograms=[sg.Constrained(64)])
    for i in range(10_000):
        tested.insert(i * 0.01 + math.sin(i), i * 1_000_000)
    found = tested.query(bounds=True)
    assert not found["slope"].exact
    assert 0.009 <= found["slope"].low <= 0.01 <= found["slope"].high <= 0.011
    assert found["held"].high - found["held"].low <= 0.36


@given(*[st.tuples(st.floats(-1e9, 1e9), st.floats(-1e9, 1e9), st.floats(0, 1)) for _ in range(2)])
def test_arithmetic_of_intervals(a: tuple[float, float, float], b: tuple[float, float, float]) -> None:
    """A number of each interval gives a sum, difference, product, quotient and square inside."""
    (p, q), (r, s) = sorted(a[:2]), sorted(b[:2])
    first, second = Span(p, q), Span(r, s)
    x, y = min(p + a[2] * (q - p), q), min(r + b[2] * (s - r), s)
    both = (first + second, x + y), (first - second, x - y), (first * second, x * y), (first.square(), x * x)
    for found, true in both:
        assert found.low <= true <= found.high
    if r > 0.0:
        assert (first / second).low <= x / y <= (first / second).high
    assert (Span(-1.0, 1.0) / Span(0.0, 1.0)).known is False
