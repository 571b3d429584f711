"""TLS before a gateway that speaks plainly, as a load balancer does it: shows one certificate and passes bytes on."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit


class TlsFront:
    """Listens on loopback with the certificate in `shown` (its key beside it); `port` leads to `url`."""

    def __init__(self, url: str, shown: Path) -> None:
        parts = urlsplit(url)
        self._target = (parts.hostname or "", parts.port or 0)
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(shown, shown.with_suffix(".key"))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, plain: socket.socket) -> None:
        with contextlib.suppress(OSError), plain:
            client = self._context.wrap_socket(plain, server_side=True)
            server = socket.create_connection(self._target, timeout=60)
            server.settimeout(None)
            with client, server:
                back = threading.Thread(target=_pass, args=(server, client), daemon=True)
                back.start()
                _pass(client, server)
                back.join(5)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._listener.close()


def _pass(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    for each in (source, sink):
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
