"""Intervals of many readings at once: the twin's bits for each, the exact result inside, no value beyond its limit."""

from __future__ import annotations

import math
import random
from array import array
from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import accumulate
from typing import Any

import pytest
from test_answered_runs import COMPILED, number, same
from twins import checks as pure

import sluicegate as sg
from sluicegate.core import checks

READINGS, SIZE = 4_000, 1_100
POLICIES: dict[str, Any] = {
    "count": sg.policies.count(SIZE),
    "count, hopping": sg.policies.count(SIZE, hop=137),
    "time": sg.policies.time(SIZE * 10),
    "time, hopping": sg.policies.time(SIZE * 10, hop=1370),
}
#: Magnitudes at which sums overflow, vanish below the least normal number, or lose all their digits.
SCALES = {"plain": 1.0, "vast": 2.0**940, "tiny": 2.0**-1060, "far": 1.0, "nothing": 0.0}


def waves(rng: random.Random, scale: float, offset: float) -> list[float]:
    """Noise about a mean that goes through zero and back, with plateaus on which extremes repeat."""
    plain = (round(rng.gauss(0, 9)) + 40.0 * math.sin(i / 310) if i // 200 % 3 else 40.0 for i in range(READINGS))
    return [x * scale + offset for x in plain]


def times(rng: random.Random) -> list[int]:
    """About ten apart, now and then several at once."""
    return list(accumulate(rng.choice([0, 5, 10, 10, 10, 25]) for _ in range(READINGS)))


def hold_to_the_twin(aggregates: Mapping[str, Any], policy: str, scale: str, asked: Callable[[int], bool]) -> None:
    """A batch's intervals are those of single readings, wherever `asked`: the twin's, to the bit."""
    rng = random.Random(policy + scale)
    values, at = waves(rng, SCALES[scale], 1e9 if scale == "far" else 0.0), times(rng)
    batch, single = (sg.Window(aggregates, policy=POLICIES[policy], histograms=[sg.Constrained(8)]) for _ in range(2))
    columns = batch.insert_many(values, at, bounds=True)
    for i, (x, t) in enumerate(zip(values, at, strict=True)):
        single.insert(x, t)
        if asked(i):
            for name, answer in single.query(bounds=True).items():
                found = [column[i] for column in columns[name]]
                assert all(map(same, found, map(number, answer[:3]))), (i, name, found, answer)
    assert batch.snapshot() == single.snapshot()


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("policy", POLICIES)
def test_each_interval_of_a_long_run_is_the_twins(policy: str, scale: str) -> None:
    """Buckets of some hundred readings, so that each is cut for as long, down to its last reading."""
    hold_to_the_twin(COMPILED, policy, scale, lambda i: i % 20 == 0 or i % 500 > 490)


SPREADS = {"variance": sg.variance(), "std": sg.std(ddof=1), "mean": sg.mean()}


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("policy", POLICIES)
def test_each_interval_of_a_spread_is_the_twins(policy: str, scale: str) -> None:
    """One answer in sixty, in a window that grows, and in a full one: cut to few readings of a bucket, and to many."""
    hold_to_the_twin(SPREADS, policy, scale, lambda i: i % 60 == 0 or i % 900 > 891)


@pytest.mark.parametrize("policy", POLICIES)
def test_the_exact_result_is_inside_and_the_limit_kept(policy: str) -> None:
    """Against fractions over a plain list, at each reading: sum and mean inside, what is given out within the limit."""
    rng = random.Random(policy)
    values, at, error = waves(rng, 1.0, 10.1), times(rng), 0.3
    rule = POLICIES[policy]
    aggregates = {"sum": sg.sum(), "mean": sg.mean(), "count": sg.count(), "range": sg.range()}
    histograms = [sg.SumLike(error=error, of="mean", withhold=True)]
    window = sg.Window(aggregates, policy=rule, histograms=histograms)
    columns = window.insert_many(values, at, bounds=True)
    sums, given, start = [Fraction(0), *accumulate(map(Fraction, values))], 0, 0
    for i in range(READINGS):
        start = oldest(rule, at, i, start)
        total, n = sums[i + 1] - sums[start], i + 1 - start
        if i % 11 == 0:
            held = values[start : i + 1]
            apart = Fraction(max(held)) - Fraction(min(held))
            assert columns["range"].low[i] <= apart <= columns["range"].high[i], i
        for name, exact in (("sum", total), ("mean", total / n), ("count", Fraction(n))):
            assert columns[name].low[i] <= exact <= columns[name].high[i], (i, name)
        mean = columns["mean"].value[i]
        if not math.isnan(mean):
            given += 1
            assert abs(Fraction(mean) - total / n) <= Fraction(error) * abs(total / n), i
    assert READINGS // 2 < given < READINGS - 100
    assert window.footprint.created < READINGS // 20


def oldest(rule: Any, at: list[int], i: int, start: int) -> int:
    """The first reading that is inside after reading i."""
    last = i + 1 if isinstance(rule, sg.policies.Count) else at[i]
    if rule.hop > 1:
        last -= last % rule.hop
    if isinstance(rule, sg.policies.Count):
        return max(0, last - rule.limit)
    while at[start] <= last - rule.span:
        start += 1
    return start


def test_withholding_many_at_once_is_the_twins() -> None:
    """Random ends about zero, equal ends, infinities and NaN: compiled and readable rule leave out the same values."""
    rng = random.Random(11)
    odd = [0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -1.0, 5e-324]
    for error, atol in ((0.1, 0.0), (0.0, 0.2), (0.3, 0.01)):
        rows = [
            sorted(rng.choice(odd) if rng.random() < 0.2 else rng.gauss(0.4, 0.05) for _ in range(3))
            for _ in range(997)
        ]
        low, value, high = (array("d", column) for column in zip(*rows, strict=True))
        twin = value[:]
        checks.withhold(value, low, high, error, atol)
        pure.withhold(twin, low, high, error, atol)
        assert all(map(same, value, twin))
        assert 100 < sum(map(math.isnan, value)) < 900
