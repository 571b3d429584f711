"""The real agent behind a wildcard, on Mosquitto and RabbitMQ, killed on the way: every machine's readings, once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("paho.mqtt.client", reason="the agent's tests need the extra `agent`")
import paho.mqtt.client as mqtt
from brokers import mosquitto, rabbitmq, until
from paho.mqtt.enums import CallbackAPIVersion
from plants import NOON, SECOND, arrived

from sluicegate_agent.state import read_status
from sluicegate_demo.ports import free_port

pytestmark = [pytest.mark.faults, pytest.mark.slow]
MACHINES, ROUNDS = 12, 40
CONFIGURATION = """
[device]
id = "gateway"
[state]
path = "state"
memory = "96MiB"
disk = "256MiB"
[mqtt]
port = {port}
version = "3.1.1"
receive_maximum = 100
[guard]
future = "0"
[commit]
every = "20ms"
[sync]
target = "directory"
path = "chunks"
[bucket]
readings = 4
[[source]]
topic = "plant/{{site}}/{{machine}}/+"
streams = {{ temp = "temp" }}
time = "t"
time_format = "us"
sequence = "n"
[[source]]
topic = "batch/#"
format = "array"
key = "id"
time = "t"
time_format = "us"
streams = {{ level = "v" }}
[[window]]
name = "last"
policy = {{ count = 10 }}
buckets = 0
"""


@pytest.fixture(params=["mosquitto", "rabbitmq"])
def setting(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Path, int]]:
    """A broker, and a folder with a configuration for it and one for chunks."""
    (tmp_path / "chunks").mkdir()
    if request.param == "mosquitto":
        with mosquitto(tmp_path, free_port(), "max_inflight_messages 100") as port:
            (tmp_path / "agent.toml").write_text(CONFIGURATION.format(port=port))
            yield tmp_path, port
    else:
        ports = free_port(), free_port(), free_port(), free_port()
        with rabbitmq(tmp_path, ports, prefetch=100).running():
            (tmp_path / "agent.toml").write_text(CONFIGURATION.format(port=ports[0]))
            yield tmp_path, ports[0]


def start(folder: Path) -> subprocess.Popen[bytes]:
    """An agent that hands everything on when it is told to end, once it has subscribed."""
    (folder / "state" / "agent.json").unlink(missing_ok=True)
    with (folder / "agent.log").open("a") as log:
        command = [sys.executable, "-m", "sluicegate", "run", str(folder / "agent.toml"), "--drain"]
        agent = subprocess.Popen(command, stderr=log, env=os.environ)
    until(lambda: link(folder) == "connected", told=lambda: (folder / "agent.log").read_text()[-3000:])
    return agent


def link(folder: Path) -> str:
    """How the agent says that it stands with the broker; OSError before its first word."""
    return str(json.loads((folder / "state/agent.json").read_text())["mqtt"]["state"])


def accepted(folder: Path) -> int:
    """Readings counted as of the last commit."""
    return int(read_status(folder / "state")["counters"].get("accepted", 0))


def test_a_plant_through_a_real_broker(setting: tuple[Path, int]) -> None:
    """Twelve machines and a batch of keys, two kills on the way: the target has what was published, once."""
    folder, port = setting
    agent = start(folder)
    client = mqtt.Client(CallbackAPIVersion.VERSION2)
    client.connect("127.0.0.1", port)
    client.loop_start()
    for n in range(ROUNDS):
        for machine in range(MACHINES):
            said = {"n": n, "t": NOON + n * SECOND, "temp": n}
            client.publish(f"plant/s{machine % 2}/m{machine}/state", json.dumps(said), 1).wait_for_publish(60)
        items = [{"id": key, "t": NOON + n * SECOND, "v": n} for key in "ab"]
        client.publish(f"batch/{n % 3}", json.dumps(items), 1).wait_for_publish(60)
        if n in (ROUNDS // 3, 2 * ROUNDS // 3):
            until(lambda: accepted(folder) > 0)
            agent.send_signal(signal.SIGKILL)
            agent.wait()
            agent = start(folder)
    client.disconnect()
    client.loop_stop()
    total = ROUNDS * (MACHINES + 2)
    until(lambda: accepted(folder) >= total, told=lambda: f"{accepted(folder)} of {total}")
    time.sleep(0.2)
    agent.send_signal(signal.SIGTERM)
    assert agent.wait(120) == 0
    values = [float(n) for n in range(ROUNDS)]
    keys = [f"temp/s{machine % 2}/m{machine}/state" for machine in range(MACHINES)] + ["level/a", "level/b"]
    assert {name: sorted(found) for name, found in arrived(folder).items()} == {("gateway", k): values for k in keys}
