"""A server that answers as a test told it to, once each: for what a gateway does only when something is wrong."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit


@dataclass
class Answer:
    """One answer: `cut` after so many bytes of the body, `chunked` as gateways stream, `pause` seconds before it."""

    body: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    cut: int | None = None
    chunked: bool = False
    length: int | None = None
    pause: float = 0.0

    @property
    def data(self) -> bytes:
        """The body's bytes; what is no bytes is JSON."""
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


@dataclass
class Scripted:
    """`answers` in order, the last for ever; `asked` are the requests: path, query, headers."""

    answers: list[Answer | Callable[[dict[str, str]], Answer]]
    asked: list[tuple[str, dict[str, str], dict[str, str]]] = field(default_factory=list)
    port: int = 0
    secure: bool = False

    @property
    def url(self) -> str:
        """A database's URL."""
        return f"http{'s' if self.secure else ''}://127.0.0.1:{self.port}/telemetry"

    def next(self, query: dict[str, str]) -> Answer:
        """The answer that is due."""
        due = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return due if isinstance(due, Answer) else due(query)


@contextmanager
def scripted(
    *answers: Answer | Callable[[dict[str, str]], Answer], tls: tuple[str, str] | None = None
) -> Iterator[Scripted]:
    """Serve on a free port of the loopback until the block ends."""
    script = Scripted(list(answers), secure=tls is not None)
    stop = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            query = dict(parse_qsl(parts.query))
            script.asked.append((parts.path, query, dict(self.headers)))
            _answer(self, script.next(query), stop)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    if tls is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*tls)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    script.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield script
    finally:
        stop.set()
        server.shutdown()
        server.server_close()


def _answer(handler: BaseHTTPRequestHandler, answer: Answer, stop: threading.Event) -> None:
    stop.wait(answer.pause)
    data = answer.data
    handler.send_response(answer.status)
    handler.send_header("Content-Type", "application/json")
    for name, value in answer.headers.items():
        handler.send_header(name, value)
    if answer.chunked:
        handler.send_header("Transfer-Encoding", "chunked")
    else:
        handler.send_header("Content-Length", str(len(data) if answer.length is None else answer.length))
    handler.end_headers()
    shown = data if answer.cut is None else data[: answer.cut]
    handler.wfile.write(b"%x\r\n%s\r\n" % (len(data), shown) if answer.chunked else shown)
    if answer.chunked and answer.cut is None:
        handler.wfile.write(b"0\r\n\r\n")
    handler.wfile.flush()
    if answer.cut is not None or answer.length is not None:
        handler.close_connection = True
        handler.connection.shutdown(socket.SHUT_WR)
