"""What was under way at a change of identity, or at a copy, promises: it counts once, or at most in doubt."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from durable_agent import NOON, SECOND, configured

from sluicegate_agent.changes import asked
from sluicegate_agent.identity.kinds import asked_before
from sluicegate_agent.messages import Message
from sluicegate_agent.pipeline import Pipeline
from sluicegate_agent.record.recorder import Recorder
from sluicegate_agent.state import State

TOPIC = "hall/a"
BARE = {"topic": TOPIC, "streams": {"x": "v"}}
TIMED = BARE | {"time": "t", "time_format": "us"}
NUMBERED = BARE | {"sequence": "n"}
BOTH = TIMED | {"sequence": "n"}
PLANT = NUMBERED | {"topic": "hall/{machine}", "streams": {"x": "v"}}


def said(number: int, later: int = 0) -> bytes:
    """The message of a number: known by whatever a source asks for."""
    return json.dumps({"t": NOON + (number + later) * SECOND, "v": number, "n": number}).encode()


class Board:
    """An agent's inner half, started again and again on one state."""

    def __init__(self, folder: Path, way: str = "mqtt") -> None:
        self.folder, self.way = folder, way

    def life(
        self, source: dict[str, Any], payloads: list[bytes], *, dup: bool, confirmed: bool = False
    ) -> tuple[int, int]:
        """What these messages come to: how many readings were counted, how many of them in doubt."""
        way: dict[str, Any] = {} if self.way == "mqtt" else {"http": {"listen": "127.0.0.1:9465"}}
        config = configured(self.folder, source=[source | {"input": self.way}], window=[], **way)
        with State(config) as state:
            before = state.counters.as_dict()
            pipeline = Pipeline(config, state, lambda: NOON + 10**12, Recorder(config, state))
            state.remember(asked(config) | {"subscribed_us": asked_before(state.store.connection).get("us", 0)})
            pipeline.connected(session_present=True)
            for number, payload in enumerate(payloads, 1):
                if pipeline.has_enough:
                    pipeline.commit()
                is_mqtt = self.way == "mqtt"
                pipeline.accept(Message(TOPIC, payload, number, int(is_mqtt), dup=dup and is_mqtt))
            pipeline.commit()
            if confirmed:
                pipeline.confirmed(pipeline.generation)
            after = state.counters.as_dict()
        return tuple(after.get(name, 0) - before.get(name, 0) for name in ("accepted", "undecidable"))  # type: ignore[return-value]


@pytest.mark.parametrize("count", [5, 100])
@pytest.mark.parametrize("starts", [1, 3])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (BARE, NUMBERED), (BARE, TIMED), (TIMED, BARE), (TIMED, NUMBERED), (NUMBERED, TIMED), (NUMBERED, BARE),
        (BOTH, TIMED), (BOTH, NUMBERED), (NUMBERED, BOTH),
        (PLANT, PLANT | {"sequence": None, "time": "t", "time_format": "us"}),
    ],
)  # fmt: skip
def test_what_was_under_way_at_a_change_of_identity_is_in_doubt_at_most(
    tmp_path: Path, before: dict[str, Any], after: dict[str, Any], starts: int, count: int
) -> None:
    """The broker sends all again that counted: whatever counts twice is in doubt, also some starts later."""
    board = Board(tmp_path)
    after = {key: value for key, value in after.items() if value is not None}
    first, _ = board.life(before, [*map(said, range(count))], dup=False)
    assert first == count
    for _ in range(starts - 1):
        board.life(after, [], dup=False)
    again, doubt = board.life(after, [*map(said, range(count))], dup=True)
    new, more = board.life(after, [*map(said, range(count, count + 3))], dup=False)
    assert new == 3
    assert again + new - doubt - more <= 3 <= again + new


@pytest.mark.parametrize("count", [5, 100, 3000])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (BARE, NUMBERED), (BARE, TIMED), (TIMED, BARE), (TIMED, NUMBERED), (NUMBERED, TIMED), (NUMBERED, BARE),
        (BOTH, TIMED), (BOTH, NUMBERED), (NUMBERED, BOTH),
    ],
)  # fmt: skip
def test_what_is_posted_again_after_a_change_of_identity_is_in_doubt_at_most(
    tmp_path: Path, before: dict[str, Any], after: dict[str, Any], count: int
) -> None:
    """Who posted had no answer and says all of it again: whatever counts twice is in doubt."""
    board = Board(tmp_path, "http")
    assert board.life(before, [*map(said, range(count))], dup=False)[0] == count
    again, doubt = board.life(after, [*map(said, range(count))], dup=False)
    new, more = board.life(after, [*map(said, range(count, count + 3))], dup=False)
    assert new == 3
    assert again + new - doubt - more <= 3 <= again + new


def test_a_clock_that_is_behind_hides_no_repeat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The board's clock was never set when the configuration changed: what counted has later times than it."""
    board = Board(tmp_path)
    board.life(NUMBERED | {"streams": {"x": "v"}}, [], dup=False)
    board.life(BOTH, [*map(said, range(9))], dup=False)
    monkeypatch.setattr("time.time_ns", lambda: 10**18)
    assert board.life(TIMED, [*map(said, range(9))], dup=True) == (9, 9)
    assert board.life(TIMED, [*map(said, range(9, 12))], dup=False) == (3, 0)


@pytest.mark.parametrize("count", [5, 100])
def test_a_sensor_that_begins_anew_after_its_time_was_dropped_is_heard(tmp_path: Path, count: int) -> None:
    """Its numbers were seen, and nobody knows what they said: they count, in doubt."""
    board = Board(tmp_path)
    board.life(BOTH, [*map(said, range(count))], dup=False, confirmed=True)
    accepted, doubt = board.life(NUMBERED, [said(number, 1000) for number in range(count + 3)], dup=False)
    assert accepted == count + 3
    assert doubt == count


def test_no_change_brings_no_doubt(tmp_path: Path) -> None:
    """The same configuration again knows each by what it knew it by before."""
    for source in (TIMED, NUMBERED, BOTH, PLANT):
        board = Board(tmp_path / source["topic"].replace("/", "-") / "-".join(sorted(source)))
        board.folder.mkdir(parents=True)
        board.life(source, [*map(said, range(9))], dup=False)
        assert board.life(source, [*map(said, range(12))], dup=True) == (3, 0)


def test_the_doubt_after_a_change_ends(tmp_path: Path) -> None:
    """A broker has no more on its way than three times Receive Maximum, or 2048: what comes after that is certain."""
    board = Board(tmp_path)
    board.life(BARE, [said(0)], dup=False)
    accepted, doubt = board.life(NUMBERED, [*map(said, range(1, 2101))], dup=False)
    assert accepted == 2100
    assert doubt == 2048


@pytest.mark.parametrize("source", [TIMED, NUMBERED, BOTH, PLANT])
def test_what_a_copy_gets_of_the_original_is_in_doubt(tmp_path: Path, source: dict[str, Any]) -> None:
    """Both speak to the broker under one client id: what the original counted last comes to the copy with DUP."""
    original, copy = Board(tmp_path / "one"), Board(tmp_path / "other")
    original.folder.mkdir()
    original.life(source, [*map(said, range(10))], dup=False)
    shutil.copytree(original.folder, copy.folder)
    counted, _ = original.life(source, [*map(said, range(10, 30))], dup=False)
    again, doubt = copy.life(source, [*map(said, range(10, 30))], dup=True)
    new, more = copy.life(source, [*map(said, range(30, 50))], dup=False)
    assert (counted, again, new) == (20, 20, 20)
    assert (doubt, more) == (20, 0)
