"""Windows by event time: early, revised and final results over any stream are those of a literal model."""

from __future__ import annotations

import csv
import random
from collections import defaultdict
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from event_model import EventModel
from hypothesis import given, settings
from hypothesis import strategies as st

import sluicegate as sg

DATA = Path(__file__).resolve().parents[3].parent / "shared" / "data"


class Results(sg.WindowHandler):
    """Every result: (now, start, end, stage, readings), by key."""

    def __init__(self) -> None:
        self.given: dict[Any, list[tuple[Any, ...]]] = {}
        self.flushed: list[tuple[Any, ...]] = []

    def result(self, window: Any, key: Any) -> None:
        pane = window.pane
        told = (window.now, pane.start, pane.end, pane.stage, window.readings(key))
        self.given.setdefault(key, []).append(told)

    def before_flush(self, window: Any, key: Any) -> None:
        self.flushed.append((window.pane.start, window.pane.end, window.readings(key)))


def final(results: list[tuple[Any, ...]]) -> dict[tuple[int, int], list[Any]]:
    """The final ones; no window has two."""
    found = [each for each in results if each[3] == "final"]
    assert len({each[1:3] for each in found}) == len(found)
    return {each[1:3]: each[4] for each in found}


@st.composite
def definitions(draw: st.DrawFn, kind: str) -> tuple[dict[str, Any], dict[str, int]]:
    """A definition and its model's."""
    lateness = draw(st.sampled_from([0, 3, 8, 15]))
    early = draw(st.sampled_from(["", "count", "time"]))
    model: dict[str, int] = {"lateness": lateness}
    spec: dict[str, Any] = {"kind": kind, "lateness": lateness, "key": "key"}
    if early:
        size = draw(st.integers(1, 4))
        model["count" if early == "count" else "period"] = size
        spec["trigger"] = getattr(sg.triggers, early)(size)
    length = draw(st.integers(2, 7))
    if kind == "session":
        return spec | {"evict": sg.policies.time(length)}, model | {"gap": length}
    hop = draw(st.integers(2, length)) if kind == "hopping" else length
    evict = sg.policies.time(length, hop=hop) if kind == "hopping" else sg.policies.time(length)
    return spec | {"evict": evict}, model | {"length": length, "hop": hop}


steps = st.lists(
    st.tuples(st.sampled_from(["a", "a", "b", None]), st.integers(0, 3), st.integers(-12, 4)), min_size=8, max_size=30
)


@pytest.mark.parametrize("kind", ["tumbling", "hopping", "session"])
@given(data=st.data(), steps=steps)
@settings(max_examples=60)
def test_any_window_over_any_stream(kind: str, data: st.DataObject, steps: list[Any]) -> None:
    """Readings late by any length, keys with one clock, time without readings."""
    spec, told = data.draw(definitions(kind))
    model, handler = EventModel(**told), Results()
    window = sg.WindowOperator(sg.WindowSpec(**spec), handler)
    now = 20
    for key, on, late in [*steps, (None, 60, 0)]:
        now += on
        if key is None:
            window.advance(now)
            model.until(now)
        else:
            time = now + min(late, 0)
            took = model.arrived
            model.arrive(key, time)
            window.insert({"key": key, "taken": (time, took + 1)}, time)
    found = {
        key: [(*each[:4], [reading["taken"] for reading in each[4]]) for each in results]
        for key, results in handler.given.items()
    }
    assert found == model.results
    assert window.late == model.late
    assert len(window) == 0
    assert list(window.partitions()) == []


def test_a_reading_in_each_place() -> None:
    """Early, at the end, revised, final; then late, which changes nothing."""
    handler = Results()
    spec = sg.WindowSpec(kind="tumbling", evict=sg.policies.time(10), lateness=5, trigger=sg.triggers.time(4))
    window = sg.WindowOperator(spec, handler)
    for time in (1, 5, 11, 3, 15, 2):
        window.insert(time, time)
    assert handler.given[None] == [
        (4, 0, 10, "early", [1]),
        (8, 0, 10, "early", [1, 5]),
        (10, 0, 10, "early", [1, 5]),
        (11, 0, 10, "revised", [1, 3, 5]),
        (14, 10, 20, "early", [11]),
        (15, 0, 10, "final", [1, 3, 5]),
    ]
    assert window.late == 1
    assert handler.flushed == [(0, 10, [1, 3, 5])]


def test_a_late_reading_joins_two_sessions() -> None:
    """The result of the one session says which two it replaces."""
    told: list[Any] = []

    class Sessions(sg.WindowHandler):
        def result(self, window: Any, key: Any) -> None:
            pane = window.pane
            told.append((pane.start, pane.end, pane.stage, pane.complete, pane.replaces, window.readings(key)))

    spec = sg.WindowSpec(kind="session", evict=sg.policies.time(10), lateness=100)
    window = sg.WindowOperator(spec, Sessions())
    for time in (0, 15, 40, 8):
        window.insert(time, time)
    window.advance(200)
    assert told == [
        (0, 10, "early", True, (), [0]),
        (15, 25, "early", True, (), [15]),
        (0, 25, "revised", True, ((0, 10), (15, 25)), [0, 8, 15]),
        (40, 50, "early", True, (), [40]),
        (0, 25, "final", True, (), [0, 8, 15]),
        (40, 50, "final", True, (), [40]),
    ]


def test_sessions_that_join_have_counted_together() -> None:
    """Early results by count: the readings of both since their last ones, though the sum skips the count."""
    handler = Results()
    spec = sg.WindowSpec(kind="session", evict=sg.policies.time(10), lateness=20, trigger=sg.triggers.count(4))
    window = sg.WindowOperator(spec, handler)
    for time in (0, 1, 12, 13, 7):
        window.insert(time, time)
    assert handler.given[None] == [(11, 0, 11, "early", [0, 1]), (13, 0, 23, "early", [0, 1, 7, 12, 13])]


def test_a_final_session_is_remembered_as_long_as_a_reading_of_it_may_come() -> None:
    """It comes late, though a new session has begun so near that it would be a part of both."""
    handler = Results()
    window = sg.WindowOperator(sg.WindowSpec(kind="session", evict=sg.policies.time(10), key="k"), handler)
    for k, time in (("a", 0), ("b", 21), ("a", 12), ("a", 9)):
        window.insert({"k": k}, time)
    assert window.late == 1
    window.advance(100)
    assert [each[1:3] for each in handler.given["a"]] == [(0, 10), (12, 22)]


def test_a_session_that_ended_goes_on() -> None:
    """A late reading extends it beyond now: it has not ended, and ends again."""
    handler = Results()
    spec = sg.WindowSpec(kind="session", evict=sg.policies.time(10), lateness=20)
    window = sg.WindowOperator(spec, handler)
    window.insert("a", 0)
    window.advance(12)
    window.insert("b", 9)
    window.advance(100)
    assert handler.given[None] == [(10, 0, 10, "early", ["a"]), (19, 0, 19, "revised", ["a", "b"]),
                                   (39, 0, 19, "final", ["a", "b"])]  # fmt: skip


def test_early_results_of_a_session_by_time() -> None:
    """As long as it goes on, even where the period is longer than the pause."""
    handler = Results()
    spec = sg.WindowSpec(kind="session", evict=sg.policies.time(5), trigger=sg.triggers.time(7))
    window = sg.WindowOperator(spec, handler)
    for time in range(0, 24, 3):
        window.insert(time, time)
    window.advance(60)
    assert [(now, stage) for now, _, _, stage, _ in handler.given[None]] == [
        (7, "early"), (14, "early"), (21, "early"), (26, "final")]  # fmt: skip


def test_a_day_in_vienna_by_readings() -> None:
    """A reading an hour: the day on which the clock is set forward has 23 of them."""
    handler = Results()
    window = sg.WindowOperator(sg.WindowSpec(kind="tumbling", aligned="day", timezone="Europe/Vienna"), handler)
    start = int(datetime(2026, 3, 27, 23, tzinfo=UTC).timestamp()) * 1_000_000
    for hour in range(24 * 4):
        window.insert(hour, start + hour * 3_600_000_000)
    assert [len(readings) for *_, readings in handler.given[None]] == [24, 23, 24, 24]


def test_one_clock_for_all_keys() -> None:
    """Another sensor's reading shows what time it is."""
    handler = Results()
    window = sg.WindowOperator(sg.WindowSpec(kind="hopping", evict=sg.policies.time(4, hop=2), key="k"), handler)
    window.insert({"k": "a"}, 1)
    window.insert({"k": "b"}, 9)
    assert [each[:4] for each in handler.given["a"]] == [(2, -2, 2, "final"), (4, 0, 4, "final")]


def test_a_summarizer_in_place_of_readings() -> None:
    """One for each window of each key: opened, told each reading with its time, closed after the result."""
    made: list[Any] = []

    class Sum(sg.WindowSummarizer):
        def open(self, key: Any) -> None:
            self.told = [key]
            made.append(self.told)

        def insert(self, reading: Any, time: int) -> None:
            self.told.append(time)

        def close(self) -> None:
            self.told.append("closed")

    class Asks(sg.WindowHandler):
        def result(self, window: Any, key: Any) -> None:
            window.summarizer(key).told.append("result")
            assert window.readings(key) == []

    spec = sg.WindowSpec(kind="tumbling", evict=sg.policies.time(10), lateness=0, key="k")
    window = sg.WindowOperator(spec, Asks(), summarizer=Sum)
    for k, time in (("a", 3), ("b", 2), ("a", 1), ("a", 12)):
        window.insert({"k": k}, time)
    assert made == [["a", 3, 1, "result", "closed"], ["b", 2, "result", "closed"], ["a", 12]]


@lru_cache
def whole(name: str) -> list[tuple[str, int, float]]:
    """(key, time, value) of a file of real readings, in order of time."""
    if not (DATA / name).exists():
        pytest.skip("needs the folder of real readings beside the checkout")
    with (DATA / name).open() as file:
        found = []
        for row in csv.DictReader(file):
            when, value = row.get("time_hour") or row["timestamp"], row.get("temp") or row.get("value")
            time = datetime.fromisoformat(when.replace("Z", "")).replace(tzinfo=UTC)
            if value not in (None, "", "NA"):
                found.append((row.get("origin", ""), int(time.timestamp()) * 1_000_000, float(value)))
    return sorted(found, key=lambda row: row[1])


@pytest.mark.parametrize(
    "name", ["ambient_temperature.csv", "machine_temperature.csv", "road_speed.csv", "weather_3stations.csv"]
)
def test_real_readings_shuffled(name: str) -> None:
    """Shuffled by up to two days, allowed for: the final results are those of the readings in order."""
    readings, rng = whole(name), random.Random(7)
    readings = readings[:: len(readings) // 400]
    day = 86_400_000_000
    spec = sg.WindowSpec(kind="hopping", evict=sg.policies.time("1d", hop="8h"), lateness="2d", key="key")
    handler = Results()
    window = sg.WindowOperator(spec, handler)
    for key, time, value in sorted(readings, key=lambda row: row[1] + rng.randrange(2 * day)):
        window.insert({"key": key, "value": value}, time)
    window.advance(max(time for _, time, _ in readings) + 5 * day)
    expected: defaultdict[Any, list[float]] = defaultdict(list)
    for key, time, value in readings:
        for start in range(time // (day // 3) * (day // 3) - 2 * (day // 3), time + 1, day // 3):
            expected[key, start].append(value)
    found = {
        (key, start): [reading["value"] for reading in inside]
        for key, results in handler.given.items()
        for (start, _), inside in final(results).items()
    }
    assert {place: sorted(values) for place, values in found.items()} == {
        place: sorted(values) for place, values in expected.items()
    }
    assert window.late == 0
    assert len(found) >= 30


@pytest.mark.parametrize(
    "name", ["ambient_temperature.csv", "machine_temperature.csv", "road_speed.csv", "weather_3stations.csv"]
)
@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"kind": "tumbling", "evict": sg.policies.time(12)}, {"length": 12, "hop": 12}),
        ({"kind": "hopping", "evict": sg.policies.time(12, hop=4)}, {"length": 12, "hop": 4}),
        ({"kind": "session", "evict": sg.policies.time(3)}, {"gap": 3}),
    ],
    ids=["tumbling", "hopping", "session"],
)
def test_real_readings_too_late(name: str, given: dict[str, Any], told: dict[str, int]) -> None:
    """Shuffled by more than is allowed for: every result, and what is late, are the model's; a tick is five minutes."""
    rng, model, handler = random.Random(11), EventModel(**told, lateness=3), Results()
    tick = 3_600_000_000 if "weather" in name or "ambient" in name else 300_000_000
    readings = [(key, time // tick) for key, time, _ in whole(name)[:90:3]]
    window = sg.WindowOperator(sg.WindowSpec(**given, lateness=3, key="key"), handler)
    for key, time in sorted(readings, key=lambda row: row[1] + rng.randrange(40)):
        taken = model.arrived
        model.arrive(key, time)
        window.insert({"key": key, "taken": (time, taken + 1)}, time)
    last = max(time for _, time in readings) + 60
    window.advance(last)
    model.until(last)
    found = {
        key: [(*each[:4], [reading["taken"] for reading in each[4]]) for each in results]
        for key, results in handler.given.items()
    }
    assert found == model.results
    assert window.late == model.late
    assert model.late > 0
