"""Aggregates of fixed width beyond a number: right over every window size, lawful, stored, refused with reasons."""

from __future__ import annotations

import csv
import math
import struct
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from aggregate_oracles import CANONICAL, FIXED, Reading, check_sketches, expected, time_weighted_mean
from exact_windows import of_the_last
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import some

import sluicegate as sg

pytestmark = pytest.mark.usefixtures("implementation_of_window")
DATA = Path(__file__).resolve().parents[4] / "shared" / "data"
Values = st.one_of(st.integers(-6, 8).map(float), st.floats(-1e6, 1e6), st.sampled_from([0.0, -0.0, 0.5, 6.0, 1e280]))
Readings = st.lists(st.tuples(Values, st.integers(-30, 60)), max_size=50)


def window(policy: Any = None, **aggregates: Any) -> sg.Window:
    """A window over all of them, unless told which."""
    return sg.Window(aggregates or FIXED, policy=policy or sg.policies.count(10**6))


def agree(results: dict[str, Any], readings: list[Reading]) -> None:
    """As the plain list says; a compensated sum to the bit, but for what cancels beyond 2^-105."""
    check_sketches(results, readings)
    for name, value in expected(readings).items():
        if name == "time_weighted_mean" and value is not None:
            assert abs(results[name] - value) <= 2.0**-50 * max(abs(x) for x, _ in readings)
        elif name in ("sum", "mean") and value is not None:
            assert results[name] == pytest.approx(
                value, rel=1e-15, abs=1e-300 + 1e-27 * sum(abs(x) for x, _ in readings)
            )
        else:
            assert results[name] == value, name


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 17, 64])
def test_window_sizes(size: int) -> None:
    """Windows of several sizes fill, slide through all of their states, and agree with a plain list throughout."""
    tested, readings = window(sg.policies.count(size)), list[Reading]()
    agree(tested.query(), [])
    for i in range(2 * size + 20):
        readings.append((float(i * 7919 % 23 % 11 - 4) / 2, 3 * i + i % 5))
        tested.insert(*readings[-1])
        agree(tested.query(), readings[-size:])
    tested.verify()


def test_every_window_size_to_99() -> None:
    """Each size from 0 to 99 as a growing and as a full window of the default engine."""
    windows = {size: window(sg.policies.count(size)) for size in some(range(1, 100), 6)}
    readings = [(float(i * i * 31 % 97), 2 * i) for i in range(110)]
    for i, reading in enumerate(readings):
        for size, each in windows.items():
            each.insert(*reading)
            if i in (size // 2, size - 1, size, size + 7):
                agree(each.query(), readings[max(0, i + 1 - size) : i + 1])


@settings(max_examples=60, deadline=None)
@given(Readings, st.integers(1, 20), st.booleans())
def test_random_streams(steps: list[Reading], size: int, by_time: bool) -> None:
    """Any readings, times that go back too, under both policies: as the plain list says."""
    tested, inside, newest = (
        window(sg.policies.time(size) if by_time else sg.policies.count(size)),
        list[Reading](),
        -999,
    )
    for reading in steps:
        tested.insert(*reading)
        inside.append(reading)
        newest = max(newest, reading[1])
        inside = of_the_last(inside, newest - size) if by_time else inside[-size:]
        agree(tested.query(), inside)


@settings(max_examples=80, deadline=None)
@given(Readings, st.integers(0, 50), st.integers(0, 50))
def test_combining_is_associative(readings: list[Reading], i: int, j: int) -> None:
    """(a b) c, a (b c) and the readings one after the other give the same partial, to the bit."""
    i, j = sorted((i % (len(readings) + 1), j % (len(readings) + 1)))
    parts = [part for part in (readings[:i], readings[i:j], readings[j:]) if part]
    folded = [fold(part) for part in parts]
    if len(parts) < 3:
        return
    core = window(**{name: FIXED[name] for name in CANONICAL})._core
    combine, (a, b, c) = core.combine, folded
    assert combine(combine(a, b), c) == combine(a, combine(b, c)) == fold(readings)


def fold(readings: list[Reading]) -> bytes:
    """The partial of readings, combined by a window that never evicts."""
    tested = window(**{name: FIXED[name] for name in CANONICAL})
    for reading in readings:
        tested.insert(*reading)
    return bytes(tested._core.total())


@settings(max_examples=40, deadline=None)
@given(st.lists(Values, max_size=60), st.integers(1, 12), st.booleans())
def test_what_can_be_subtracted(values: list[float], size: int, by_time: bool) -> None:
    """By the engine that deducts: bins to the count, a compensated sum beyond what a double shows."""
    kept = {name: FIXED[name] for name in ("histogram", "sum", "mean")}
    policy = sg.policies.time(2 * size) if by_time else sg.policies.count(size)
    tested = sg.Window(kept, policy=policy, engine="soe")
    for i, x in enumerate(values):
        tested.insert(x, 2 * i)
        inside = [(y, 0) for y in values[max(0, i + 1 - size) : i + 1]]
        found, exact = tested.query(), expected(inside)
        assert found["histogram"] == exact["histogram"]
        lost = 1e-300 + 1e-27 * sum(abs(y) for y in values[: i + 1])
        assert found["sum"] == pytest.approx(exact["sum"], rel=1e-15, abs=lost)
        tested.verify()


def test_a_large_value_leaves_no_rounding_in_a_compensated_sum() -> None:
    """A reading of 2^60 beside thousandths: the sum is the exact one, rounded once."""
    tested = window(sg.policies.count(64), total=sg.sum(compensated=True), plain=sg.sum())
    values = [0.001 * i for i in range(40)] + [2.0**60, -(2.0**60)] + [0.001 * i for i in range(20)]
    for x in values:
        tested.insert(x)
    assert tested.query()["total"] == math.fsum(values)
    assert tested.query()["plain"] != math.fsum(values)


def test_distinct_values_are_estimated_beyond_the_list() -> None:
    """Thousands of values, repeated: within four standard errors at each lg_k, and the least is certain."""
    for lg_k, most in ((8, 24), (10, 96), (12, 384)):
        tested = window(distinct=sg.distinct_count(lg_k=lg_k))
        for i in range(most):
            tested.insert(float(i % most))
            tested.insert(float(i % 7))
        assert tested.query()["distinct"][:3] == (most, 0.0, most)
        for i in range(900):
            tested.insert(i * 0.37)
        found = tested.query()["distinct"]
        true = len({float(i) for i in range(most)} | {i * 0.37 for i in range(900)})
        assert found.error == pytest.approx(1.04 / 2 ** (lg_k / 2))
        assert abs(found.estimate - true) < 4 * found.error * true
        assert found.least <= true


def test_a_zero_is_one_value_whatever_its_sign() -> None:
    """0.0 and −0.0 are equal, so they count once and are found as each other."""
    tested = window(distinct=sg.distinct_count(), seen=sg.bloom_filter(64))
    tested.insert(0.0)
    tested.insert(-0.0)
    assert tested.query()["distinct"].estimate == 1
    assert tested.query()["seen"].might_contain(-0.0)
    assert not tested.query()["seen"].might_contain(1.0)


def test_false_positives_are_as_rare_as_stated() -> None:
    """With 8 bits a value and 4 hashes: 2.4 % expected of a million other values."""
    tested = window(seen=sg.bloom_filter(8192, 4))
    for i in range(1024):
        tested.insert(float(i))
    seen = tested.query()["seen"]
    share = sum(seen.might_contain(i + 0.5) for i in range(4000)) / 4000
    assert 0.014 < share < 0.036
    assert seen.false_positives == pytest.approx((1 - math.exp(-0.5)) ** 4, rel=0.15)


def test_bins_of_equal_width() -> None:
    """`bins` cuts a range into equal parts whose last edge is the one given."""
    tested = window(bins=sg.histogram((0, 1), bins=10))
    for x in (-1e-9, 0.0, 0.1, 0.95, 1.0, 7.0):
        tested.insert(x)
    found = tested.query()["bins"]
    assert (found.below, found.above, found.edges[-1], len(found.edges)) == (1, 2, 1.0, 11)
    assert found.counts == (1, 1, 0, 0, 0, 0, 0, 0, 0, 1)


def test_two_of_one_kind_over_several_dimensions() -> None:
    """Aggregates of one kind with other options, or over other dimensions, do not meet."""
    tested = window(
        few=sg.top_k(1, "a"), more=sg.top_k(2, "a"), other=sg.top_k(2, "b"),
        wide=sg.histogram([0, 9], "a"), narrow=sg.histogram([2, 3], "a"), run=sg.longest_run("b"),
    )  # fmt: skip
    for i in range(4):
        tested.insert({"a": float(i), "b": float(-i)}, time=i)
    found = tested.query()
    assert found["few"] == [(3.0, 3)]
    assert found["more"] == [(3.0, 3), (2.0, 2)]
    assert found["other"] == [(0.0, 0), (-1.0, 1)]
    assert (found["wide"].counts, found["narrow"].counts, found["run"].length) == ((4,), (1,), 1)


def test_columns_of_a_batch() -> None:
    """A batch gives numbers for what is one; a longest run's length, a distinct count's estimate; no other column."""
    tested = window(sg.policies.count(3))
    columns = tested.insert_many([1.0, 2.0, 3.0, 1.0, 1.0])
    assert set(columns) == set(FIXED) - {"histogram", "bloom_filter", "top_k"}
    assert list(columns["longest_run"]) == [1, 2, 3, 2, 1]
    assert list(columns["distinct_count"]) == [1, 2, 3, 3, 2]
    assert math.isnan(columns["rate"][0])
    assert list(columns["rate"][1:]) == [1e6, 1e6, -0.5e6, -1e6]


def test_a_callable_policy_sees_them() -> None:
    """A policy over the longest run: what is older than it leaves."""

    def older(total: Any, old: Any) -> bool:
        return bool(total["run"].t_first > old.t_last)

    tested = window(sg.policies.custom(older, monotone=True), run=sg.longest_run(), seen=sg.bloom_filter(64))
    for i, x in enumerate([5.0, 4.0, 1.0, 2.0, 3.0, 0.0, 1.0]):
        tested.insert(x, time=i)
        tested.verify()
    assert tested.query()["run"] == (2, 4, 2, 3)
    assert len(tested) == 5
    assert not tested.query()["seen"].might_contain(5.0)


def test_snapshots_are_exact() -> None:
    """Stored and restored, a window goes on bit for bit; other options are another configuration."""
    tested = window(sg.policies.count(20))
    for i in range(50):
        tested.insert(float(i * 7 % 11), time=2 * i)
    again = sg.Window.restore(tested.snapshot(), FIXED, policy=sg.policies.count(20))
    for i in range(30):
        for each in (tested, again):
            each.insert(float(i * 5 % 13), time=100 + i)
        assert tested.query() == again.query()
    with pytest.raises(sg.errors.ForeignSnapshotError):
        sg.Window.restore(tested.snapshot(), {**FIXED, "top_k": sg.top_k(4)}, policy=sg.policies.count(20))


def test_what_is_certain_is_said() -> None:
    """With bounds: exact results are exact, a rate is rounded, a distinct count lies between least and readings."""
    tested = window(sg.policies.count(200))
    for i in range(200):
        tested.insert(i * 0.1, time=7 * i)
    found = tested.query(bounds=True)
    for name in ("longest_run", "histogram", "top_k", "bloom_filter"):
        assert found[name].exact
        assert found[name].low == found[name].value
    assert found["rate"].low < found["rate"].value < found["rate"].high
    distinct = found["distinct_count"]
    assert not distinct.exact
    assert distinct.low == distinct.value.least <= 200 == distinct.high
    surely = 0
    for start in range(20):  # so few that each may have a register of its own
        tested = window(distinct=sg.distinct_count(lg_k=8))
        for place in range(26):
            tested.insert(1000.0 * start + place)
        distinct = tested.query(bounds=True)["distinct"]
        surely += distinct.exact
        assert distinct.low <= distinct.value.estimate <= distinct.high
        assert not distinct.exact or distinct.value.estimate == 26
    assert surely > 0


@pytest.mark.parametrize("name", ["longest_run", "rate", "frequency", "sum", "mean"])
def test_buckets_are_refused_with_the_reason(name: str) -> None:
    """No certain interval follows over buckets, so a window with histograms refuses them and says why."""
    with pytest.raises(sg.errors.ConfigurationError, match=rf"aggregates\['{name}'\].*without histograms"):
        sg.Window({name: FIXED[name]}, policy=sg.policies.count(9), histograms=[sg.Constrained(8)])


@settings(max_examples=60, deadline=None)
@given(Readings, st.integers(1, 60), st.booleans(), st.sampled_from([4, 5, 8]), st.sampled_from(["levels", "pairs"]))
def test_bins_over_buckets(steps: list[Reading], size: int, by_time: bool, limit: int, merge: Any) -> None:
    """Each bin lies in its certain interval, the value too; they add up to the count; a batch and storage agree."""
    policy = sg.policies.time(size) if by_time else sg.policies.count(size)
    histograms = [sg.Constrained(limit, merge=merge)]
    aggregates = {"bins": FIXED["histogram"], "n": sg.count(), "few": sg.histogram([0.0, 1e9])}
    tested = sg.Window(aggregates, policy=policy, histograms=histograms)
    inside, newest = list[Reading](), -999
    for value, time in steps:
        tested.insert(value, time)
        inside.append((value, time))
        newest = max(newest, time)
        inside = of_the_last(inside, newest - size) if by_time else inside[-size:]
        found, exact = tested.query(bounds=True), expected(inside)["histogram"]
        value_, low, high, sure = found["bins"]
        for a, b, c, d in zip(flat(low), flat(exact), flat(high), flat(value_), strict=True):
            assert a <= b <= c
            assert a <= d <= c
        assert sum(flat(value_)) == tested.query()["n"]
        assert not sure or value_ == exact
        tested.verify()
    again = sg.Window(aggregates, policy=policy, histograms=histograms)
    again.insert_many([x for x, _ in steps], [time for _, time in steps], results=False)
    assert again.query() == tested.query()
    same = sg.Window.restore(again.snapshot(), aggregates, policy=policy, histograms=histograms)
    assert same.query(bounds=True) == tested.query(bounds=True)


def flat(bins: Any) -> list[int]:
    """All counts of a histogram."""
    return [bins.below, *bins.counts, bins.above]


@pytest.mark.parametrize("make", [
    lambda: sg.histogram([1.0]), lambda: sg.histogram([1.0, 1.0]), lambda: sg.histogram([0.0, math.inf]),
    lambda: sg.histogram([0.0, 1.0], bins=1025), lambda: sg.histogram([0.0, 1.0, 2.0], bins=2),
    lambda: sg.histogram(range(1026)), lambda: sg.histogram([math.nan, 1.0]),
    lambda: sg.bloom_filter(65), lambda: sg.bloom_filter(2**17), lambda: sg.bloom_filter(64, 0),
    lambda: sg.bloom_filter(64, 17), lambda: sg.top_k(0), lambda: sg.top_k(257), lambda: sg.top_k(True),
    lambda: sg.distinct_count(lg_k=7), lambda: sg.distinct_count(lg_k=13), lambda: sg.rate(per=0),
    lambda: sg.rate(per="soon"), lambda: sg.frequency(per=-1),
])  # fmt: skip
def test_what_is_out_of_bounds_is_refused(make: Any) -> None:
    """Sizes are bounded before anything is allocated; the message says what was expected."""
    with pytest.raises(sg.errors.ConfigurationError, match="expected"):
        make()


def test_a_partial_is_bounded() -> None:
    """Many wide aggregates together are refused beyond 128 KiB a reading."""
    many = {str(i): sg.bloom_filter(65_536, i + 1) for i in range(16)}
    sg.Window(dict(list(many.items())[:2]), policy=sg.policies.count(9))
    with pytest.raises(sg.errors.ConfigurationError, match="at most 131072"):
        sg.Window({**many, "one more": sg.top_k(1)}, policy=sg.policies.count(9))


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e300 * 1e10, "x", None])
def test_what_is_no_number_is_refused(bad: Any) -> None:
    """NaN and infinities never enter; the window is as it was."""
    tested = window(sg.policies.count(5))
    tested.insert(1.0)
    before = tested.query()
    with pytest.raises(sg.errors.InputError):
        tested.insert(bad)
    with pytest.raises(sg.errors.InputError):
        tested.insert_many([2.0, bad])
    assert tested.query() == before


@pytest.mark.skipif(not DATA.exists(), reason="the real readings are not there")
def test_real_readings() -> None:
    """Road speeds, irregular in time: over the newest 40 readings and over 6 hours, every 10th answer."""
    with (DATA / "road_speed.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) > 1000
    newest, by_time, readings = window(sg.policies.count(40)), window(sg.policies.time("6h")), list[Reading]()
    for i, row in enumerate(rows[:400]):
        when = datetime.fromisoformat(row["timestamp"]).replace(tzinfo=UTC)
        readings.append((float(row["value"]), int(when.timestamp()) * 1_000_000))
        for each in (newest, by_time):
            each.insert(*readings[-1])
        if i % 10 == 0:
            agree(newest.query(), readings[-40:])
            agree(by_time.query(), [one for one in readings if one[1] > readings[-1][1] - 6 * 3_600_000_000])


@pytest.mark.parametrize("aggregate", [sg.top_k(3), sg.distinct_count(lg_k=8)])
@pytest.mark.parametrize("count", [10**12, 4000, -7])
def test_no_stored_count_leads_astray(aggregate: sg.Monoid, count: int, implementation_of_window: str) -> None:
    """A stored partial that says it holds more than it has room for is never read or written beyond it."""
    if implementation_of_window == "pure":
        pytest.skip("Python checks its indices")
    tested = window(it=aggregate)
    tested.insert(1.0)
    core, right = tested._core, tested._core.total()
    wrong = struct.pack("=q", count) + right[8:]
    found = core.lower(core.combine(core.combine(wrong, right), wrong))[0]
    assert (len(found) if isinstance(found, list) else found.least) <= 24  # what a partial has room for
    assert len(core.combine(right, wrong)) == len(right)


def test_a_mean_over_time_with_late_readings() -> None:
    """A window by time has each reading in its place: as if none had been late; with bounds the truth lies inside."""
    readings = [(float(i * 7919 % 23) / 7, i * 1_000_000) for i in range(200)]
    late = readings[:]
    for i in range(3, 190, 9):
        late[i], late[i + 5] = late[i + 5], late[i]
    tested = sg.Window({"level": FIXED["time_weighted_mean"]}, policy=sg.policies.time("30s"))
    known: list[Reading] = []
    for value, time in late:
        tested.insert(value, time)
        known = sorted([*known, (value, time)], key=lambda reading: reading[1])
        now = known[-1][1]
        exact = time_weighted_mean([reading for reading in known if reading[1] > now - 30_000_000])
        found = tested.query(bounds=True)["level"]
        assert found.low <= exact <= found.high
        assert found.exact
