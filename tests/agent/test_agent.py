"""A running agent, through the real command line and a real broker: counts once, answers, survives, leaves politely."""

from __future__ import annotations

import json
import resource
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("paho.mqtt.client", reason="the agent's tests need the extra `agent`")
import paho.mqtt.client as mqtt
from brokers import mosquitto, until
from paho.mqtt.enums import CallbackAPIVersion

from sluicegate.format import chunk as chunks
from sluicegate_agent.config import load
from sluicegate_agent.errors import EnvironmentRefused
from sluicegate_agent.plan import plan
from sluicegate_agent.state import read_status
from sluicegate_demo.ports import free_port

SLUICEGATE = [sys.executable, "-m", "sluicegate"]
CONFIGURATION = """
[device]
id = "ewr"
[state]
path = "state"
[mqtt]
port = {port}
keepalive = "5s"
[commit]
every = "50ms"
[results]
every = "0"
[bucket]
readings = 8
[sync]
target = "directory"
path = "chunks"
every = "100ms"
[[source]]
topic = "weather/ewr"
time = "time"
time_format = "s"
sequence = "seq"
streams = {{ temp = "temp", wind = "wind" }}
[[window]]
name = "mean_24h"
policy = {{ time = "24h" }}
aggregate = ["mean", "count"]
buckets = 16
"""


class Publisher:
    """Another client: sends readings and hears results."""

    def __init__(self, port: int) -> None:
        self.heard: list[dict[str, Any]] = []
        self._client = mqtt.Client(CallbackAPIVersion.VERSION2)
        self._client.on_message = lambda _c, _u, message: self.heard.extend(json.loads(message.payload)["results"])
        self._client.connect("127.0.0.1", port)
        self._client.subscribe("sluicegate/ewr/results")
        self._client.loop_start()

    def send(self, numbers: range, step: int = 3600, **more: Any) -> None:
        """One message a number, an hour apart unless told otherwise; waits until the broker has them."""
        sent = []
        for i in numbers:
            body = {"seq": i, "time": 1357000000 + step * i, "temp": temp(i), "wind": i % 7} | more
            sent.append(self._client.publish("weather/ewr", json.dumps(body), 1))
        for info in sent:
            info.wait_for_publish(120)
            assert info.is_published(), "the broker takes nothing"

    def close(self) -> None:
        """Leave."""
        self._client.disconnect()
        self._client.loop_stop()


def temp(i: int) -> float:
    """The value of message i."""
    return (i * 7 % 50) / 4


STARTED: list[subprocess.Popen[bytes]] = []


@pytest.fixture(autouse=True)
def _leave_no_agent_behind() -> Iterator[None]:
    """A test that fails or skips half-way ends the agents it started all the same."""
    yield
    while STARTED:
        process = STARTED.pop()
        process.kill()
        process.wait(60)


class Running:
    """An agent in a process of its own."""

    def __init__(self, folder: Path, *options: str, **process: Any) -> None:
        self.folder = folder
        with (folder / "log").open("a") as log:
            command = [*SLUICEGATE, "run", str(folder / "agent.toml"), *options]
            self.process = subprocess.Popen(command, stderr=log, **process)
        STARTED.append(self.process)

    def status(self) -> dict[str, Any]:
        """What `sluicegate status --json` says."""
        done = subprocess.run(
            [*SLUICEGATE, "status", str(self.folder / "agent.toml"), "--json"], capture_output=True, check=False
        )
        return json.loads(done.stdout) if done.returncode == 0 else {}

    def broker(self) -> str:
        """What `sluicegate status` says of the broker; nothing before its first word."""
        return str(self.status().get("process", {}).get("mqtt", {}).get("state", ""))

    def counted(self, name: str) -> int:
        """A counter as of the last commit, read straight from the store: a quick look."""
        try:
            return int(read_status(self.folder / "state")["counters"].get(name, 0))
        except (EnvironmentRefused, KeyError):
            return 0

    def reached(self, messages: int) -> None:
        """Wait until so many messages are committed."""
        self.until_counted("messages", messages)

    def until_counted(self, name: str, count: int) -> None:
        """Wait until a counter has come so far."""
        until(lambda: self.counted(name) >= count, told=lambda: f"{name} {self.counted(name)} of {count}; {self.log()}")

    def log(self) -> str:
        """What it has said."""
        return (self.folder / "log").read_text()[-4000:]

    def connected(self) -> None:
        """Wait until it says that it is connected, which is when the broker has its subscription."""
        until(lambda: '"connected"' in (self.folder / "state/agent.json").read_text(), told=self.log)

    def end(self, number: int = signal.SIGTERM) -> int:
        """Signal it and wait; its exit code."""
        self.process.send_signal(number)
        return self.process.wait(120)


@pytest.fixture
def setting(tmp_path: Path) -> Iterator[tuple[Path, int]]:
    """A broker and a folder with a configuration for it and a target folder."""
    with mosquitto(tmp_path, free_port()) as port:
        (tmp_path / "agent.toml").write_text(CONFIGURATION.format(port=port))
        (tmp_path / "chunks").mkdir()
        yield tmp_path, port


def arrived(folder: Path) -> dict[str, list[tuple[int, int]]]:
    """Ordinal and number of readings of every bucket at the target, by stream."""
    found: dict[str, list[tuple[int, int]]] = {}
    for file in sorted((folder / "chunks").rglob("*.json")):
        columns = chunks.columns(file.read_bytes())
        found.setdefault(columns["stream"], []).extend(zip(columns["first"], columns["n"], strict=True))
    return {stream: sorted(rows) for stream, rows in found.items()}


def test_readings_become_answers_and_documents(setting: tuple[Path, int]) -> None:
    """Over a real broker: repeats count once, results are right, SIGTERM commits and hands over, exit code 0."""
    folder, port = setting
    agent, publisher = Running(folder, "--drain"), Publisher(port)
    agent.connected()
    publisher.send(range(500))
    publisher.send(range(400, 450))
    agent.until_counted("messages", 550)
    until(lambda: any((r["stream"], r["aggregate"], r["ordinal"]) == ("temp", "mean", 499) for r in publisher.heard))
    publisher.close()
    assert agent.end() == 0
    counters = agent.status()["counters"]
    assert (counters["accepted"], counters["duplicates"]) == (1000, 50)
    newest = [temp(i) for i in range(476, 500)]
    mean = next(r for r in publisher.heard if (r["stream"], r["aggregate"], r["ordinal"]) == ("temp", "mean", 499))
    assert mean["low"] <= sum(newest) / 24 <= mean["high"]
    rows = arrived(folder)
    assert {stream: sum(n for _, n in found) for stream, found in rows.items()} == {"temp": 500, "wind": 500}


@pytest.mark.faults
def test_a_killed_agent_goes_on_where_it_was(setting: tuple[Path, int]) -> None:
    """kill -9 in the middle of the stream, twice: nothing acknowledged is lost, nothing counts twice."""
    folder, port = setting
    agent, publisher = Running(folder), Publisher(port)
    agent.connected()
    sender = threading.Thread(target=publisher.send, args=(range(6000),))
    sender.start()
    for goal in (1000, 3000):
        agent.reached(goal)
        agent.end(signal.SIGKILL)
        agent = Running(folder, "--drain")
    sender.join()
    agent.until_counted("accepted", 12_000)
    publisher.close()
    assert agent.end() == 0
    for found in arrived(folder).values():
        ends = [first + n for first, n in found]
        assert [first for first, _ in found] == [0, *ends[:-1]]
        assert ends[-1] == 6000
    assert agent.status()["streams"]["temp"]["missing"] == 0


def test_it_starts_without_broker_and_target(tmp_path: Path) -> None:
    """Both away at the start: the agent waits, says so, and goes on by itself when they come."""
    port = free_port()
    (tmp_path / "agent.toml").write_text(CONFIGURATION.format(port=port))
    agent = Running(tmp_path)
    until(lambda: "nobody listens there" in (tmp_path / "log").read_text())
    until(lambda: "nobody listens" in agent.broker(), told=agent.status)
    with mosquitto(tmp_path, port):
        until(lambda: agent.broker() == "connected", told=agent.status)
        publisher = Publisher(port)
        publisher.send(range(50))
        agent.until_counted("messages", 50)
        (tmp_path / "chunks").mkdir()
        publisher.close()
    assert agent.end(signal.SIGINT) == 0


def test_idle_ends_it(setting: tuple[Path, int]) -> None:
    """`--idle --drain` ends by itself and has handed everything on; where it could not, test_commands.py has it."""
    folder, port = setting
    agent, publisher = Running(folder), Publisher(port)
    agent.connected()
    assert agent.end() == 0  # the broker keeps its session, and what comes now
    publisher.send(range(20))
    publisher.close()
    while agent.counted("messages") < 20:  # a second may be too short for a broker that has not said a word
        agent = Running(folder, "--idle", "1", "--drain")
        assert agent.process.wait(120) == 0, agent.log()
    assert {stream: sum(n for _, n in found) for stream, found in arrived(folder).items()} == {"temp": 20, "wind": 20}


def test_it_runs_within_its_plan(setting: tuple[Path, int]) -> None:
    """Under RLIMIT_DATA as planned, with full batches, repeats, junk and huge payloads, it stays below its budget."""
    folder, port = setting
    worst = plan(load(folder / "agent.toml"))
    limit = (worst.data_bytes, worst.data_bytes)
    agent = Running(folder, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, limit))
    publisher = Publisher(port)
    agent.connected()
    publisher.send(range(8000))
    publisher.send(range(8000, 8040), pad=["x"] * 10_000)
    publisher.send(range(8040, 8060), pad="x" * 100_000)
    agent.until_counted("accepted", 2 * 8040)  # not messages: what the broker sends again is among those
    agent.until_counted("refused.unreadable", 20)
    lines = dict(line.split(":", 1) for line in Path(f"/proc/{agent.process.pid}/status").read_text().splitlines())
    publisher.close()
    assert agent.end() == 0
    peak, data = (int(lines[key].split()[0]) * 1024 for key in ("VmHWM", "VmData"))
    assert peak <= min(worst.memory, 48 << 20), f"resident {peak}, planned {worst.memory}"
    assert data <= worst.data_bytes
    on_disk = sum(file.stat().st_size for file in (folder / "state").iterdir())
    assert on_disk <= worst.disk
    assert agent.counted("refused.unreadable") >= 20
    assert agent.counted("accepted") == 2 * 8040


def test_it_loads_only_what_it_needs(setting: tuple[Path, int]) -> None:
    """No numpy, no Spark, no cloud part in the agent's process; command modules import click alone at their top."""
    folder, _ = setting
    code = (
        "import sys; from sluicegate.cli import main\n"
        "try: main(['run', sys.argv[1], '--idle', '0.2'])\n"
        "except SystemExit as end: assert end.code == 0, end.code\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder / "agent.toml")], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert not loaded & {"numpy", "pandas", "pyarrow", "pyspark", "sluicegate_cloud", "sluicegate_demo", "asyncio"}
    code = (
        "import sys; before = set(sys.modules)\n"
        "from sluicegate_agent.commands import check, plan, replay, run, status\n"
        "print(*sorted({name.partition('.')[0] for name in set(sys.modules) - before}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not set(done.stdout.split()) & {"msgspec", "paho", "sqlite3", "tomllib", "json"}


def test_a_full_disk_is_waited_out(setting: tuple[Path, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """While commits fail nothing is acknowledged and the broker is left alone; afterwards everything counts once."""
    from sluicegate_agent import agent as module
    from sluicegate_agent.state import State

    folder, port = setting
    monkeypatch.setattr(module, "_RETRY_COMMIT", 0.2)
    publisher = Publisher(port)
    with State(load(folder / "agent.toml")) as state:
        agent = module.Agent(load(folder / "agent.toml"), state)
        until(lambda: agent.turn() or agent.link.state == "connected", told=agent.link.status)
        real, failing = agent.pipeline.commit, True

        def commit() -> list[int]:
            if failing:
                raise sqlite3.OperationalError("database or disk is full")
            return real()

        monkeypatch.setattr(agent.pipeline, "commit", commit)
        publisher.send(range(30))
        until(lambda: agent.turn() or state.counters["commits.failed"] >= 2)
        assert "disk is full" in agent.link.state
        failing = False
        until(  # the broker sends again what was not acknowledged
            lambda: agent.turn() or (agent.pipeline.pending == 0 and state.counters["duplicates"] > 0),
            told=lambda: f"{agent.link.status()}, {state.counters['duplicates']} duplicates",
        )
        publisher.send(range(30, 40))
        until(lambda: agent.turn() or state.counters["accepted"] == 80)
        until(lambda: agent.turn() or agent.link.status()["unacknowledged"] == 0)
        agent.finish()
    publisher.close()


def test_the_link_lives_through_slow_commits(setting: tuple[Path, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit that takes longer than the keep-alive allows costs no connection beyond what the broker decides.

    The client's clock jumps instead of anybody waiting; the broker, whose clock does not, decides nothing.
    """
    from sluicegate_agent import agent as module
    from sluicegate_agent.state import State

    folder, port = setting
    (folder / "agent.toml").write_text(CONFIGURATION.format(port=port).replace('"5s"', '"60s"'))
    publisher, late = Publisher(port), [0.0]
    monkeypatch.setattr("paho.mqtt.client.time_func", lambda: time.monotonic() + late[0])
    with State(load(folder / "agent.toml")) as state:
        agent = module.Agent(load(folder / "agent.toml"), state)
        until(lambda: agent.turn() or agent.link.state == "connected", told=agent.link.status)
        real = agent.pipeline.commit

        def commit() -> list[int]:
            late[0] = 90.0
            return real()

        monkeypatch.setattr(agent.pipeline, "commit", commit)
        publisher.send(range(5))
        until(lambda: agent.turn() or state.counters["accepted"] == 10)
        until(lambda: agent.turn() or agent.link.status()["unacknowledged"] == 0)
        assert late == [90.0]
        assert (state.counters["mqtt.connects"], state.counters["mqtt.disconnects"]) == (1, 0)
        assert agent.link.connected
        agent.link.close()
    publisher.close()
