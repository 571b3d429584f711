"""One look at a running agent, through its listener."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from http.client import HTTPConnection, HTTPException
from typing import TYPE_CHECKING, Any

from sluicegate_agent.errors import EnvironmentRefused

if TYPE_CHECKING:
    from sluicegate_agent.config import Config

_PATIENCE = 5.0
_LARGEST = 16 << 20


def source_of(config: Config) -> Callable[[], dict[str, Any]]:
    """Looks at the agent of a configuration. What it returns raises EnvironmentRefused where nothing is seen."""
    if config.metrics.listen is None:
        raise EnvironmentRefused('there is no listener to look at: add [metrics] listen = "127.0.0.1:9464"')
    token = _token(config)

    def look() -> dict[str, Any]:
        connection = _connection(config)
        try:
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            connection.request("GET", "/api/status", headers=headers)
            answer = connection.getresponse()
            body = answer.read(_LARGEST)
        except (OSError, HTTPException) as error:
            raise EnvironmentRefused(
                f"{config.metrics.listen} does not answer: {error}; is the agent running?"
            ) from None
        finally:
            connection.close()
        if answer.status != 200:
            raise EnvironmentRefused(f"{config.metrics.listen}: {body[:200].decode(errors='replace').strip()}")
        found: dict[str, Any] = json.loads(body)
        return found

    return look


def _token(config: Config) -> str:
    if config.metrics.token_file is None:
        return ""
    with config.metrics.token_file.open(encoding="ascii") as handle:
        return handle.readline(4096).strip()


class _Unix(HTTPConnection):
    """HTTP over a socket of the file system."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=_PATIENCE)
        self._path = path

    def connect(self) -> None:
        """Connect to the file."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(_PATIENCE)
        self.sock.connect(self._path)


def _connection(config: Config) -> HTTPConnection:
    metrics = config.metrics
    if metrics.is_unix:
        return _Unix((metrics.listen or "").removeprefix("unix:"))
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(metrics.host, metrics.host)  # noqa: S104  what to connect to
    return HTTPConnection(host, metrics.port, timeout=_PATIENCE)
