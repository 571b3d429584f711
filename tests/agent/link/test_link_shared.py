"""A shared subscription deals messages out under their own topic; a broker that knows none of it is told about."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("paho.mqtt.client", reason="the agent's tests need the extra `agent`")
from brokers import mosquitto, until
from msgspec.structs import replace
from test_mqtt import send

from peers import CONNACK_3, Counts, config, greet, packet, peer
from sluicegate_agent.link import Link
from sluicegate_agent.link.link import PROBE
from sluicegate_agent.pipeline import Pipeline
from sluicegate_agent.state import State
from sluicegate_demo.ports import free_port

SHARED = "$share/g/plant/w"


@pytest.mark.parametrize("version", [5, "3.1.1"])
def test_two_share_a_topic(version: Any, tmp_path: Path) -> None:
    """Each message goes to one of two agents, with the topic it was published to, and becomes readings there."""
    with mosquitto(tmp_path, free_port()) as port:
        members = [config(port, SHARED, version=version, client_id=f"member-{i}") for i in (1, 2)]
        links = [Link(each, Counts()) for each in members]
        for link in links:
            until(lambda link=link: link.poll(0.05, 10) == [] and link.state == "connected", told=lambda: links)
        send(port, "plant/w", *(b'{"t": %d}' % i for i in range(20)))
        found: list[list[Any]] = [[], []]
        until(lambda: [got.extend(link.poll(0.02, 10)) for got, link in zip(found, links, strict=True)]
              and sum(map(len, found)) >= 20)  # fmt: skip
        assert sorted(int(m.payload[6:-1]) for got in found for m in got) == list(range(20))
        assert all(found)
        assert {m.topic for got in found for m in got} == {"plant/w"}
        assert [link.state for link in links] == ["connected"] * 2
        for link in links:
            link.close()
    settings = config(1, SHARED)
    settings = replace(settings, state=replace(settings.state, path=tmp_path / "state"))
    with State(settings) as state:
        pipeline = Pipeline(settings, state)
        for message in found[0]:
            pipeline.accept(message)
        assert (state.counters["accepted"], state.counters["refused.unknown_topic"]) == (len(found[0]), 0)


def test_a_broker_without_shared_subscriptions() -> None:
    """MQTT 5 says so in its CONNACK: it is not asked for them, the others are, and `status` tells."""
    asked: list[bytes] = []

    def serve(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(b"\x20\x05\x00\x00\x02\x2a\x00")  # Shared Subscription Available: 0
        asked.append(connection.recv(65536))
        connection.sendall(packet(0x90, asked[-1][2:4] + b"\x00\x01"))
        connection.recv(65536)

    with peer(serve) as broker:
        link = Link(config(broker.port, SHARED, "v"), Counts())
        until(lambda: link.poll(0.05, 10) == [] and link.state.startswith("connected, but"))
        assert f"refused {SHARED} (it has no shared subscriptions)" in link.state
        assert b"$share" not in asked[0]
        link.close()


def test_a_broker_that_takes_it_for_a_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    """MQTT 3.1.1 cannot say so (RabbitMQ 3.10 grants it): what is published to the name itself comes back, once."""
    monkeypatch.setattr("sluicegate_agent.link.link.PROBE_AFTER", 0.1)
    probes: list[bytes] = []

    def serve(connection: socket.socket) -> None:
        packet_id = greet(connection, CONNACK_3)
        connection.sendall(packet(0x90, packet_id + b"\x01"))
        probes.append(connection.recv(65536))
        connection.sendall(probes[-1])
        connection.recv(65536)

    with peer(serve) as broker:
        link = Link(config(broker.port, SHARED, version="3.1.1"), Counts())
        until(lambda: link.poll(0.05, 10) == [] and "does not know shared subscriptions" in link.state)
        assert probes[0] == packet(0x30, len(SHARED).to_bytes(2, "big") + SHARED.encode() + PROBE)
        link.close()
