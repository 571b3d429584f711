"""Retained messages promise: through a real Mosquitto, each state that a sensor leaves at the broker counts once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("paho.mqtt.client", reason="the agent's tests need the extra `agent`")
import paho.mqtt.client as mqtt
from brokers import Server, persistent_mosquitto
from paho.mqtt.enums import CallbackAPIVersion
from test_bare_brokers import VERSIONS, board, configured

from sluicegate_demo.ports import free_port

pytestmark = pytest.mark.slow


@pytest.fixture
def mosquitto(tmp_path: Path) -> Iterator[Server]:
    """A Mosquitto of this test."""
    with persistent_mosquitto(tmp_path, free_port()).running() as server:
        yield server


def leave(port: int, value: str) -> None:
    """A sensor leaves its state at the broker."""
    client = mqtt.Client(CallbackAPIVersion.VERSION2)
    client.connect("127.0.0.1", port)
    client.loop_start()
    client.publish("door", value, 1, retain=True).wait_for_publish(60)
    client.disconnect()
    client.loop_stop()


def forget_session(port: int, client_id: str, version: Any) -> None:
    """The broker loses the agent's session: a client of the same id asks for a clean one."""
    if version == 5:
        client = mqtt.Client(CallbackAPIVersion.VERSION2, client_id, protocol=mqtt.MQTTv5)
        client.connect("127.0.0.1", port, clean_start=True)
    else:
        client = mqtt.Client(CallbackAPIVersion.VERSION2, client_id, clean_session=True)
        client.connect("127.0.0.1", port)
    while not client.is_connected():
        client.loop(0.1)
    client.disconnect()
    client.loop(0.1)


@pytest.mark.parametrize("version", VERSIONS)
def test_each_state_counts_once(mosquitto: Server, tmp_path: Path, version: Any) -> None:
    """Through starts with and without the session, for states left before, while connected and while away."""
    config = configured(tmp_path, mosquitto.port, version)
    leave(mosquitto.port, "20.5")
    with board(config) as one:
        one.settle(1)
        leave(mosquitto.port, "21")
        one.settle(2)
        leave(mosquitto.port, "20.5")
        one.settle(3)
        assert (one.accepted, one.doubt) == (3, 0), "the same as the one before last, and new"
    for lost in (False, True, True):
        if lost:
            forget_session(mosquitto.port, f"sluicegate-{tmp_path.name}", version)
        with board(config) as one:
            one.connected()
            one.settle(3)
            assert (one.accepted, one.doubt) == (3, 0)
    leave(mosquitto.port, "22")
    with board(config) as one:
        one.settle(4)
        assert (one.accepted, one.doubt) == (4, 0), "queued for the session, and retained: one reading"
