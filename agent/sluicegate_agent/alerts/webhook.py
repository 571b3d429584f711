"""Messages of alerts as POSTs, one after the other in a thread of their own; tried again until taken."""

from __future__ import annotations

import http.client
import socket
import threading
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from sluicegate.version import VERSION
from sluicegate_agent.errors import EnvironmentRefused
from sluicegate_agent.lean import load_tls
from sluicegate_agent.logs.secrets import hide

if TYPE_CHECKING:
    import ssl

    from sluicegate_agent.config.outward import AlertsConfig

_STACK = 256 << 10
_LONGEST_TOKEN = 4096


class Outcome:
    """What became of a POST: taken; or why not, and whether the same will ever be taken."""

    def __init__(self, status: int = 0, error: str = "", retry_after: float = 0.0) -> None:
        self.taken = 200 <= status < 300
        self.error = error or f"HTTP status {status}"
        self.retry_after = retry_after
        # What it calls a fault of ours (a 4xx) stays one; a wrong token, a wait, a server in trouble pass.
        self.hopeless = 400 <= status < 500 and status not in (401, 403, 404, 407, 408, 425, 429)


class Webhook:
    """One URL; `post` begins, `outcome` is there when it is done."""

    def __init__(self, config: AlertsConfig) -> None:
        """Raises EnvironmentRefused for a token or certificates that cannot be used."""
        parts = urlsplit(config.webhook or "")
        self._host, self._port, self._secure = parts.hostname or "", parts.port, parts.scheme == "https"
        self._path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._seconds = config.timeout.seconds
        self._token = _token(config)
        self._context = _context(config) if self._secure else None
        self._outcome: Outcome | None = None
        self.is_busy = False

    def post(self, body: bytes, name: str) -> None:
        """Begin; `name` tells who gets it twice that it is the same."""
        self.is_busy = True
        before = threading.stack_size(_STACK)
        try:
            threading.Thread(target=self._run, args=(body, name), name="webhook", daemon=True).start()
        finally:
            threading.stack_size(before)

    def outcome(self) -> Outcome | None:
        """Of the last `post`, once; None while it is under way."""
        found, self._outcome = self._outcome, None
        self.is_busy = self.is_busy and found is None
        return found

    def _run(self, body: bytes, name: str) -> None:
        try:
            self._outcome = self._posted(body, name)
        except Exception as error:
            # Whatever a peer sends: it is a try that failed, and the thread must say so.
            self._outcome = Outcome(error=_explained(error))

    def _posted(self, body: bytes, name: str) -> Outcome:
        if self._secure:
            connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                self._host, self._port, timeout=self._seconds, context=self._context
            )
        else:
            connection = http.client.HTTPConnection(self._host, self._port, timeout=self._seconds)
        headers = {"Content-Type": "application/json", "User-Agent": f"sluicegate/{VERSION}", "Idempotency-Key": name}
        headers |= {"Authorization": f"Bearer {self._token}"} if self._token else {}
        try:
            connection.request("POST", self._path, body, headers)
            answer = connection.getresponse()
            return Outcome(answer.status, retry_after=_seconds(answer.headers.get("Retry-After")))
        finally:
            connection.close()


def _seconds(text: str | None) -> float:
    """A Retry-After in seconds, an hour at most; 0 where it is none."""
    return min(float(text), 3600.0) if text and text.isdecimal() and len(text) < 9 else 0.0


def _explained(error: Exception) -> str:
    if isinstance(error, socket.gaierror):
        return "its name cannot be resolved"
    if isinstance(error, TimeoutError):
        return "no answer in time (alerts.timeout)"
    return f"{type(error).__name__}: {error}"[:200]


def _token(config: AlertsConfig) -> str:
    if config.token_file is None:
        return ""
    try:
        with config.token_file.open(encoding="ascii") as handle:
            return hide(handle.readline(_LONGEST_TOKEN).strip())
    except (OSError, UnicodeDecodeError) as error:
        raise EnvironmentRefused(f"alerts.token_file: {config.token_file} cannot be read: {error}") from None


def _context(config: AlertsConfig) -> ssl.SSLContext:
    load_tls()
    import ssl

    try:
        return ssl.create_default_context(cafile=str(config.ca_file) if config.ca_file else None)
    except (OSError, ssl.SSLError) as error:
        raise EnvironmentRefused(f"alerts.ca_file: {config.ca_file} cannot be used: {error}; expected PEM") from None
