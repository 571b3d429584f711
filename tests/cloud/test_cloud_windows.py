"""The NumPy core promises: every window's interval holds the truth recomputed from raw readings. No Spark here."""

from __future__ import annotations

import math
import random
import statistics
from functools import reduce
from itertools import pairwise
from typing import Any

import error_algebra as bounds
import numpy as np
import pytest
from cloud_streams import Readings, Row, Stream, fold, frame_rows, older, random_stream, violations
from cut_buckets import cut_by_time, pool
from thorough import number as so_many
from variance_twin import Deviations, variance_interval

from sluicegate.format.bucket import FIELDS, Bucket, Builder, merge
from sluicegate_cloud.bounds import cut
from sluicegate_cloud.estimates.components import components, families
from sluicegate_cloud.estimates.lower import lower
from sluicegate_cloud.grid import Grid, window_axes
from sluicegate_cloud.names import AGGREGATES, ALL, MORE
from sluicegate_cloud.sliding import Slide


def answers(buckets: list[Row], grid: Grid, **options: Any) -> list[dict[str, Any]]:
    """The rows of every window of one stream, with its times."""
    needed = families(MORE)
    axis, parts = components(frame_rows(buckets, grid.slide_us, grid.origin_us), grid, needed=needed, **options)
    columns = {name: column.tolist() for name, column in lower(parts, ALL).items()}
    columns["start"] = grid.start_us(axis.first).tolist()
    columns["windows"] = axis.windows.tolist()
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def checked(stream: Stream, grid: Grid, most: int, old: float = 0.0) -> tuple[int, list[str], int]:
    """(windows checked, what was wrong, windows whose mean is exact) of one random stream; `old`: share of format 1."""
    rng = random.Random(len(stream.readings))
    rows = answers([older(row) if rng.random() < old else row for row in stream.rows()], grid)
    raw = Readings(stream.readings)
    sample = rows[:: max(1, len(rows) // most)]
    wrong = []
    for row in sample:
        truth = raw.window(row["start"], row["start"] + grid.width * grid.slide_us)
        wrong += [f"{grid} start {row['start']}: {text}" for text in violations(row, truth)]
    return len(sample), wrong, sum(row["mean_exact"] for row in sample)


def random_grid(rng: random.Random) -> Grid:
    """Slides from a few readings to a whole stream, windows from one frame to a day's worth, origins of both signs."""
    return Grid(rng.choice([7, 50, 300, 2_000]), rng.choice([1, 2, 3, 5, 24]), rng.choice([0, 0, 13, -1_000]))


def test_no_window_is_outside_its_interval() -> None:
    """Windows of random streams, 100,000 in a whole run (late, merged, several incarnations): none outside.

    `test_cloud_exact` holds as many to exact arithmetic in every run.
    """
    windows, exact = 0, 0
    for seed in range(so_many(700, 280)):
        rng = random.Random(seed)
        stream = random_stream(seed, incarnations=rng.choice([1, 1, 2, 3]))
        count, wrong, sure = checked(stream, random_grid(rng), most=300, old=rng.choice([0.0, 0.0, 0.4, 1.0]))
        assert wrong == [], f"seed {seed}"
        windows, exact = windows + count, exact + sure
    assert windows >= so_many(100_000, 40_000)
    assert 0.1 < exact / windows < 0.9, "both exact and uncertain windows must be among them"


def test_windows_of_single_readings_are_exact() -> None:
    """With one reading a bucket nothing is uncertain: count and extremes equal to the bit, sums within rounding."""
    rng = random.Random(5)
    readings = [(i * 40 + rng.randrange(40), rng.gauss(20, 5)) for i in range(3_000)]
    buckets = [fold([reading], readings[0][1], i) for i, reading in enumerate(readings)]
    grid, raw = Grid(1_000, 12), Readings(readings)
    for row in answers([{"incarnation": "0", "center": readings[0][1], **bucket} for bucket in buckets], grid):
        truth = raw.window(row["start"], row["start"] + 12_000)
        assert (row["count"], row["min"], row["max"]) == (truth.count, truth.min, truth.max)
        assert all(row[f"{name}_exact"] for name in AGGREGATES)
        assert math.isclose(row["mean"], truth.mean, rel_tol=1e-12)
        assert row["mean_high"] - row["mean_low"] < 1e-9


def test_a_bucket_of_equal_readings_is_exact_where_its_count_does_not_matter() -> None:
    """A constant stream's mean, min and max are known however its buckets are cut; its count is not."""
    readings = [(t, 3.5) for t in range(0, 5_000, 10)]
    buckets = [fold(readings[i : i + 50], 3.5, i) for i in range(0, 500, 50)]
    rows = answers([{"incarnation": "0", "center": 3.5, **bucket} for bucket in buckets], Grid(130, 4))
    inner = [row for row in rows if 600 < row["start"] < 4_000]
    assert all(row["mean_exact"] and row["min_exact"] and row["max_exact"] and row["mean"] == 3.5 for row in inner)
    assert not all(row["count_exact"] for row in inner)


def test_a_long_bucket_is_cut_at_both_ends() -> None:
    """A window inside one bucket may be empty, says so, and still bounds what it may hold."""
    readings = [(0, 1.0), (10, 5.0), (9_000, 2.0), (10_000, 3.0)]
    rows = answers([{"incarnation": "0", "center": 1.0, **fold(readings, 1.0, 0)}], Grid(1_000, 2))
    middle = next(row for row in rows if row["start"] == 4_000)
    assert (middle["count_low"], middle["count_high"]) == (0, 1)
    assert middle["mean_low"] <= 2.0 <= middle["mean_high"]
    assert not middle["mean_exact"]


def test_the_grid_runs_from_the_first_to_the_last_window_that_holds_a_reading() -> None:
    """Partial windows at both ends are there, and so are empty windows between: count 0, mean NaN, sum 0, exact."""
    buckets = [fold([(5_500, 1.0)], 1.0, 0), fold([(20_200, 2.0)], 1.0, 1)]
    rows = answers([{"incarnation": "0", "center": 1.0, **bucket} for bucket in buckets], Grid(1_000, 3))
    assert [row["start"] for row in rows] == list(range(3_000, 21_000, 1_000))
    empty = next(row for row in rows if row["start"] == 10_000)
    assert (empty["count"], empty["count_high"], empty["sum"], empty["sum_exact"]) == (0, 0, 0.0, True)
    assert math.isnan(empty["mean"])
    assert math.isnan(empty["completeness"])


def test_a_clock_of_1970_does_not_make_millions_of_windows() -> None:
    """An empty stretch of more than MAX_EMPTY windows is left out; what stands beside it is answered as ever."""
    now = 1_760_000_000_000_000
    times = [0, now, now + 1]
    buckets = [fold([(time, 1.0)], 1.0, i) for i, time in enumerate(times)]
    rows = answers([{"incarnation": "0", "center": 1.0, **bucket} for bucket in buckets], Grid(1_000_000, 5))
    assert len(rows) == 10
    assert sum(row["count"] for row in rows) == 3 * 5


def test_a_bucket_across_a_long_stretch_is_one_row_there() -> None:
    """A bucket from 1970 to today is cut at both ends, and between them a row says how many each window may hold."""
    readings = [(0, 1.0), (10, 2.0), (10**12, 4.0)]
    rows = answers([{"incarnation": "0", "center": 1.0, **fold(readings, 1.0, 0)}], Grid(1_000_000, 3))
    assert [row["windows"] for row in rows] == [1, 1, 1, 10**6 - 3, 1, 1, 1]
    span = rows.pop(3)
    assert (span["start"], span["count_low"], span["count_high"], span["count_exact"]) == (1_000_000, 0, 1, False)
    assert (span["max_low"], span["max_high"]) == (1.0, 2.0)
    assert all(row["max_exact"] for row in rows[3:])
    assert [row["max_high"] for row in rows] == [2.0] * 3 + [4.0] * 3


def test_missing_documents_of_months_are_a_row() -> None:
    """Of a hole over a long stretch one row says that all is missing there; silence without a hole has no row."""
    held = [fold([(time, 1.0)], 1.0, first) for time, first in ((0, 0), (10**11, 21), (3 * 10**11, 22))]
    hole = dict.fromkeys(held[0], 0) | {"n": 0, "first": 1, "t_first": 0, "t_last": 10**11, "gap": 20}
    hole |= {"low": math.inf, "high": -math.inf, "center": 1.0, "incarnation": "0"}
    rows = answers([{"incarnation": "0", "center": 1.0, **bucket} for bucket in held] + [hole], Grid(1_000_000, 1))
    told = [(row["windows"], row["count"], row["count_exact"], row["completeness"] == 0) for row in rows]
    assert told == [(1, 1, True, False), (99_999, 0, True, True), (1, 1, True, False), (1, 1, True, False)]


@pytest.mark.parametrize("seed", range(200))
def test_an_axis_in_parts_is_the_axis(seed: int) -> None:
    """Whatever is between the points and across them: each window once, and behind each part what it reaches into."""
    rng = random.Random(seed)
    width, most_empty, points = rng.choice([1, 2, 5]), rng.choice([0, 3, 10]), list[int]()
    for _ in range(rng.randrange(1, 30)):
        points.append(
            (points[-1] if points else -50) + rng.choice([1, 2, width + most_empty, width + most_empty + 1, 40])
        )
    long = (
        np.array(sorted(sorted(rng.sample(points, 2)) for _ in range(4 * (len(points) > 1))), np.int64).reshape(-1, 2).T
    )
    wanted: list[tuple[int, int]] = []
    for before, point in zip([None, *points], points, strict=False):
        own = [*range(point - width + 1, point + 1)]
        if before is not None and (empty := point - before - width) <= most_empty:
            own = [*range(before + 1, point + 1)]
        elif before is not None and any(since <= before and until >= point for since, until in long.T):
            wanted.append((before + 1, empty))
        wanted += [(frame, 1) for frame in own if not wanted or frame > wanted[-1][0]]
    for most in (1, 2, 7, 1 << 20):
        found, held = list[tuple[int, int]](), np.array(points, np.int64)
        for axis, own in window_axes(held, (long[0], long[1]), width, most_empty, most):
            entries = [*zip(axis.first.tolist(), axis.windows.tolist(), strict=True)]
            assert own <= most + len(points)
            assert entries == wanted[len(found) : len(found) + len(entries)]
            assert len(entries) >= min(own + width - 1, len(wanted) - len(found))
            found += entries[:own]
        assert found == wanted


def test_missing_readings_lower_completeness_where_they_are_missing() -> None:
    """All 10 readings of a hole over [1000, 3000] may be in each of its frames; a bucket's own gap stays with it."""
    held = [fold([(time, 1.0)], 1.0, first) for time, first in ((999, 0), (3_000, 11), (3_500, 12))]
    held[2]["gap"] = 1
    hole = dict.fromkeys(held[0], 0) | {"n": 0, "first": 1, "t_first": 1_000, "t_last": 3_000, "gap": 10}
    hole |= {"low": math.inf, "high": -math.inf, "center": 1.0, "incarnation": "0"}
    rows = answers([{"incarnation": "0", "center": 1.0, **bucket} for bucket in held] + [hole], Grid(1_000, 1))
    got = {row["start"]: (row["count"], row["completeness"]) for row in rows}
    assert got == {0: (1, 1.0), 1_000: (0, 0.0), 2_000: (0, 0.0), 3_000: (2, 2 / 13)}


@pytest.mark.parametrize("seed", range(60))
def test_a_window_beside_a_span_misses_what_is_missing_in_its_own_time(seed: int) -> None:
    """Completeness by its definition: all of each hole that a window touches may be in it, whatever stands behind.

    One row for each window of a span says what any of them may miss.
    """
    rng = random.Random(seed)
    grid = Grid(1_000, rng.choice([1, 2, 3, 7, 12]), rng.choice([0, 300]))
    times = sorted(rng.sample(range(200_000), rng.choice([2, 3, 6])))
    held, holes, ordinal = [], [], 0
    for time in times:
        if ordinal and rng.random() < 0.7:
            holes.append((held[-1]["t_last"], time, rng.randint(1, 9)))
            ordinal += holes[-1][2]
        held.append(fold([(time, 1.0)], 1.0, ordinal))
        ordinal += 1
    told = [dict.fromkeys(held[0], 0) | {"t_first": low, "t_last": high, "gap": gap} for low, high, gap in holes]
    told = [hole | {"n": 0, "low": math.inf, "high": -math.inf} for hole in told]
    rows = answers([{"incarnation": "0", "center": 1.0, **one} for one in held + told], grid, max_empty=5)
    for row in rows:
        starts = range(row["start"], row["start"] + row["windows"] * grid.slide_us, grid.slide_us)
        windows = [(start, start + grid.width * grid.slide_us) for start in starts]
        count = sum(windows[0][0] <= time < windows[0][1] for time in times)
        missing = sum(gap for low, high, gap in holes if any(start <= high and low < end for start, end in windows))
        assert row["count"] == count
        if count + missing:
            assert row["completeness"] == pytest.approx(count / (count + missing)), (grid, row)
        else:
            assert math.isnan(row["completeness"])


@pytest.mark.parametrize("width", [1, 2, 3, 7, 16, 50])
def test_van_herk_equals_a_plain_fold(width: int) -> None:
    """Suffix and prefix of blocks give the sum, least and greatest of every window, bridging rows apart."""
    rng = np.random.default_rng(width)
    first = rng.integers(0, 90, 200)
    last = np.minimum(first + rng.integers(0, 4, 200), 99)
    slide = Slide(first, last, width, 100 - width)
    values = rng.integers(-50, 50, 200)
    kept = ~slide.bridging
    for operation, neutral, plain in ((np.add, 0, sum), (np.minimum, 99, min), (np.maximum, -99, max)):
        got = slide.fold(values, operation, neutral)
        for start in range(slide.size):
            inside = values[kept & (first >= start) & (last < start + width)].tolist()
            assert got[start] == (plain(inside) if inside else neutral)


def test_cut_buckets_are_bounded_as_by_the_scalar_twin() -> None:
    """Counts and extremes as in `error_algebra` to the bit; sums overlap and are as narrow."""
    ratios = []
    for seed in range(400):
        rng = random.Random(seed)
        stream = random_stream(seed, incarnations=1, readings=40)
        _, center, rows = stream.incarnations[0]
        row = max(rows, key=lambda bucket: bucket["n"])
        if row["t_last"] - row["t_first"] < 3:
            continue
        start, end = sorted(rng.sample(range(row["t_first"] - 5, row["t_last"] + 6), 2))
        if not (row["t_first"] < start <= row["t_last"] or row["t_first"] < end <= row["t_last"]):
            continue
        if row["t_last"] < start or row["t_first"] >= end:
            continue
        pair = {name: np.array([value]) for name, value in {**row, "center": center}.items()}
        mine = cut(pair, np.array([start]), np.array([end]))
        part = cut_by_time(Bucket(**row), center, start, end)
        assert (mine.count_low[0], mine.count_high[0]) == (part.count_low, part.count_high)
        if part.count_high:
            assert mine.min_high[0] == part.min_high
            assert mine.max_low[0] == part.max_low
        low, high = (float(side[0]) for side in mine.sums(center))
        slack = 1e-9 * max(1.0, part.magnitude) * row["n"]
        assert low <= part.sum_high + slack
        assert high >= part.sum_low - slack
        ratios.append((high - low + slack) / (part.sum_high - part.sum_low + slack))
    assert len(ratios) > 200
    assert max(ratios) < 1.5
    assert sum(ratios) / len(ratios) < 1.02


def _as_on_the_device(rows: list[Row], center: float, start: int, end: int) -> tuple[int, bounds.Interval]:
    """How many buckets a window cuts, and its variance as `variance_twin` bounds it."""
    held = [Bucket(**row) for row in rows]
    inside = [bucket for bucket in held if start <= bucket.t_first and bucket.t_last < end]
    cuts = [b for b in held if b not in inside and b.t_last >= start and b.t_first < end]
    n = sum(bucket.n for bucket in inside)
    mean = sum(bucket.total for bucket in inside) / n
    m2 = sum(bucket.m2 + bucket.n * (bucket.total / bucket.n - mean) ** 2 for bucket in inside)
    known = Deviations(n, mean, m2, min(b.low for b in inside), max(b.high for b in inside))
    part = reduce(pool, (cut_by_time(bucket, center, start, end) for bucket in cuts), bounds.NOTHING)
    own = [Deviations(b.n, b.total / b.n, b.m2, b.low, b.high) for b in cuts]
    return len(cuts), variance_interval(known, part, center, own[0] if len(own) == 1 else None)


@pytest.mark.parametrize(("cuts", "most"), [(1, 1.15), (2, 0.7)])
def test_a_variance_is_as_sharp_as_on_the_device(cuts: int, most: float) -> None:
    """A day's wave with noise, 1.5 frames a bucket: of one cut bucket nearly as narrow as the twin, of two narrower."""
    rng = random.Random(9)
    readings = [(i * 50 + rng.randrange(50), 20 + 5 * math.sin(i / 200) + rng.gauss(0, 1)) for i in range(12_000)]
    edges = [next(i for i, (time, _) in enumerate(readings) if time >= edge) for edge in range(0, 599_000, 3_600)]
    center = readings[0][1]
    rows = [fold(readings[begin:end], center, begin) for begin, end in pairwise(edges)]
    grid, ratios = Grid(2_400, 25, 0), []
    for row in answers([{"incarnation": "0", "center": center, **bucket} for bucket in rows], grid)[30:-30]:
        cut_now, twin = _as_on_the_device(rows, center, row["start"], row["start"] + 25 * grid.slide_us)
        if cut_now == cuts:
            ratios.append((row["variance_high"] - row["variance_low"]) / (twin.high - twin.low))
    assert len(ratios) >= 50
    assert statistics.median(ratios) < most


def test_the_order_of_rows_does_not_change_a_bit() -> None:
    """Rows shuffled by Spark give identical components."""
    stream, grid = random_stream(11, incarnations=2), Grid(300, 5)
    rows = frame_rows(stream.rows(), 300)
    mixed = np.random.default_rng(1).permutation(rows["n"].size)
    _, one = components(rows, grid)
    _, two = components({name: column[mixed] for name, column in rows.items()}, grid)
    assert all(np.array_equal(one[name], two[name], equal_nan=True) for name in one)


def test_zeros_beside_rare_values_stay_inside() -> None:
    """A window of zeros that a merged bucket with rain overlaps: the bucket's sums were rounded at the rain's size."""
    for seed in range(60):
        rng = random.Random(seed)
        readings = [(i * 40, rng.choice([0.0] * 9 + [0.01, 0.02, 0.13, 0.31])) for i in range(240)]
        builder = Builder(readings[0][1])
        leaves = []
        for number, (time, value) in enumerate(readings, 1):
            builder.add(value, time)
            if number % 4 == 0:
                leaves.append(builder.close())
        while len(leaves) > 8:
            at = rng.randrange(len(leaves) - 1)
            leaves[at : at + 2] = [merge(*leaves[at : at + 2])]
        head = {"device": "d", "stream": "s", "incarnation": "0", "center": readings[0][1], "chunk": ""}
        raw = Readings(readings)
        for row in answers([head | {name: getattr(leaf, name) for name in FIELDS} for leaf in leaves], Grid(40, 24)):
            assert violations(row, raw.window(row["start"], row["start"] + 24 * 40)) == [], f"seed {seed}"
