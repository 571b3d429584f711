"""Answers over readings in doubt promise: whichever are repeats, the interval holds the answer without those."""

from __future__ import annotations

import json
from itertools import chain, combinations
from math import fsum
from pathlib import Path
from statistics import pstdev
from tempfile import TemporaryDirectory

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from durable_agent import BARE, NOON, SECOND, bare, configured
from hypothesis import given, settings
from hypothesis import strategies as st

from sluicegate_agent.config import Config
from sluicegate_agent.doubts import BLOCKS, Doubts, unpack
from sluicegate_agent.identity import Verdict
from sluicegate_agent.messages import Message, Result
from sluicegate_agent.pipeline import Pipeline
from sluicegate_agent.state import State
from sluicegate_agent.status import gather, show

ASKED = ["count", "sum", "mean", "max", "min", "std", "first"]
TRUTHS = {
    "count": len,
    "sum": fsum,
    "mean": lambda values: fsum(values) / len(values),
    "max": max,
    "min": min,
    "std": pstdev,
    "first": lambda values: values[0],
}
LENGTH = 20


def config(folder: Path) -> Config:
    """A window by time and one by count over bare numbers, both exact where nothing is in doubt."""
    windows = [
        {"name": "time", "policy": {"time": f"{LENGTH}s"}, "aggregate": ASKED, "buckets": 64},
        {"name": "count", "policy": {"count": 5}, "aggregate": ASKED, "buckets": 0},
    ]
    return configured(folder, window=windows, source=[{"topic": BARE, "streams": {"door": ""}, "format": "number"}])


class Scripted:
    """A pipeline whose messages are in doubt as told."""

    def __init__(self, config: Config, state: State) -> None:
        self.at = NOON
        self.pipeline = Pipeline(config, state, clock=lambda: self.at)
        self.in_doubt = False
        self.pipeline.identities.bare.check = self._check  # type: ignore[method-assign]

    def _check(self, message: Message) -> Verdict:
        return Verdict.UNDECIDABLE if self.in_doubt else Verdict.NEW

    def take(self, readings: list[tuple[int, float, bool]]) -> list[Result]:
        for second, value, self.in_doubt in readings:
            self.at = NOON + second * SECOND
            self.pipeline.accept(bare(value, 1))
        self.pipeline.commit()
        return [*self.pipeline.answers("door", "time"), *self.pipeline.answers("door", "count")]


def holds(result: Result, truth: float) -> bool:
    """Whether the interval has it, but for rounding."""
    slack = 1e-9 * max(1.0, abs(truth))
    low = result.low is None or result.low - slack <= truth  # type: ignore[operator]
    high = result.high is None or truth <= result.high + slack  # type: ignore[operator]
    return low and high


READINGS = st.lists(
    st.tuples(st.integers(0, 8), st.sampled_from([-2.0, 0.0, 1.0, 1.5, 7.0]), st.booleans()), min_size=1, max_size=10
)


@settings(deadline=None, max_examples=60)
@given(steps=READINGS, certain=st.integers(0, 3))
def test_every_choice_of_repeats_is_inside(steps: list[tuple[int, float, bool]], certain: int) -> None:
    """All subsets of the readings in doubt, in windows by time and by count."""
    readings, second = [], 0
    for i, (apart, value, in_doubt) in enumerate(steps):
        second += apart
        readings.append((second, value, in_doubt and i >= certain))
    with TemporaryDirectory() as folder, State(config(Path(folder))) as state:
        results = Scripted(state.config, state).take(readings)
    places = [i for i, (_, _, in_doubt) in enumerate(readings) if in_doubt]
    for repeats in chain.from_iterable(combinations(places, k) for k in range(len(places) + 1)):
        there = [(at, value) for i, (at, value, _) in enumerate(readings) if i not in repeats]
        inside = {"time": [v for at, v in there if at > second - LENGTH], "count": [v for _, v in there[-5:]]}
        for result in results:
            values = inside[result.window]
            if values:
                truth = TRUTHS[result.aggregate](values)
                assert holds(result, truth), (result, repeats)
                assert not result.exact or abs(result.value - truth) < 1e-9, (result, repeats)  # type: ignore[operator]


def test_what_leaves_the_window_takes_its_doubt_along(tmp_path: Path) -> None:
    """After a restart too; how many there were in all stays in `status`."""
    settings = config(tmp_path)
    with State(settings) as state:
        counted = Scripted(settings, state).take([(0, 1.0, False), (1, 1.0, True), (2, 5.0, False)])
        assert {result.undecidable for result in counted} == {1}
        (highest,) = (r for r in counted if r.aggregate == "max" and r.window == "time")
        assert (highest.value, highest.low, highest.exact) == (5.0, 5.0, True)
    with State(settings) as state:
        later = Scripted(settings, state).take([(20, 2.0, False)])
        assert {r.undecidable for r in later if r.window == "time"} == {1}
        last = Scripted(settings, state).take([(second, 2.0, False) for second in range(40, 50)])
        assert {result.undecidable for result in last} == {0}
        assert all(result.exact for result in last if result.aggregate == "count")
    found = gather(settings)
    assert found["streams"]["door"]["undecidable"] == found["counters"]["undecidable"] == 1
    assert "in doubt" in show(found)
    json.dumps(found)


def test_however_much_doubt_there_is_its_row_is_bounded() -> None:
    """What is told of together is never told of as less."""
    doubts = Doubts()
    for i in range(5 * BLOCKS):
        doubts.add(i, i, i % 3 - 1.0)
    total, blocks, _ = unpack(doubts.pack())
    assert (total, sum(block.n for block in blocks), len(blocks)) == (5 * BLOCKS, 5 * BLOCKS, BLOCKS)
