"""Two subscriptions that match one topic promise: a copy that the broker sends for each is at least in doubt."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("paho.mqtt.client", reason="the agent's tests need the extra `agent`")
import paho.mqtt.client as mqtt
from brokers import mosquitto
from paho.mqtt.enums import CallbackAPIVersion
from test_bare_brokers import VERSIONS, board

from sluicegate_agent.config import Config, build
from sluicegate_demo.ports import free_port


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[int]:
    """A Mosquitto for one test."""
    with mosquitto(tmp_path, free_port()) as port:
        yield port


def configured(folder: Path, port: int, version: Any, topic: str, **source: Any) -> Config:
    """An agent of the thermometers of a house."""
    raw = {
        "device": {"id": folder.name},
        "state": {"path": "state"},
        "mqtt": {"host": "127.0.0.1", "port": port, "version": version},
        "commit": {"every": "20ms"},
        "source": [{"topic": topic, "streams": {"temp": ""}, "format": "number"} | source],
    }
    return build(raw, folder / "agent.toml")


def publish(port: int, values: list[str], qos: int) -> None:
    """The kitchen says something."""
    client = mqtt.Client(CallbackAPIVersion.VERSION2)
    client.connect("127.0.0.1", port)
    client.loop_start()
    for info in [client.publish("house/kitchen/temp", value, qos) for value in values]:
        info.wait_for_publish(60)
    client.disconnect()
    client.loop_stop()


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("qos", [0, 1])
@pytest.mark.parametrize("killed", [False, True])
def test_the_topic_of_a_former_configuration_is_not_undone(
    broker: int, tmp_path: Path, version: Any, qos: int, *, killed: bool
) -> None:
    """Between SUBACK and UNSUBACK, cut there, and until what was queued has come; then there is no doubt any more."""
    with board(configured(tmp_path, broker, version, "house/+/temp")) as one:
        one.connected()
    config = configured(tmp_path, broker, version, "house/{room}/{kind}")
    with board(config) as one:
        one.agent.link._client.unsubscribe = lambda topics: (0, 1)  # type: ignore[method-assign]
        one.connected()
        publish(broker, ["20.5", "21", "20.5", "22"], qos)
        one.settle(4)
        assert one.accepted - one.doubt <= 4 <= one.accepted
        counted = one.accepted
    if killed:
        publish(broker, ["30", "31", "30"], 1)
    with board(config) as one:
        one.connected()
        one.settle(counted + 3 * killed)
        assert one.accepted - one.doubt <= 4 + 3 * killed <= one.accepted
        one.turn(lambda: not one.agent.link.former)
        counted, doubt = one.accepted, one.doubt
        publish(broker, ["20.5"] * 5, qos)
        one.settle(counted + 5)
        assert (one.accepted, one.doubt) == (counted + 5, doubt)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_coarse_clock_that_may_say_the_same_twice(broker: int, tmp_path: Path, version: Any) -> None:
    """`resolution` makes equal messages readings, each; not where the broker sends each twice."""
    timed = {"format": "json", "time": "t", "time_format": "s", "resolution": "1s"}
    first = timed | {"streams": {"temp": "v"}}
    with board(configured(tmp_path, broker, version, "house/+/temp", **first)) as one:
        one.connected()
    with board(configured(tmp_path, broker, version, "house/{room}/{kind}", **first)) as one:
        one.agent.link._client.unsubscribe = lambda topics: (0, 1)  # type: ignore[method-assign]
        one.connected()
        publish(broker, ['{"t": 1700000000, "v": 1}', '{"t": 1700000001, "v": 1}', '{"t": 1700000001, "v": 1}'], 1)
        one.settle(3)
        assert one.accepted - one.doubt <= 3 <= one.accepted
