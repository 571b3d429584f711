"""Other people's servers, a real agent and the poller between them: each reading counts once through kills of all."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
pytest.importorskip("pymodbus", reason="needs the extra `modbus`")
pytest.importorskip("asyncua", reason="needs the extra `opcua`")
from thorough import number

from sluicegate_agent.errors import EnvironmentRefused
from sluicegate_agent.state import read_status
from sluicegate_demo.ports import free_port

PLANT = Path(__file__).parent / "simulated_plant.py"
DEVICES = """
[[modbus]]
topic = "press"
host = "127.0.0.1"
port = {modbus}
every = "20ms"
values.temperature = {{ address = 100, type = "float32" }}
values.small = {{ address = 102, type = "int16" }}
values.large = {{ address = 103, type = "float64" }}
values.running = {{ address = 3, kind = "coil" }}
values.nothing = {{ address = 900 }}
[[opcua]]
topic = "oven"
url = "opc.tcp://127.0.0.1:{opcua}/"
security = "none"
every = "20ms"
values = {{ heat = "ns=2;s=Heat", door = "ns=2;s=Door", label = "ns=2;s=Label", broken = "ns=2;s=Broken" }}
"""


class Site:
    """The processes of one test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ports = {"modbus": free_port(), "opcua": free_port()}
        self.http = free_port()
        agent = f'[agent]\nurl = "http://127.0.0.1:{self.http}"\n'
        (folder / "poll.toml").write_text(agent + DEVICES.format(**self.ports))
        self.running: list[subprocess.Popen[str]] = []

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """A process of this Python."""
        command = [sys.executable, *arguments]
        pipe = subprocess.PIPE
        self.running.append(subprocess.Popen(command, cwd=self.folder, stdout=pipe, stderr=pipe, text=True))
        return self.running[-1]

    def plant(self) -> subprocess.Popen[str]:
        """Both servers, ready."""
        plant = self.start(str(PLANT), str(self.ports["modbus"]), str(self.ports["opcua"]))
        assert plant.stdout is not None
        assert plant.stdout.readline() == "ready\n"
        return plant

    def agent(self) -> subprocess.Popen[str]:
        """An agent with the sources that the poller prints, which it is asked for once."""
        if not (self.folder / "agent.toml").exists():
            told = subprocess.run(
                [sys.executable, "-m", "sluicegate", "poll", "poll.toml", "--sources"],
                cwd=self.folder, capture_output=True, text=True, check=True, timeout=60,
            )  # fmt: skip
            head = f'[device]\nid = "d"\n[state]\npath = "state"\n[http]\nlisten = "127.0.0.1:{self.http}"\n'
            (self.folder / "agent.toml").write_text(head + told.stdout)
        return self.start("-m", "sluicegate", "run", "agent.toml")

    def accepted(self) -> int:
        """Readings that count, as of the last commit."""
        try:
            return int(read_status(self.folder / "state")["counters"].get("accepted", 0))
        except EnvironmentRefused:
            return 0

    def until(self, count: int) -> None:
        """Wait until so many readings count."""
        deadline = time.monotonic() + 180
        while self.accepted() < count:
            assert time.monotonic() < deadline, f"{self.accepted()} of {count} after three minutes"
            time.sleep(0.05)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """Ends what is still running."""
    made = Site(tmp_path)
    yield made
    for process in made.running:
        process.kill()
        process.communicate()


def test_once_prints_the_values_and_says_what_cannot_be_read(site: Site) -> None:
    """Types, word order and bits as the servers hold them; a bad address, a text and a bad status by name."""
    site.plant()
    once = site.start("-m", "sluicegate", "poll", "poll.toml", "--once")
    told, _ = once.communicate(timeout=60)
    assert once.returncode == 1
    lines = told.splitlines()
    assert lines[:5] == [
        "press temperature = 21.5",
        "press small = -7",
        "press large = 1e+100",
        "press running = 1",
        "press nothing = -",
    ]
    assert lines[6:10] == ["oven heat = 180.25", "oven door = 1", "oven label = -", "oven broken = -"]
    assert "exception_code=2" in lines[5]
    assert "BadSensorFailure" in told
    assert "a str is no number" in told


def test_a_device_that_is_not_there_is_named(site: Site) -> None:
    """Both kinds."""
    once = site.start("-m", "sluicegate", "poll", "poll.toml", "--once")
    told, _ = once.communicate(timeout=60)
    assert once.returncode == 1
    assert f"press: no connection to 127.0.0.1:{site.ports['modbus']}" in told
    assert f"oven: opc.tcp://127.0.0.1:{site.ports['opcua']}/: " in told


@pytest.mark.faults
@pytest.mark.slow
def test_each_reading_counts_once_through_kills_of_the_agent_and_the_plant(site: Site) -> None:
    """What the poller has read is what the agent counts: four values of the press, two of the oven."""
    plant, agent = site.plant(), site.agent()
    poller = site.start("-m", "sluicegate", "poll", "poll.toml")
    for killed in range(2):
        site.until(number(150, 60) * (killed + 1))
        agent.kill()
        agent.wait()
        if killed == 1:
            plant.kill()
            plant.wait()
            plant = site.plant()
        agent = site.agent()
    site.until(number(450, 180))
    poller.terminate()
    _, told = poller.communicate(timeout=120)
    press, oven = (
        {name: int(count) for name, count in re.findall(r"(\w+) (\d+)", line)} for line in told.splitlines()[-2:]
    )
    for counts in (press, oven):
        assert counts["read"] == counts["sent"] > 0, told
        assert counts["dropped"] == counts["refused"] == 0
    assert press["failed"] + oven["failed"] > 0, "the plant was away"
    agent.terminate()
    agent.wait(120)
    assert site.accepted() == 4 * press["read"] + 2 * oven["read"]
