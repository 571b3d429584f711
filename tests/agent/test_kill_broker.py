"""A real agent on a real Mosquitto, killed again and again, counts bare numbers once: no sequence, no time.

This is the hardest identity there is (docs/decisions/0005): it leans on the broker repeating in order and before
anything new, which is what is tried here.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

pytest.importorskip("paho.mqtt.client", reason="the agent's tests need the extra `agent`")
import paho.mqtt.client as mqtt
from brokers import mosquitto, until
from paho.mqtt.enums import CallbackAPIVersion
from thorough import number

from sluicegate.format.bucket import Bucket
from sluicegate_agent.faults import VARIABLE
from sluicegate_agent.state import read_status
from sluicegate_agent.state.status import looked_into
from sluicegate_demo.ports import free_port

pytestmark = [pytest.mark.faults, pytest.mark.slow]
MESSAGES, KILLS, AHEAD = number(3000, 1500), number(14, 5), 90
FAULTS = ("{1}", "{0}@commit: durable, not acknowledged", "{0}@transaction: before commit")
CONFIGURATION = """
[device]
id = "gate"
[state]
path = "state"
[mqtt]
port = {port}
version = {version}
receive_maximum = 100
[commit]
every = "20ms"
[[source]]
topic = "door"
format = "number"
streams = {{ door = "" }}
[[window]]
name = "all"
policy = {{ count = 1000000 }}
aggregate = "sum"
"""


@pytest.fixture(params=["5", '"3.1.1"'])
def setting(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Path, int]]:
    """A broker and a folder with a configuration for it."""
    with mosquitto(tmp_path, free_port(), "max_inflight_messages 100") as port:
        (tmp_path / "agent.toml").write_text(CONFIGURATION.format(port=port, version=request.param))
        yield tmp_path, port


def start(folder: Path, fault: str = "") -> subprocess.Popen[bytes]:
    """An agent; with `fault` it dies as it passes that step."""
    environment = os.environ | ({VARIABLE: fault} if fault else {})
    with (folder / "log").open("a") as log:
        command = [sys.executable, "-m", "sluicegate", "run", str(folder / "agent.toml"), "--drain"]
        return subprocess.Popen(command, stderr=log, env=environment)


def link(folder: Path) -> str:
    """How the agent says that it stands with the broker; OSError before its first word."""
    return str(json.loads((folder / "state/agent.json").read_text())["mqtt"]["state"])


def said(folder: Path) -> str:
    """What the agents have said last, and how far they are."""
    return f"{accepted(folder)} readings accepted; {(folder / 'log').read_text()[-4000:]}"


def accepted(folder: Path) -> int:
    """Readings counted as of the last commit."""
    return int(read_status(folder / "state")["counters"].get("accepted", 0))


def total(folder: Path) -> float:
    """The sum of all readings in the outbox, where nothing takes them away."""
    with looked_into(folder / "state") as store:
        assert store is not None
        buckets = [Bucket.unpack(row) for (row,) in store.execute("SELECT bucket FROM outbox ORDER BY first")]
    return sum(b.total + b.n * buckets[0].x_first for b in buckets)


def publish(folder: Path, port: int, values: list[float], end: threading.Event) -> None:
    """All values, a little apart, so that they arrive before, between and after the kills; at most AHEAD before them.

    With more in its queue than Receive Maximum, Mosquitto 2.0.11 sends all of it at the first PUBACK, and after a kill
    again whatever it has not read a PUBACK for: on a machine that stands still in between more than any client's log.
    """
    client = mqtt.Client(CallbackAPIVersion.VERSION2)
    client.connect("127.0.0.1", port)
    client.loop_start()
    done = 0
    for sent, value in enumerate(values):
        while sent - done >= AHEAD and sent - (done := max(done, accepted(folder))) >= AHEAD:
            time.sleep(0.03)
        client.publish("door", str(value), 1).wait_for_publish(120)
        end.wait(0.004)
    client.disconnect()
    client.loop_stop()


def has_ended(agent: subprocess.Popen[bytes]) -> bool:
    """Whether it dies within a moment: looking into its store a hundred times a second costs more than it does."""
    with suppress(subprocess.TimeoutExpired):
        agent.wait(0.1)
    return agent.poll() is not None


def test_bare_numbers_count_once(setting: tuple[Path, int]) -> None:
    """Killed eight times at steps of accept and commit: as many readings as were published, and their exact sum."""
    folder, port = setting
    rng, end = random.Random(5), threading.Event()
    values = [rng.choice((0.0, 0.0, 0.0, 1.0, 0.5)) for _ in range(MESSAGES)]
    agent = start(folder)
    until(lambda: link(folder) == "connected", told=lambda: said(folder))
    publisher = threading.Thread(target=publish, args=(folder, port, values, end))
    publisher.start()
    until(lambda: accepted(folder) > 20, told=lambda: said(folder))
    agent.send_signal(signal.SIGKILL)
    agent.wait()
    deaths = 0
    for _ in range(KILLS):
        agent = start(folder, rng.choice(FAULTS).format(rng.randint(1, 6), rng.randint(5, 260)))
        until(lambda agent=agent: has_ended(agent) or accepted(folder) >= MESSAGES, told=lambda: said(folder))
        deaths += agent.poll() == -signal.SIGKILL
        if agent.poll() is None:
            break
    if agent.returncode is None:  # the step at which it is to die may still come
        agent.kill()
        agent.wait()
    agent = start(folder)
    end.set()
    publisher.join()
    until(lambda: accepted(folder) >= MESSAGES, told=lambda: said(folder))
    agent.send_signal(signal.SIGTERM)
    assert agent.wait(120) == 0
    found = read_status(folder / "state")
    assert found["streams"]["door"]["accepted"] == MESSAGES
    assert total(folder) == sum(values)
    assert deaths >= KILLS // 2
    assert found["counters"]["duplicates"] > 0, "some PUBACK should have been lost"
