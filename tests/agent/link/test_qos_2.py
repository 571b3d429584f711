"""What a broker sends at QoS 2 is taken and acknowledged as QoS 2 wants it, though we never ask for it.

A session that another client of our name left behind holds such messages, or a broker subscribes its clients itself.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("paho.mqtt.client", reason="the agent's tests need the extra `agent`")
import paho.mqtt.client as mqtt
from brokers import mosquitto, until
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from peers import Counts, config, grant, packet, peer
from sluicegate_agent.identity.habits import LAST_ID
from sluicegate_agent.link import Link
from sluicegate_agent.link.options import client_id, client_of
from sluicegate_agent.messages import Message
from sluicegate_demo.ports import free_port

VERSIONS: list[Any] = [5, "3.1.1"]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[int]:
    """A Mosquitto for one test."""
    with mosquitto(tmp_path, free_port()) as port:
        yield port


def loop(client: mqtt.Client, true: Any) -> None:
    """Until something is true."""
    until(lambda: client.loop(0.02) is not None and true())


def leave_a_session(port: int, version: Any) -> None:
    """Somebody of our name was subscribed at QoS 2, and went."""
    name, wish = client_id(config(port)), Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
    wish.SessionExpiryInterval = 3600
    if version == 5:
        client = mqtt.Client(CallbackAPIVersion.VERSION2, name, protocol=mqtt.MQTTv5)
        client.connect("127.0.0.1", port, clean_start=False, properties=wish)
    else:
        client = mqtt.Client(CallbackAPIVersion.VERSION2, name, clean_session=False)
        client.connect("127.0.0.1", port)
    granted: list[Any] = []
    client.on_subscribe = lambda *told: granted.append(told)
    loop(client, client.is_connected)
    client.subscribe("w", 2)
    loop(client, lambda: granted)
    client.disconnect()


def publish(port: int, *values: bytes) -> None:
    """At QoS 2, until the broker has all of them."""
    client = mqtt.Client(CallbackAPIVersion.VERSION2)
    client.connect("127.0.0.1", port)
    client.loop_start()
    for info in [client.publish("w", value, 2) for value in values]:
        info.wait_for_publish(60)
    client.disconnect()
    client.loop_stop()


def gather(link: Link, seconds: float = 60.0, *, count: int) -> list[Message]:
    """Poll until so many messages came, or the time is over."""
    got: list[Message] = []
    end = time.monotonic() + seconds
    while len(got) < count and time.monotonic() < end:
        link._next_attempt = 0.0
        got += link.poll(0.05, 100)
    return got


@pytest.mark.parametrize("version", VERSIONS)
def test_what_waits_at_qos_2_is_taken_and_does_not_come_again(
    broker: int, version: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More than Mosquitto has under way at once, with a cut before and after the acknowledgements."""
    leave_a_session(broker, version)
    values = [b"%d" % i for i in range(60)]
    publish(broker, *values)
    counts = Counts()
    link = Link(config(broker, version=version, receive_maximum=20), counts)
    first = gather(link, count=20)
    assert [message.payload for message in first] == values[:20]
    link._client._sock_close()
    taken = gather(link, count=20)
    assert [message.payload for message in taken] == values[:20], "nothing was acknowledged: all of it comes again"
    ended: set[bytes] = set()  # packet ids that the broker knows to be taken: it says so by a PUBREL
    client, end = link._client, link._client._handle_pubrel
    monkeypatch.setattr(client, "_handle_pubrel", lambda: ended.add(bytes(client._in_packet["packet"][:2])) or end())
    while len(taken) < len(values):
        link.ack([message.packet_id for message in taken])
        taken += gather(link, count=1)
    link.ack([message.packet_id for message in taken])
    assert [message.payload for message in taken] == values
    until(lambda: not link.poll(0.05, 10) and len(ended) == len(values))
    link._client._sock_close()
    assert gather(link, 1.0, count=1) == []
    publish(broker, b"61")
    assert [message.payload for message in gather(link, count=1)] == [b"61"]
    assert counts["mqtt.connects"] == 3
    link.close()


def test_releases_without_end_are_refused() -> None:
    """Of a peer that reads no answers: what waits for it stays bounded."""
    client = client_of(config(1))
    client._out_packet.extend([{}] * (LAST_ID + 1))  # type: ignore[typeddict-item]
    client._in_packet["packet"] = bytearray(b"\x00\x07")
    with pytest.raises(ConnectionAbortedError, match="more PUBRELs than there are packet ids"):
        client._handle_pubrel()


def test_a_release_is_answered_however_often_it_comes() -> None:
    """Also one of a message that this process never saw: else the broker would wait for ever."""
    answers: list[bytes] = []

    def serve(connection: socket.socket) -> None:
        grant(connection)
        connection.sendall(packet(0x34, b"\x00\x01w\x00\x07\x00" + b"1"))
        while not (received := connection.recv(100)).startswith(b"\x50"):
            answers.append(received)
        answers.append(received)
        for number in (7, 7, 9):
            connection.sendall(packet(0x62, number.to_bytes(2, "big")))
        while len(b"".join(answers)) < 16:
            answers.append(connection.recv(100))

    with peer(serve) as broker:
        link = Link(config(broker.port), Counts())
        (message,) = gather(link, count=1)
        assert (message.payload, message.qos) == (b"1", 2)
        link.ack([message.packet_id])
        until(lambda: link.poll(0.02, 10) == [] and len(b"".join(answers)) >= 16)
        assert b"".join(answers) == b"\x50\x02\x00\x07" + b"\x70\x02\x00\x07" * 2 + b"\x70\x02\x00\x09"
        link.close()
