"""Another configuration for a running agent: no reading lost or doubled, and what is wrong changes nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("paho.mqtt.client", reason="the agent's tests need the extra `agent`")
import paho.mqtt.client as mqtt
from brokers import mosquitto, until
from paho.mqtt.enums import CallbackAPIVersion

from sluicegate_agent import health
from sluicegate_agent.config import load
from sluicegate_agent.errors import EnvironmentRefused, InputRefused
from sluicegate_agent.pipeline import Pipeline
from sluicegate_agent.reloading import Reloading, ask
from sluicegate_agent.state import State, read_status
from sluicegate_demo.ports import free_port

BASE = """
[device]
id = "d"
[state]
path = "state"
[mqtt]
port = {port}
[commit]
every = "20ms"
[[source]]
topic = "a"
sequence = "n"
streams = {{ a = "x" }}
[[window]]
name = "all"
policy = {{ count = 100000 }}
buckets = 64
aggregate = ["sum", "count"]
"""
MORE = """
[[source]]
topic = "b"
sequence = "n"
streams = {{ b = "x" }}
[[window]]
name = "last"
policy = {{ count = 5 }}
aggregate = "max"
"""


class Running:
    """An agent in a process of its own, and who publishes to it."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder, self.port, self.file = folder, port, folder / "agent.toml"
        self.number = 0
        self.write(BASE)
        command = [sys.executable, "-m", "sluicegate", "run", "agent.toml", "--log", "warning"]
        self.process = subprocess.Popen(command, cwd=folder)
        self.client = mqtt.Client(CallbackAPIVersion.VERSION2)
        self.client.connect("127.0.0.1", port)
        self.client.loop_start()

    def stop(self) -> None:
        """The agent leaves everything durable."""
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(30) == 0

    def write(self, text: str) -> None:
        """Another configuration."""
        self.file.write_text(text.format(port=self.port))

    def publish(self, count: int) -> None:
        """So many more messages, with QoS 1."""
        for _ in range(count):
            self.number += 1
            self.client.publish("a", json.dumps({"n": self.number, "x": self.number}), qos=1)

    def counted(self) -> int:
        """Readings that are durable."""
        return int(read_status(self.folder / "state")["counters"].get("accepted", 0))

    def told(self) -> dict[str, Any]:
        """What the agent says of its attempts."""
        return (health.read(self.folder / "state") or {}).get("reload") or {}

    def reload(self) -> None:
        """As the command does."""
        ask(load(self.file), accept=False, seconds=30)

    def hang_up(self) -> None:
        """SIGHUP without the command, which would see that the file is wrong."""
        before = self.told()["count"]
        os.kill(self.told()["pid"], signal.SIGHUP)
        until(lambda: self.told()["count"] > before, 30)


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    """An agent with a broker."""
    with mosquitto(tmp_path, free_port()) as port:
        one = Running(tmp_path, port)
        try:
            until(lambda: (health.read(tmp_path / "state") or {}).get("mqtt", {}).get("state") == "connected")
            yield one
        finally:
            one.client.loop_stop()
            if one.process.poll() is None:
                one.stop()


def test_no_reading_is_lost_or_doubled_and_wrong_files_change_nothing(running: Running) -> None:
    """While messages come: another window and source, a file that is none, two that are refused, and one more."""
    one = running
    one.publish(300)
    one.write(BASE + MORE)
    one.reload()
    one.publish(300)
    one.file.write_text("[device")
    one.hang_up()
    assert "agent.toml" in one.told()["refused"]
    one.publish(100)
    one.write(BASE.replace('name = "all"', 'name = "other"'))
    with pytest.raises(InputRefused, match="would lose some of what"):
        one.reload()
    one.write(BASE.replace('path = "state"', 'path = "state"\nmemory = "1MiB"'))
    with pytest.raises(InputRefused, match="this configuration needs up to"):
        one.reload()
    one.publish(100)
    one.write(BASE + MORE.replace('"last"', '"latest"'))
    with pytest.raises(InputRefused, match="last"):
        one.reload()
    one.write(BASE + MORE + '[results]\nevery = "0"\n')
    one.reload()
    one.publish(200)
    until(lambda: one.counted() >= 1000)
    time.sleep(0.2)
    one.stop()
    config = load(one.file)
    with State(config) as state:
        found = {answer.aggregate: answer.value for answer in Pipeline(config, state).answers("a", "all")}
        assert found == {"sum": sum(range(1, 1001)), "count": 1000}
        assert (state.counters["accepted"], state.counters["mqtt.sessions_lost"]) == (1000, 0)
        assert state.counters["mqtt.connects"] == 3


def test_a_state_elsewhere_and_an_agent_that_is_not_there_are_refused(tmp_path: Path) -> None:
    """Each with its remedy."""
    file = tmp_path / "agent.toml"
    file.write_text(BASE.format(port=1883))
    now = load(file)
    with pytest.raises(EnvironmentRefused, match="no agent runs on"):
        ask(now, accept=False, seconds=1)
    file.write_text(BASE.format(port=1883).replace('path = "state"', 'path = "elsewhere"'))
    reloading = Reloading(file)
    assert reloading.read(now) is None
    assert "stay as they are while the agent runs" in reloading.result
