"""Free ports of this machine, and servers that are awaited on them."""

from __future__ import annotations

import contextlib
import random
import socket
import time


def free_port() -> int:
    """A port that nothing listens on now, out of those that the system gives to nobody by itself."""
    while True:
        port = random.randrange(20_000, 32_000)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


def wait_for(port: int, seconds: float = 20.0) -> None:
    """Until somebody listens. Raises TimeoutError."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.01)
    raise TimeoutError(f"no broker on port {port}")
