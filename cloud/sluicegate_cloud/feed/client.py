"""One connection to a gateway: every answer bounded before it is held, every wait ended, what may pass tried again."""

from __future__ import annotations

import http.client
import json
import logging
import random
import ssl
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from sluicegate_cloud.errors import GatewayError
from sluicegate_cloud.feed.gateway import CA_FILE, CREDENTIALS, PASSWORD, USER, Gateway, authorization

log = logging.getLogger("sluicegate.feed")
TRIES, FIRST_DELAY, LONGEST_DELAY = 6, 0.5, 30.0
#: Seconds a whole answer may take, however it trickles.
LONGEST_ANSWER = 600.0
#: Of an integer; the largest that a chunk may have has 19.
MOST_DIGITS = 1_000
_PIECE = 1 << 18
_PASSING = (408, 425, 429, 500, 502, 503, 504)
#: What is said of a status that trying again would not change.
_REFUSALS = {
    401: f"knows no such reader or database: check {CREDENTIALS} (or {USER} and {PASSWORD}) and the URL",
    403: "does not let this reader in: its user needs the role `reader`",
    404: "has no such database: check the URL's last part",
}


class TooLargeError(Exception):
    """Raised when an answer would be larger than the caller takes; nothing of it is held any more."""


class UnreadableError(Exception):
    """Raised when an answer came whole and cannot be read all the same: nested too deeply, or numbers without end."""


class _PassingError(Exception):
    """Raised when trying again may help; `after`: seconds that the gateway asks to wait."""

    def __init__(self, said: str, after: float = 0.0) -> None:
        super().__init__(said)
        self.after = after


class _NoJSONError(_PassingError):
    """Raised when a whole answer is no JSON: a proxy's page, or a document that will not become any."""


class Client:
    """Asks one gateway over one connection that stays open; a context manager."""

    def __init__(self, gateway: Gateway, tries: int = TRIES) -> None:
        """Raises SourceError where the environment does not say who reads."""
        self.gateway, self.tries = gateway, tries
        self._headers = {"Authorization": authorization(gateway.credentials), "Accept": "application/json"}
        self._tls = gateway.tls() if gateway.secure else None
        self._connection: http.client.HTTPConnection | None = None

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let the connection go; again is harmless."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def get(self, path: str, query: Mapping[str, str], most: int) -> Any:
        """The JSON at `path` below the database, of at most `most` bytes; None where there is no such document.

        Raises TooLargeError, UnreadableError, and GatewayError when the gateway refuses or did not answer within
        `tries`.
        """
        return self._answered(path, query, None, most)

    def post(self, path: str, query: Mapping[str, str], told: Any, most: int) -> Any:
        """The answer to the JSON `told`; raises as `get` does. The gateway may receive it twice."""
        return self._answered(path, query, json.dumps(told, allow_nan=False).encode(), most)

    def _answered(self, path: str, query: Mapping[str, str], told: bytes | None, most: int) -> Any:
        target = f"{self.gateway.root}/{path}" + (f"?{urlencode(query)}" if query else "")
        for left in range(self.tries - 1, -1, -1):
            try:
                return self._once(target, told, most, none_is_known=bool(path) and not path.startswith("_"))
            except _PassingError as error:
                self.close()
                if not left and isinstance(error, _NoJSONError):
                    raise UnreadableError(str(error)) from error
                if not left:
                    raise GatewayError(f"{self.gateway.url} did not answer in {self.tries} tries: {error}") from error
                self._wait(self.tries - 1 - left, error)
            except BaseException:
                self.close()
                raise
        raise AssertionError("a try either answers or raises")

    def _wait(self, failures: int, error: _PassingError) -> None:
        """Twice as long each time, and never all readers at once."""
        delay = min(LONGEST_DELAY, max(error.after, FIRST_DELAY * 2**failures))
        log.warning("%s: %s; again in about %.1f s", self.gateway.url, error, delay)
        time.sleep(delay * (1 + 0.25 * random.random()))  # noqa: S311

    def _once(self, target: str, told: bytes | None, most: int, *, none_is_known: bool) -> Any:
        try:
            response = self._asked(target, told)
            body = _bounded(response, most)
        except ssl.SSLCertVerificationError as error:
            raise GatewayError(self._distrusted(error)) from error
        except (OSError, http.client.HTTPException) as error:
            raise _PassingError(_said(error)) from error
        if response.status == 404 and none_is_known:
            return None
        self._check(response, body)
        return _parsed(body)

    def _asked(self, target: str, told: bytes | None) -> http.client.HTTPResponse:
        if self._connection is None:
            self._connection = self._connected()
        if told is None:
            self._connection.request("GET", target, headers=self._headers)
        else:
            self._connection.request("POST", target, told, {**self._headers, "Content-Type": "application/json"})
        return self._connection.getresponse()

    def _connected(self) -> http.client.HTTPConnection:
        host, port, timeout = self.gateway.host, self.gateway.port, self.gateway.timeout
        if self._tls is None:
            return http.client.HTTPConnection(host, port, timeout=timeout)
        return http.client.HTTPSConnection(host, port, timeout=timeout, context=self._tls)

    def _check(self, response: http.client.HTTPResponse, body: bytes) -> None:
        """Nothing for 200 and 201, else _PassingError or GatewayError; no redirection is followed with a password."""
        status = response.status
        if status in _PASSING:
            raise _PassingError(f"HTTP {status} {_reason(body)}", _seconds(response.getheader("Retry-After")))
        if status not in (200, 201):
            said = _REFUSALS.get(status, f"answered HTTP {status}: {_reason(body)}")
            raise GatewayError(f"{self.gateway.url} {said}")

    def _distrusted(self, error: ssl.SSLCertVerificationError) -> str:
        roots = f"the roots in {self.gateway.ca}" if self.gateway.ca else "the system's roots"
        return (
            f"{self.gateway.url}: its certificate is not trusted by {roots}: {error.verify_message}. "
            f"Give the authority that signed it in {CA_FILE}"
        )


def _bounded(response: http.client.HTTPResponse, most: int) -> bytes:
    """The whole body. Raises TooLargeError before more than `most` bytes are held, IncompleteRead where it is cut."""
    if (response.length or 0) > most:
        raise TooLargeError(f"{response.length} bytes")
    body, end = bytearray(), time.monotonic() + LONGEST_ANSWER
    while piece := response.read(_PIECE):
        body += piece
        if len(body) > most:
            raise TooLargeError(f"more than {most} bytes")
        if time.monotonic() > end:
            raise TimeoutError(f"its answer was not whole after {LONGEST_ANSWER:.0f} s")
    if response.length:
        raise http.client.IncompleteRead(b"", response.length)
    return bytes(body)


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body, parse_int=_integer)
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise _NoJSONError(f"its answer is no whole JSON ({error})") from error
    except RecursionError as error:
        raise UnreadableError("it is nested too deeply") from error
    except ValueError as error:
        raise UnreadableError(str(error)) from error


def _integer(digits: str) -> int:
    """An integer of bounded length, since reading one takes time by the square of its length."""
    if len(digits) > MOST_DIGITS:
        raise ValueError(f"it has an integer of {len(digits)} digits, at most {MOST_DIGITS} are read")
    return int(digits)


def _said(error: Exception) -> str:
    if isinstance(error, http.client.IncompleteRead):
        return "the answer was cut"
    return (isinstance(error, OSError) and error.strerror) or str(error) or type(error).__name__


def _reason(body: bytes) -> str:
    try:
        return str(json.loads(body)["reason"])[:200]
    except (ValueError, KeyError, TypeError, RecursionError):
        return body[:200].decode(errors="replace").strip()


def _seconds(header: str | None) -> float:
    return float(header) if header and header.isdigit() else 0.0
