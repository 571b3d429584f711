"""Real sensors (clocks set back, gaps of days, irregular spacing): every window inside its interval, engines alike."""

from __future__ import annotations

import csv
from array import array
from datetime import UTC, datetime
from pathlib import Path

import pytest
from exact_windows import ALL, Exact

import sluicegate as sg

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"
FILES = ["machine_temperature.csv", "ambient_temperature.csv", "road_speed.csv"]


def read(name: str) -> tuple[array[float], array[int]]:
    """Values and times in µs of a file of timestamps and values."""
    if not (DATA / name).exists():
        pytest.skip(f"{name} is not beside this checkout")
    values, times = array("d"), array("q")
    with (DATA / name).open() as file:
        for row in csv.DictReader(file):
            moment = datetime.fromisoformat(row["timestamp"]).replace(tzinfo=UTC)
            values.append(float(row["value"]))
            times.append(round(moment.timestamp()) * 1_000_000)
    return values, times


@pytest.mark.parametrize("limit", [16, 64])
@pytest.mark.parametrize("policy", [sg.policies.time("24h"), sg.policies.time("7d"), sg.policies.count(288)], ids=str)
@pytest.mark.parametrize("name", FILES)
def test_every_window_of_a_real_stream(name: str, policy: sg.policies.Policy, limit: int) -> None:
    """Mean, maximum and count lie inside their intervals, and the two engines keep the same buckets."""
    values, times = read(name)
    window, oracle = (
        sg.Window(
            {k: ALL[k] for k in ("mean", "max", "count")}, policy=policy, histograms=[sg.Constrained(limit)], engine=e
        )
        for e in ("amta", "recalc")
    )
    exact = Exact(policy)
    for i in range(min(3000, len(values))):
        window.insert(values[i], times[i])
        oracle.insert(values[i], times[i])
        exact.insert(values[i], times[i])
        if i % 5 == 0 or i > len(values) - 300:
            true = exact.results()
            for aggregate, (answer, low, high, _) in window.query(bounds=True).items():
                assert low <= true[aggregate] <= high, (i, aggregate)
                assert low <= answer <= high
    window.verify()
    shapes = [[(b.count, b.t_first, b.t_last, b["max"]) for b in w.buckets()] for w in (window, oracle)]
    assert shapes[0] == shapes[1]


@pytest.mark.parametrize("name", FILES)
def test_intervals_are_narrow_on_real_readings(name: str) -> None:
    """A day's mean from 64 buckets is known within a few per cent, or there would be no use in it."""
    values, times = read(name)
    window = sg.Window({"mean": sg.mean()}, policy=sg.policies.time("7d"), histograms=[sg.Constrained(64)])
    widths = []
    for value, time in zip(values[:4000], times[:4000], strict=True):
        window.insert(value, time)
        answer = window.query(bounds=True)["mean"]
        widths.append((answer.high - answer.low) / abs(answer.value))
    assert sorted(widths)[len(widths) // 2] < 0.02


@pytest.mark.parametrize("name", FILES)
def test_exact_windows_of_real_readings(name: str) -> None:
    """Without histograms a batch gives the recomputed extremes to the bit, the mean to rounding."""
    values, times = read(name)
    values, times = values[:2500], times[:2500]
    policy = sg.policies.time("24h")
    results = sg.Window(ALL, policy=policy).insert_many(values, times)
    exact = Exact(policy)
    for i, (value, time) in enumerate(zip(values, times, strict=True)):
        exact.insert(value, time)
        true = exact.results()
        for name_of in ("min", "max", "count", "first", "last", "argmin", "argmax"):
            assert results[name_of][i] == true[name_of]
        assert results["mean"][i] == pytest.approx(true["mean"], rel=1e-12)
