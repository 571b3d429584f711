"""A running agent that listens: what it shows is what its state holds; without a listener nothing is loaded."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("paho.mqtt.client", reason="the agent's tests need the extra `agent`")
import paho.mqtt.client as mqtt
from brokers import mosquitto, until
from paho.mqtt.enums import CallbackAPIVersion

from sluicegate_demo.ports import free_port

SLUICEGATE = [sys.executable, "-m", "sluicegate"]
CONFIGURATION = """
[device]
id = "ewr"
[state]
path = "state"
[mqtt]
port = {port}
[commit]
every = "50ms"
[results]
topic = ""
every = "0"
[metrics]
listen = "127.0.0.1:{listen}"
[[source]]
topic = "weather"
time = "time"
time_format = "s"
sequence = "seq"
streams = {{ temp = "temp", wind = "wind" }}
[[window]]
name = "w"
policy = {{ count = 1000 }}
aggregate = ["sum", "max"]
buckets = 16
"""


class Running:
    """An agent and its listener."""

    def __init__(self, port: int, listen: int) -> None:
        self.port, self.listen = port, listen

    def get(self, path: str) -> tuple[int, str]:
        """Status and body."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.listen}{path}", timeout=30) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def json(self, path: str) -> Any:
        """The body, parsed."""
        return json.loads(self.get(path)[1])

    def send(self, numbers: range) -> None:
        """A message a number, until the broker has them."""
        client = mqtt.Client(CallbackAPIVersion.VERSION2)
        client.connect("127.0.0.1", self.port)
        client.loop_start()
        bodies = [json.dumps({"seq": i, "time": 1_700_000_000 + i, "temp": i, "wind": -i}) for i in numbers]
        for sent in [client.publish("weather", body, 1) for body in bodies]:
            sent.wait_for_publish(120)
        client.disconnect()
        client.loop_stop()


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    """An agent with a broker of its own."""
    listen = free_port()
    with mosquitto(tmp_path, free_port()) as port:
        (tmp_path / "agent.toml").write_text(CONFIGURATION.format(port=port, listen=listen))
        with (tmp_path / "log").open("wb") as log:
            process = subprocess.Popen([*SLUICEGATE, "run", str(tmp_path / "agent.toml")], stderr=log)
        found = Running(port, listen)
        until(lambda: found.get("/ready")[0] == 200, told=lambda: (tmp_path / "log").read_text())
        yield found
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        with pytest.raises(OSError, match="refused"):
            found.get("/health")


def test_what_it_shows_is_what_it_counted(running: Running) -> None:
    """Metrics, answers with value, low and high, streams and buckets as CSV agree with what was sent."""
    running.send(range(100))
    until(lambda: "sluicegate_accepted_total 200.0" in running.get("/metrics")[1], told=lambda: running.get("/metrics"))
    until(lambda: any(a["count"] == 100 for a in running.json("/api/answers")["results"]))
    (total,) = running.json("/api/answers?stream=temp&window=w&aggregate=sum")["results"]
    assert total["low"] <= 4950 <= total["high"]
    status, table = running.get("/api/buckets?stream=temp&window=w")
    header, *rows = table.splitlines()
    assert (status, header) == (200, "count,t_first_us,t_last_us,sum,max")
    assert sum(int(row.split(",")[0]) for row in rows) == 100
    assert sum(float(row.split(",")[3]) for row in rows) == 4950
    some = running.get("/api/buckets?stream=temp&window=w&from=1700000090000000")[1].splitlines()
    assert 1 < len(some) < len(rows) + 1
    shown = running.json("/api/status")
    assert [each["readings"] for each in shown["streams"]] == [100, 100]
    assert shown["rss_bytes"] < shown["planned_bytes"]
    assert running.json("/api/streams?stream=wind")[0]["stream"] == "wind"
    assert running.json("/health") == {"status": "ok"}


def test_what_there_is_not_is_told(running: Running) -> None:
    """A path, a window, a time: with what there is, or what was expected."""
    assert running.get("/nothing")[0] == 404
    assert running.get("/api/buckets?stream=temp&window=none")[0] == 404
    assert running.get("/api/buckets?stream=temp")[0] == 400
    assert running.get("/api/buckets?stream=temp&window=w&from=yesterday")[0] == 400


def test_without_a_listener_nothing_of_it_is_loaded(tmp_path: Path) -> None:
    """Neither the server nor the library: an agent that nobody asks pays nothing."""
    configuration = CONFIGURATION.format(port=free_port(), listen=1).replace('listen = "127.0.0.1:1"', "")
    (tmp_path / "agent.toml").write_text(configuration)
    code = (
        "import sys; from sluicegate_agent.commands.run import run\n"
        f"run.main([{str(tmp_path / 'agent.toml')!r}, '--idle', '0.1'], standalone_mode=False)\n"
        "sys.exit(' '.join(m for m in sys.modules if m.startswith(('prometheus', 'sluicegate_agent.web.s'))) or 0)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120)
    assert ran.returncode == 0, ran.stderr
