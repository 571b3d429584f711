"""The laws of every aggregate: combining is associative, respects the order of readings, and deducting undoes it."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sluicegate as sg
from sluicegate.monoids.layout import Component, Op
from sluicegate.monoids.monoid import KINDS, OBJECTS, PAIRED
from sluicegate.reference import wide

pytestmark = pytest.mark.usefixtures("implementation_of_window")
EVERY = {
    **{name: getattr(sg, name)() for name in KINDS[:15]},
    "sample": sg.variance(ddof=1), "compensated": sg.sum(compensated=True), "rate": sg.rate(),
    "frequency": sg.frequency(), "longest_run": sg.longest_run(), "histogram": sg.histogram([1, 3, 4, 9]),
    "bloom_filter": sg.bloom_filter(192, 5), "top_k": sg.top_k(4), "distinct_count": sg.distinct_count(lg_k=8),
    "time_weighted_mean": sg.time_weighted_mean(), "slope": sg.slope(), "intercept": sg.intercept(at="last"),
    "count_min": sg.count_min(16, 2),
}  # fmt: skip
ROUNDED = ("variance", "std", "sample", "geometric_mean", "slope", "intercept")
Reading = tuple[float, int]
Readings = st.tuples(st.integers(1, 12).map(float), st.integers(0, 50))
Parts = st.lists(st.lists(Readings, min_size=1, max_size=12), min_size=3, max_size=3)


def test_every_kind_is_here() -> None:
    """A kind that is added gets its laws tested."""
    assert {monoid.kind for monoid in EVERY.values()} == set(KINDS) - {"compiled", *OBJECTS, *PAIRED}


def window() -> sg.Window:
    """All of them, over all readings, around one center; a callable policy has each partial know its count."""
    return sg.Window(EVERY, policy=sg.policies.custom(lambda total, old: False, monotone=True), center=0.0)


def fold(readings: list[Reading]) -> tuple[bytes, dict[str, Any]]:
    """The partial of readings one after the other, and the answers."""
    tested = window()
    for reading in readings:
        tested.insert(*reading)
    return tested._core.total(), tested.query()


@settings(max_examples=30, deadline=None)
@given(Parts)
def test_associative(parts: list[list[Reading]]) -> None:
    """(a b) c and a (b c) answer as the readings one by one do, sums of whole numbers to the bit."""
    core = window()._core
    (a, _), (b, _), (c, _) = (fold(part) for part in parts)
    exact = fold([reading for part in parts for reading in part])[1]
    for partial in (core.combine(core.combine(a, b), c), core.combine(a, core.combine(b, c))):
        found = dict(zip(EVERY, core.lower(partial), strict=True))
        for name, value in exact.items():
            if name in ROUNDED and value is not None:
                assert found[name] == pytest.approx(value, rel=1e-12, abs=1e-12), name
            else:
                assert found[name] == value, name


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(-1e15, 1e15), min_size=2, max_size=40), st.integers(1, 39))
def test_a_compensated_sum_is_nearly_associative(values: list[float], at: int) -> None:
    """Whatever the order of combining, what is lost is beyond 2^-100 of the summands."""
    total = Component(Op.TOTAL, 0, 0)
    lifted = [wide.lift(total, [x], 0, 0) for x in values]
    at = at % (len(values) - 1) + 1

    def fold_slots(parts: list[Any]) -> Any:
        out = parts[0]
        for part in parts[1:]:
            out = wide.combine(total, out, part)
        return out

    old, rest = fold_slots(lifted[:at]), fold_slots(lifted[at:])
    whole, scale = wide.combine(total, old, rest), sum(map(abs, values)) * 2.0**-100
    assert abs(math.fsum([*whole, *(-x for x in values)])) <= scale


def test_order_matters_where_it_says_so() -> None:
    """Swapping two parts changes what depends on order, and nothing else."""
    a, b = [(1.0, 5), (2.0, 6)], [(3.0, 1), (1.0, 2)]
    core = window()._core
    there, back = (dict(zip(EVERY, core.lower(core.combine(*pair)), strict=True))
                   for pair in ((fold(a)[0], fold(b)[0]), (fold(b)[0], fold(a)[0])))  # fmt: skip
    assert {name for name in EVERY if there[name] != back[name]} == {
        "first", "last", "rate", "longest_run", "top_k", "time_weighted_mean",
    }  # fmt: skip
