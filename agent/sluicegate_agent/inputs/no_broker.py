"""No broker: what an agent has in the place of its link where it takes readings by other ways alone."""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Iterable
from typing import Any

from sluicegate_agent.messages import Message


class NoLink:
    """Waits for the other inputs, takes nothing and sends nothing; the attributes are those of a Link."""

    connection = 0
    session_present = False
    subscribed_us = 0
    confirmed = 0
    is_window_full = False
    #: There is nothing to connect to, so nothing is missing.
    connected = subscribed = True
    state = "no broker"
    retired: tuple[str, ...] = ()
    former: tuple[str, ...] = ()

    def __init__(self, wake: socket.socket | None = None) -> None:
        self._wake: list[Any] = [wake] if wake else []
        self._until = 0.0

    def wake_for(self, sock: Any) -> None:
        """Let what waits on this socket or file end a `poll` that waits; who reads it has to empty it."""
        self._wake.append(sock)

    def sleep_through(self, sock: Any) -> None:
        """Let it end none any more."""
        self._wake = [each for each in self._wake if each is not sock]

    def poll(self, timeout: float, most: int) -> list[Message]:
        """Wait up to `timeout` seconds."""
        paused = self._until - time.monotonic()
        if paused > 0:  # what wakes us cannot be taken now
            time.sleep(min(paused, timeout))
        else:
            select.select(self._wake, [], [], timeout)
        return []

    def ack(self, packet_ids: Iterable[int]) -> None:
        """Nothing came from a broker."""

    def confirm(self, generation: int) -> None:
        """Nothing was acknowledged."""

    def publish(self, topic: str, payload: bytes, *, retain: bool = False) -> bool:
        """Nothing can be sent."""
        return False

    def command(self, topic: str, payload: bytes) -> bool:
        """Nothing can be sent."""
        return False

    def send(self, topic: str, payload: bytes, *, retain: bool) -> None:
        """Nothing can be sent."""

    def pause(self, reason: str, seconds: float) -> None:
        """Wait with what comes."""
        self._until = time.monotonic() + seconds

    def close(self) -> None:
        """Nothing is open."""

    def status(self) -> dict[str, object]:
        """For `status`."""
        none = {"failed_in_a_row": 0, "unacknowledged": 0, "window": 0}
        return {"broker": "none", "tls": False, "state": self.state, **none}
