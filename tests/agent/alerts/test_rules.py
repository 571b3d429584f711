"""When an alert is raised and cleared: threshold, hysteresis, duration; certain only where the interval says so."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from hypothesis import given
from hypothesis import strategies as st

from sluicegate_agent.alerts.rules import Changes, Kept, Seen, judged
from sluicegate_agent.config.outward import AlertConfig
from sluicegate_agent.config.units import Duration


def alert(**keys: Any) -> AlertConfig:
    """An alert on a window `w`."""
    return AlertConfig(name="a", window="w", **keys)


def run(of: AlertConfig, *values: float | None, step: int = 1) -> list[str]:
    """The states after these values, which are exact, one a step."""
    kept, states = Kept(), []
    for i, value in enumerate(values):
        kept = judged(of, kept, Seen(i * step, value, value, value))
        states.append(kept.state)
    return states


def test_a_threshold_with_hysteresis() -> None:
    """Raised beyond `above`, cleared at `clear`, not between; a value at the threshold is not beyond it."""
    states = run(alert(above=30, clear=28), 30, 30.1, 29, 28.1, 28, 29, 31)
    assert states == ["ok", "raised", "raised", "raised", "ok", "ok", "raised"]


def test_below_is_the_mirror() -> None:
    """The same with the sign turned, and without `clear` it ends at the threshold."""
    assert run(alert(below=5, clear=6), 5, 4.9, 5.5, 6) == ["ok", "raised", "raised", "ok"]
    assert run(alert(below=5), 4, 5, 4) == ["raised", "ok", "raised"]


def test_it_has_to_last() -> None:
    """Pending until `for` has passed in the stream's time, and from the beginning when it breaks off."""
    states = run(alert(above=1, hold=Duration(30)), 2, 2, 2, 0, 2, 2, 2, 2, step=10)
    assert states == ["pending", "pending", "pending", "ok", "pending", "pending", "pending", "raised"]


def test_what_is_not_known_changes_nothing() -> None:
    """An empty window, or a bound that there is not."""
    assert run(alert(above=1), None, 2, None, None, 0) == ["ok", "raised", "raised", "raised", "ok"]
    assert judged(alert(above=1, on="low"), Kept(), Seen(0, 5, None, 9)).state == "ok"


def test_a_clock_that_is_set_back_does_not_make_it_wait() -> None:
    """The duration counts from the earlier of both times."""
    kept = judged(alert(above=1, hold=Duration(30)), Kept(), Seen(10**15, 2, 2, 2))
    kept = judged(alert(above=1, hold=Duration(30)), kept, Seen(100, 2, 2, 2))
    assert judged(alert(above=1, hold=Duration(30)), kept, Seen(130, 2, 2, 2)).state == "raised"


numbers = st.floats(-100, 100)


@given(numbers, st.lists(st.tuples(numbers, numbers, numbers), max_size=30), st.sampled_from(["value", "low", "high"]))
def test_certain_is_what_no_exact_answer_contradicts(limit: float, ends: list[Any], on: Any) -> None:
    """Whatever lies in the interval is beyond the limit when it says certain; on `low` and above it always is."""
    kept, of = Kept(), alert(above=limit, on=on)
    for i, three in enumerate(ends):
        low, value, high = sorted(three)
        was, kept = kept, judged(of, kept, Seen(i, value, low, high))
        if kept.certain and not was.certain:
            assert low > limit
        if kept.state == "raised" and was.state != "raised":
            assert {"value": value, "low": low, "high": high}[on] > limit
            assert kept.certain == (low > limit)
            assert on != "low" or kept.certain


@given(st.lists(st.tuples(st.integers(1, 40), numbers), min_size=1, max_size=60))
def test_a_change_is_that_of_the_answers(steps: list[tuple[int, float]]) -> None:
    """Between the newest and one that is at least `per` old and not twice as old, if there is one; its bounds hold."""
    changes, seen = Changes(100), list[tuple[int, float]]()
    now = 0
    for gap, value in steps:
        now += gap
        seen.append((now, value))
        found = changes.after(Seen(now, value, value - 1, value + 1))
        assert (found.value is None) == (now - seen[0][0] < 100)
        if found.value is not None and found.low is not None and found.high is not None:
            rates = [(value - then) * 100 / (now - at) for at, then in seen if 100 <= now - at <= 200]
            assert any(abs(found.value - rate) <= 1e-6 for rate in rates)
            assert found.low <= found.value <= found.high


def test_a_change_needs_its_time() -> None:
    """Nothing is known before `per` has passed, and nothing of a past that a clock took back."""
    changes = Changes(10)
    assert changes.after(Seen(0, 1.0, 1.0, 1.0)).value is None
    assert changes.after(Seen(10, 3.0, 2.5, 3.5)) == Seen(10, 2.0, 1.5, 2.5)
    assert changes.after(Seen(5, 9.0, 9.0, 9.0)).value is None
