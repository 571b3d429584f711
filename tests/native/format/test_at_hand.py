"""What is not looked at while a chunk is packed would have changed nothing: whole buckets are longer, sums the same."""

from __future__ import annotations

import random
from array import array

import pytest

from sluicegate.format import at_hand, chunk, payload
from sluicegate.format.bucket import Bucket, Builder
from sluicegate.format.payload import Readings

CENTER = 3.0


def world(seed: int) -> tuple[list[Bucket], list[Readings | None]]:
    """Buckets of a stream with their readings: steady, noisy or repeating values, times in order or not."""
    rng, builder, time = random.Random(seed), Builder(CENTER), 1_000
    kind, size = rng.randrange(4), rng.choice([1, 2, 8, 16])
    buckets, readings = list[Bucket](), list[Readings | None]()
    for _ in range(rng.choice([1, 5, 40])):
        times, values = array("q"), array("d")
        for i in range(size):
            time += rng.choice([1000, 1000, 1003, -7 if seed % 3 == 0 else 5])
            times.append(time)
            values.append((4.0, rng.gauss(0, 1), float(i % 3), round(rng.uniform(1, 2), 2))[kind])
            builder.add(values[-1], time, int(seed % 5 == 0), int(seed % 7 == 0))
        buckets.append(builder.close())
        readings.append((times, values) if seed % 4 or rng.random() < 0.5 else None)
    return buckets, readings


@pytest.mark.parametrize("seed", range(120))
def test_readings_of_all_buckets_are_usable_where_those_of_each_are(seed: int) -> None:
    """One pass over all says what one bucket after the other says; it says nothing where times go back."""
    buckets, readings = world(seed)
    each = [at_hand._usable(b, r, CENTER) for b, r in zip(buckets, readings, strict=True)]
    assert at_hand.usable(buckets, readings, CENTER, None) == each
    if seed % 3 and seed % 4:
        assert at_hand._all_usable(buckets, readings, CENTER) == each


@pytest.mark.parametrize("change", ["m2", "total", "gap", "flags", "doubt"])
def test_readings_that_make_another_bucket_are_not_usable(change: str) -> None:
    """Whatever of it is another: sums beyond rounding, flags that the readings contradict, some of them in doubt."""
    buckets, readings = next(found for seed in (1, 2, 11, 13) if (found := world(seed))[0][0].n > 2)
    other = buckets[0]._replace(**{change: {"flags": 0, "doubt": 1}.get(change, getattr(buckets[0], change) + 1)})
    each = [at_hand._usable(b, r, CENTER) for b, r in zip([other, *buckets[1:]], readings, strict=True)]
    assert at_hand.usable([other, *buckets[1:]], readings, CENTER, None) == each
    assert (each[0] is None) == (change != "gap")


@pytest.mark.parametrize("seed", range(120))
def test_whole_buckets_take_no_less_than_is_said(seed: int) -> None:
    """So a document with readings that is no longer is the shortest."""
    buckets, readings = world(seed)
    usable = at_hand.usable(buckets, readings, CENTER, None)
    only = [singles if bucket.n == 1 else None for bucket, singles in zip(buckets, usable, strict=True)]
    assert payload.least_whole(buckets) <= len(chunk._payload(buckets, only)[2])
