"""A TCP proxy on loopback that cuts, stalls and restores: what a bad network does between a device and its gateway."""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit, urlunsplit

_TURN = 0.02
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER: close with RST, as a link that breaks


def _never() -> int | None:
    return None


class Proxy:
    """Passes bytes to the host of `url`; `self.url` is the same URL through the proxy.

    `budget` is asked for each new connection: the bytes, of both ways together, after which it is cut; None: never.
    `stalled`: nothing passes, nothing is closed. `away`: who connects is cut at once. `cuts` counts what was cut.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._target = (parts.hostname or "", parts.port or 0)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.url = urlunsplit(parts._replace(netloc=f"127.0.0.1:{self.port}"))
        self.budget: Callable[[], int | None] = _never
        self.stalled = self.away = self._closed = False
        self.cuts = self.connections = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def restore(self) -> None:
        """All as it should be."""
        self.budget, self.stalled, self.away = _never, False, False

    def close(self) -> None:
        """No connection any more."""
        self._closed = True
        self._listener.close()

    def _accept(self) -> None:
        while not self._closed:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        if self.away:
            self._cut(client)
            return
        try:
            server = socket.create_connection(self._target, timeout=60)
        except OSError:
            self._cut(client)
            return
        left = self.budget()
        try:
            self._pass(client, server, left)
        finally:
            client.close()
            server.close()

    def _pass(self, client: socket.socket, server: socket.socket, left: int | None) -> None:
        """Until one side ends, or the budget is used up: then neither learns what the other still had."""
        while not self._closed:
            if self.away:
                return self._cut(client, server)
            readable = [] if self.stalled else select.select([client, server], [], [], _TURN)[0]
            if self.stalled:
                select.select([], [], [], _TURN)
            for source in readable:
                data = self._received(source, 65536 if left is None else min(left, 65536))
                with contextlib.suppress(OSError):
                    (server if source is client else client).sendall(data)
                if not data:
                    return None
                left = None if left is None else left - len(data)
                if left == 0:
                    return self._cut(client, server)
        return None

    def _received(self, source: socket.socket, most: int) -> bytes:
        try:
            return source.recv(most)
        except OSError:
            return b""

    def _cut(self, *sockets: socket.socket) -> None:
        self.cuts += 1
        for each in sockets:
            with contextlib.suppress(OSError):
                each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            each.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
