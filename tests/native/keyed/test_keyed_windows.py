"""Each key's window holds what the definition says, whatever order readings come in; intervals contain the result."""

from __future__ import annotations

import csv
import math
import random
from array import array
from collections.abc import Iterator
from datetime import datetime
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from keyed_oracle import ByKey, near
from thorough import number

import sluicegate as sg

DATA = Path(__file__).resolve().parents[3].parent / "shared" / "data"
ALL = {name: getattr(sg, name)() for name in ("count", "sum", "mean", "min", "max", "range")}
WALKED = {name: getattr(sg, name)() for name in ("variance", "std", "first", "last", "argmin", "argmax")}
SECOND = 1_000_000


def asked(buckets: int | None) -> dict[str, sg.Monoid]:
    """All aggregates that there are."""
    return ALL | WALKED if buckets is None else ALL


def policy(length: int, by_time: bool) -> Any:
    """Of a window by time or by count."""
    return sg.policies.time(length) if by_time else sg.policies.count(length)


def rounded(values: list[float]) -> dict[str, Fraction]:
    """What rounding changes, without any."""
    exact = [Fraction(value) for value in values]
    total = sum(exact, Fraction(0))
    return {"sum": total, "mean": total / len(exact), "range": max(exact) - min(exact)} if exact else {}


def compare(window: sg.KeyedWindows, oracle: ByKey, exact: bool) -> None:
    """Every key's answers; what is called exact is, and everything lies in its interval, rounding included."""
    answers = {key: each for piece in window.query_all(bounds=True, piece=3) for key, each in piece.items()}
    assert set(answers) == set(oracle.partitions)
    for key, found in answers.items():
        expected = oracle.answers(key)
        inside = [abs(reading.value) for reading in oracle.inside(key)]
        scale = len(inside) * sum(inside)
        for name, truth in rounded([reading.value for reading in oracle.inside(key)]).items():
            assert found[name].low <= truth <= found[name].high, (key, name, found[name], truth)
        for name, each in found.items():
            told = (key, name, each, expected[name])
            assert not exact or each.exact, told
            if each.exact:
                squares = len(inside) * sum(x * x for x in inside)
                slack = {"sum": scale, "mean": scale, "variance": squares, "std": (squares / 2.0**-52) ** 0.5}
                assert near(each.value, expected[name], slack.get(name, 0.0)), told
            else:
                assert each.low <= expected[name] <= each.high, told
                assert each.low <= each.value <= each.high, told
        assert window.query(key) == {name: each.value for name, each in found.items()}


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("by_time", [False, True])
@pytest.mark.parametrize("buckets", [None, 2, 3])
def test_every_small_stream(core: str, by_time: bool, shared: bool, buckets: int | None) -> None:
    """Two keys, three readings (four in a whole run), times in every order, with equal ones: after each reading."""
    clock = "shared" if shared else "key"
    for times in product((0, 1, 3, 7), repeat=number(4, 3)):
        for keys in product("ab", repeat=number(4, 3)):
            window = sg.KeyedWindows(asked(buckets), policy=policy(3, by_time), buckets=buckets, clock=clock)
            oracle = ByKey(3, by_time, shared)
            for i, (key, time) in enumerate(zip(keys, times, strict=True)):
                window.insert(key, 2.0 ** (i * 5 % 4), time)
                oracle.insert(key, time, 2.0 ** (i * 5 % 4))
            compare(window, oracle, buckets is None)
            assert (window.accepted, window.late) == (oracle.came, oracle.late)


STEP = st.one_of(
    st.tuples(st.sampled_from([0, 1, -7, "a", "ä", ""]), st.integers(-60, 60), st.floats(-1e6, 1e6)),
    st.integers(-60, 120),
)


@pytest.mark.parametrize("buckets", [None, 2, 5])
@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    steps=st.lists(st.lists(STEP, max_size=12), max_size=6), length=st.integers(1, 40), by_time=st.booleans(),
    shared=st.booleans(),
)  # fmt: skip
def test_any_stream(
    core: str, buckets: int | None, steps: list[list[Any]], length: int, by_time: bool, shared: bool
) -> None:
    """Late, with equal times, clocks that step, silence; queries between, which build what answers are made from."""
    clock = "shared" if shared else "key"
    window = sg.KeyedWindows(asked(buckets), policy=policy(length, by_time), buckets=buckets, clock=clock)
    oracle = ByKey(length, by_time, shared)
    for batch in steps:
        readings = [step for step in batch if isinstance(step, tuple)]
        if readings:
            keys, times, values = zip(*readings, strict=True)
            window.insert_many(keys, values, times)
        for key, time, value in readings:
            oracle.insert(key, time, value)
        for time in (step for step in batch if by_time and not isinstance(step, tuple)):
            window.advance(time)
            oracle.advance(time)
        window.verify()
        compare(window, oracle, buckets is None)
        if buckets is None and not shared:
            assert window.readings == sum(len(oracle.inside(key)) for key in oracle.partitions)


def test_long_windows_through_the_growth_of_their_rows(core: str) -> None:
    """Rows move, grow and shrink; late readings go into both stacks."""
    rng = random.Random(5)
    window = sg.KeyedWindows(asked(None), policy=sg.policies.time(3_000))
    oracle = ByKey(3_000, True)
    now = 0
    for batch in range(60):
        readings = []
        for _ in range(rng.choice((1, 30, 120))):
            now += rng.randrange(1, 60) if rng.random() < 0.995 else 2_900
            readings.append((rng.randrange(3), now - rng.choice((0, 0, 0, 5, 400, 3_100)), rng.uniform(-1, 1)))
        keys, times, values = zip(*readings, strict=True)
        window.insert_many(array("q", keys), array("d", values), array("q", times))
        for reading in readings:
            oracle.insert(*reading)
        window.verify()
        if batch % 3:
            compare(window, oracle, True)
    assert oracle.late > 50
    assert window.late == oracle.late


@pytest.mark.parametrize(
    "values",
    [(1e9, 1e9 + 2.0**-20, 0.1), (0.1, 0.2, 0.3), (3e-323, 5e-324, 0.0), (1e200, -3e199, 7.1e199), (1e200,) * 3],
)
def test_rounding_is_in_each_interval(values: tuple[float, ...]) -> None:
    """Of sums, means and spreads over readings, whatever else is asked, as fractions have them."""
    x = [Fraction(value) for value in values]
    mean = sum(x) / len(x)
    truth = {"sum": sum(x), "mean": mean, "variance": sum((each - mean) ** 2 for each in x) / len(x)}
    for name, made in (("sum", sg.sum()), ("mean", sg.mean()), ("variance", sg.variance()), ("std", sg.std())):
        window = sg.KeyedWindows(made, policy=sg.policies.count(3))
        window.insert_many([7] * 3, list(values))
        found = window.query(7, bounds=True)
        assert found == next(window.query_all(bounds=True))[7]
        low, high = (Fraction(end) if end < math.inf else end for end in found[1:3])
        assert low <= found.value <= high
        low, high = (low**2, high**2) if name == "std" else (low, high)
        assert low <= truth["variance" if name == "std" else name] <= high
        assert found.value > 0 or name not in ("variance", "std") or len(set(values)) == 1 or max(values) < 1e-300


@pytest.mark.parametrize("buckets", [4, 16])
@pytest.mark.parametrize("by_time", [False, True])
def test_buckets_of_each_key_are_bounded(core: str, by_time: bool, buckets: int) -> None:
    """Never more than were asked for, whatever comes."""
    rng, held = random.Random(3), []
    window = sg.KeyedWindows(ALL, policy=policy(1_000, by_time), buckets=buckets)
    for i in range(4_000):
        window.insert("a", 1.0, i - rng.randrange(900))
        if i % 7 == 0:
            held.append(len(window._core.rows(window._core.slot("a"))))
    assert max(held) <= buckets
    assert max(held) >= buckets - 1


def test_an_interval_is_no_wider_than_what_buckets_know(core: str) -> None:
    """Of four readings one to three are inside; of a known number, sums by what they can be at least and at most."""
    by_time = sg.KeyedWindows(ALL, policy=sg.policies.time(12), buckets=4)  # buckets of 4 µs
    by_time.insert_many([1] * 6, [1.0, 5.0, 2.0, 3.0, 4.0, 9.0], [0, 1, 2, 3, 5, 13])
    found = by_time.query(1, bounds=True)
    assert found["count"] == (5, 3, 5, False)
    assert found["max"] == (9.0, 9.0, 9.0, True)
    assert found["min"] == (1.0, 1.0, 4.0, False)
    assert found["range"] == (8.0, 5.0, 8.0, False)
    assert found["sum"][1:3] == pytest.approx((14.0, 23.0))
    by_count = sg.KeyedWindows(ALL, policy=sg.policies.count(4), buckets=2)  # buckets of 4 readings
    by_count.insert_many([1] * 6, [1.0, 5.0, 2.0, 3.0, 4.0, 9.0])
    found = by_count.query(1, bounds=True)
    assert found["count"] == (4, 4, 4, True)
    assert found["sum"][1:3] == pytest.approx((15.0, 22.0))  # two of four with sum 11, from 1 to 5: 2 to 9
    assert found["mean"][1:3] == pytest.approx((3.75, 5.5))


def weather() -> Iterator[tuple[str, int, float]]:
    """Temperatures of three stations in their order in the file."""
    with (DATA / "weather_3stations.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["temp"] not in ("", "NA"):
                time = round(datetime.fromisoformat(row["time_hour"]).timestamp()) * SECOND
                yield row["origin"], time, float(row["temp"])


@pytest.mark.skipif(not DATA.exists(), reason="no readings beside this checkout (shared/data)")
@pytest.mark.parametrize("disorder", ["in order", "late", "shuffled", "clock set back"])
@pytest.mark.parametrize(("shared", "buckets"), [(False, None), (True, None), (False, 8), (True, 8)])
def test_three_stations(core: str, disorder: str, shared: bool, buckets: int | None) -> None:
    """Their last day by event time: as they came, 5 % late, shuffled within two days, with a clock set back."""
    rng, day = random.Random(disorder), 86_400 * SECOND
    rows = sorted(weather(), key=lambda row: row[1])[:1_500]
    if disorder == "late":
        rows.sort(key=lambda row: row[1] + (rng.randrange(3 * day) if rng.random() < 0.05 else 0))
    elif disorder == "shuffled":
        rows.sort(key=lambda row: row[1] + rng.randrange(2 * day))
    elif disorder == "clock set back":
        rows = [(key, time - (day // 2 if i // 500 % 2 else 0), value) for i, (key, time, value) in enumerate(rows)]
    clock = "shared" if shared else "key"
    window = sg.KeyedWindows(asked(buckets), policy=sg.policies.time(day), buckets=buckets, clock=clock)
    oracle = ByKey(day, True, shared)
    for begin in range(0, len(rows), 150):
        keys, times, values = zip(*rows[begin : begin + 150], strict=True)
        window.insert_many(keys, values, times)
        for row in rows[begin : begin + 150]:
            oracle.insert(*row)
        compare(window, oracle, buckets is None)
    assert set(oracle.partitions) == {"EWR", "JFK", "LGA"}
    assert window.late == oracle.late
    assert (window.late > 0) == (disorder in ("late", "shuffled", "clock set back") and oracle.late > 0)


@pytest.mark.parametrize(
    ("keys", "values", "times", "words"),
    [
        ([1, 2], [1.0, float("nan")], [1, 2], r"values\[1\]: nan"),
        ([1, 2], [1.0, float("inf")], [1, 2], r"values\[1\]: inf"),
        ([1, True], [1.0, 2.0], [1, 2], r"keys\[1\]: True, expected an int of 64 bits or a str"),
        ([1, 2.5], [1.0, 2.0], [1, 2], r"keys\[1\]: 2.5"),
        ([2**63, 1], [1.0, 2.0], [1, 2], r"keys\[0\]: 9223372036854775808"),
        (["\ud800", 1], [1.0, 2.0], [1, 2], r"keys\[0\]"),
        (array("d", [1, 2]), [1.0, 2.0], [1, 2], "keys: elements of format 'd', expected int64"),
        (array("i", [1, 2]), [1.0, 2.0], [1, 2], "keys: elements of format 'i', expected int64"),
        (7, [1.0], [1], "keys: int, expected int64 or a list"),
        ([1], [1.0, 2.0], [1, 2], "keys: 1 of them for 2 readings"),
        ([1, 2], array("f", [1, 2]), [1, 2], "values: elements of format 'f', expected float64"),
        ([1, 2], [1.0, 2.0], array("d", [1, 2]), "times: elements of format 'd', expected int64"),
        ([1, 2], [1.0, 2.0], [1], "times: 1 of them for 2 readings"),
        ([1, 2], [1.0, 2.0], [1, 2**61 + 1], r"times\[1\]: 2305843009213693953"),
        ([1, 2], [1.0, 2.0], None, "times: missing"),
    ],
)
def test_bad_readings_are_refused_by_place(core: str, keys: Any, values: Any, times: Any, words: str) -> None:
    """The whole batch: nothing has changed."""
    window = sg.KeyedWindows(sg.sum(), policy=sg.policies.time(10))
    with pytest.raises(sg.errors.InputError, match=words):
        window.insert_many(keys, values, times)
    assert (len(window), window.accepted, window.late) == (0, 0, 0)


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"aggregates": sg.rate()}, "aggregates: rate; windows by key have count, sum"),
        ({"aggregates": {"x": sg.geometric_mean()}}, r"aggregates\['x'\]: geometric_mean"),
        ({"aggregates": {"x": sg.last()}, "buckets": 5}, "buckets: 5, but last needs the readings"),
        ({"aggregates": sg.std(ddof=1)}, "aggregates: std with a dimension or options"),
        ({"aggregates": {"x": 3}}, r"aggregates\['x'\]: 3"),
        ({"aggregates": {}}, "aggregates: {}"),
        ({"aggregates": sg.sum("x")}, "aggregates: sum with a dimension"),
        ({"aggregates": sg.sum(compensated=True)}, "aggregates: sum with a dimension or options"),
        ({"policy": sg.policies.time(10, hop=2)}, "policy: "),
        ({"policy": sg.policies.count(10, up_to="max")}, "policy: "),
        ({"policy": 10}, "policy: 10"),
        ({"buckets": 1}, "buckets: 1, expected a whole number from 2"),
        ({"buckets": True}, "buckets: True"),
        ({"partitions": 5}, "partitions: 5"),
        ({"clock": "wall"}, "clock: 'wall'"),
        ({"memory": 100}, "memory: 100"),
        ({"memory": 2**70}, "memory: 1180591620717411303424, expected bytes, 65536 to"),
        ({"partitions": sg.PartitionEviction(count=1, select="user")}, "partitions.select: 'user'"),
        ({"partitions": sg.PartitionEviction(readings=9), "clock": "shared"}, "partitions.readings: not with a shared"),
    ],
)
def test_what_cannot_be_is_refused_by_place(told: dict[str, Any], words: str) -> None:
    """When the windows are made."""
    with pytest.raises(sg.errors.ConfigurationError, match=words):
        sg.KeyedWindows(**{"aggregates": sg.sum(), "policy": sg.policies.time(10), **told})


def test_a_definition_makes_them(core: str) -> None:
    """Sliding, asked, with a key; what they do not run is refused by name, and an operator runs it."""
    spec = sg.WindowSpec.from_dict({"policy": {"time": "1h"}, "key": "room", "partitions": {"count": 2}})
    rooms = sg.KeyedWindows.of(spec, {"n": sg.count()}, clock="shared")
    rooms.insert_many(["a", "b", "c"], [1.0, 2.0, 3.0], [1, 2, 3])
    assert len(rooms) == 2
    assert rooms.query("c") == {"n": 1}
    for table, words in (
        (
            {"kind": "tumbling", "evict": {"count": 3}, "key": "room"},
            "kind: tumbling with a trigger or an end; sg.oper",
        ),
        ({"policy": {"count": 3}}, "key: missing; without one take sg.Window"),
        ({"policy": {"count": 9, "hop": 3}, "key": "room"}, r"policy: .* no hop"),
    ):
        with pytest.raises(sg.errors.ConfigurationError, match=words):
            sg.KeyedWindows.of(sg.WindowSpec.from_dict(table), sg.sum())


def test_times_of_extremes_need_times(core: str) -> None:
    """Also by count, where others do without."""
    with pytest.raises(sg.errors.InputError, match="times: missing; argmin and argmax are times"):
        sg.KeyedWindows(sg.argmax(), policy=sg.policies.count(3)).insert(1, 2.0)


def test_a_partition_with_one_reading_takes_200_bytes() -> None:
    """Fixed cost and first reading of each of 100,000 keys, allocations' own bytes included."""
    windows = sg.KeyedWindows(sg.sum(), policy=sg.policies.time(100))
    before = windows.nbytes
    windows.insert_many(array("q", range(100_000)), array("d", [1.0]) * 100_000, array("q", [5]) * 100_000)
    assert (windows.nbytes - before) / 100_000 <= 200


def test_keys_that_are_not_there(core: str) -> None:
    """A KeyError for a query; an int and its text are two keys."""
    window = sg.KeyedWindows(sg.count(), policy=sg.policies.count(3))
    window.insert(1, 0.0)
    assert 1 in window
    assert "1" not in window
    assert 1.0 not in window
    with pytest.raises(KeyError):
        window.query("1")
    with pytest.raises(sg.errors.InputError, match="key: None"):
        window.query(None)  # type: ignore[arg-type]
    with pytest.raises(sg.errors.InputError, match="advance: a window by count has no time"):
        window.advance(3)
    with pytest.raises(sg.errors.ConfigurationError, match="piece: 0"):
        next(window.query_all(piece=0))


def test_pieces_while_readings_enter(core: str) -> None:
    """Each key that is there throughout comes once, though others come between."""
    window = sg.KeyedWindows(sg.sum(), policy=sg.policies.count(2))
    window.insert_many(array("q", range(10)), array("d", range(10)))
    seen: list[Any] = []
    for i, piece in enumerate(window.query_all(piece=3)):
        assert len(piece) <= 3
        seen.extend(piece)
        if i < 3:
            window.insert(100 + i, 1.0)
    assert [key for key in seen if key < 100] == list(range(10))
    assert len(seen) == len(set(seen))
