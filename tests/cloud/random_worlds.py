"""Random streams as boards may send them: silences of months, buckets over weeks, and values of any magnitude.

Buckets are made by the agent's own builder, at random; merged at random, as a full outbox does, also across a silence.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from cloud_streams import Reading, Row, older

from sluicegate.format.bucket import FIELDS, Bucket, Builder, merge

MINUTE, DAY = 60_000_000, 86_400_000_000
SLIDES = (1, 7, 190, 1_000_003, MINUTE, 7 * MINUTE + 13, 60 * MINUTE)
WIDTHS = (1, 2, 3, 7, 24)


@dataclass(frozen=True)
class Cut:
    """How time is cut into windows, and from how many windows on a run of them is one row."""

    slide: int
    width: int
    origin: int
    most: int


@dataclass
class Board:
    """One device: its readings, and its incarnations as (number, center, buckets)."""

    device: str
    readings: list[Reading] = field(default_factory=list)
    incarnations: list[tuple[str, float, list[Bucket]]] = field(default_factory=list)

    def rows(self, rng: random.Random | None = None, old: float = 0.0) -> list[Row]:
        """Bucket rows as `read_buckets` gives them, a share of them as format 1 told them."""
        out = []
        for number, center, buckets in self.incarnations:
            head = {"device": self.device, "stream": "s", "incarnation": number, "key": None, "center": center}
            for bucket in buckets:
                row = {name: getattr(bucket, name) for name in FIELDS}
                out.append(head | {"chunk": ""} | (older(row) if rng and rng.random() < old else row))
        return out


def random_cut(rng: random.Random) -> Cut:
    """Odd slides and origins; `most` is small, or a week would be 10,000 rows of nothing."""
    slide = rng.choice(SLIDES)
    return Cut(slide, rng.choice(WIDTHS), rng.choice([0, 0, 13, -1_000, 5 * DAY + 1]), rng.choice([1, 5, 30, 200]))


def random_fleet(
    rng: random.Random, cut: Cut, boards: int, readings: int = 70, *, ordinary: bool = False
) -> list[Board]:
    """Boards of one stream, about the same time, whose values are of one kind; `ordinary`: of no great magnitude."""
    kind, since = rng.choice(ORDINARY if ordinary else KINDS), rng.choice([0, 1_760_000_000_000_000, -3 * DAY])
    return [_board(rng, cut, f"board-{i}", since, kind, readings) for i in range(boards)]


def _board(rng: random.Random, cut: Cut, device: str, since: int, kind: Any, readings: int) -> Board:
    out, now = Board(device), since + rng.randrange(cut.slide * cut.width * 20)
    for number in range(rng.choice([1, 1, 2, 3])):
        arrived, now = _arrived(rng, cut, now, kind, rng.randrange(1, readings))
        out.readings += arrived
        out.incarnations.append((f"{number:016x}", arrived[0][1], _buckets(rng, arrived)))
    return out


def _arrived(rng: random.Random, cut: Cut, now: int, kind: Any, count: int) -> tuple[list[Reading], int]:
    step, arrived, value = max(1, int(cut.slide * rng.choice([0.1, 0.7, 3]))), [], kind(rng)
    silent, late = rng.choice([0.0, 0.02, 0.1]), rng.choice([0.0, 0.05])
    for _ in range(count):
        if rng.random() < silent:
            now += rng.choice([cut.slide * rng.randrange(1, 300), rng.randrange(90 * DAY), cut.slide * cut.most])
        if rng.random() < 0.8:
            now += rng.randrange(step + 1)
        back = rng.choice([step * 5, cut.slide * 400, 40 * DAY]) if rng.random() < late else 0
        arrived.append((now - back, value()))
    return arrived, now


def _buckets(rng: random.Random, arrived: list[Reading]) -> list[Bucket]:
    """Of 1 … 30 readings, closed where time goes back, then some neighbours merged whatever their times."""
    builder, size, out = Builder(arrived[0][1]), rng.choice([1, 4, 30]), []
    left, newest = rng.randrange(1, size + 1), arrived[0][0]
    for time, value in arrived:
        if left == 0 or time < newest:
            out.append(builder.close())
            left, newest = rng.randrange(1, size + 1), time
        builder.add(value, time, rng.choice([0, 0, 0, 2]))
        left, newest = left - 1, max(newest, time)
    out.append(builder.close())
    for _ in range(rng.choice([0, 0, len(out) // 4, len(out) - 1])):
        at = rng.randrange(len(out) - 1) if len(out) > 1 else 0
        out[at : at + 2] = [merge(*out[at : at + 2])] if len(out) > 1 else out[at:]
    return out


def buckets_of(readings: list[Reading], size: int) -> list[Bucket]:
    """Buckets of `size` readings, whatever their times."""
    builder, out = Builder(readings[0][1]), []
    for number, (time, value) in enumerate(readings, 1):
        builder.add(value, time)
        if number % size == 0 or number == len(readings):
            out.append(builder.close())
    return out


def _whole(rng: random.Random) -> Any:
    level = rng.choice([0, 0, 1_000, -70])
    return lambda: float(level + rng.randrange(-9, 10))


def _sensor(rng: random.Random) -> Any:
    level, digits = rng.choice([20.0, 1e6, -1e4, 0.0]), rng.choice([1, 2, 15])
    return lambda: round(level + rng.gauss(0, 3), digits)


def _any_magnitude(rng: random.Random) -> Any:
    return lambda: rng.choice([1, 1, -1]) * rng.random() * 10.0 ** rng.randrange(-300, 281)


def _positive(rng: random.Random) -> Any:
    low, high = rng.choice([(-300, 281), (-3, 3), (200, 281), (-300, -200), (0, 1)])
    return lambda: (1 + rng.random()) * 10.0 ** rng.randrange(low, high)


def _constant(rng: random.Random) -> Any:
    value = rng.choice([3.5, 0.1, 0.0, -1e280, 1e-300, 7e200])
    return lambda: value


def _rain(rng: random.Random) -> Any:
    return lambda: rng.choice([0.0] * 9 + [0.01, 0.02, 0.13, 0.31, 1e9])


KINDS = (_whole, _sensor, _sensor, _any_magnitude, _positive, _positive, _constant, _rain)
ORDINARY = (_whole, _sensor)
