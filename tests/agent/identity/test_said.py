"""Another configuration reads a source's messages otherwise: those that were counted stay known by their numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from durable_agent import NOON, SECOND, configured

from sluicegate_agent.messages import Message
from sluicegate_agent.pipeline import Pipeline
from sluicegate_agent.record.recorder import Recorder
from sluicegate_agent.state import State

SOURCE = {"topic": "hall/a", "streams": {"x": "v"}, "time": "t", "time_format": "us", "sequence": "n"}
PLANT = SOURCE | {"topic": "hall/{machine}"}


class Board:
    """An agent's inner half, started again and again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def life(self, source: dict[str, Any], numbers: range, later: int = 0) -> dict[str, int]:
        """Messages with these numbers, said `later` seconds after the usual time; the counters then."""
        config = configured(self.folder, source=[source], window=[])
        with State(config) as state:
            pipeline = Pipeline(config, state, lambda: NOON + 10**10, Recorder(config, state))
            for number in numbers:
                if pipeline.has_enough:
                    pipeline.commit()
                said = {"t": NOON + (number + later) * SECOND, "v": number, "n": number, "boot": "a"}
                pipeline.accept(Message("hall/a", json.dumps(said).encode(), number + 1, 1))
            pipeline.commit()
            return state.counters.as_dict()


@pytest.mark.parametrize("count", [5, 200])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (SOURCE, SOURCE | {"streams": {"renamed": "v"}}),
        (SOURCE, SOURCE | {"streams": {"x": "v", "more": "n"}}),
        (PLANT, PLANT | {"key": "press-{machine}"}),
        (SOURCE, SOURCE | {"epoch": "boot"}),
        (SOURCE, PLANT),
        (PLANT, SOURCE | {"streams": {"single": "v"}}),
    ],
)
def test_what_was_counted_before_a_change_is_a_repeat(
    tmp_path: Path, before: dict[str, Any], after: dict[str, Any], count: int
) -> None:
    """In the ring and in the list of few, also a start later: as many messages are new as nobody had said."""
    board = Board(tmp_path)
    board.life(before, range(count))
    board.life(after, range(0))
    counters = board.life(after, range(count + 3))
    assert counters["duplicates"] == count
    assert counters.get("sequence_restarts", 0) == 0


def test_a_sensor_that_begins_anew_after_a_change_is_heard(tmp_path: Path) -> None:
    """Its numbers were seen; their times are newer than any, so they are no repeats."""
    board = Board(tmp_path)
    before = board.life(SOURCE, range(40))["accepted"]
    counters = board.life(SOURCE | {"streams": {"renamed": "v"}}, range(20), later=1000)
    assert counters["accepted"] == before + 20
    assert "duplicates" not in counters


def test_what_is_read_as_before_is_known_by_what_it_said(tmp_path: Path) -> None:
    """A tag, a scale: the same number with other readings is no repeat, and waits."""
    board = Board(tmp_path)
    board.life(SOURCE, range(10))
    counters = board.life(SOURCE | {"values": {"x": {"scale": 2.0}}, "tags": {"site": "b"}}, range(9, 10), later=-5)
    assert counters["held"] == 1
