"""Random devices whose buckets carry what windows of the cloud are answered from: readings, buckets, and their pieces.

Readings have a time, an incarnation, an ordinal and two values. Some come late, some at one time; buckets of several
are merged whatever their times, values are of any magnitude, and several incarnations may overlap.
"""

from __future__ import annotations

import random
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from sluicegate.format.bucket import ORDERED, Bucket, Builder, merge
from sluicegate.format.pairs import PAIR, Moments, PairColumn
from sluicegate_cloud.extras.asked import Asked, sorted_out
from sluicegate_cloud.extras.piece import Piece
from sluicegate_cloud.extras.placed import PLACED, Record

_NAMES = (*PLACED, "slope(1s)", "time_weighted_mean", "covariance", "correlation", "quantiles(8)", "distinct_count(8)",
          "top_k(3)", "count_min(32,2)", "bloom_filter(256,3)")  # fmt: skip
#: What is asked: an intercept is one column, so both of its forms are not asked at once.
ASKED = tuple(sorted_out((*_NAMES, f"intercept({at})"))[1] for at in ("first", "last"))
_EXTRAS = {each.carried: each for asked in ASKED for each in asked if each.carried}
Values = Callable[[], float]


class Reading(NamedTuple):
    """In the order in which readings of one device are told apart: by time, then as they came."""

    time: int
    incarnation: int
    ordinal: int
    x: float
    y: float


class Carrying(NamedTuple):
    """A bucket, what it carries by name, and its readings."""

    bucket: Bucket
    parts: dict[str, bytes]
    readings: list[Reading]


@dataclass
class Device:
    """All readings, and all buckets."""

    readings: list[Reading] = field(default_factory=list)
    buckets: list[Carrying] = field(default_factory=list)

    def pieces(self, rng: random.Random, asked: Sequence[Asked], doubt: float) -> tuple[list[Piece], list[Reading]]:
        """As the cloud reads them, a share of the buckets in doubt; and the readings that are no repeats after all."""
        found: list[tuple[int, Piece]] = []
        gone: set[Reading] = set()
        for bucket, parts, readings in self.buckets:
            number, doubted = readings[0].incarnation, 0
            if rng.random() < doubt:
                doubted = rng.randrange(bucket.n + 1)
                gone |= {*rng.sample(readings, rng.randrange(doubted + 1))}
            ends, ordered = (bucket.low, bucket.high), bool(bucket.flags & ORDERED)
            line, times = (f"{number:016x}", None), (bucket.t_first, bucket.t_last)
            record = Record(*times, bucket.first, bucket.n, doubted, *ends, ordered, bucket._asdict(), line)
            mine = tuple(parts[each.carried] if each.carried else b"" for each in asked)
            found.append(
                (
                    number,
                    Piece(*times, (line[0], bucket.first), bucket.n, bucket.n - doubted, *ends, ordered, mine, record),
                )
            )
        found.sort(key=lambda one: (one[1].t_first, one[0], one[1].first))
        return [piece for _, piece in found], [each for each in self.readings if each not in gone]


def random_device(rng: random.Random) -> Device:
    """Up to 150 readings in up to three incarnations."""
    out, values = Device(), (_values(rng), _values(rng))
    now = rng.choice([0, 0, 1_760_000_000_000_000]) + rng.randrange(300)
    for number in range(rng.choice([1, 1, 1, 2, 3])):
        now -= rng.randrange(300) if number and rng.random() < 0.3 else 0
        runs = [*_runs(rng, [*_readings(rng, now, number, values)])]
        out.readings += [each for run in runs for each in run]
        out.buckets += _merged(rng, [*_folded(runs)])
        now = max(each.time for each in out.readings)
    return out


def _values(rng: random.Random) -> Values:
    level, scale = rng.choice([0.0, 1e6, 1e9, -1e12]), rng.choice([1e140, 1e-160, 1e160, 1e-140])
    constant = rng.choice([0.0, 0.1, -3.5, 1e200, 1e-200])
    return rng.choice([
        lambda: float(rng.randrange(16, 24)),
        lambda: round(rng.gauss(20, 3), 1),
        lambda: level + round(rng.gauss(0, 1), 3),
        lambda: rng.choice([1, -1]) * rng.random() * 10.0 ** rng.randrange(-300, 281),
        lambda: constant,
        lambda: rng.choice([0.0, -0.0, 1.0, -1.0]),
        lambda: scale * rng.gauss(3, 1),
    ])  # fmt: skip


def _readings(rng: random.Random, now: int, number: int, values: tuple[Values, Values]) -> Iterator[Reading]:
    late = rng.choice([0.0, 0.0, 0.05, 0.3])
    for ordinal in range(rng.randrange(1, 50)):
        now += rng.choice((0, 1, 7, 20, 90))
        back = rng.choice((60, 300)) if rng.random() < late else 0
        yield Reading(now - back, number, ordinal, values[0](), values[1]())


def _runs(rng: random.Random, readings: list[Reading]) -> Iterator[list[Reading]]:
    """As buckets are closed: by size, and mostly where time goes back."""
    size, strict, run = rng.choice([1, 3, 12]), rng.random() < 0.6, list[Reading]()
    for each in readings:
        if run and (len(run) >= rng.randrange(1, size + 1) or (strict and each.time < run[-1].time)):
            yield run
            run = []
        run.append(each)
    yield run


def _folded(runs: list[list[Reading]]) -> Iterator[Carrying]:
    builder = Builder(runs[0][0].x)
    for run in runs:
        for each in run:
            builder.add(each.x, each.time)
        values, times = array("d", [each.x for each in run]), array("q", [each.time for each in run])
        parts = {name: one.fold(values, times) for name, one in _EXTRAS.items() if name != PAIR}
        moments = Moments()
        moments.add(PairColumn(values, [each.y for each in run]), 0, len(run))
        yield Carrying(builder.close(), parts | {PAIR: moments.pack()}, run)


def _merged(rng: random.Random, buckets: list[Carrying]) -> list[Carrying]:
    """Some neighbours as one, as a full outbox has them."""
    for _ in range(rng.choice([0, 0, len(buckets) // 3, len(buckets) - 1])):
        if len(buckets) > 1:
            at = rng.randrange(len(buckets) - 1)
            a, b = buckets[at : at + 2]
            parts = {name: _EXTRAS[name].combine(of, b.parts[name]) for name, of in a.parts.items()}
            buckets[at : at + 2] = [Carrying(merge(a.bucket, b.bucket), parts, a.readings + b.readings)]
    return buckets
