"""What systemd hears of an agent: ready, alive by turns, stopping; and nothing where nobody listens."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sluicegate_agent.service.notify import Supervisor


@pytest.fixture
def listener(tmp_path: Path) -> Iterator[socket.socket]:
    """A socket as systemd would open it, under `notify` of the test's folder."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as heard:
        heard.bind(str(tmp_path / "notify"))
        heard.settimeout(20)
        yield heard


def test_says_ready_and_stopping(listener: socket.socket, tmp_path: Path) -> None:
    """Each call is one datagram in sd_notify's words."""
    supervisor = Supervisor({"NOTIFY_SOCKET": str(tmp_path / "notify")})
    supervisor.ready("3 streams")
    supervisor.stopping()
    assert listener.recv(200) == b"READY=1\nSTATUS=3 streams"
    assert listener.recv(200).startswith(b"STOPPING=1\n")


def test_feeds_the_watchdog_at_most_three_times_a_period(listener: socket.socket, tmp_path: Path) -> None:
    """Two turns at once feed it once; without a period, or with another process's, it is not fed."""
    here = {"NOTIFY_SOCKET": str(tmp_path / "notify")}
    for environment, fed in (
        ({"WATCHDOG_USEC": "60000000"}, 1),
        ({}, 0),
        ({"WATCHDOG_USEC": "9", "WATCHDOG_PID": "1"}, 0),
    ):
        supervisor = Supervisor(here | environment)
        supervisor.alive()
        supervisor.alive()
        supervisor.stopping()
        for _ in range(fed):
            assert listener.recv(200) == b"WATCHDOG=1"
        assert listener.recv(200).startswith(b"STOPPING=1")


def test_nobody_listens(tmp_path: Path) -> None:
    """Without a socket, with one that is gone and with a name that is none, nothing is raised."""
    for name in ("", str(tmp_path / "gone"), "nonsense", "@sluicegate-test-gone"):
        supervisor = Supervisor({"NOTIFY_SOCKET": name} if name else {})
        supervisor.ready("")
        supervisor.alive()
        supervisor.stopping()


def test_a_real_agent_reports_to_its_supervisor(listener: socket.socket, tmp_path: Path) -> None:
    """An agent under `NOTIFY_SOCKET` says it is ready without a broker, is alive, and says when it stops."""
    (tmp_path / "agent.toml").write_text(
        '[device]\nid = "a"\n[state]\npath = "state"\n[mqtt]\nport = 9\n'
        '[[source]]\ntopic = "t"\nstreams = { x = "x" }\n'
    )
    environment = os.environ | {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "600000"}
    agent = subprocess.Popen(
        [sys.executable, "-m", "sluicegate", "run", tmp_path / "agent.toml"], env=environment, stderr=subprocess.DEVNULL
    )
    try:
        assert listener.recv(200).startswith(b"READY=1\n")
        assert listener.recv(200) == b"WATCHDOG=1"
        agent.send_signal(signal.SIGTERM)
        while (heard := listener.recv(200)) == b"WATCHDOG=1":
            pass
        assert heard.startswith(b"STOPPING=1")
        assert agent.wait(20) == 0
    finally:
        agent.kill()
