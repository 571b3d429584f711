"""Windows of what buckets carry: the definition over all readings lies in every certain interval."""

from __future__ import annotations

import random
from array import array
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import number

pytest.importorskip("pyspark", reason="the cloud's tests need the extra `cloud`")

from sluicegate.bounds import least_squares
from sluicegate.errors import ConfigurationError
from sluicegate.format.bucket import Bucket, Builder
from sluicegate.format.chunk import Chunk, document_id, encode
from sluicegate.monoids.results import BloomFilter, CountMin
from sluicegate_cloud.extras.answers import answer
from sluicegate_cloud.extras.asked import RANKS, Asked, sorted_out, split
from sluicegate_cloud.extras.piece import Piece, Share, added
from sluicegate_cloud.extras.placed import PLACED
from sluicegate_cloud.extras.windows import shares
from sluicegate_cloud.grid import Grid

NAMES = ("slope(1s)", "intercept(first)", "time_weighted_mean", "quantiles(8)", "distinct_count(8)", "top_k(3)",
         "count_min(32,2)", "bloom_filter(256,3)")  # fmt: skip
ASKED = sorted_out(NAMES)[1]
LAST = sorted_out(("intercept(last)",))[1]
INCARNATION = "0006282d3d4b8c00"
Readings = list[tuple[int, float]]


def stream(rng: random.Random, count: int) -> Readings:
    """Readings in the order of their times, some of which are equal."""
    time, value, found = rng.randrange(1000), 20.0, []
    for _ in range(count):
        time += rng.choice((0, 1, 7, 20, 90))
        value = round(value + rng.gauss(0, 1), 1)
        found.append((time, value))
    return found


def cut_up(rng: random.Random, readings: Readings) -> list[Readings]:
    """Runs of them, as buckets are."""
    at, runs = 0, []
    while at < len(readings):
        size = rng.choice((1, 2, 5, 12))
        runs.append(readings[at : at + size])
        at += size
    return runs


def as_piece(run: Readings, first: int, asked: Sequence[Asked], doubt: int = 0) -> Piece:
    """What a bucket of these readings comes to."""
    times, values = array("q", [t for t, _ in run]), array("d", [x for _, x in run])
    parts = tuple(each.extra.fold(values, times) for each in asked)
    return Piece(min(times), max(times), ("", first), len(run), len(run) - doubt, min(values), max(values), True, parts)


def pieces_of(runs: list[Readings], asked: Sequence[Asked]) -> list[Piece]:
    """Those of all runs, by ordinal."""
    firsts = [sum(map(len, runs[:i])) for i in range(len(runs))]
    return [as_piece(run, first, asked) for run, first in zip(runs, firsts, strict=True)]


@given(st.integers(0, 10**9))
@settings(max_examples=number(120, 50), deadline=None)
def test_the_definition_lies_within(seed: int) -> None:
    """Each window of two devices and of both: recomputed from the readings, beside what the buckets say."""
    rng = random.Random(seed)
    grid = Grid(rng.choice((40, 150, 1000)), rng.choice((1, 2, 5)), rng.randrange(50))
    devices = [stream(rng, rng.randrange(1, 60)) for _ in range(2)]
    asked, every = (*ASKED,), dict[int, Share]()
    for readings in devices:
        told = list(shares(pieces_of(cut_up(rng, readings), asked), grid, asked))
        touched = {share.start for share in told}
        for share in told:
            judge(share, [readings], asked)
            every[share.start] = added(every[share.start], share, asked) if share.start in every else share
        for time, _ in readings:
            frame = (time - grid.origin_us) // grid.slide_us
            starts = range(frame - grid.width + 1, frame + 1)
            assert {grid.origin_us + k * grid.slide_us for k in starts} <= touched
    for share in every.values():
        judge(share, devices, asked)


def judge(share: Share, devices: Sequence[Readings], asked: Sequence[Asked]) -> None:
    """One window's columns beside the definition."""
    inside = [[each for each in readings if share.start <= each[0] < share.end] for readings in devices]
    every = sorted(each for some in inside for each in some)
    for place, each in enumerate(asked):
        told = answer(share, place, each)
        assert {*told} == {*each.columns}
        if every:
            _JUDGES[each.kind](told, each, every, inside)


def within(told: dict[str, Any], name: str, truth: float | None, slack: float = 0.0) -> None:
    """Low ≤ truth ≤ high, where there are any, low ≤ value ≤ high, and what is exact has no width to speak of."""
    value, low, high = (told[f"{name}{end}"] for end in ("", "_low", "_high"))
    if truth is None or low is None:
        assert told[f"{name}_exact"] is not True or truth is None
        return
    assert low - slack <= truth <= high + slack, (name, told, truth)
    assert low <= value <= high
    assert not told[f"{name}_exact"] or abs(high - low) <= 1e-6 * (1 + abs(truth))


def _judge_line(told: dict[str, Any], each: Asked, every: Readings, inside: list[Readings]) -> None:
    times, values = [float(t) for t, _ in every], [x for _, x in every]
    truth = least_squares.exactly(each.monoid, times, values, 0.0)
    within(told, each.kind, None if len({*times}) < 2 else truth.low, 1e-9 * (1 + abs(truth.low or 0.0)))


def _judge_held(told: dict[str, Any], each: Asked, every: Readings, inside: list[Readings]) -> None:
    area = sum(x * (b - t) for some in inside for (t, x), (b, _) in pairwise(some))
    time = sum(some[-1][0] - some[0][0] for some in inside if some)
    within(told, each.kind, area / time if time else None, 1e-9)


def _judge_ranks(told: dict[str, Any], each: Asked, every: Readings, inside: list[Readings]) -> None:
    """At 99 %: here, where at most a hundred values are in a sketch of k = 8, what is called exact is."""
    values = sorted(x for _, x in every)
    for name, rank in RANKS.items():
        assert told[f"{name}_low"] <= told[name] <= told[f"{name}_high"]
        if told[f"{name}_exact"]:
            assert told[name] == values[max(0, -int(-rank * len(values) // 1) - 1)]


def _judge_distinct(told: dict[str, Any], each: Asked, every: Readings, inside: list[Readings]) -> None:
    within(told, each.kind, float(len({x for _, x in every})))


def _judge_top(told: dict[str, Any], each: Asked, every: Readings, inside: list[Readings]) -> None:
    top = sorted((x for _, x in every), reverse=True)[:3]
    low, high = told["top_k_low"], told["top_k_high"]
    assert all(a <= b for a, b in zip(low, top, strict=False))
    assert len(low) <= len(top) <= len(high)
    assert all(a <= b for a, b in zip(top, high, strict=False))
    assert not told["top_k_exact"] or low == top


def _judge_counts(told: dict[str, Any], each: Asked, every: Readings, inside: list[Readings]) -> None:
    slots = each.extra.slots(told["count_min"])
    found = CountMin(32, 2, slots)
    values = [x for _, x in every]
    assert all(found.most(x) >= values.count(x) for x in {*values})
    assert len(values) <= found.n <= len(values) + told["count_min_doubt"]
    assert not told["count_min_exact"] or found.n == len(values)


def _judge_bloom(told: dict[str, Any], each: Asked, every: Readings, inside: list[Readings]) -> None:
    assert all(BloomFilter(told["bloom_filter"], 3).might_contain(x) for _, x in every)


_JUDGES = {
    "slope": _judge_line, "intercept": _judge_line, "time_weighted_mean": _judge_held, "quantiles": _judge_ranks,
    "distinct_count": _judge_distinct, "top_k": _judge_top, "count_min": _judge_counts, "bloom_filter": _judge_bloom,
}  # fmt: skip


@given(st.integers(0, 10**9))
@settings(max_examples=number(60, 30), deadline=None)
def test_an_intercept_at_the_last_reading_too(seed: int) -> None:
    """The same for the line's value at the greatest time."""
    rng = random.Random(seed)
    readings = stream(rng, rng.randrange(1, 60))
    for share in shares(pieces_of(cut_up(rng, readings), LAST), Grid(150, 2), LAST):
        judge(share, [readings], LAST)


def test_ranks_are_within_what_is_stated() -> None:
    """Of 2,000 windows' quantiles at most 1 % (and a share of luck) lie outside the stated 99 %."""
    rng, outside, asked = random.Random(1), 0, sorted_out(("quantiles(64)",))[1]
    readings = [(i, rng.gauss(0, 1)) for i in range(60_000)]
    runs = [readings[i : i + 150] for i in range(0, len(readings), 150)]
    judged = 0
    for share in shares(pieces_of(runs, asked), Grid(600, 5), asked):
        told, values = answer(share, 0, asked[0]), sorted(x for t, x in readings if share.start <= t < share.end)
        for name, rank in RANKS.items():
            truth = values[max(0, -int(-rank * len(values) // 1) - 1)]
            outside += not told[f"{name}_low"] <= truth <= told[f"{name}_high"]
            judged += 1
    assert judged > 400
    assert outside <= 0.01 * judged + 4


def test_readings_in_doubt_are_not_certain() -> None:
    """A bucket of which some may be repeats counts as one that is cut, though it lies inside."""
    rng = random.Random(5)
    run = stream(rng, 12)
    sure, doubted = as_piece(run, 0, ASKED), as_piece(run, 12, ASKED, doubt=4)
    (share,) = shares([sure, doubted], Grid(10**6, 1), ASKED)
    assert (share.least, share.most, share.inside) == (8, 12, sure)
    assert not answer(share, 4, ASKED[4])["distinct_count_exact"]


def test_a_bucket_that_does_not_carry_it_leaves_no_answer() -> None:
    """None in each column, for the windows that it touches alone."""
    run = stream(random.Random(6), 4)
    bare = as_piece(run, 0, ASKED)._replace(parts=(None,) * len(ASKED))
    for share in shares([bare], Grid(50, 1), ASKED):
        for place, each in enumerate(ASKED):
            assert {*answer(share, place, each).values()} == {None}


@pytest.mark.parametrize(
    ("names", "reason"),
    [(("mode",), "choose from"), (("quantiles(7)",), "from 8 to 4096"), (("top_k(x)",), "whole numbers"),
     (("slope", "slope(1h)"), "twice"), (("quantiles(4096)",), "cannot carry"), (("count_min(1,2,3)",), "options")],
)  # fmt: skip
def test_what_cannot_be_answered_is_refused(names: tuple[str, ...], reason: str) -> None:
    """With what to write in its place."""
    with pytest.raises(ConfigurationError, match=reason):
        sorted_out(names)


def test_a_list_is_parted_outside_parentheses() -> None:
    """A comma between options belongs to the name."""
    assert split("mean, count_min(32, 2),p") == ["mean", "count_min(32, 2)", "p"]


def _document(device: str, runs: list[Readings]) -> Chunk:
    builder, buckets, extras = Builder(20.0), list[Bucket](), dict[str, list[bytes | None]]()
    for run in runs:
        for time, value in run:
            builder.add(value, time)
        buckets.append(builder.close())
        parts = {each.extra.name: part for each, part in zip(ASKED, as_piece(run, 0, ASKED).parts, strict=True)}
        for name, part in parts.items():
            extras.setdefault(name, []).append(part if len(run) > 1 else None)
    return Chunk(device, "heat", INCARNATION, 20.0, buckets, [None] * len(buckets), None, None, extras)


@pytest.mark.spark
def test_cloud_merge_answers_them(spark: Any, tmp_path: Path) -> None:
    """Documents → Parquet: for each device and for all, beside the columns of the buckets' records."""
    from sluicegate_cloud import job
    from sluicegate_cloud.sinks import read_windows

    rng = random.Random(9)
    devices = {name: stream(rng, 80) for name in ("a", "b")}
    for name, readings in devices.items():
        chunk = _document(name, cut_up(rng, readings))
        (tmp_path / f"{name}.json").write_bytes(encode(chunk))
        assert document_id(chunk).startswith(name)
    summary = job.merge([str(tmp_path)], tmp_path / "out", 600, 200, ("mean", *PLACED, *NAMES))
    rows = read_windows(tmp_path / "out").to_pylist()
    assert summary["extras"] == {"passed_over": [], "too_long": 0}
    assert {row["device"] for row in rows} == {"a", "b", None}
    for row in rows:
        of = [*devices.values()] if row["device"] is None else [devices[row["device"]]]
        inside = [[each for each in some if row["window_start"] <= each[0] < row["window_end"]] for some in of]
        every = sorted(each for some in inside for each in some)
        for each in ASKED:
            if every:
                _JUDGES[each.kind](row, each, every, inside)
        for kind in PLACED if every else ():
            assert row[f"{kind}_low"] <= row[kind] <= row[f"{kind}_high"]
            at = min if kind in ("first", "argmin") else max
            truth = at(t for t, _ in every) if kind in ("first", "last") else at(x for _, x in every)
            at_it = [(t, x) for t, x in every if (t if kind in ("first", "last") else x) == truth]
            place = [x for _, x in at_it] if kind in ("first", "last") else [min(t for t, _ in at_it)]
            assert any(row[f"{kind}_low"] <= x <= row[f"{kind}_high"] for x in place)
    assert any(row[f"{kind}_exact"] for row in rows for kind in PLACED)
