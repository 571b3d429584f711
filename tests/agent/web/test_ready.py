"""`/ready` waits for the broker's SUBACK: before it, what is published may reach nobody."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("paho.mqtt.client", reason="the agent's tests need the extra `agent`")
from brokers import until

from peers import Counts, Peer, config, greet, packet, peer
from sluicegate_agent.link import Link
from sluicegate_agent.web.view import View

GRANTED, REFUSED = 0x01, 0x87


def looked(link: Link) -> dict[str, Any]:
    """What `/ready` says of a link."""
    nothing: Any = None
    return View(link.config, nothing, nothing, link, nothing, nothing, 0).ready()


def answered_when(told: threading.Event, *reasons: int) -> Callable[[socket.socket], None]:
    """A broker that accepts us, and answers the SUBSCRIBE once it is told to."""

    def serve(connection: socket.socket) -> None:
        packet_id = greet(connection)
        told.wait(20)
        connection.sendall(packet(0x90, packet_id + b"\x00" + bytes(reasons)))
        connection.recv(100)

    return serve


def link_to(broker: Peer) -> Link:
    """Two subscriptions."""
    return Link(config(broker.port, "v", "w"), Counts())


def test_a_connection_without_its_subscriptions_is_not_ready() -> None:
    """Accepted is not enough; granted is, as long as the connection stands."""
    told = threading.Event()
    with peer(answered_when(told, GRANTED, GRANTED)) as broker:
        link = link_to(broker)
        until(lambda: link.poll(0.05, 10) or link.connected)
        assert looked(link)["reasons"] == ["broker: connected, subscribing"]
        told.set()
        until(lambda: link.poll(0.05, 10) or looked(link)["ready"], told=link.status)
        link.close()
        assert looked(link)["reasons"] == ["broker: closed"]


def test_a_subscription_that_is_refused_is_named() -> None:
    """One of two: the agent goes on with the other, and is not ready."""
    told = threading.Event()
    told.set()
    with peer(answered_when(told, GRANTED, REFUSED)) as broker:
        link = link_to(broker)
        until(lambda: link.poll(0.05, 10) or "refused" in link.state, told=link.status)
        assert link.connected
        (reason,) = looked(link)["reasons"]
        assert reason.startswith("broker: connected, but the broker refused w")
        link.close()
