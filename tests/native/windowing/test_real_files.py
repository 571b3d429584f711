"""Four files of real readings by event time, shuffled, some of them late: every window against the definition.

Part of each file in `make test`, all of it with SLUICEGATE_TESTS=whole.
"""

from __future__ import annotations

import csv
import random
from datetime import UTC, datetime
from itertools import pairwise
from math import fsum
from pathlib import Path
from typing import Any

import pytest
from event_time_oracle import EventTime
from thorough import number

import sluicegate as sg
from sluicegate.windowing.slices import SliceResult, Slices
from sluicegate.windowing.whole import answer

DATA = Path(__file__).resolve().parents[3].parent / "shared" / "data"
FILES = {
    "machine_temperature.csv": ("timestamp", "value"),
    "ambient_temperature.csv": ("timestamp", "value"),
    "road_speed.csv": ("timestamp", "value"),
    "weather_3stations.csv": ("time_hour", "temp"),
}
HOUR = 3_600_000_000
LATENESS = 6 * HOUR
Arrival = tuple[float, int]  # value and time


def arrivals(name: str, readings: int) -> list[Arrival]:
    """In an order of arrival: a tenth held up for up to four hours, one in twenty for up to three days."""
    if not (DATA / name).exists():
        pytest.skip(f"{name} is not beside this checkout")
    at, of = FILES[name]
    with (DATA / name).open() as file:
        rows = [(row[of], row[at]) for row in csv.DictReader(file) if row[of] != "NA"][:readings]
    rng, found = random.Random(name), []
    for value, when in rows:
        time = round(datetime.fromisoformat(when).replace(tzinfo=UTC).timestamp()) * 1_000_000
        held = rng.choices((0, 4 * HOUR, 72 * HOUR), (85, 10, 5))[0]
        found.append((time + rng.randrange(held + 1), rng.random(), float(value), time))
    return [(value, time) for _, _, value, time in sorted(found)]


def final(spec: sg.WindowSpec, came: list[Arrival]) -> dict[tuple[int, int], list[float]]:
    """By definition: a window has what lies in it and came before `lateness` after its end; by (time, arrival)."""
    found: dict[tuple[int, int], list[tuple[int, int, float]]] = {}
    covering, now = spec.covering(), came[0][1]
    for ordinal, (value, time) in enumerate(came):
        now = max(now, time)
        for start, end in covering(time):
            if end + LATENESS > now:
                found.setdefault((start, end), []).append((time, ordinal, value))
    return {window: [value for _, _, value in sorted(inside)] for window, inside in found.items()}


def sessions(gap: int, came: list[Arrival]) -> dict[tuple[int, int], list[float]]:
    """By definition, where nothing is late: a pause of `gap` ends one."""
    ordered = [(time, ordinal, value) for ordinal, (value, time) in enumerate(came)]
    ordered.sort()
    begins = [0, *(i for i, (a, b) in enumerate(pairwise(ordered), 1) if b[0] - a[0] >= gap), len(ordered)]
    return {
        (ordered[i][0], ordered[k - 1][0] + gap): [value for _, _, value in ordered[i:k]] for i, k in pairwise(begins)
    }


def held_against(results: list[SliceResult], expected: dict[tuple[int, int], list[float]]) -> None:
    """Each final result beside the readings: no window is missing, none is there twice."""
    assert sorted((each.start, each.end) for each in results) == sorted(expected)
    for each in results:
        inside = expected[each.start, each.end]
        truth = {"count": len(inside), "sum": fsum(inside), "mean": fsum(inside) / len(inside), "min": min(inside),
                 "max": max(inside), "first": inside[0], "last": inside[-1]}  # fmt: skip
        for name, true in truth.items():
            value, low, high, _ = answer(name, each)
            assert low <= true <= high, (name, each, true)
            assert low <= value <= high


@pytest.mark.parametrize(
    "given",
    [
        {"kind": "hopping", "evict": sg.policies.time("24h", hop="1h")},
        {"kind": "hopping", "evict": sg.policies.time("5h", hop="2h"), "trigger": sg.triggers.time("1h")},
        {"kind": "tumbling", "aligned": "day", "timezone": "Europe/Vienna"},
        {"kind": "tumbling", "evict": sg.policies.time("3h"), "trigger": sg.triggers.count(5)},
    ],
    ids=["24h by 1h", "5h by 2h", "days in Vienna", "3h"],
)
@pytest.mark.parametrize("name", FILES)
def test_slices_of_real_readings(name: str, given: dict[str, Any]) -> None:
    """Final results of windows by event time, with restarts on the way."""
    came = arrivals(name, number(30_000, 600))
    spec = sg.WindowSpec(**given, lateness=LATENESS)
    slices, found = Slices(spec), list[SliceResult]()
    for begin in range(0, len(came), 100):
        values, times = zip(*came[begin : begin + 100], strict=True)
        found += slices.insert_many(values, times)
        records = [(kind, start, record) for kind, start, record in _all(slices) if record is not None]
        again = Slices(spec)
        again.restore(slices.state(), records)
        slices = again
    found += slices.advance(max(time for _, time in came) + 100 * 24 * HOUR)
    assert slices.late > 0
    held_against([each for each in found if each.stage == "final"], final(spec, came))


def _all(slices: Slices) -> list[tuple[int, int, bytes | None]]:
    """Every record, as a store has them that never forgot one."""
    slices._changed |= {(0, start) for start in slices.slices} | {(1, start) for start in slices.windows}
    return list(slices.changes())


@pytest.mark.parametrize("name", FILES)
def test_sessions_of_real_readings(name: str) -> None:
    """A pause of four hours ends one; where so much is allowed nothing is late, and results are those in order."""
    came = arrivals(name, number(30_000, 600))
    slices = Slices(sg.WindowSpec(kind="session", evict=sg.policies.time("4h"), lateness="100d"))
    values, times = zip(*came, strict=True)
    found = slices.insert_many(values, times)
    found += slices.advance(max(times) + 300 * 24 * HOUR)
    held_against([each for each in found if each.stage == "final"], sessions(4 * HOUR, came))


@pytest.mark.parametrize("histograms", [[], [sg.Constrained(16)]], ids=["exact", "buckets"])
@pytest.mark.parametrize("length", ["12h", "7d"])
@pytest.mark.parametrize("name", FILES)
def test_sliding_windows_of_real_readings(name: str, length: str, histograms: list[Any]) -> None:
    """Answers after each few readings: exact ones are the definition's, the others' intervals hold it."""
    came = arrivals(name, number(30_000, 600))
    kinds = {"count": sg.count(), "mean": sg.mean(), "min": sg.min(), "max": sg.max(), "first": sg.first(),
             "last": sg.last(), "argmax": sg.argmax()}  # fmt: skip
    window = sg.Window(kinds, policy=sg.policies.time(length), histograms=histograms)
    oracle = EventTime(sg.policies.time(length).span)
    for i, (value, time) in enumerate(came):
        window.insert(value, time)
        oracle.insert(value, time)
        oracle.all = [each for each in oracle.all if each.time > oracle.cutoff] if i % 50 == 0 else oracle.all
        if i % 9:
            continue
        inside = oracle.inside()
        values = [each.value for each in inside]
        highest = max(values)
        truth = {"count": len(values), "mean": fsum(values) / len(values), "min": min(values), "max": highest,
                 "first": values[0], "last": values[-1],
                 "argmax": min(each.time for each in inside if each.value == highest)}  # fmt: skip
        for kind, (told, low, high, exact) in window.query(bounds=True).items():
            assert low <= truth[kind] <= high, (i, kind)
            assert low <= told <= high
            assert exact or histograms
            assert not exact or kind == "mean" or told == truth[kind]
    assert window.late == oracle.late
    assert (window.late > 0) == (length == "12h")  # none is later than three days
