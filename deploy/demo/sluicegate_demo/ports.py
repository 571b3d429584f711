"""Ports of the loopback that nobody uses now, and that the system gives to nobody who asks for any."""

from __future__ import annotations

import contextlib
import random
import socket


def free_ports(count: int) -> list[int]:
    """So many different ones, below those that the system gives to whoever asks for any: they stay free."""
    found: list[int] = []
    while len(found) < count:
        port = random.SystemRandom().randrange(12_000, 32_000)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            found = [*found, port] if port not in found else found
    return found


def free_port() -> int:
    """One of them."""
    return free_ports(1)[0]
