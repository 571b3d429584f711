"""Subscriptions are made where a session may lack them, and not where it has them: no retained message twice."""

from __future__ import annotations

import socket
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("paho.mqtt.client", reason="the agent's tests need the extra `agent`")
import paho.mqtt.publish as publish
from brokers import mosquitto, until

from peers import CONNACK_3, Counts, config, greet, packet, peer
from sluicegate_agent.agent import Agent
from sluicegate_agent.config import build
from sluicegate_agent.identity.habits import LAST_ID
from sluicegate_agent.link import Link
from sluicegate_agent.link.link import LASTS_AFTER, OTHER_ID
from sluicegate_agent.link.options import client_of
from sluicegate_agent.messages import Message
from sluicegate_agent.state import State
from sluicegate_demo.ports import free_port


def heard(port: int, subscribed_us: int, version: Any = "3.1.1") -> tuple[list[Message], int]:
    """What comes with one connection of the session, and since when it has its subscriptions afterwards."""
    link, got = Link(config(port, version=version), Counts(), subscribed_us=subscribed_us), list[Message]()
    until(lambda: got.extend(link.poll(0.05, 10)) or link.state == "connected", told=link.status)
    end = time.monotonic() + 0.3
    until(lambda: got.extend(link.poll(0.05, 10)) or time.monotonic() > end)
    link.ack([message.packet_id for message in got])
    link.close()
    return got, link.subscribed_us


def test_a_session_that_has_them_for_long_is_not_asked_again(tmp_path: Path) -> None:
    """MQTT 3.1.1 would bring each retained message once more; young subscriptions are made again, for safety."""
    with mosquitto(tmp_path, free_port()) as port:
        publish.single("w", "{}", qos=1, retain=True, port=port)
        first, since = heard(port, 0)
        assert [message.retain for message in first] == [True]
        assert abs(since - time.time_ns() // 1000) < 60_000_000
        again, kept = heard(port, since)
        assert ([message.retain for message in again], kept) == ([True], since)
        assert heard(port, since - LASTS_AFTER) == ([], since - LASTS_AFTER)
        publish.single("w", '{"t": 1}', qos=1, port=port)
        queued, _ = heard(port, since - LASTS_AFTER)
        assert [message.retain for message in queued] == [False]
        assert heard(port, since, version=5)[0] == [], "MQTT 5 asks without the retained ones"


def test_each_connection_subscribes_under_the_same_packet_id() -> None:
    """RabbitMQ numbers its messages on from it: another one each time looked like ids that go on."""
    asked = []

    def grant_and_cut(connection: socket.socket) -> None:
        asked.append(int.from_bytes(greet(connection, CONNACK_3)))
        connection.sendall(packet(0x90, as_sent(asked[-1]) + b"\x01"))

    with peer(grant_and_cut) as broker:
        link = Link(config(broker.port, version="3.1.1"), Counts())
        until(lambda: setattr(link, "_next_attempt", 0.0) or link.poll(0.05, 10) or len(asked) == 4)
        link.close()
    assert asked == [1] * 4


def test_no_message_of_ours_has_the_packet_id_of_the_subscription() -> None:
    """Neither the first nor the one after the last id there is: it may be under way at the next SUBSCRIBE."""
    client = client_of(config(1))
    first = client.publish("t", b"", 1).mid
    client._last_mid = LAST_ID
    assert (first, client.publish("t", b"", 1).mid) == (2, 2)


@pytest.mark.parametrize("again", [0x01, 0x91])
def test_a_packet_id_that_the_broker_takes_for_used_is_another_one_next(again: int) -> None:
    """mochi does, where a message of its own waits under it; refused once more, it is told."""
    asked = []

    def refuse_first(connection: socket.socket) -> None:
        asked.append(int.from_bytes(greet(connection)))
        connection.sendall(packet(0x90, as_sent(asked[0]) + b"\x00\x91"))
        asked.append(int.from_bytes(connection.recv(65536)[2:4]))
        connection.sendall(packet(0x90, as_sent(asked[1]) + bytes([0, again])))
        connection.recv(65536)

    with peer(refuse_first) as broker:
        link = Link(config(broker.port), Counts())
        until(lambda: link.poll(0.05, 10) or (link.state.startswith("connected") and "subscribing" not in link.state))
        assert (link.state == "connected") is (again == 0x01)
        assert ("refused" in link.state) is (again == 0x91)
        link.close()
    assert asked == [1, OTHER_ID]


def as_sent(packet_id: int) -> bytes:
    """A packet id as it is sent."""
    return packet_id.to_bytes(2, "big")


def test_a_session_that_is_new_is_asked(tmp_path: Path) -> None:
    """However long the last one had them."""
    with mosquitto(tmp_path, free_port()) as port:
        publish.single("w", "{}", qos=1, retain=True, port=port)
        got, since = heard(port, 1)
        assert len(got) == 1
        assert since > 1


def test_since_when_is_kept_for_the_same_broker_and_topics(tmp_path: Path) -> None:
    """It is in the state; another topic or another broker begins anew."""

    def agent(port: int, *topics: str) -> int:
        raw: dict[str, Any] = {"device": {"id": "d"}, "state": {"path": "state"}}
        raw["mqtt"] = {"host": "127.0.0.1", "port": port, "version": "3.1.1"}
        raw["source"] = [{"topic": topic, "streams": {f"s{topic}": "t"}} for topic in topics]
        made = build(raw, tmp_path / "agent.toml")
        with State(made) as state:
            one = Agent(made, state)
            before = one.link.subscribed_us
            until(lambda: one.turn() or one.link.state == "connected", told=one.link.status)
            one._note_subscriptions()
            one.finish()
        return before

    with mosquitto(tmp_path, free_port()) as port, mosquitto(tmp_path, free_port()) as other:
        assert agent(port, "w") == 0
        assert agent(port, "w") > 0
        assert agent(port, "w", "v") == 0
        assert agent(other, "w", "v") == 0
