"""Every column of what buckets carry holds the truth: of devices and of all, late, merged, in doubt, of any size."""

from __future__ import annotations

import random
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest
from thorough import number

pytest.importorskip("pyspark", reason="the cloud's tests need the extra `cloud`")

from carried_truth import Devices, outside_ranks, wrong
from carried_worlds import ASKED, Reading, random_device

from sluicegate.format.bucket import Builder
from sluicegate.format.pairs import Moments, PairColumn
from sluicegate_cloud.extras.answers import answer
from sluicegate_cloud.extras.asked import Asked, sorted_out
from sluicegate_cloud.extras.piece import Piece, Share, added
from sluicegate_cloud.extras.placed import Record
from sluicegate_cloud.extras.windows import shares
from sluicegate_cloud.grid import Grid


@dataclass
class Ranks:
    """Quantiles that were told of, and those outside of what holds at 99 %."""

    told: int = 0
    outside: int = 0


def judged(share: Share, asked: tuple[Asked, ...], devices: Devices, ranks: Ranks) -> Iterator[str]:
    """What one window says wrongly."""
    inside = [[each for each in some if share.start <= each.time < share.end] for some in devices]
    for place, each in enumerate(asked):
        told = answer(share, place, each)
        yield from wrong(each, told, inside)
        if each.kind == "quantiles":
            some, outside = outside_ranks(told, inside)
            ranks.told, ranks.outside = ranks.told + some, ranks.outside + outside


def world(seed: int, doubt: float, ranks: Ranks) -> Iterator[str]:
    """One to three devices, each window of each and of all."""
    rng = random.Random(seed)
    grid, asked = Grid(rng.choice((40, 150, 1000)), rng.choice((1, 2, 5)), rng.randrange(50)), rng.choice(ASKED)
    every, of = dict[int, Share](), list[list[Reading]]()
    for _ in range(rng.choice([1, 2, 3])):
        pieces, left = random_device(rng).pieces(rng, asked, doubt)
        of.append(left)
        found = set[int]()
        for share in shares(pieces, grid, asked):
            found.add(share.start)
            yield from judged(share, asked, [left], ranks)
            every[share.start] = added(every[share.start], share, asked) if share.start in every else share
        for each in left:
            frame = (each.time - grid.origin_us) // grid.slide_us
            for at in range(frame - grid.width + 1, frame + 1):
                if grid.origin_us + at * grid.slide_us not in found:
                    yield f"no window for {each}"
    for share in every.values():
        yield from judged(share, asked, of, ranks)


@pytest.mark.parametrize("doubt", [0.0, 0.3])
def test_every_column_holds_the_truth(doubt: float) -> None:
    """No window missing, no truth outside, nothing falsely exact; of quantiles no more outside than is stated."""
    ranks, found = Ranks(), list[str]()
    for seed in range(number(5_000, 12)):
        found += [f"{seed}: {text}" for text in world(seed, doubt, ranks)]
    assert found[:5] == []
    assert ranks.told > 1_000
    assert ranks.outside <= 0.01 * ranks.told


def test_a_line_ends_where_the_last_certain_reading_is() -> None:
    """A bucket behind it, all of it in doubt, may add nothing: then the line ends before that bucket."""
    asked = sorted_out(("intercept(last)",))[1]
    steady, repeat = piece([(t, t / 10) for t in range(300)], asked), piece([(330, 33.0)], asked, doubt=1)
    (share,) = shares([steady, repeat], Grid(1_000, 1), asked)
    told = answer(share, 0, asked[0])
    assert told["intercept_low"] <= 29.9
    assert told["intercept_high"] >= 33.0


@pytest.mark.parametrize("name", ["covariance", "correlation"])
def test_what_is_beyond_float64_is_not_exact(name: str) -> None:
    """Both have a result, which float64 cannot tell."""
    asked = sorted_out((name,))[1]
    (share,) = shares([pair([(0, 1e200, -1e200), (1, -1e200, 1e200), (2, 3e200, 0.0)], asked)], Grid(10, 1), asked)
    told = answer(share, 0, asked[0])
    assert (told[name], told[f"{name}_exact"]) == (None, False)


def test_a_correlation_of_moments_beyond_float64_is_not_known() -> None:
    """Σyy is a little less than the greatest float64, and on the way to it more."""
    asked, y = sorted_out(("correlation",))[1], 1.417455635817888e154
    xs = (0.0, -1.0, 1.0, 0.0, 0.0, 0.0, 1.0)
    (share,) = shares([pair([(t, x, 0.0 if t else y) for t, x in enumerate(xs)], asked)], Grid(10, 1), asked)
    told = answer(share, 0, asked[0])
    assert (told["correlation"], told["correlation_exact"]) == (None, False)


@pytest.mark.parametrize("name", ["covariance", "correlation"])
def test_that_there_is_none_may_be_exact(name: str) -> None:
    """Of values that do not vary there certainly is no correlation."""
    asked = sorted_out((name,))[1]
    (share,) = shares([pair([(0, 1.0, 5.0), (1, 1.0, 6.0)], asked)], Grid(10, 1), asked)
    told = answer(share, 0, asked[0])
    assert (told[name], told[f"{name}_exact"]) == (0.0 if name == "covariance" else None, True)


def test_a_mean_over_time_is_not_exact_where_there_may_be_no_reading() -> None:
    """Nor where two devices have one reading each, and no time."""
    asked = sorted_out(("time_weighted_mean",))[1]
    cut = piece([(0, 5.0), (50, 5.0), (90, 5.0)], asked)
    between = [share for share in shares([cut], Grid(10, 1), asked) if share.least == 0]
    assert [answer(share, 0, asked[0])["time_weighted_mean_exact"] for share in between] == [False] * 8
    doubtful = piece([(0, 5.0)], asked, doubt=1)
    (share,) = shares([doubtful], Grid(10, 1), asked)
    assert not answer(share, 0, asked[0])["time_weighted_mean_exact"]
    one, two = (next(shares([piece([(0, x)], asked)], Grid(10, 1), asked)) for x in (1.0, 2.0))
    told = answer(added(one, two, asked), 0, asked[0])
    assert (told["time_weighted_mean_low"], told["time_weighted_mean_high"]) == (1.0, 2.0)
    assert not told["time_weighted_mean_exact"]


def test_a_distinct_count_takes_cut_buckets_in_proportion() -> None:
    """Forty devices of eight values each, of which the window has four."""
    asked = sorted_out(("distinct_count(12)",))[1]
    every: Share | None = None
    for device in range(40):
        readings = [(20 * at, 8.0 * device + at) for at in range(8)]
        share = next(shares([piece(readings, asked)], Grid(80, 1), asked))
        every = share if every is None else added(every, share, asked)
    assert every is not None
    assert answer(every, 0, asked[0])["distinct_count"] == pytest.approx(160, rel=0.1)


@pytest.mark.parametrize("late", [[(0, 3.0), (50, 7.0)], [(50, 7.0)]])
@pytest.mark.parametrize("doubt", [0, 1])
def test_of_equal_times_the_later_arrival_holds(late: list[tuple[int, float]], doubt: int) -> None:
    """A late bucket ends where another begins: its last value holds from there on, unless it is a repeat."""
    asked = sorted_out(("time_weighted_mean",))[1]
    early, after = piece([(50, 1.0), (90, 1.0)], asked), piece(late, asked, doubt=doubt, first=2)
    pieces = sorted([early, after], key=lambda one: (one.t_first, one.first))
    (share,) = shares(pieces, Grid(1_000, 1), asked)
    told = answer(share, 0, asked[0])
    truth = (late[-1][1] * 40 + late[0][1] * (50 - late[0][0])) / (90 - late[0][0])
    assert told["time_weighted_mean_low"] <= truth <= told["time_weighted_mean_high"]
    assert not told["time_weighted_mean_exact"]


def test_of_two_boards_at_one_time_nobody_knows_which_value_holds() -> None:
    """Their ordinals are of two lines; either value may hold from there on."""
    asked = sorted_out(("time_weighted_mean",))[1]
    one, two = piece([(0, 1.0), (50, 1.0)], asked), piece([(50, 9.0), (90, 9.0)], asked)
    (share,) = shares([one._replace(first=("a", 0)), two._replace(first=("b", 0))], Grid(1_000, 1), asked)
    told = answer(share, 0, asked[0])
    assert (told["time_weighted_mean_low"], told["time_weighted_mean_exact"]) == (1.0, False)
    assert told["time_weighted_mean_high"] >= (50 + 9 * 40) / 90


def test_a_mean_over_time_is_known_to_the_greatest_value_s_rounding() -> None:
    """Values that cancel each other leave a small mean, of which rounding is not small."""
    asked = sorted_out(("time_weighted_mean",))[1]
    (share,) = shares([piece([(0, 0.1), (3, -0.3), (4, 0.0)], asked)], Grid(10, 1), asked)
    told, truth = answer(share, 0, asked[0]), (Fraction(0.1) * 3 - Fraction(0.3)) / 4
    assert truth != 0
    assert told["time_weighted_mean_low"] <= truth <= told["time_weighted_mean_high"]


@pytest.mark.parametrize("kind", ["first", "last"])
def test_of_two_incarnations_at_one_time_nobody_knows_which_came_first(kind: str) -> None:
    """Their ordinals are of two lines."""
    asked = sorted_out((kind,))[1]
    both = [
        piece([(5, x)], asked, first=first, line=(f"{n:016x}", None))
        for n, (x, first) in enumerate(((1.0, 9), (2.0, 0)))
    ]
    (share,) = shares(both, Grid(10, 1), asked)
    told = answer(share, 0, asked[0])
    assert (told[f"{kind}_low"], told[f"{kind}_high"], told[f"{kind}_exact"]) == (1.0, 2.0, False)


def piece(
    readings: list[tuple[int, float]], asked: tuple[Asked, ...], *, doubt: int = 0, first: int = 0, line: Any = None
) -> Piece:
    """A bucket of these."""
    builder = Builder(0.0)
    for time, x in readings:
        builder.add(x, time)
    bucket, times = builder.close(), array("q", [time for time, _ in readings])
    parts = tuple(each.fold(array("d", [x for _, x in readings]), times) for each in asked)
    ends = bucket.low, bucket.high, True
    record = Record(bucket.t_first, bucket.t_last, first, bucket.n, doubt, *ends, bucket._asdict(), line)
    return Piece(bucket.t_first, bucket.t_last, ("", first), bucket.n, bucket.n - doubt, *ends, parts, record)


def pair(readings: list[tuple[int, float, float]], asked: tuple[Asked, ...]) -> Piece:
    """A bucket of readings of two values."""
    moments, xs = Moments(), [x for _, x, _ in readings]
    moments.add(PairColumn(xs, [y for *_, y in readings]), 0, len(readings))
    ends = min(xs), max(xs), True
    return Piece(
        readings[0][0], readings[-1][0], ("", 0), len(readings), len(readings), *ends, (moments.pack(),) * len(asked)
    )
