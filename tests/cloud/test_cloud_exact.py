"""Every window against exact arithmetic over random readings: none outside, none missing, none `exact` that is not.

The readings, their buckets and what a window must say come from `random_worlds` and `merge_truth`, from the
definition. `make exact` does the same for as long as it is told.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
from exact_worlds import Score, devices_windows, fleets_windows, one_stream
from merge_truth import Truth
from random_worlds import DAY, MINUTE, Board, Cut, buckets_of
from thorough import number

SEEDS, WINDOWS = 4, number(100_000, 40_000)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_window_of_a_device_holds_the_truth(seed: int) -> None:
    """At least WINDOWS windows in all, a span held to what its windows hold: in one process, without Spark."""
    score = Score()
    while score.windows < WINDOWS // SEEDS:
        score.add(devices_windows(random.Random(f"{seed}:{score.worlds}")))
    assert (score.missing, score.wrong[:5]) == (0, [])
    assert score.spans > WINDOWS // 2_000
    assert 0.05 < score.exact / score.windows < 0.95, "both exact and uncertain windows must be among them"


@pytest.mark.spark
@pytest.mark.parametrize("seed", range(number(2, 1)))
def test_every_window_of_a_fleet_holds_the_truth(spark: Any, seed: int) -> None:
    """Documents, some lost, some sent twice, in any order → windows of each device and of all."""
    score = fleets_windows(spark, random.Random(seed), streams=6, boards=3)
    assert (score.missing, score.wrong[:5]) == (0, [])
    assert score.windows > 2_000


def week_away() -> tuple[list[Board], Cut]:
    """A board without power for eight days, its outbox merged across them, beside one that reports all the time."""
    since, cut = 1_760_000_000_000_000, Cut(MINUTE, 5, 0, 10_000)
    away = [(since + i * MINUTE // 2 + day * DAY, 20.0 + i % 7) for day in (0, 8) for i in range(240)]
    live = [(since + i * 5 * MINUTE, 21.0 + i % 5) for i in range(9 * 288)]
    boards = []
    for name, held, size in (("away", away, 480), ("live", live, 12)):
        boards.append(Board(name, held, [("0" * 16, held[0][1], buckets_of(held, size))]))
    return boards, cut


def test_a_board_away_for_a_week_has_a_row_for_each_of_its_windows() -> None:
    """The bucket spans 11,520 windows: one row says from when to when, and that each may hold a reading or not."""
    boards, cut = week_away()
    rows = one_stream(boards[0].rows(), cut)
    spans = [row for row in rows if row["windows"] > 1]
    assert sum(row["windows"] for row in spans) > 10_000
    assert all((row["count_low"], row["count_exact"]) == (0, False) and row["count_high"] > 0 for row in spans)
    assert all(row["geometric_mean_low"] > 19.99 and row["variance_high"] < 9.01 for row in spans)
    assert sum(row["windows"] for row in rows) == 8 * 1440 + 120 + 4


@pytest.mark.spark
def test_the_fleets_windows_count_a_device_that_is_away(spark: Any) -> None:
    """Where it may hold a reading the fleet's count is no longer exact, in each window that others have a row for."""
    from exact_worlds import windows_of

    boards, cut = week_away()
    rows = windows_of(spark, {"s": boards}, cut)
    fleet = [row for row in rows if row["device"] is None]
    assert {row["windows"] for row in fleet} == {1}
    score = Score()
    score.judge(fleet, Truth(reading for board in boards for reading in board.readings), cut)
    assert (score.missing, score.wrong[:5]) == (0, [])
    inner = [row for row in fleet if 2 * DAY < row["window_start"] - 1_760_000_000_000_000 < 6 * DAY]
    assert len(inner) > 5_000
    assert not any(row["count_exact"] or row["mean_exact"] for row in inner)
    assert sorted({row["windows"] > 1 for row in rows if row["device"] == "away"}) == [False, True]
