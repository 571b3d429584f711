"""Bare numbers promise: through real brokers, restarts, cuts and a broker that went back, the truth is in what is said.

A reading that may be a repeat is accepted and counted in `undecidable`; where ids or contents decide there is none.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("paho.mqtt.client", reason="the agent's tests need the extra `agent`")
import paho.mqtt.client as mqtt
from brokers import Server, persistent_mosquitto, rabbitmq, until
from paho.mqtt.enums import CallbackAPIVersion
from thorough import number

from sluicegate_agent.agent import Agent
from sluicegate_agent.config import Config, build
from sluicegate_agent.state import State
from sluicegate_demo.ports import free_port

pytestmark = [pytest.mark.faults, pytest.mark.slow]
BACKLOG, CALM = 5_000, 6
PREFETCH = 20  # messages that RabbitMQ has under way at once
VERSIONS: list[Any] = [5, "3.1.1"]


def configured(folder: Path, port: int, version: Any) -> Config:
    """An agent of one bare topic."""
    raw = {
        "device": {"id": folder.name},
        "state": {"path": "state"},
        "mqtt": {"host": "127.0.0.1", "port": port, "version": version},
        "commit": {"every": "20ms"},
        "source": [{"topic": "door", "format": "number", "streams": {"door": ""}}],
    }
    return build(raw, folder / "agent.toml")


class Board:
    """An agent in this process, turned as often as it takes."""

    def __init__(self, config: Config, state: State) -> None:
        self.agent, self.counters = Agent(config, state), state.counters

    @property
    def accepted(self) -> int:
        return self.counters["accepted"]

    @property
    def doubt(self) -> int:
        return self.counters["undecidable"]

    def turn(self, true: Callable[[], bool], seconds: float = 120.0) -> None:
        """Until something is true."""
        end = time.monotonic() + seconds
        while not true():
            assert time.monotonic() < end, (self.accepted, self.doubt, self.agent.link.state)
            self.agent.link._next_attempt = 0.0  # how long it waits before it connects again is not the question here
            self.agent.turn()

    def settle(self, count: int) -> None:
        """Until so many were accepted, and no more come for a while."""
        self.turn(lambda: self.accepted >= count)
        end = time.monotonic() + 0.5
        self.turn(lambda: time.monotonic() > end)

    def connected(self) -> None:
        self.turn(lambda: self.agent.link.state == "connected")


@contextmanager
def board(config: Config) -> Iterator[Board]:
    """One life of an agent, to an orderly end."""
    with State(config) as state:
        one = Board(config, state)
        yield one
        one.agent.finish()


def publish(port: int, values: list[str]) -> None:
    """At QoS 1, until the broker has all of them."""
    client = mqtt.Client(CallbackAPIVersion.VERSION2)
    client.max_queued_messages_set(0)
    client.max_inflight_messages_set(500)
    client.connect("127.0.0.1", port)
    client.loop_start()
    for info in [client.publish("door", value, 1) for value in values]:
        info.wait_for_publish(120)
    client.disconnect()
    client.loop_stop()


@pytest.fixture
def mosquitto(tmp_path: Path) -> Iterator[Server]:
    """A Mosquitto that saves when it is told."""
    with persistent_mosquitto(tmp_path, free_port()).running() as server:
        yield server


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A RabbitMQ for all tests of this module."""
    ports = free_port(), free_port(), free_port(), free_port()
    with rabbitmq(tmp_path_factory.mktemp("rabbit"), ports, PREFETCH).running() as server:
        yield server


@pytest.fixture
def rabbit(started: Server, tmp_path: Path) -> Iterator[Server]:
    """The same for one test, whose session ends with it: it would take a copy of each later message."""
    yield started
    client = mqtt.Client(CallbackAPIVersion.VERSION2, f"sluicegate-{tmp_path.name}", clean_session=True)
    client.connect("127.0.0.1", started.port)
    client.loop_start()
    until(client.is_connected)
    client.disconnect()
    client.loop_stop()


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("constant", [True, False])
def test_a_mosquitto_that_goes_back_to_its_save(
    mosquitto: Server, tmp_path: Path, version: Any, constant: bool
) -> None:
    """Saved after 50, killed after 80, and then 400 new ones, whose ids were used before: all of them count."""
    values = ["20.5"] * 480 if constant else [str(i) for i in range(480)]
    with board(configured(tmp_path, mosquitto.port, version)) as one:
        one.connected()
        publish(mosquitto.port, values[:50])
        one.settle(50)
        mosquitto.process.send_signal(signal.SIGUSR1)
        until(lambda: (tmp_path / "mosquitto.db").exists())
        publish(mosquitto.port, values[50:80])
        one.settle(80)
        mosquitto.kill()
        mosquitto.start()
        one.turn(lambda: one.counters["mqtt.connects"] == 2)
        publish(mosquitto.port, values[80:])
        one.settle(480)
        assert one.counters["mqtt.sessions_lost"] == 0
        assert one.accepted == 480, "what the broker saved was all acknowledged: nothing comes again"
        assert one.doubt <= (30 if constant else 0)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_mosquitto_that_saved_what_was_under_way(mosquitto: Server, tmp_path: Path, version: Any) -> None:
    """It sends that again, acknowledged long ago and without DUP: accepted in doubt, never silently twice."""
    with board(configured(tmp_path, mosquitto.port, version)) as one:
        one.connected()
        publish(mosquitto.port, ["1"] * 9)
        one.settle(9)
        one.agent.link.ack = lambda packet_ids: None  # type: ignore[method-assign]
        publish(mosquitto.port, ["2"] * 10)
        one.settle(19)
        mosquitto.process.send_signal(signal.SIGUSR1)
        until(lambda: (tmp_path / "mosquitto.db").exists())
        del one.agent.link.ack
        one.agent.link.ack(list(range(10, 20)))
        end = time.monotonic() + 0.3
        one.turn(lambda: time.monotonic() > end)
        mosquitto.kill()
        mosquitto.start()
        one.turn(lambda: one.counters["mqtt.connects"] == 2)
        publish(mosquitto.port, ["3"] * 5)
        one.settle(24)
        assert one.accepted - one.doubt <= 24 <= one.accepted


@pytest.mark.parametrize("version", VERSIONS)
def test_a_mosquitto_without_persistence_repeats_nothing(mosquitto: Server, tmp_path: Path, version: Any) -> None:
    """Killed before any save: the session is gone, and nothing of the next one is taken for a repeat."""
    with board(configured(tmp_path, mosquitto.port, version)) as one:
        one.connected()
        publish(mosquitto.port, ["1"] * 20)
        one.settle(20)
        mosquitto.kill()
        mosquitto.start()
        one.connected()
        one.turn(lambda: one.counters["mqtt.connects"] == 2 and one.agent.link.state == "connected")
        publish(mosquitto.port, ["1"] * 20)
        one.settle(40)
        assert (one.accepted, one.doubt, one.counters["mqtt.sessions_lost"]) == (40, 0, 1)


def cut_through(port: int, config: Config, values: list[str], cuts: int) -> Board:
    """A backlog that waits for the agent, whose connection is cut again and again while it takes it.

    A few calm messages come first: of a session that is young nobody knows how its ids go on.
    """
    with board(config) as one:
        one.connected()
        for i in range(CALM):
            publish(port, [str(-1 - i)])
            one.settle(one.accepted + 1)
    publish(port, values)
    with board(config) as one:
        for cut in range(1, cuts + 1):
            one.turn(lambda cut=cut: one.accepted >= CALM + cut * len(values) // (cuts + 1))
            one.agent.link._client._sock_close()
            one.turn(lambda cut=cut: one.counters["mqtt.connects"] > cut + 1)
        one.settle(CALM + len(values))
    return one


@pytest.mark.parametrize("version", VERSIONS)
def test_a_backlog_and_cuts_through_mosquitto(mosquitto: Server, tmp_path: Path, version: Any) -> None:
    """5,000 numbers of which many are alike, cut ten times: 5,000, without doubt."""
    values = [str(i // 7 % 5) for i in range(BACKLOG)]
    one = cut_through(mosquitto.port, configured(tmp_path, mosquitto.port, version), values, 10)
    assert (one.accepted, one.doubt) == (BACKLOG + CALM, 0)


def test_a_backlog_and_cuts_through_rabbitmq(rabbit: Server, tmp_path: Path) -> None:
    """The same: its ids say nothing, so what was under way at a cut is in doubt, and no more."""
    values = [str(i // 7 % 5) for i in range(BACKLOG)]
    one = cut_through(rabbit.port, configured(tmp_path, rabbit.port, "3.1.1"), values, 10)
    assert one.accepted - one.doubt <= BACKLOG + CALM <= one.accepted
    assert one.doubt <= one.counters["mqtt.connects"] * 2 * PREFETCH


def test_what_was_under_way_and_never_seen_through_rabbitmq(rabbit: Server, tmp_path: Path) -> None:
    """It comes with DUP and says what others said: accepted in doubt, though RabbitMQ counts on from our packet ids."""
    with board(configured(tmp_path, rabbit.port, "3.1.1")) as one:
        one.connected()
        one.agent.link.confirm = lambda generation: None  # type: ignore[method-assign]
        for count in range(1, 7):
            publish(rabbit.port, ["1"] * 10)
            one.turn(lambda count=count: one.accepted >= 10 * count)
            one.agent.link._client._sock_close()
            one.turn(lambda count=count: one.counters["mqtt.connects"] > count)
            one.connected()
        publish(rabbit.port, ["1"] * 10)
        time.sleep(0.2)  # on its way to an agent that does not read
        one.agent.link._client._sock_close()
        one.settle(70)
    assert one.accepted - one.doubt <= 70 <= one.accepted


def test_a_backlog_of_distinct_numbers_through_rabbitmq(rabbit: Server, tmp_path: Path) -> None:
    """Contents that never repeat decide: 5,000, without doubt."""
    values = [str(i) for i in range(BACKLOG)]
    one = cut_through(rabbit.port, configured(tmp_path, rabbit.port, "3.1.1"), values, 10)
    assert (one.accepted, one.doubt) == (BACKLOG + CALM, 0)


def test_restarts_with_rabbitmq(rabbit: Server, tmp_path: Path) -> None:
    """Its ids begin at 1 with each connection: restarts, 20 published before each that all say the same, each once."""
    config = configured(tmp_path, rabbit.port, "3.1.1")
    for restart in range(1, 1 + (lives := number(5, 3))):
        with board(config) as one:
            one.connected()
            publish(rabbit.port, ["20.5"] * 20)
            one.settle(20 * restart)
    assert one.accepted == 20 * lives
    assert one.doubt <= 20
