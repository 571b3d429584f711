"""An answer leaves only after the commit that it rests on, and again after a start; it says as of when it is."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("paho.mqtt.client", reason="the agent's tests need the extra `agent`")
from durable_agent import NOON, SECOND, configured, sequenced, timed

from sluicegate_agent import agent as module
from sluicegate_agent import link
from sluicegate_agent.config import Config
from sluicegate_agent.messages import Message
from sluicegate_agent.state import State
from sluicegate_agent.ticks import Ticks

#: The windows by time that are asked for a maximum, and their seconds.
SPANS = {"recent": 300, "peak": 120, "steps": 1200, "steps_short": 60}


class Broker:
    """Stands for the link: gives what is put into `waiting`, hears answers while `is_there`."""

    waiting: list[Message]
    told: list[dict[str, Any]]
    is_there = True
    is_window_full, retired, former, subscribed_us = False, (), (), 0

    def __init__(self, *_: object) -> None:
        self.connection, self.session_present, self.state = 1, False, "connected"
        self.waiting, self.told, self.acknowledged, self.confirmed = [], [], 0, 0

    def poll(self, timeout: float, most: int) -> list[Message]:
        """What waits, at most `most`."""
        taken, self.waiting = self.waiting[:most], self.waiting[most:]
        return taken

    def ack(self, packet_ids: list[int]) -> None:
        """Count."""
        self.acknowledged += len(packet_ids)

    def confirm(self, generation: int) -> None:
        """No barrier is asked for here."""

    def publish(self, topic: str, payload: bytes, *, retain: bool = False) -> bool:
        """Hear the answers."""
        if self.is_there:
            self.told += json.loads(payload)["results"]
        return self.is_there

    def command(self, topic: str, payload: bytes) -> bool:
        """No birth is asked for here."""
        return False

    def pause(self, reason: str, seconds: float) -> None:
        """Nothing to leave."""

    def close(self) -> None:
        """Nothing to close."""

    def status(self) -> dict[str, object]:
        """Nothing to tell."""
        return {}


@pytest.fixture(autouse=True)
def _no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "Link", Broker)


def settings(folder: Path, every: str) -> Config:
    """Answers as soon as they may leave; a commit `every` so often or after half of 40 messages."""
    return configured(folder, commit={"every": every}, results={"every": "0"})


def opened(config: Config, state: State) -> tuple[module.Agent, Broker]:
    """An agent and the broker that it thinks it has."""
    agent = module.Agent(config, state)
    broker: Any = agent.link
    return agent, broker


def ordinals(broker: Broker, stream: str = "level", window: str = "last9") -> list[int]:
    """The readings as of which one window was answered."""
    found = [told["ordinal"] for told in broker.told if (told["stream"], told["window"]) == (stream, window)]
    return list(dict.fromkeys(found))


def test_nothing_is_told_before_its_commit(tmp_path: Path) -> None:
    """With a commit a minute, answers wait for it; the one that leaves is as of the last committed reading."""
    config = settings(tmp_path, "60s")
    with State(config) as state:
        agent, broker = opened(config, state)
        broker.waiting = [sequenced(n, n + 1) for n in range(5)]
        for _ in range(5):
            agent.turn()
        assert (broker.told, broker.acknowledged) == ([], 0)
        broker.waiting = [sequenced(n, n + 1) for n in range(5, 24)]  # the 20th brings the commit, in the midst
        agent.turn()
        assert broker.acknowledged == 20
        assert ordinals(broker) == [19]
        agent.finish()
        assert ordinals(broker) == [19, 23]


def test_a_commit_that_fails_tells_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk: what is only in memory is not told; when the disk has room again it is."""
    monkeypatch.setattr(module, "_RETRY_COMMIT", 0.0)
    config = settings(tmp_path, "1ms")
    with State(config) as state:
        agent, broker = opened(config, state)
        real, full = agent.pipeline.commit, True

        def commit() -> list[int]:
            if full:
                raise sqlite3.OperationalError("database or disk is full")
            return real()

        monkeypatch.setattr(agent.pipeline, "commit", commit)
        broker.waiting = [sequenced(0, 1)]
        while state.counters["commits.failed"] < 3:
            agent.turn()
        assert broker.told == []
        full = False
        while not broker.told:
            agent.turn()
        assert ordinals(broker) == [0]


def test_answers_come_again_after_a_start(tmp_path: Path) -> None:
    """Ended between commit and publication, without another reading: every window that has an answer tells it."""
    config = settings(tmp_path, "1ms")
    with State(config) as state:
        agent, broker = opened(config, state)
        broker.is_there = False
        broker.waiting = [sequenced(n, n + 1) for n in range(3)]
        while broker.acknowledged < 3:
            agent.turn()
        assert broker.told == []
    for _ in range(2):
        with State(config) as state:
            agent, broker = opened(config, state)
            broker.is_there = False
            agent.turn()
            broker.is_there = True
            agent.turn()
            asked = {(stream, window.name) for stream in ("level", "flow") for window in config.windows_of(stream)}
            assert {(told["stream"], told["window"]) for told in broker.told} == asked
            assert {told["ordinal"] for told in broker.told} == {2}
            before = len(broker.told)
            agent.turn()
            assert len(broker.told) == before


def test_answers_of_a_silent_stream_say_as_of_when_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Falling readings, 10 s apart, then silence: each interval holds the maximum of what the window has at `time_us`.

    A late reading and a restart do not take the time back.
    """
    ticking = [0.0]
    monkeypatch.setattr(Ticks.__init__, "__defaults__", (lambda: ticking[0],))
    config = settings(tmp_path, "1ms")
    with State(config) as state:
        agent, broker = opened(config, state)
        broker.waiting = [timed(n / 6, n + 1, value=100.0 - n) for n in range(12)]
        while broker.acknowledged < 12:
            agent.turn()
        assert as_of(broker) == {"last9": 110, **dict.fromkeys(SPANS, 110)}
        ticking[0], agent.pipeline.silence.looks_at = 25.0, float("-inf")
        agent.turn()
        assert as_of(broker) == {"last9": 110, "recent": 110, "peak": 135, "steps": 135, "steps_short": 135}
        broker.waiting = [timed(12 / 6, 13, value=88.0)]
        while broker.acknowledged < 13:
            agent.turn()
        assert as_of(broker) == {"last9": 120, **dict.fromkeys(SPANS, 135)}
    with State(config) as state:
        agent, again = opened(config, state)
        agent.turn()
        assert as_of(again) == as_of(broker)
    for told in broker.told + again.told:
        if told["stream"] == "heat" and told["aggregate"] == "max":
            begin = (told["time_us"] - NOON) // SECOND - SPANS[told["window"]]
            assert told["low"] <= max(100.0 - n for n in range(13) if 10 * n > begin) <= told["high"], told


def as_of(broker: Broker) -> dict[str, int]:
    """Seconds after noon of the newest answer of each window of `heat` that is asked for a maximum, and of last9."""
    told = {each["window"]: each["time_us"] for each in broker.told if each["stream"] == "heat"}
    return {name: (at - NOON) // SECOND for name, at in told.items() if name in {"last9", *SPANS}}
