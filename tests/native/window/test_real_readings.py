"""Real sensors (clocks set back, gaps of days, irregular spacing): every window inside its interval, engines alike."""

from __future__ import annotations

import csv
import random
from array import array
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

import error_algebra as bounds
import pytest
from cut_buckets import cut_by_time, pool
from exact_windows import ALL, Exact

import sluicegate as sg
from sluicegate.format.bucket import Bucket, Builder

DATA = Path(__file__).resolve().parents[3].parent / "shared" / "data"
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


def folded(values: array[float], times: array[int], size: int) -> list[Bucket]:
    """Buckets of `size` readings; one closes early where time goes back."""
    builder, found = Builder(values[0], 0), []
    for value, time in zip(values, times, strict=True):
        if builder.bucket is not None and (builder.bucket.n == size or time < builder.bucket.t_last):
            found.append(builder.close())
        builder.add(value, time)
    return [*found, builder.close()]


def mean_between(buckets: list[Bucket], center: float, begin: int, end: int) -> bounds.Interval:
    """The mean of begin ≤ t < end, from the buckets that touch it."""
    inside, part = bounds.Inside(), bounds.NOTHING
    for bucket in buckets:
        if bucket.t_first >= begin and bucket.t_last < end:
            n, total = inside.n + bucket.n, inside.total + bucket.total
            inside = bounds.Inside(n, total, min(inside.low, bucket.low), max(inside.high, bucket.high))
        elif bucket.t_last >= begin and bucket.t_first < end:
            part = pool(part, cut_by_time(bucket, center, begin, end))
    return bounds.mean_interval(inside, part, center)


@pytest.mark.parametrize(
    ("name", "size", "hours", "limit"),
    [
        ("machine_temperature.csv", 12, 24, 0.005),  # five minutes a reading: a bucket an hour
        ("ambient_temperature.csv", 10, 168, 0.01),
        ("road_speed.csv", 10, 168, 0.01),
    ],
)
def test_a_mean_is_narrow_with_both_edges_cut(name: str, size: int, hours: int, limit: float) -> None:
    """The median interval of a mean, over windows anywhere in time: half a per cent of a day's, one of a week's."""
    values, times = read(name)
    buckets, rng, span = folded(values, times, size), random.Random(1), hours * 3_600_000_000
    widths = []
    for _ in range(150):
        end = rng.randrange(min(times) + span, max(times))
        answer = mean_between(buckets, values[0], end - span, end)
        true = [x for x, t in zip(values, times, strict=True) if end - span <= t < end]
        if true:
            assert answer.low <= sum(true) / len(true) <= answer.high
            widths.append((answer.high - answer.low) / abs(answer.value))
    assert len(widths) > 100
    assert median(widths) <= limit


@pytest.mark.parametrize(
    ("name", "policy", "buckets", "limit"),
    [
        ("machine_temperature.csv", sg.policies.time("24h"), 24, 0.005),
        ("ambient_temperature.csv", sg.policies.time("7d"), 17, 0.01),
        ("road_speed.csv", sg.policies.count(800), 80, 0.01),
    ],
    ids=str,
)
def test_a_window_of_as_many_buckets_is_narrow(
    name: str, policy: sg.policies.Policy, buckets: int, limit: float
) -> None:
    """The same of the window on the board, limited to a bucket an hour, or one of ten readings."""
    values, times = read(name)
    kinds = {"mean": sg.mean(), "variance": sg.variance(), "range": sg.range(), "peaks": sg.max_count()}
    window = sg.Window(kinds, policy=policy, histograms=[sg.Constrained(buckets)])
    exact, widths = Exact(policy), []
    for i, (value, time) in enumerate(zip(values[:6000], times[:6000], strict=True)):
        window.insert(value, time)
        exact.insert(value, time)
        if i % 7 == 0 and i > 1000:
            answers, inside = window.query(bounds=True), exact.values[exact.begin :]
            mean = sum(inside) / len(inside)
            true = {
                "mean": mean, "variance": sum((x - mean) ** 2 for x in inside) / len(inside),
                "range": max(inside) - min(inside), "peaks": inside.count(max(inside)),
            }  # fmt: skip
            for aggregate, (answer, low, high, _) in answers.items():
                slack = 1e-12 * abs(true[aggregate])  # of this oracle
                assert low - slack <= true[aggregate] <= high + slack
                assert low <= answer <= high
            widths.append((answers["mean"].high - answers["mean"].low) / abs(answers["mean"].value))
    assert median(widths) <= limit
