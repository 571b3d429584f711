"""Each histogram on real sensors: the compiled buckets are the twin's, bucket by bucket, and every interval holds."""

from __future__ import annotations

from typing import Any

import pytest
from exact_windows import ALL, Exact
from test_histogram_windows import outside
from test_real_readings import FILES, read
from thorough import number
from twins import core as pure

import sluicegate as sg
import sluicegate.window.configure
from sluicegate.core import core as compiled

day, week = sg.policies.time("24h"), sg.policies.time("7d")
CASES: dict[str, tuple[Any, list[Any]]] = {
    "sum-like": (day, [sg.SumLike(0.01)]),
    "sum-like, constrained": (week, [sg.SumLike(0.01), sg.Constrained(64)]),
    "max-like": (week, [sg.MaxLike(staircase=False)]),
    "max-like, a staircase": (week, [sg.MaxLike()]),
    "max-like, constrained": (week, [sg.MaxLike(block=100), sg.Constrained(64)]),
    "hop": (sg.policies.time("24h", hop="1h"), [sg.Hop()]),
    "hop, sum-like": (sg.policies.time("24h", hop="1h"), [sg.Hop(), sg.SumLike(0.01)]),
    "hop, constrained": (sg.policies.count(288, hop=12), [sg.Hop(hint=12), sg.Constrained(32)]),
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("case", CASES)
def test_buckets_are_the_twins_and_intervals_hold(case: str, name: str) -> None:
    """After every reading their number, every 200 all their bytes; each fifth window against the readings."""
    policy, histograms = CASES[case]
    windows = []
    for core in (compiled.Core, pure.Core):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sluicegate.window.configure, "Core", core)
            windows.append(sg.Window(ALL, policy=policy, histograms=histograms))
    fast, slow = windows
    exact = Exact(policy)
    for i, (value, time) in enumerate(list(zip(*read(name), strict=True))[: number(2400, 601)]):
        for window in (fast, slow, exact):
            window.insert(value, time)
        assert (fast.footprint.created, len(fast)) == (slow.footprint.created, len(slow))
        if i % 5 == 0:
            answers = fast.query(bounds=True)
            assert answers == slow.query(bounds=True)
            assert outside(exact, answers) == []
        if i % 200 == 0:
            assert fast.snapshot() == slow.snapshot()
    assert fast.snapshot() == slow.snapshot()
    assert fast.footprint.created <= fast.accepted
