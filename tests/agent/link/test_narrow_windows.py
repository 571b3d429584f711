"""A broker that grants few messages at a time is not held down by `commit.every`: real ones, with their defaults."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("paho.mqtt.client", reason="the agent's tests need the extra `agent`")
import paho.mqtt.client as mqtt
from brokers import mosquitto, rabbitmq, until
from paho.mqtt.enums import CallbackAPIVersion

from sluicegate_agent.agent import Agent
from sluicegate_agent.config import build
from sluicegate_agent.state import State
from sluicegate_demo.ports import free_port

pytestmark = pytest.mark.slow
WAITING = 1_500


@contextmanager
def broker(kind: str, folder: Path) -> Iterator[int]:
    """A broker with its own default for what it lets be in flight: 10, or 20."""
    if kind == "mosquitto":
        with mosquitto(folder, free_port(), "max_inflight_messages 20") as port:
            yield port
        return
    ports = free_port(), free_port(), free_port(), free_port()
    with rabbitmq(folder, ports, prefetch=10).running() as server:
        yield server.port


def publish(port: int, count: int) -> None:
    """Numbered messages, until the broker has them."""
    client = mqtt.Client(CallbackAPIVersion.VERSION2)
    client.max_queued_messages_set(0)
    client.max_inflight_messages_set(500)
    client.connect("127.0.0.1", port)
    client.loop_start()
    for info in [client.publish("door", str(i), 1) for i in range(count)]:
        info.wait_for_publish(120)
    client.disconnect()
    client.loop_stop()


@pytest.mark.parametrize("kind", ["rabbitmq", "mosquitto"])
def test_intake_is_not_bound_by_the_timer(kind: str, tmp_path: Path) -> None:
    """A backlog of 1,500 with commits each third second: at one window a commit it would take 225 s and more."""
    raw: dict[str, Any] = {"device": {"id": "d"}, "state": {"path": "state"}, "commit": {"every": "3s"}}
    raw["source"] = [{"topic": "door", "format": "number", "streams": {"door": ""}}]
    with broker(kind, tmp_path) as port:
        raw["mqtt"] = {"host": "127.0.0.1", "port": port, "version": "3.1.1"}
        config = build(raw, tmp_path / "agent.toml")
        with State(config) as state:
            agent = Agent(config, state)
            until(lambda: agent.turn() or agent.link.state == "connected", told=agent.link.status)
            publish(port, WAITING)
            until(lambda: agent.turn() or state.counters["accepted"] >= WAITING, 120, agent.link.status)
            # What the link believes of the window is not checked: Mosquitto 2.0.11 sends 20 more for each of 20 PUBACKs
            # that come at once: 400 and then a whole commit of 500 are in flight, and a busy machine believes it.
            agent.finish()
            assert state.counters["accepted"] == WAITING
            assert state.counters["undecidable"] == 0
