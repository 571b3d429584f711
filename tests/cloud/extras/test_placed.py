"""First, last and the times of extremes from buckets: the definition over all readings lies in every interval."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import number

pytest.importorskip("pyspark", reason="the cloud's tests need the extra `cloud`")

from sluicegate.format.bucket import ORDERED, Bucket, Builder, merge
from sluicegate_cloud.extras.answers import answer
from sluicegate_cloud.extras.asked import sorted_out
from sluicegate_cloud.extras.piece import Piece, Share, added
from sluicegate_cloud.extras.placed import PLACED, Record
from sluicegate_cloud.extras.windows import shares
from sluicegate_cloud.grid import Grid

ASKED = sorted_out(PLACED)[1]
Reading = tuple[int, int, float]  # time, ordinal, value
Column = dict[str, Any]


def truth(kind: str, inside: Sequence[Reading]) -> float:
    """By (time, ordinal), from the readings themselves."""
    if kind in ("first", "last"):
        return (min if kind == "first" else max)(inside)[2]
    extreme = (min if kind == "argmin" else max)(x for _, _, x in inside)
    return min(t for t, _, x in inside if x == extreme)


def device(rng: random.Random, count: int, late: float = 0.2) -> tuple[list[Reading], list[Bucket]]:
    """Readings, some of equal times and values, some late; buckets of theirs, of which some neighbours were merged."""
    time, readings, builder, buckets = rng.randrange(500), list[Reading](), Builder(20.0), list[Bucket]()
    for ordinal in range(count):
        time += rng.choice((0, 1, 7, 20, 90))
        at = max(0, time - rng.choice((60, 300))) if rng.random() < late else time
        value = float(rng.randrange(16, 24)) if rng.random() < 0.7 else round(rng.gauss(20, 3), 1)
        readings.append((at, ordinal, value))
        builder.add(value, at)
        if builder.bucket is not None and builder.bucket.n >= rng.choice((1, 2, 5, 12)):
            buckets.append(builder.close())
    if builder.bucket is not None:
        buckets.append(builder.close())
    found: list[Bucket] = []
    for bucket in buckets:
        if found and rng.random() < 0.2:
            found[-1] = merge(found[-1], bucket)
        else:
            found.append(bucket)
    return readings, found


def as_pieces(buckets: Sequence[Bucket], doubt: Sequence[int]) -> list[Piece]:
    """As the cloud reads the rows of one device, by time."""
    found = []
    for b, doubted in zip(buckets, doubt, strict=True):
        times, ordered = (b.t_first, b.t_last, b.first), bool(b.flags & ORDERED)
        record = Record(*times, b.n, doubted, b.low, b.high, ordered, b._asdict())
        found.append(
            Piece(
                b.t_first,
                b.t_last,
                ("", b.first),
                b.n,
                b.n - doubted,
                b.low,
                b.high,
                ordered,
                (b"",) * len(ASKED),
                record,
            )
        )
    return sorted(found, key=lambda piece: (piece.t_first, piece.first))


def held(share: Share, of: Sequence[Sequence[Reading]]) -> list[Column]:
    """Each column beside the definition; what each said."""
    found = []
    for place, each in enumerate(ASKED):
        told = answer(share, place, each)
        assert {*told} == {*each.columns}
        found.append(told)
        inside = [r for readings in of for r in readings if share.start <= r[0] < share.end]
        value, low, high, exact = (told[f"{each.kind}{end}"] for end in ("", "_low", "_high", "_exact"))
        if not inside:
            assert not exact
            continue
        expected = [truth(each.kind, inside)]
        if len(of) > 1 and each.kind in ("first", "last"):  # of equal times in several devices: any
            ends = [truth(each.kind, some) for some in _at_the_end(each.kind, of, share)]
            expected = ends
        assert all(low <= x <= high for x in expected), (each.kind, told, expected)
        assert low <= value <= high
        assert exact == (low == high) or not exact
        if exact:
            assert {value} == {*expected}
    return found


def _at_the_end(kind: str, of: Sequence[Sequence[Reading]], share: Share) -> list[list[Reading]]:
    """The readings of each device that has the least, or greatest, time of all."""
    some = [[r for r in readings if share.start <= r[0] < share.end] for readings in of]
    pick = min if kind == "first" else max
    end = pick(r[0] for readings in some for r in readings)
    return [same for readings in some if (same := [r for r in readings if r[0] == end])]


@given(st.integers(0, 10**9))
@settings(max_examples=number(150, 60), deadline=None)
def test_the_definition_lies_within(seed: int) -> None:
    """Each window of two devices and of both, whatever was merged or late."""
    rng = random.Random(seed)
    late = rng.choice((0.0, 0.05, 0.3))
    grid = Grid(rng.choice((40, 150, 1000)), rng.choice((1, 2, 5)), rng.randrange(50))
    every, of = dict[int, Share](), []
    for _ in range(2):
        readings, buckets = device(rng, rng.randrange(1, 60), late)
        of.append(readings)
        for share in shares(as_pieces(buckets, [0] * len(buckets)), grid, ASKED):
            held(share, [readings])
            every[share.start] = added(every[share.start], share, ASKED) if share.start in every else share
    for share in every.values():
        held(share, of)


@given(st.integers(0, 10**9))
@settings(max_examples=number(60, 30), deadline=None)
def test_readings_in_doubt_may_not_count(seed: int) -> None:
    """Whichever of a bucket's readings are repeats, as many as are in doubt: the others' answer lies within."""
    rng = random.Random(seed)
    readings, buckets = device(rng, 30)
    doubt = [rng.randrange(b.n + 1) if rng.random() < 0.4 else 0 for b in buckets]
    gone = {o for b, n in zip(buckets, doubt, strict=True) for o in rng.sample(range(b.first, b.first + b.n), n)}
    left = [r for r in readings if r[1] not in gone]
    for share in shares(as_pieces(buckets, doubt), Grid(150, 2), ASKED):
        held(share, [left])


def test_what_is_whole_is_exact() -> None:
    """Where no edge cuts a bucket and all are in order: the four to the bit."""
    for seed in range(40):
        readings, buckets = device(random.Random(seed), 40, late=0.0)
        assert all(b.flags & ORDERED for b in buckets)
        (share,) = shares(as_pieces(buckets, [0] * len(buckets)), Grid(10**6, 1), ASKED)
        for told, kind in zip(held(share, [readings]), PLACED, strict=True):
            assert told[f"{kind}_exact"]


def test_an_edge_that_loses_no_extreme_is_exact() -> None:
    """The extremes' times are known where they lie inside, though the window cuts their bucket."""
    builder = Builder(0.0)
    for time, value in ((10, 5.0), (20, 9.0), (30, 1.0), (40, 4.0)):
        builder.add(value, time)
    pieces = as_pieces([builder.close()], [0])
    told = {share.start: [answer(share, i, each) for i, each in enumerate(ASKED)] for share in
            shares(pieces, Grid(16, 2, 0), ASKED)}  # fmt: skip
    first, last, least, most = told[16]
    assert (least["argmin"], least["argmin_exact"], most["argmax"], most["argmax_exact"]) == (30, True, 20, True)
    assert (last["last"], last["last_exact"], first["first_exact"]) == (4.0, True, False)
    assert first["first_low"] <= 9.0 <= first["first_high"]
