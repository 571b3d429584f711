"""Buckets by their readings promise to be the same to the bit once they are folded again, and that others are told."""

from __future__ import annotations

import random
import struct
from array import array
from typing import Any

import buckets_twin as pure
import pytest

from sluicegate.format import _bucket as compiled
from sluicegate.format.record import Bucket

Closed = tuple[int, int, bytes, bytes | None]


@pytest.fixture(params=[compiled, pure], ids=["compiled", "pure"])
def implementation(request: pytest.FixtureRequest) -> Any:
    """The promise holds for the compiled loops and for their twin."""
    return request.param


def closed(seed: int, count: int, center: float = 1.5) -> list[Closed]:
    """Buckets of some readings each, some late, in doubt, out of order, after a gap, without a geometric mean."""
    rng, builder, time, found = random.Random(seed), compiled.Builder(center, seed), 1_000, list[Closed]()
    for _ in range(count):
        times, values = array("q"), array("d")
        for _ in range(rng.randrange(1, 9)):
            time += rng.choice([0, 1, 5, -3])
            times.append(time)
            values.append(rng.choice([rng.uniform(-5, 5), rng.uniform(0.1, 9), float(rng.randrange(-3, 4)), -0.0]))
            builder.add(values[-1], time, rng.choice([0, 0, 2, -1]), int(rng.random() < 0.2))
        first, n, _, bucket = builder.close_packed()
        found.append((first, n, bucket, struct.pack(f"<{n}q{n}d", *times, *values)))
    return found


@pytest.mark.parametrize("seed", range(30))
def test_buckets_come_back_to_the_bit(implementation: Any, seed: int) -> None:
    """Whatever they were folded of; compiled and pure say the same of them."""
    buckets = closed(seed, seed % 7)
    found = implementation.unfold(buckets, 1.5)
    assert implementation.refold(1.5, *found) == [(*bucket, 1.5) for bucket in buckets]
    assert found == pure.unfold(buckets, 1.5)


def test_buckets_that_readings_do_not_make_are_told(implementation: Any) -> None:
    """Merged ones, of another center, without their readings, with something behind them, damaged."""
    buckets = closed(3, 6)
    (first, n, a, of_a), (_, m, b, of_b) = buckets[:2]
    half = [(each[: len(each) // 2], each[len(each) // 2 :]) for each in (of_a or b"", of_b or b"")]
    singles = b"".join(part for which in (0, 1) for part in (half[0][which], half[1][which]))
    merged = (first, n + m, compiled.merge_packed([a, b]), singles)
    another = Bucket.unpack(a)
    damaged = (first, n, another._replace(m2=another.m2 + 1.0).pack(), of_a)
    huge = (first, n, a, struct.pack(f"<{2 * n}q", *[1 << 62] * 2 * n))
    for other in ((first, n, a, None), (first, n, a + b"x", of_a), (first, n + 1, a, of_a), merged, damaged, huge):
        assert implementation.unfold([*buckets[2:], other], 1.5) is None
    assert implementation.unfold(buckets, 1.25) is None


def test_columns_of_no_buckets_are_refused(implementation: Any) -> None:
    """Readings too few or too many, or numbers that cannot be folded."""
    columns, times, values = implementation.unfold(closed(5, 4), 1.5)
    for short in ((times[:-1], values[:-1]), (times + times[:1], values + values[:1])):
        with pytest.raises(ValueError, match="readings"):
            implementation.refold(1.5, columns, *short)
    firsts, counts, *rest = columns
    for count in (0, -1):
        with pytest.raises(ValueError, match="readings"):
            implementation.refold(1.5, (firsts, array("q", [count, *counts[1:]]), *rest), times, values)
    with pytest.raises((ValueError, OverflowError)):
        implementation.refold(1.5, columns, array("q", [1 << 62]) + times[1:], values)
