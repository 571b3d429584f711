"""Each thing that an agent needs and does not have is found, with what to do in one line."""

from __future__ import annotations

import socket
import sqlite3
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

pytest.importorskip("paho.mqtt.client", reason="the agent's tests need the extra `agent`")
from brokers import mosquitto

from sluicegate_agent.config import load
from sluicegate_agent.diagnosis.findings import Look, findings
from sluicegate_agent.state import State
from sluicegate_agent.status import gather, show
from sluicegate_demo.ports import free_port

CONFIGURATION = """
[device]
id = "d"
[state]
path = "state"
[mqtt]
port = {port}
{more}
[[source]]
topic = "t"
streams = {{ x = "x" }}
"""
Looked = Callable[..., dict[str, Look]]


@pytest.fixture
def looked(tmp_path: Path) -> Looked:
    """What is found for a configuration, by name."""

    def look(more: str = "", port: int = 1) -> dict[str, Look]:
        file = tmp_path / "agent.toml"
        file.write_text(CONFIGURATION.format(port=port, more=more))
        return {each.name: each for each in findings(file)}

    return look


def test_a_broker_that_takes_us(looked: Looked, tmp_path: Path) -> None:
    """With what it says of itself; the agent's own session is not touched."""
    with mosquitto(tmp_path, free_port(), "max_packet_size 5000") as port:
        found = looked(port=port)
    assert (found["broker"].status, found["broker's greeting"].status) == ("ok", "ok")
    assert "4.9 KiB" in found["broker's greeting"].detail


def test_a_broker_that_refuses_us(looked: Looked, tmp_path: Path) -> None:
    """With the keys to correct."""
    with mosquitto(tmp_path, free_port(), "allow_anonymous false") as port:
        found = looked(port=port)
    assert found["broker's greeting"].status == "broken"
    assert "mqtt.username" in found["broker's greeting"].remedy


def test_a_broker_that_is_not_there(looked: Looked) -> None:
    """And one that is no broker, in bounded time."""
    assert looked()["broker"].status == "broken"
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        found = looked(port=deaf.getsockname()[1])
    assert found["broker's greeting"].status == "broken"


@pytest.mark.parametrize(("days", "status"), [(5, "missing"), (9000, "ok")])
def test_when_a_certificate_ends(days: int, status: str, looked: Looked, tmp_path: Path) -> None:
    """Soon, or after 2038, which the C library of a 32-bit board cannot say (`make test-armv7`)."""
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=x", "-keyout", "/dev/null"]
    try:
        subprocess.run([*made, "-days", str(days), "-out", str(tmp_path / "ca.pem")], check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("openssl is not on PATH")
    found = looked('tls = { enabled = true, ca_file = "ca.pem" }')["mqtt.tls.ca_file"]
    assert (found.status, found.remedy) == (status, "renew it in time" if days == 5 else "")
    assert f"{datetime.now(UTC) + timedelta(days):%Y-%m-%d}" in found.detail


def test_what_the_disk_and_the_memory_lack(looked: Looked) -> None:
    """A budget that is too small is found with what shows why."""
    found = looked("[bucket]\nreadings = 16\n")
    assert {found["disk"].status, found["state.path"].status} == {"ok"}
    found = looked('[outbox]\nbytes = "900GiB"\nrows = 16777216\n')
    assert found["disk"].status == "broken"
    assert found["memory"].status == "broken"
    assert "sluicegate plan" in found["memory"].remedy


def test_a_damaged_state(looked: Looked, tmp_path: Path) -> None:
    """A damage that is there now, and one that was repaired: in `status`, too."""
    assert "state" not in looked()
    with State(load(tmp_path / "agent.toml")) as state, state.transaction() as connection:
        state.counters.add_now(connection, {"accepted": 7})
    assert looked()["state"].status == "ok"
    with sqlite3.connect(tmp_path / "state/state.db") as store:
        store.execute("UPDATE counter SET value = 8")
    found = looked()["state"]
    assert (found.status, "it is damaged" in found.detail) == ("broken", True)
    State(load(tmp_path / "agent.toml")).close()
    found = looked()["state"]
    assert (found.status, "rows.lost.counter 1" in found.detail) == ("missing", True)
    assert "ALARM: the state was damaged" in show(gather(load(tmp_path / "agent.toml")))


def test_a_target_and_a_listener(looked: Looked, tmp_path: Path) -> None:
    """A folder that is not there, a gateway that nobody answers for, an address that is taken."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        found = looked(f'[sync]\ntarget = "directory"\npath = "none"\n[metrics]\nlisten = "127.0.0.1:{port}"\n')
    assert (found["sync.path"].status, found["listener"].status) == ("broken", "broken")
    assert "another process" in found["listener"].remedy
    found = looked('[sync]\ntarget = "sync-gateway"\nurl = "http://127.0.0.1:1/db"\n')
    assert found["target"].status == "broken"


def test_a_configuration_that_cannot_be_used_is_the_one_finding(tmp_path: Path) -> None:
    """Everything else would be a guess."""
    (tmp_path / "agent.toml").write_text("[device]")
    (found,) = findings(tmp_path / "agent.toml")
    assert (found.name, found.status) == ("configuration", "broken")
    assert found.remedy.startswith("sluicegate check")
