"""query(bounds=True) always contains the exact result: many windows against the plain readings themselves."""

from __future__ import annotations

import math
import random
import zlib
from array import array
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from exact_windows import ALL, CLOCKS, SHAPES, Exact, readings
from thorough import WINDOWS

import sluicegate as sg
from sluicegate.bounds.intervals import exactly
from sluicegate.monoids import CERTAIN, KINDS, ROUNDED, Monoid
from sluicegate.monoids.layout import Layout

AT_ONCE = 500


def some_policy(rng: random.Random) -> sg.policies.Policy:
    """A count or a time policy of a length that the streams reach."""
    limit = rng.choice([1, 2, 3, 5, 8, 17, 40, 64, 100, 150])
    return sg.policies.count(limit) if rng.random() < 0.5 else sg.policies.time(limit * rng.choice([1, 3, 5]))


def outside(shape: Callable[[random.Random, int], float], clock: str, names: tuple[str, ...], seed: int) -> list[str]:
    """Run one stream; every result that is not inside its interval, every value that is not, every false `exact`."""
    rng, found = random.Random(seed), []
    policy, limit = some_policy(rng), rng.choice([4, 5, 6, 8, 16, 33, 64])
    window = sg.Window({name: ALL[name] for name in names}, policy=policy, histograms=[sg.Constrained(limit)])
    exact = Exact(policy)
    for value, time in readings(rng, shape, clock, AT_ONCE):
        window.insert(value, time)
        exact.insert(value, time)
        inside = exact.values[exact.begin :]
        for name, (answer, low, high, sure) in window.query(bounds=True).items():
            true = _result(exact, name, inside)
            if not inside:
                continue
            if not low <= true <= high or not low <= answer <= high:
                found.append(
                    f"{name} {true!r} or {answer!r} outside [{low!r}, {high!r}], {policy}, {limit}, seed {seed}"
                )
            elif sure and name in ("count", "min", "max", "argmin", "argmax", "first", "last") and answer != true:
                found.append(f"{name} {answer!r} said to be exact, is {true!r}, {policy}, {limit}, seed {seed}")
    return found


def _result(exact: Exact, name: str, inside: list[float]) -> Any:
    if not inside:
        return None
    if name == "mean":
        return math.fsum(inside) / len(inside)
    if name in ("min", "max"):
        return max(inside) if name == "max" else min(inside)
    return exact.results()[name]


def _seed(text: str) -> int:
    return zlib.crc32(text.encode()) * 1000


@pytest.mark.slow
@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_many_windows_lie_inside(shape: Callable[[random.Random, int], float], clock: str) -> None:
    """Over all shapes and clocks together WINDOWS windows: exact means, sums and extremes lie inside, always."""
    runs = -(-WINDOWS // (AT_ONCE * len(SHAPES) * len(CLOCKS)))
    for run in range(runs):
        name = ("mean", "max", "sum", "min")[run % 4]
        assert outside(shape, clock, (name,), _seed(shape.__name__ + clock) + run) == []


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
@pytest.mark.usefixtures("implementation_of_window")
def test_every_aggregate_lies_inside(shape: Callable[[random.Random, int], float], clock: str) -> None:
    """A few streams with all nine aggregates at once, compiled and pure."""
    assert outside(shape, clock, tuple(ALL), len(clock) * 31) == []


@pytest.mark.parametrize("by_time", [False, True], ids=["count", "time"])
@pytest.mark.parametrize("engine", [name for name in sg.ENGINES if not name.endswith("_lite")])
def test_a_slot_of_all_leaves_is_that_of_each(engine: str, by_time: bool) -> None:
    """What the intervals of exact windows are taken from, in one call as leaf by leaf; nothing beyond a partial."""
    aggregates = {"sum": sg.sum(), "std": sg.std()}
    window = sg.Window(aggregates, policy=(sg.policies.time if by_time else sg.policies.count)(70), engine=engine)
    assert list(window._slot_of_leaves(window._layout.exact_slots(aggregates["sum"])[0])) == []
    for i in range(200):
        window.insert(i * 0.37 % 5, i if by_time else None)
    core, unpack = window._core, window._layout.unpack
    for aggregate, offset in ((aggregates["sum"], 0), (aggregates["std"], 1)):
        slot = window._layout.exact_slots(aggregate)[0] + offset
        found = list(window._slot_of_leaves(slot))
        assert found == [unpack(core.leaf(i))[slot] for i in range(core.head, core.tail)]
        assert len(found) == 70
    for slot in (-1, window._layout.width, 1 << 20):
        with pytest.raises(IndexError, match="slot"):
            core.slot_of_leaves(slot)


def test_an_aggregate_that_no_interval_was_written_for_is_not_told_as_certain() -> None:
    """It may round: who adds one and forgets its interval makes no false `exact`."""
    layout = cast(Layout, SimpleNamespace(monoids=(Monoid("sum_of_cubes"),)))
    (found,) = exactly(layout, [2.5], lambda slot: array("d"), 3)
    assert found == (2.5, None, None, False)


def test_every_kind_is_told_as_certain_or_has_its_interval() -> None:
    """None of those there are falls through."""
    assert not {*CERTAIN} & {*ROUNDED}
    assert {*KINDS} - {*CERTAIN} - {*ROUNDED} == {
        *("rate", "frequency", "distinct_count", "compiled", "custom", "quantiles"),
        *("time_weighted_mean", "slope", "intercept", "covariance", "correlation"),
    }
