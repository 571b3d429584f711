"""The window that a broker grants is learnt, so that intake is not held down to one window a commit; a sensor that only
looks like a full window costs nothing for long.
"""

from __future__ import annotations

import pytest

pytest.importorskip("paho.mqtt.client", reason="the agent's tests need the extra `agent`")
from sluicegate_agent.link.granted import GrantedWindow

EVERY, TRIP = 1.0, 0.01


def simulated(arrivals: list[float], granted: int, seconds: float, every: float = EVERY) -> tuple[int, int]:
    """(messages acknowledged, commits) of an agent at a broker that grants `granted`, as messages are published."""
    window, now, inflight, taken, acknowledged, commits = GrantedWindow(), 0.0, 0, 0, 0, 0
    since, free_from = 0.0, 0.0
    while now < seconds:
        came = 0
        while taken < len(arrivals) and arrivals[taken] <= now and inflight < granted and now >= free_from:
            taken, inflight, came = taken + 1, inflight + 1, came + 1
        if came:
            since = now if inflight == came else since
            window.arrived(inflight, now)
        if inflight and (now - since >= every or window.is_full(inflight)):
            window.acknowledged(inflight, now)
            acknowledged, commits, inflight, free_from = acknowledged + inflight, commits + 1, 0, now + TRIP
        now = round(now + 0.002, 3)
    return acknowledged, commits


@pytest.mark.parametrize("granted", [1, 10, 20])
def test_a_backlog_goes_as_fast_as_the_window_allows(granted: int) -> None:
    """One window a round trip, where it was one a commit."""
    taken, _ = simulated([0.0] * 100_000, granted, 30.0)
    assert taken > 0.6 * granted * 30.0 / (TRIP + 0.002)


@pytest.mark.parametrize("pause", [0.1, 0.21, 0.5, 1.0, 1.003, 2.0])
@pytest.mark.parametrize("burst", [1, 5, 10])
def test_a_steady_sensor_commits_about_as_often_as_the_timer(pause: float, burst: int) -> None:
    """At a broker that grants more than it sends, whatever it looks like."""
    arrivals = [i // burst * pause for i in range(round(100 / pause) * burst)]
    _, commits = simulated(arrivals, 1000, 100.0)
    assert commits <= 1.1 * 100 / min(EVERY, max(pause, EVERY)) + 4


def test_a_sensor_that_speeds_up_after_it_looked_like_a_window() -> None:
    """Once a second for a while, then ten times: soon the timer decides again."""
    slow, fast = [float(i) for i in range(60)], [60 + i / 10 for i in range(1000)]
    _, commits = simulated(slow + fast, 1000, 160.0)
    assert commits <= 60 + 100 + 20


def test_a_window_that_grows_is_noticed() -> None:
    """More in flight than was believed: the timer decides until the new one is known."""
    window = GrantedWindow()
    for at in (0.0, 1.02, 2.04):
        window.arrived(10, at)
        window.acknowledged(10, at + 1.01)
    window.arrived(10, 3.06)
    assert window.is_full(10)
    window.arrived(11, 3.07)
    assert not window.is_full(11)
    assert window.size == 0
