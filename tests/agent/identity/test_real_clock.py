"""A real agent on a real Mosquitto, its clock set by libfaketime both ways: what waits counts once, nothing twice.

The same broker brings a sensor's restart and wrap to an agent that is killed in between.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

pytest.importorskip("paho.mqtt.client", reason="the agent's tests need the extra `agent`")
import paho.mqtt.client as mqtt
from brokers import mosquitto, until
from paho.mqtt.enums import CallbackAPIVersion
from thorough import WHOLE

from sluicegate.format.bucket import Bucket
from sluicegate_agent.identity.clock import is_synchronised
from sluicegate_agent.state import read_status
from sluicegate_agent.state.status import looked_into
from sluicegate_demo.ports import free_port

pytestmark = [pytest.mark.faults, pytest.mark.slow]
LIBRARIES = sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))
DAYS = 86_400
CONFIGURATION = """
[device]
id = "board"
[state]
path = "state"
[mqtt]
port = {port}
[commit]
every = "50ms"
[[source]]
topic = "numbered"
sequence = "n"
streams = {{ level = "v" }}
[[source]]
topic = "timed"
time = "t"
time_format = "ms"
streams = {{ heat = "v" }}
"""
UNSET = """
[guard]
clock_chip = false
[[source]]
topic = "untimed"
sequence = "n"
streams = { door = "v" }
"""


class Setting:
    """A broker, an agent whose clock a file sets, and a publisher."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        (folder / "agent.toml").write_text(CONFIGURATION.format(port=port))
        self.client = mqtt.Client(CallbackAPIVersion.VERSION2)
        self.client.max_queued_messages_set(0)
        self.client.connect("127.0.0.1", port)
        self.client.loop_start()
        self.agent: subprocess.Popen[bytes] | None = None

    def clock(self, offset: int) -> None:
        """Set the agent's wall clock, and not its monotonic one, by so many seconds."""
        partial = self.folder / "clock.new"
        partial.write_text(f"{offset:+d}\n")
        partial.replace(self.folder / "clock")

    def start(self) -> None:
        """Start an agent, and wait until it is subscribed."""
        fake = {
            "LD_PRELOAD": str(LIBRARIES[0]),
            "FAKETIME_TIMESTAMP_FILE": str(self.folder / "clock"),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }
        (self.folder / "state/agent.json").unlink(missing_ok=True)
        with (self.folder / "log").open("a") as log:
            command = [sys.executable, "-m", "sluicegate", "run", str(self.folder / "agent.toml")]
            self.agent = subprocess.Popen(command, stderr=log, env=os.environ | (fake if LIBRARIES else {}))
        until(lambda: self.link() == "connected", told=self.said)

    def link(self) -> str:
        """How the agent says that it stands with the broker; OSError before its first word."""
        return str(json.loads((self.folder / "state/agent.json").read_text())["mqtt"]["state"])

    def end(self, number: signal.Signals) -> None:
        """End the agent."""
        if self.agent is not None:
            self.agent.send_signal(number)
            self.agent.wait(60)
            self.agent = None

    def publish(self, topic: str, messages: list[dict[str, float]]) -> None:
        """All of them, acknowledged by the broker."""
        sent = [self.client.publish(topic, json.dumps(message), 1) for message in messages]
        for each in sent:
            each.wait_for_publish(60)

    def count(self, name: str) -> int:
        """A counter as of the last commit."""
        return int(read_status(self.folder / "state")["counters"].get(name, 0))

    def said(self) -> str:
        """What the agent counted and said last."""
        return f"{read_status(self.folder / 'state')['counters']} {(self.folder / 'log').read_text()[-3000:]}"

    def until(self, true: Callable[[], bool]) -> None:
        """Wait for something to become true, and tell what the agent says where it does not."""
        until(true, told=self.said)


@pytest.fixture
def setting(tmp_path: Path) -> Iterator[Setting]:
    """A broker and what goes with it; everything ends with the test."""
    with mosquitto(tmp_path, free_port(), "max_inflight_messages 0") as port:
        made = Setting(tmp_path, port)
        yield made
        made.end(signal.SIGKILL)
        made.client.loop_stop()


@pytest.mark.skipif(not LIBRARIES, reason="libfaketime is not installed")
@pytest.mark.parametrize("restarts", [True, False] if WHOLE else [True])
def test_a_board_three_days_behind_on_a_real_clock(setting: Setting, restarts: bool) -> None:
    """2,000 right readings wait; the clock is set, also across kill -9; sent again, then a step back: none twice."""
    now = int(time.time() * 1000)
    messages = [{"t": now - 2000 + n, "v": n} for n in range(2000)]
    setting.clock(-3 * DAYS)
    setting.start()
    setting.publish("timed", messages)
    setting.until(lambda: setting.count("held") == 2000)
    assert setting.count("accepted") == 0
    if restarts:
        setting.end(signal.SIGKILL)
    setting.clock(0)
    if restarts:
        setting.start()
    setting.until(lambda: setting.count("accepted") == 2000)
    setting.publish("timed", messages[:500])
    setting.until(lambda: setting.count("duplicates") == 500)
    setting.clock(-3 * DAYS)
    more = [{"t": now + n, "v": n} for n in range(100)]
    setting.publish("timed", more)
    setting.until(lambda: setting.count("held") == 2100)
    setting.publish("timed", more)
    setting.until(lambda: setting.count("duplicates") == 600)
    setting.clock(0)
    setting.until(lambda: setting.count("accepted") == 2100)
    setting.end(signal.SIGTERM)
    assert setting.count("refused.future") == 0
    assert read_status(setting.folder / "state")["streams"]["heat"]["accepted"] == 2100


def test_a_restart_and_a_wrap_over_a_real_broker(setting: Setting) -> None:
    """3,000 to the end of 16 bits, 3,000 after the wrap, a reboot, 2,500 more, kills in between: 8,500, no doubt."""
    published = [(65_536 - 3000 + n) % 65_536 for n in range(6000)] + list(range(2500))
    messages = [{"n": number, "v": place} for place, number in enumerate(published)]
    setting.clock(0)
    setting.start()
    for start in range(0, len(messages), 1700):
        setting.publish("numbered", messages[start : start + 1700])
        setting.end(signal.SIGKILL)
        setting.publish("numbered", messages[max(0, start - 50) : start + 200])  # again, while it is away
        setting.start()
    setting.until(lambda: setting.count("accepted") == 8500)
    setting.end(signal.SIGTERM)
    assert setting.count("sequence_wraps") == 1
    assert setting.count("sequence_restarts") == 1
    assert setting.count("undecidable") == 0
    found = read_status(setting.folder / "state")
    assert found["streams"]["level"]["accepted"] == 8500
    assert found["streams"]["level"]["missing"] == 0


@pytest.mark.skipif(not LIBRARIES, reason="libfaketime is not installed")
@pytest.mark.skipif(is_synchronised(), reason="the kernel calls this machine's clock synchronised: nothing waits")
@pytest.mark.parametrize("restarts", [True, False] if WHOLE else [True])
def test_a_board_without_a_clock_chip_on_a_real_clock(setting: Setting, restarts: bool) -> None:
    """500 readings without a time come five hours too early; the clock is set, also across kill -9: all are placed."""
    configuration = setting.folder / "agent.toml"
    configuration.write_text(configuration.read_text() + UNSET)
    began = time.time()
    setting.clock(-5 * 3600)
    setting.start()
    setting.publish("untimed", [{"n": n, "v": n} for n in range(500)])
    setting.until(lambda: setting.count("held") == 500)
    if restarts:
        setting.end(signal.SIGKILL)
        setting.publish("untimed", [{"n": n, "v": n} for n in range(400, 500)])
        setting.start()
        # And as many as the broker had no acknowledgement of when it was killed.
        setting.until(lambda: setting.count("duplicates") >= 100)
        assert setting.count("held") == 500
    assert setting.count("accepted") == 0
    setting.clock(0)
    setting.until(lambda: setting.count("placed") == 500)
    setting.publish("untimed", [{"n": n, "v": n} for n in range(500, 600)])
    setting.until(lambda: setting.count("accepted") == 600)
    setting.end(signal.SIGTERM)
    query = "SELECT bucket FROM outbox ORDER BY first"
    with looked_into(setting.folder / "state") as store:
        assert store is not None
        buckets = [Bucket.unpack(row) for (row,) in store.execute(query)]
    assert read_status(setting.folder / "state")["streams"]["door"]["accepted"] == 600
    assert sum(bucket.n for bucket in buckets) > 500, "all but the open bucket's"
    assert began <= min(bucket.t_first for bucket in buckets) / 1e6
    assert max(bucket.t_last for bucket in buckets) / 1e6 <= time.time()
    assert all(before.t_last <= after.t_first for before, after in pairwise(buckets))
