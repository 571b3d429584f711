"""Whichever readings of a part are inside, their sum and mean lie within what is said."""

from __future__ import annotations

import random
from functools import reduce
from math import inf
from operator import add

import pytest

from sluicegate.bounds.sums import Inside, Subset, mean_interval, sum_interval


@pytest.mark.parametrize("seed", range(4))
def test_any_so_many_of_a_parts_readings_lie_within(seed: int) -> None:
    """All counts that may be, with the least and the greatest readings: in eighths, so that no sum is rounded."""
    rng = random.Random(seed)
    for _ in range(250):
        inner, some = ([rng.randrange(-24, 25) / 8 for _ in range(rng.randint(1, 7))] for _ in range(2))
        least, most = sorted(rng.randint(0, len(some)) for _ in range(2))
        inside = Inside(len(inner), sum(inner), min(inner), max(inner))
        part = Subset(len(some), sum(some), min(some), max(some), least, most, rng.randint(least, most))
        sums, means = sum_interval(inside, part), mean_interval(inside, part)
        some.sort()
        for count in range(least, most + 1):
            for taken in (some[:count], some[len(some) - count :]):
                total = inside.total + sum(taken)
                assert sums.low <= total <= sums.high
                assert means.low <= total / (inside.n + count) <= means.high
        assert sums.exact == means.exact == (least == most and most in (0, len(some)))


def test_rounding_on_the_way_to_a_sum_is_within() -> None:
    """A sum in another order, whose small ones are lost beside a great one, is as good as ours."""
    readings = [1e16, *[1.0] * 8]
    other = reduce(add, readings)  # the great one first: none of the small ones is seen
    found = sum_interval(Inside(len(readings), 1e16 + 8.0, 1.0, 1e16))
    assert found.low <= other < 1e16 + 8.0 <= found.high < inf
