"""A real agent on a real Mosquitto, killed in the midst: a late decided maximum answers as if nothing had been.

The window is a staircase behind a tail, a shorter one is answered from its buckets; what the agent publishes at the end
is compared with the readings that each window has at the time which the answer says.
"""

from __future__ import annotations

import json
import random
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("paho.mqtt.client", reason="the agent's tests need the extra `agent`")
import paho.mqtt.client as mqtt
from brokers import mosquitto, until
from paho.mqtt.enums import CallbackAPIVersion
from test_kill_broker import accepted, link, said, start

from sluicegate_agent.state import read_status
from sluicegate_demo.ports import free_port

pytestmark = [pytest.mark.faults, pytest.mark.slow]
NOON, SECOND = 1_750_000_000_000_000, 1_000_000
READINGS, KILLED_AFTER = 900, (150, 400, 650)
SPANS = {"peak_10min": 600, "peak_1min": 60}
CONFIGURATION = """
[device]
id = "kiln"
[state]
path = "state"
[mqtt]
port = {port}
receive_maximum = 50
[commit]
every = "20ms"
[guard]
future = 0
[[source]]
topic = "kiln"
time = "t"
time_format = "us"
sequence = "n"
streams = {{ heat = "v" }}
[[window]]
name = "peak_10min"
policy = {{ time = "10min" }}
aggregate = "max"
buckets = 12
merge = "pairs"
max_like = {{ staircase = true, staging = 80 }}
[[window]]
name = "peak_1min"
policy = {{ time = "1min" }}
aggregate = "max"
shares = "peak_10min"
"""


@pytest.fixture
def setting(tmp_path: Path) -> Iterator[tuple[Path, int]]:
    """A broker and a folder with a configuration for it."""
    with mosquitto(tmp_path, free_port(), "max_inflight_messages 50") as port:
        (tmp_path / "agent.toml").write_text(CONFIGURATION.format(port=port))
        yield tmp_path, port


class Ear:
    """The newest published answer of each window and aggregate."""

    def __init__(self, port: int) -> None:
        self.heard: dict[tuple[str, str], dict[str, Any]] = {}
        self.client = mqtt.Client(CallbackAPIVersion.VERSION2)
        self.client.on_message = lambda _client, _data, message: self._take(json.loads(message.payload))
        self.client.on_connect = lambda client, *_: client.subscribe("sluicegate/kiln/results")
        self.client.connect("127.0.0.1", port)
        self.client.loop_start()

    def _take(self, told: dict[str, Any]) -> None:
        for result in told["results"]:
            self.heard[result["window"], result["aggregate"]] = result

    def close(self) -> None:
        """Leave the broker."""
        self.client.disconnect()
        self.client.loop_stop()


def publish(port: int, values: list[float], first: int, end: int) -> None:
    """Readings first … end − 1, a second apart by their own clock."""
    client = mqtt.Client(CallbackAPIVersion.VERSION2)
    client.connect("127.0.0.1", port)
    client.loop_start()
    for n in range(first, end):
        payload = json.dumps({"n": n, "t": NOON + n * SECOND, "v": values[n]})
        client.publish("kiln", payload, 1).wait_for_publish(120)
    client.disconnect()
    client.loop_stop()


def test_a_staircase_survives_kill_9(setting: tuple[Path, int]) -> None:
    """Killed three times while messages come; the last published answers hold the exact ones, the short is exact."""
    folder, port = setting
    rng = random.Random(11)
    values = [100.0]
    while len(values) < READINGS:  # slow falls, deeper than the tail, and sudden rises
        values.append(100.0 + rng.random() if rng.random() < 0.01 else values[-1] - rng.random() * 0.2)
    agent, ear = start(folder), Ear(port)
    until(lambda: link(folder) == "connected", told=lambda: said(folder))
    publisher = threading.Thread(target=publish, args=(port, values, 0, READINGS))
    publisher.start()
    for after in KILLED_AFTER:
        until(lambda after=after: accepted(folder) >= after, told=lambda: said(folder))
        agent.send_signal(signal.SIGKILL)
        agent.wait()
        agent = start(folder)
    publisher.join()
    until(lambda: accepted(folder) >= READINGS, told=lambda: said(folder))
    until(lambda: len(ear.heard) == 2 and all(each["ordinal"] == READINGS - 1 for each in ear.heard.values()))
    agent.send_signal(signal.SIGTERM)
    assert agent.wait(120) == 0
    ear.close()
    found = read_status(folder / "state")
    assert found["streams"]["heat"]["accepted"] == READINGS
    assert found["counters"].get("windows.begun_anew", 0) == 0
    assert [(each["window"], each["leaves"] > 0) for each in found["windows"]] == [
        ("peak_10min", True), ("peak_1min", False),
    ]  # fmt: skip
    for (window, _), told in ear.heard.items():
        begin = told["time_us"] - SPANS[window] * SECOND  # `time_us` is the last reading's, or later by a silence
        true = max(value for n, value in enumerate(values) if NOON + n * SECOND > begin)
        assert told["low"] <= true <= told["high"], window
        assert told["low"] <= told["value"] <= told["high"]
        if window == "peak_1min":
            assert told["value"] == true
            assert told["exact"] is True
