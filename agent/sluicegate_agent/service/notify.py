"""Tells systemd that the agent is ready, alive and stopping, where systemd asked for it; elsewhere nothing happens.

The protocol is sd_notify(3): one datagram a message to the socket that `NOTIFY_SOCKET` names. The watchdog is fed by
turns of the agent's loop, so that an agent which hangs is restarted, and one whose broker is away is not.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Mapping


class Supervisor:
    """The other end of `NOTIFY_SOCKET`; without one every call does nothing.

    `environment` is the process's: the socket is taken from it once, and the watchdog's period (`WATCHDOG_USEC`, µs).
    """

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        self._address = _address(environment.get("NOTIFY_SOCKET", ""))
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) if self._address else None
        self._every = _watchdog_seconds(environment) / 3
        self._fed = float("-inf")

    def ready(self, status: str) -> None:
        """The state is open and the loop begins; `status` is what `systemctl status` shows."""
        self._tell(f"READY=1\nSTATUS={status}")

    def alive(self) -> None:
        """The loop has turned once more: feed the watchdog, at most three times in its period."""
        now = time.monotonic()
        if self._every and now - self._fed >= self._every:
            self._fed = now
            self._tell("WATCHDOG=1")

    def reloading(self) -> None:
        """Another configuration is taken; `ready` follows."""
        self._tell("RELOADING=1\nSTATUS=taking another configuration")

    def stopping(self) -> None:
        """The agent was told to stop and leaves everything durable."""
        self._tell("STOPPING=1\nSTATUS=finishing")

    def _tell(self, message: str) -> None:
        if self._socket is not None and self._address:
            with contextlib.suppress(OSError):  # a supervisor that is gone is no reason to stop counting
                self._socket.sendto(message.encode(), socket.MSG_DONTWAIT, self._address)


def _address(name: str) -> str:
    """The socket's address; a name that begins with @ is in the abstract namespace. Others than paths are ignored."""
    if name.startswith("@"):
        return "\0" + name[1:]
    return name if name.startswith("/") else ""


def _watchdog_seconds(environment: Mapping[str, str]) -> float:
    """The watchdog's period; 0 where none is asked of this process."""
    period, process = environment.get("WATCHDOG_USEC", ""), environment.get("WATCHDOG_PID", "")
    if not period.isdigit() or (process and process != str(os.getpid())):
        return 0.0
    return int(period) / 1_000_000
