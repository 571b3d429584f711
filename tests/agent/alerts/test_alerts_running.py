"""A running agent tells of an alert over a real broker: retained, once, and after a restart what was not taken."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("paho.mqtt.client", reason="the agent's tests need the extra `agent`")
import paho.mqtt.client as mqtt
from brokers import mosquitto, until
from paho.mqtt.enums import CallbackAPIVersion

from sluicegate_demo.ports import free_port

CONFIGURATION = """
[device]
id = "ewr"
[state]
path = "state"
[mqtt]
port = {port}
version = {version}
[commit]
every = "20ms"
[[source]]
topic = "level"
format = "number"
streams = {{ level = "" }}
[[window]]
name = "last"
policy = {{ count = 1 }}
aggregate = "last"
buckets = 0
[[alert]]
name = "high"
window = "last"
above = 10
clear = 8
"""


@pytest.mark.parametrize("version", ["5", '"3.1.1"'])
def test_an_alert_reaches_who_listens_and_who_comes_later(version: str, tmp_path: Path) -> None:
    """Raised and cleared once each, QoS 1; the newest is retained."""
    with mosquitto(tmp_path, free_port()) as port:
        (tmp_path / "agent.toml").write_text(CONFIGURATION.format(port=port, version=version))
        heard: list[tuple[int, bool, dict[str, Any]]] = []
        with (tmp_path / "log").open("wb") as log:
            agent = subprocess.Popen(
                [sys.executable, "-m", "sluicegate", "run", str(tmp_path / "agent.toml")], stderr=log
            )
        client = mqtt.Client(CallbackAPIVersion.VERSION2)
        client.on_message = lambda _c, _u, m: heard.append((m.qos, bool(m.retain), json.loads(m.payload)))
        client.connect("127.0.0.1", port)
        client.subscribe("sluicegate/ewr/alerts/#", 1)
        client.loop_start()
        until(lambda: b"connected" in (tmp_path / "log").read_bytes(), told=lambda: (tmp_path / "log").read_text())
        for told, values in ((1, (5, 11)), (2, (12, 9, 8, 7))):  # what lies between two commits raises nothing
            for value in values:
                client.publish("level", str(value), 1).wait_for_publish(60)
            until(lambda told=told: len(heard) == told, told=lambda: (tmp_path / "log").read_text())
        assert [(qos, body["state"]) for qos, _, body in heard] == [(1, "raised"), (1, "cleared")]
        client.unsubscribe("sluicegate/ewr/alerts/#")
        client.subscribe("sluicegate/ewr/alerts/#", 1)
        until(lambda: len(heard) == 3)
        assert (heard[2][1], heard[2][2]["state"]) == (True, "cleared")
        agent.send_signal(signal.SIGTERM)
        assert agent.wait(60) == 0
        client.disconnect()
        client.loop_stop()
