"""The default engine answers as the recalculating oracle does, at every step; all others: test_engines_lockstep.py."""

from __future__ import annotations

from typing import Any

import pytest
from exact_windows import ALL, Exact
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import number

import sluicegate as sg

pytestmark = pytest.mark.usefixtures("implementation_of_window")


def agree(a: sg.Window, b: sg.Window) -> None:
    """Same answers (readings here are whole numbers, so sums are exact), same shape, both whole."""
    a.verify()
    b.verify()
    assert a.query() == b.query()
    assert len(a) == len(b)


def pair(aggregates: Any, policy: Any, **options: Any) -> tuple[sg.Window, sg.Window]:
    """The same window by both engines."""
    oracle, tree = (sg.Window(aggregates, policy=policy, engine=engine, **options) for engine in ("recalc", "amta"))
    return oracle, tree


@pytest.mark.parametrize("size", [*range(1, 34), 63, 64, 65, 99])
def test_every_window_size(size: int) -> None:
    """A count window of many sizes fills, slides through all of its states, and agrees throughout."""
    windows = pair({"sum": sg.sum(), "max": sg.max(), "first": sg.first()}, sg.policies.count(size))
    for i in range(2 * size + 70):
        for window in windows:
            window.insert(float(i * 7919 % 101 - 50))
        agree(*windows)


class Leave:
    """Evicts as many of the oldest readings as it is told."""

    remaining = monotone = True

    def __init__(self) -> None:
        self.keep = 10**9

    def __call__(self, total: Any, old: Any) -> bool:
        """Whether the readings after `old` are at least those to keep."""
        return bool(total.count - old.count >= self.keep)


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 7, 8, 9, 17, 33])
@pytest.mark.parametrize("monotone", [True, False], ids=["bulk", "one by one"])
def test_every_eviction_length(size: int, monotone: bool) -> None:
    """From windows of many sizes each number of readings leaves at once, the last one too, and filling goes on."""
    for length in range(size + 2):
        rules = Leave(), Leave()
        windows = [
            sg.Window(
                {"sum": sg.sum(), "min": sg.min()}, policy=sg.policies.custom(rule, monotone=monotone), engine=engine
            )
            for rule, engine in zip(rules, ("recalc", "amta"), strict=True)
        ]
        for step in range(size + 12):
            for window, rule in zip(windows, rules, strict=True):
                rule.keep = size + 1 - length if step == size else 10**9
                window.insert(float(step * 31 % 17))
            agree(*windows)


Readings = st.lists(
    st.tuples(st.integers(-9, 9).map(float), st.one_of(st.integers(0, 5), st.integers(-20, 60))), max_size=120
)
Policies = st.one_of(st.integers(1, 40).map(sg.policies.count), st.integers(1, 90).map(sg.policies.time))


@settings(max_examples=number(150, 70), deadline=None)
@given(Readings, Policies, st.sampled_from([0, 0, 4, 5, 7, 8, 16]))
def test_random_streams(steps: list[tuple[float, int]], policy: Any, limit: int) -> None:
    """Any stream, policy and bucket limit: both engines keep the same leaves and give the same answers."""
    histograms = [sg.Constrained(limit)] if limit else []
    windows, exact, time = pair(ALL, policy, histograms=histograms), Exact(policy), 0
    for value, tick in steps:
        time += tick
        for window in windows:
            window.insert(value, time)
        exact.insert(value, time)
        agree(*windows)
        if not limit:
            assert windows[1].query() == exact.results()
    shapes = [[(b.count, b.t_first, b.t_last, b.ordinal, b.results) for b in window.buckets()] for window in windows]
    assert shapes[0] == shapes[1]


Rows = st.lists(st.tuples(*[st.integers(-99, 99).map(float)] * 3), max_size=80)


@settings(max_examples=60, deadline=None)
@given(Rows, st.integers(1, 20), st.sampled_from([0, 5, 9]))
def test_several_dimensions_are_several_windows(rows: list[tuple[float, ...]], size: int, limit: int) -> None:
    """One window over three dimensions answers as three windows over one each."""
    histograms, names = [sg.Constrained(limit)] if limit else [], ("a", "b", "c")
    together = sg.Window(
        {f"{kind} {name}": getattr(sg, kind)(name) for name in names for kind in ("mean", "max", "argmin")},
        policy=sg.policies.count(size), histograms=histograms, center=0.0 if limit == 99 else None,
    )  # fmt: skip
    alone = {
        name: sg.Window({kind: getattr(sg, kind)() for kind in ("mean", "max", "argmin")},
                        policy=sg.policies.count(size), histograms=histograms)
        for name in names
    }  # fmt: skip
    for row in rows:
        together.insert(dict(zip(names, row, strict=True)))
        for name, x in zip(names, row, strict=True):
            alone[name].insert(x)
    for name in names:
        for kind, value in alone[name].query().items():
            assert together.query()[f"{kind} {name}"] == value


def test_a_policy_over_results() -> None:
    """AMTA's running example: the sum of what remains stays at most 10, enforced in bulk and one by one alike."""

    def over_ten(total: Any, old: Any) -> bool:
        return bool(total.sum > 10)

    def after(total: Any, old: Any) -> bool:
        return bool(total.sum - old.sum + old.last > 10)

    single = sg.Window({"sum": sg.sum()}, policy=over_ten)
    bulk = sg.Window(
        {"sum": sg.sum(), "last": sg.last()}, policy=sg.policies.custom(after, monotone=True, remaining=True)
    )
    for i in range(300):
        single.insert(float(i % 4))
        bulk.insert(float(i % 4))
        assert single.query()["sum"] == bulk.query()["sum"] <= 10
        bulk.verify()


def test_newer_than_the_maximum() -> None:
    """A policy that evicts all before the maximum answers the same maximum as the window that keeps them."""

    def older_than_maximum(total: Any, old: Any) -> bool:
        return bool(old.max < total.max)

    slim = sg.Window({"max": sg.max()}, policy=sg.policies.custom(older_than_maximum, monotone=True))
    full = sg.Window({"max": sg.max()}, policy=sg.policies.count(10**6))
    for i in range(500):
        x = float(i * 7919 % 97 + i / 5)
        slim.insert(x)
        full.insert(x)
        slim.verify()
        assert slim.query() == full.query()
    assert len(slim) < 250
