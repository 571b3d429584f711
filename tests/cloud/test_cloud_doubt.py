"""Readings in doubt promise: whichever of them are repeats, every window's interval holds the result without those."""

from __future__ import annotations

import math
import random
from itertools import chain, combinations
from typing import Any

import numpy as np
import pytest
from cloud_streams import Readings, Row, Stream, fold, frame_rows, older, random_stream, violations
from thorough import WHOLE

from sluicegate_cloud.estimates.components import components, families
from sluicegate_cloud.estimates.lower import lower
from sluicegate_cloud.grid import Grid
from sluicegate_cloud.names import ALL, MORE

Marked = set[int]  # positions, in order of arrival, of the readings that may be repeats


def answers(buckets: list[Row], grid: Grid) -> list[dict[str, Any]]:
    """The rows of every window of one stream, with its times."""
    axis, parts = components(frame_rows(buckets, grid.slide_us, grid.origin_us), grid, needed=families(MORE))
    columns = {name: column.tolist() for name, column in lower(parts, ALL).items()}
    columns["start"] = grid.start_us(axis.first).tolist()
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def marked(stream: Stream, rng: random.Random, share: float) -> tuple[list[Row], Marked]:
    """The stream's buckets with their doubt, and which readings it is of: some buckets', or nearly all of one's."""
    rows, marks, at = [], set(), 0
    for number, center, buckets in stream.incarnations:
        for bucket in buckets:
            often = rng.choice([0.1, 0.5, 1.0]) if rng.random() < share else 0.0
            mine = {at + i for i in range(bucket["n"]) if rng.random() < often}
            head = {"device": stream.device, "stream": stream.name, "key": None, "incarnation": number}
            rows.append({**head, "center": center, "chunk": "", **bucket, "doubt": len(mine)})
            marks |= mine
            at += bucket["n"]
    assert at == len(stream.readings)
    return rows, marks


def without(stream: Stream, repeats: Marked) -> Readings:
    """The readings that there were, had these been repeats."""
    return Readings([reading for i, reading in enumerate(stream.readings) if i not in repeats])


def wrong(rows: list[dict[str, Any]], grid: Grid, raw: Readings) -> list[str]:
    """What the windows say that is not so of `raw`."""
    length = grid.width * grid.slide_us
    return [
        f"{grid} start {row['start']}: {text}"
        for row in rows
        for text in violations(row, raw.window(row["start"], row["start"] + length))
    ]


def every(marks: Marked) -> list[Marked]:
    """All choices of repeats."""
    return [set(some) for some in chain(*(combinations(sorted(marks), k) for k in range(len(marks) + 1)))]


def test_every_choice_of_repeats_of_small_streams_is_inside() -> None:
    """All subsets of up to six readings in doubt, all windows, cut and whole, exhaustively."""
    choices = 0
    for seed in range(400):
        rng = random.Random(seed)
        stream = random_stream(seed, incarnations=rng.choice([1, 1, 2]), readings=9)
        rows, marks = marked(stream, rng, rng.choice([0.3, 1.0]))
        if not 1 <= len(marks) <= 6:
            continue
        told = [older(row) | {"doubt": row["doubt"]} if rng.random() < 0.2 else row for row in rows]
        grid = Grid(rng.choice([7, 50, 400]), rng.choice([1, 2, 5]), rng.choice([0, 13]))
        answered = answers(told, grid)
        for repeats in every(marks):
            assert wrong(answered, grid, without(stream, repeats)) == [], f"seed {seed}: {sorted(repeats)}"
            choices += 1
    assert choices > 2_000


def hard(stream: Stream, marks: Marked, rng: random.Random) -> list[Marked]:
    """Choices that move a result most: none, all, the greatest, the least, those far from 0, and some at random."""
    ordered = sorted(marks, key=lambda i: stream.readings[i][1])
    half = len(ordered) // 2
    return [
        set(),
        marks,
        set(ordered[half:]),
        set(ordered[:half]),
        set(ordered[-1:]),
        *({i for i in marks if rng.random() < share} for share in (0.1, 0.5, 0.9)),
    ]


def test_random_choices_of_repeats_of_long_streams_are_inside() -> None:
    """At least 330 windows a seed of random streams with doubt, in and out of order, of both formats."""
    windows = 0
    for seed in range(seeds := 180 if WHOLE else 60):
        rng = random.Random(seed)
        stream = random_stream(seed, incarnations=rng.choice([1, 2]), readings=250)
        rows, marks = marked(stream, rng, rng.choice([0.05, 0.4, 1.0]))
        told = [older(row) | {"doubt": row["doubt"]} if rng.random() < 0.1 else row for row in rows]
        grid = Grid(rng.choice([50, 300, 2_000]), rng.choice([1, 3, 24]), rng.choice([0, -1_000]))
        answered = answers(told, grid)
        sample = answered[:: max(1, len(answered) // 80)]
        for repeats in hard(stream, marks, rng):
            assert wrong(sample, grid, without(stream, repeats)) == [], f"seed {seed}"
            windows += len(sample)
    assert windows >= 330 * seeds


def test_a_bucket_in_doubt_says_what_it_may_be_less_by() -> None:
    """One hour, four readings, one in doubt: 3 … 4 readings, the sum less any of them, extremes as they may."""
    rows = [{"incarnation": "0", "center": 4.0, **fold([(0, 4.0), (1, 6.0), (2, 5.0), (3, 9.0)], 4.0, 0), "doubt": 1}]
    (row,) = answers(rows, Grid(10, 1))
    assert (row["count"], row["count_low"], row["count_high"], row["count_exact"]) == (4, 3, 4, False)
    assert (row["sum"], row["sum_low"], row["sum_high"]) == pytest.approx((24.0, 15.0, 24.0))
    assert (row["mean"], row["mean_low"], row["mean_high"]) == pytest.approx((6.0, 5.0, 20.0 / 3))
    assert (row["max"], row["max_low"], row["max_high"], row["max_exact"]) == (9.0, 6.0, 9.0, False)
    assert (row["min"], row["min_low"], row["min_high"], row["min_exact"]) == (4.0, 4.0, 5.0, False)
    assert not any(row[f"{name}_exact"] for name in ("sum", "mean", "variance", "std", "range", "geometric_mean"))


def test_doubt_elsewhere_leaves_an_extreme_certain() -> None:
    """The greatest of another bucket, or one that occurs more often than there is doubt, is exact."""
    sure = fold([(0, 1.0), (1, 9.0)], 1.0, 0)
    doubtful = fold([(2, 4.0), (3, 0.5), (4, 0.5)], 1.0, 2) | {"doubt": 1}
    (row,) = answers([{"incarnation": "0", "center": 1.0, **bucket} for bucket in (sure, doubtful)], Grid(10, 1))
    assert (row["max"], row["max_exact"], row["min"], row["min_exact"]) == (9.0, True, 0.5, True)
    assert row["range_exact"]
    assert (row["min_count_low"], row["min_count_high"], row["max_count_exact"]) == (1, 2, True)


def test_completeness_counts_no_repeat() -> None:
    """Ten counted, four of them in doubt, five missing: at least six of eleven, not ten of fifteen."""
    bucket = fold([(i, float(i)) for i in range(10)], 0.0, 0, gap=5) | {"doubt": 4}
    (row,) = answers([{"incarnation": "0", "center": 0.0, **bucket}], Grid(100, 1))
    assert row["completeness"] == pytest.approx(6 / 11)
    (all_in_doubt,) = answers([{"incarnation": "0", "center": 0.0, **bucket, "gap": 0, "doubt": 10}], Grid(100, 1))
    assert (all_in_doubt["count_low"], all_in_doubt["completeness"]) == (0, 1.0)


def test_the_work_does_not_grow_with_the_window() -> None:
    """Every bucket in doubt, a window of a thousand frames: as many folds as without doubt, not a pair a window."""
    readings = [(i * 10, 20 + math.sin(i / 50)) for i in range(40_000)]
    rows = [fold(readings[at : at + 8], 20.0, at) | {"doubt": 1} for at in range(0, 40_000, 8)]
    frames = frame_rows([{"incarnation": "0", "center": 20.0, **row} for row in rows], 80)
    axis, parts = components(frames, Grid(80, 1_000), needed=families(MORE))
    held = parts["count_low"] > 0
    assert axis.size > 5_000
    assert np.all(parts["count_high"][held] - parts["count_low"][held] <= 1_002)
