"""Peers that are no brokers, or bad ones: each connection gets what a function sends, and is counted."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from sluicegate_agent.config import Config, build

CONNACK, CONNACK_3 = b"\x20\x03\x00\x00\x00", b"\x20\x02\x00\x00"


class Counts(Counter[str]):
    """The state's counters, as far as the link needs them."""

    def add(self, name: str, amount: int = 1) -> None:
        """Count."""
        self[name] += amount


def config(port: int, *topics: str, **mqtt_table: Any) -> Config:
    """A configuration for a peer on this machine, with one topic, `w`, unless others are given."""
    raw = {
        "device": {"id": "d"},
        "state": {"path": "s"},
        "mqtt": {"host": "127.0.0.1", "port": port} | mqtt_table,
        "limits": {"payload": 1000},
        "source": [{"topic": topic, "streams": {f"s{i}": "t"}} for i, topic in enumerate(topics or ("w",))],
    }
    return build(raw, Path("/tmp/agent.toml"))  # noqa: S108  only relative paths are taken from it


class Peer:
    """A listening socket; `serve` is called with each connection, which is closed after it."""

    def __init__(self, serve: Callable[[socket.socket], object]) -> None:
        self.connections = 0
        self._serve, self._listener = serve, socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self.connections += 1
                threading.Thread(target=self._one, args=(connection,), daemon=True).start()

    def _one(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection:
            connection.settimeout(20)
            self._serve(connection)

    def close(self) -> None:
        """Listen no more."""
        self._listener.close()


@contextlib.contextmanager
def peer(serve: Callable[[socket.socket], object]) -> Iterator[Peer]:
    """A peer for one test."""
    made = Peer(serve)
    try:
        yield made
    finally:
        made.close()


def packet(first: int, body: bytes, length: int | None = None) -> bytes:
    """A packet whose fixed header says `length`, else the truth."""
    head, rest = bytearray([first]), len(body) if length is None else length
    while True:
        rest, digit = divmod(rest, 128)
        head.append(digit | (128 if rest else 0))
        if not rest:
            return bytes(head) + body


def greet(connection: socket.socket, connack: bytes = CONNACK) -> bytes:
    """Take the CONNECT, answer it, and return the SUBSCRIBE's packet id."""
    connection.recv(65536)
    connection.sendall(connack)
    return connection.recv(65536)[2:4]


def grant(connection: socket.socket, topics: int = 1) -> None:
    """A whole greeting of MQTT 5, with all subscriptions granted."""
    packet_id = greet(connection)
    connection.sendall(packet(0x90, packet_id + b"\x00" + b"\x01" * topics))
