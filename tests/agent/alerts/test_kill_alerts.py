"""Killed at every step, an agent loses no alert and makes none twice: what is sent again has the id it had."""

from __future__ import annotations

import json
import os
import signal
import traceback
from pathlib import Path

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from durable_agent import NOON, SECOND, SEQUENCED, configured
from thorough import chosen

from sluicegate_agent import faults
from sluicegate_agent.alerts.alerts import Alerts
from sluicegate_agent.alerts.delivery import Delivery
from sluicegate_agent.messages import Message
from sluicegate_agent.pipeline import Pipeline
from sluicegate_agent.record.recorder import Recorder
from sluicegate_agent.state import State

pytestmark = pytest.mark.faults
WINDOW = {"name": "last", "policy": {"count": 1}, "aggregate": "last", "buckets": 0, "streams": ["level"]}
ALERT = {"name": "high", "window": "last", "above": 2, "clear": 1}
LEVELS = (1, 3, 4, 1.5, 0, 5)


class File:
    """A broker that has each message as soon as it is written, and says so at the next look."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a")

    def send(self, topic: str, payload: bytes, *, retain: bool) -> File:
        """Written through, so that a kill loses nothing of it."""
        self._file.write(payload.decode() + "\n")
        self._file.flush()
        return self

    def is_published(self) -> bool:
        """At once."""
        return True


def live(folder: Path, at: int, trace: list[str]) -> None:
    """One life: takes every message from the first on, since a broker sends again what was not acknowledged."""
    config = configured(folder, window=[WINDOW], alert=[ALERT])
    with State(config) as state:
        pipeline = Pipeline(config, state, recorder=Recorder(config, state))
        alerts = pipeline.beside = Alerts(config, state, pipeline)
        delivery = Delivery(config, alerts, File(folder / "sent"))
        faults.arm(at, trace)
        delivery.step(0)
        for n, level in enumerate(LEVELS):
            body = {"n": n, "boot": 1, "t": NOON + n * SECOND, "level": level, "flow": 0}
            pipeline.accept(Message(SEQUENCED, json.dumps(body).encode(), n + 1, 1))
            pipeline.commit()
            for _ in range(2):
                delivery.step(0)


def in_child(folder: Path, at: int) -> bool:
    """Whether a life that is killed at step `at` reached its end."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            live(folder, at, [])
            status = 0
        except BaseException:  # a forked child must never return into pytest
            traceback.print_exc()
        finally:
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, -signal.SIGKILL)
    return status == 0


def told(folder: Path) -> list[tuple[str, int, str, float]]:
    """What a receiver has that keeps one of each id, in order."""
    lines = [json.loads(line) for line in (folder / "sent").read_text().splitlines()]
    by_id = {line["id"]: line for line in lines}
    assert len({line["id"]: json.dumps(line) for line in lines}) == len({json.dumps(line) for line in lines})
    return [(line["state"], line["number"], line["stream"], line["value"]) for line in by_id.values()]


def test_each_alert_arrives_once_by_id(tmp_path: Path) -> None:
    """At each kind of step that a life passes: killed there, started again, the receiver has the same four changes."""
    trace: list[str] = []
    try:
        (tmp_path / "whole").mkdir()
        live(tmp_path / "whole", 0, trace)
    finally:
        faults.disarm()
    expected = told(tmp_path / "whole")
    assert [state for state, *_ in expected] == ["raised", "cleared", "raised"]
    assert {"alerts: written", "alert: published, not acknowledged", "alert: taken, not kept"} <= set(trace)
    for at in chosen(trace):
        folder = tmp_path / str(at)
        folder.mkdir()
        assert not in_child(folder, at)
        assert in_child(folder, 0)
        assert told(folder) == expected, f"killed at {at}: {trace[at - 1]}"
