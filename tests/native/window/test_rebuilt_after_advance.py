"""A window of buckets that time has moved on, or emptied, is rebuilt to the bit and goes on so."""

from __future__ import annotations

import random
from typing import Any

import pytest
from thorough import number

import sluicegate as sg

pytestmark = pytest.mark.usefixtures("implementation_of_window")
ALL = {"n": sg.count(), "sum": sg.sum(), "mean": sg.mean(), "max": sg.max(), "std": sg.std()}


def options(rng: random.Random, span: int) -> dict[str, Any]:
    """A policy by time, hopping or not, and histograms that go with it."""
    hop = rng.choice([1, 2, 5, span // 2, span])
    histograms: list[Any] = [sg.Hop(hint=rng.choice([None, 3, (5, 1.0)]))] if hop > 1 and rng.random() < 0.5 else []
    decides = rng.random()
    if decides < 0.5:
        histograms.append(sg.SumLike(error=rng.choice([0.01, 0.1, 0.5])))
    elif decides < 0.7:
        histograms.append(sg.MaxLike(staircase=False))
    if rng.random() < 0.5 or not histograms:
        histograms.append(sg.Constrained(rng.choice([4, 8, 64]), merge=rng.choice(["levels", "pairs"])))
    return {"policy": sg.policies.time(span, hop=hop), "histograms": histograms}


def stream(rng: random.Random, span: int, count: int) -> list[tuple[float, int]]:
    """Gaps, and some that come late."""
    now, readings = 0, []
    late = rng.choice([0.0, 0.0, 0.1])
    for _ in range(count):
        now += span // 2 if rng.random() < 0.03 else rng.choice([0, 1, 1, 2, 5])
        lag = rng.randrange(span) if rng.random() < late else 0
        readings.append((rng.choice([1.0, 3.5, rng.uniform(-5, 5)]), now - lag))
    return readings


@pytest.mark.parametrize("seed", range(number(120, 40)))
def test_it_goes_on_to_the_bit(seed: int) -> None:
    """After `advance`, by a little or past the window's end, from the snapshot and from state and rows."""
    rng = random.Random(seed)
    span = rng.choice([20, 50, 200])
    given = options(rng, span)
    window, rows = sg.Window(ALL, **given), Rows()
    readings = stream(rng, span, rng.randrange(3, 150))
    for value, time in readings:
        window.insert(value, time)
        if rng.random() < 0.02:
            rows.keep(window)
    now = max(time for _, time in readings) + rng.choice([1, span // 3, span - 1, span, 2 * span])
    window.advance(now)
    rows.keep(window)
    again = [
        sg.Window.restore(window.snapshot(), ALL, **given),
        sg.Window.rebuild(ALL, state=window.state(), leaves=rows.held(), **given),
    ]
    for value, gap in [(None, 0), *stream(rng, span, 25)]:
        for each in (window, *again):
            if value is not None:
                each.insert(value, now + gap)
        for each in again:
            each.verify()
            assert each.state() == window.state(), (seed, gap)
            assert each.query(bounds=True) == window.query(bounds=True), (seed, gap)


class Rows:
    """Rows of leaves as a store keeps them."""

    def __init__(self) -> None:
        self._rows: dict[tuple[int, int], bytes] = {}

    def keep(self, window: sg.Window) -> None:
        """What changed since the last call."""
        changes = window.changes()
        self._rows |= {(changes.level, index): partial for index, partial in changes.closed}
        for first, end in changes.merged:
            self._rows = {key: row for key, row in self._rows.items() if not first < key[1] < end}

    def held(self) -> list[tuple[int, int, bytes]]:
        """As `rebuild` takes them."""
        return [(level, index, row) for (level, index), row in self._rows.items()]


def test_an_emptied_window_promises_sums_from_nothing() -> None:
    """What a sum was before the silence decides nothing after it, in the window as in the rebuilt one."""
    given: dict[str, Any] = {"policy": sg.policies.time(20, hop=2), "histograms": [sg.SumLike(error=0.1)]}
    window = sg.Window({"sum": sg.sum()}, **given)
    for time in range(40):
        window.insert(3.0, time)
    window.advance(200)
    assert window.query() == {"sum": 0.0}
    again = sg.Window.restore(window.snapshot(), {"sum": sg.sum()}, **given)
    for each in (window, again):
        each.insert(5.0, 201)
    assert window.snapshot() == again.snapshot()
