"""A level that falls for longer than the window: what block maxima cannot foresee, and a staircase need not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from max_like_twin import MaxRule
from test_real_readings import read

import sluicegate as sg
from sluicegate.histograms.max_like import WatchedExtreme

HOURS_5, DAY = 64, 288  # readings of a machine's temperature, one in five minutes


def paper(values: Sequence[float], block: int, window: int) -> list[float]:
    """A2MTA, II-B, from its own ranges: a reading outside of them joins; a cut bucket counts as a whole."""
    rule = MaxRule([WatchedExtreme(0, 1, strict=False)], block, 0.95, paper=True)
    buckets: list[list[float]] = []  # greatest value, ordinal of the newest reading
    answers = []
    for i, x in enumerate(values):
        joins = bool(buckets) and rule.joins([x])
        if joins:
            buckets[-1] = [max(buckets[-1][0], x), i]
        else:
            buckets.append([x, i])
        rule.took([x], joins, min(i + 1, window))
        buckets = [each for each in buckets if each[1] > i - window]
        answers.append(max(each[0] for each in buckets))
    return answers


def off(found: Sequence[float], values: Sequence[float], window: int) -> float:
    """The greatest error of any answer, as a share of the exact one."""
    exact = [max(values[max(0, i + 1 - window) : i + 1]) for i in range(len(values))]
    return max(abs(a - x) / abs(x) for a, x in zip(found, exact, strict=True))


def answered(values: Sequence[float], histogram: sg.MaxLike) -> list[float]:
    """Our answers, each checked to lie in an interval that holds the exact one."""
    window: Any = sg.Window({"max": sg.max()}, policy=sg.policies.count(DAY), histograms=[histogram])
    found = []
    for i, x in enumerate(values):
        window.insert(x)
        answer = window.query(bounds=True)["max"]
        assert answer.low <= max(values[max(0, i + 1 - DAY) : i + 1]) <= answer.high
        assert answer.low <= answer.value <= answer.high
        found.append(answer.value)
    return found


def ending() -> list[float]:
    """A week and a half about 80, and then a day and a half of falling to 20."""
    calm = [80.0 + (i * 37 % 100) / 50 for i in range(11 * DAY)]
    return [*calm, *(80.0 - i * 60 / 432 for i in range(432)), *([20.0] * DAY)]


def test_block_maxima_do_not_foresee_an_end() -> None:
    """The paper's own algorithm is off by more than half, ours by blocks no more than it, in a certain interval."""
    values = ending()
    theirs = off(paper(values, HOURS_5, DAY), values, DAY)
    assert theirs > 0.5
    assert off(answered(values, sg.MaxLike(block=HOURS_5, candidates="paper")), values, DAY) <= theirs
    assert off(answered(values, sg.MaxLike(staircase=False)), values, DAY) > 0


def test_with_nothing_said_a_maximum_is_exact() -> None:
    """The default asks no estimate: exact where block maxima are off by half."""
    values = ending()
    assert off(answered(values, sg.MaxLike()), values, DAY) == 0.0
    assert sg.MaxLike() == sg.MaxLike(staircase=True)


@pytest.mark.parametrize("asked", [{"block": 9}, {"confidence": 0.9}, {"candidates": "paper"}, {"staging": 0}])
def test_what_is_said_of_an_estimate_asks_for_one(asked: dict[str, Any]) -> None:
    """Whoever sets the estimate, or wants each reading decided at once, gets block maxima."""
    assert sg.MaxLike(**asked).staircase is False
    assert sg.MaxLike(staging=30).staircase is True


def test_a_machine_that_failed() -> None:
    """On real readings, three windows around failures: the paper's answer off by 95 %, and nothing of a staircase's."""
    values = [value for value, _ in zip(*read("machine_temperature.csv"), strict=True)]
    assert 0.95 < off(paper(values, HOURS_5, DAY), values, DAY) < 2.0
    assert 0.9 < off(answered(values, sg.MaxLike(block=HOURS_5)), values, DAY) < 0.97
    window: Any = sg.Window({"max": sg.max()}, policy=sg.policies.count(DAY), histograms=[sg.MaxLike()])
    assert off(window.insert_many(values)["max"], values, DAY) == 0.0
    assert window.footprint.created == 0
