"""Ports of the loopback that nobody uses now, and that are given to nobody else: not by the system, and not by this.

Another process that asks here has other ones as long as this one lives, so none is taken between asking and listening.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import socket
import tempfile
from collections import deque
from functools import cache
from pathlib import Path

#: Below those that the system gives to whoever asks for any, cut into slices of which a process has one to itself.
_FIRST, _SLICE, _SLICES = 12_000, 400, 50
#: What was given last is not given again: who asked may be about to listen, or to listen again.
_given = deque[int](maxlen=_SLICE // 2)


def free_ports(count: int) -> list[int]:
    """So many different ones, none of which was given lately."""
    found: list[int] = []
    ports = _slice(os.getpid())
    while len(found) < count:
        port = random.SystemRandom().choice(ports)
        if port not in _given:
            with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
                found.append(port)
                _given.append(port)
    return found


def free_port() -> int:
    """One of them."""
    return free_ports(1)[0]


@cache
def _slice(_pid: int) -> range:
    """The ports of this process, a fork's others than its parent's; all of them where no slice is free."""
    folder = Path(tempfile.gettempdir())
    for number in random.SystemRandom().sample(range(_SLICES), _SLICES):
        with contextlib.suppress(OSError):
            # Never closed: the lock is let go when the process ends, and its forks.
            file = os.open(folder / f"sluicegate-ports-{number}", os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(file)
                raise
            return range(_FIRST + number * _SLICE, _FIRST + (number + 1) * _SLICE)
    return range(_FIRST, _FIRST + _SLICE * _SLICES)
