"""One kept HTTP connection to a gateway: verified TLS, gzip both ways, bounded answers, every failure said in words.

Standard library only; imported where a target of HTTP is configured, not before.
"""

from __future__ import annotations

import http.client
import select
import socket
import ssl
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from sluicegate_agent.errors import EnvironmentRefused

_GZIP = 16 + zlib.MAX_WBITS
#: The chunks' largest document and its envelope: more is read of no answer.
LARGEST_ANSWER = 9 * 2**20


class Unanswered(Exception):  # noqa: N818  the other side did not answer; nothing is wrong with what was asked
    """There was no whole answer; whether the request was carried out is not known. The message says why."""


class Answer(NamedTuple):
    """A whole answer."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes


class Connection:
    """Requests to one base URL, one after the other; opened when needed, kept while the other side keeps it."""

    def __init__(self, url: str, context: ssl.SSLContext | None, pin: bytes | None, timeout: float) -> None:
        """`context`: for https; `pin`: the only certificate (DER) that is taken; `timeout`: seconds without any."""
        parts = urlsplit(url)
        self.place = f"{parts.scheme}://{parts.netloc}"
        self.path = parts.path.rstrip("/")
        self._pin, self._used = pin, False
        host, port = parts.hostname or "", parts.port
        if parts.scheme == "https":
            self._http: http.client.HTTPConnection = http.client.HTTPSConnection(
                host, port, timeout=timeout, context=context
            )
        else:
            self._http = http.client.HTTPConnection(host, port, timeout=timeout)

    def ask(self, method: str, path: str, pieces: Iterable[bytes] = (), headers: Mapping[str, str] = {}) -> Answer:
        """Send `pieces` as one gzipped JSON body and read the whole answer; `path` is below the URL's own.

        A kept connection that the other side has let go meanwhile is opened again, once: everything asked here may
        be asked twice. Raises Unanswered.
        """
        body = _gzipped(pieces)
        sent = {"Accept-Encoding": "gzip", "Accept": "application/json", **headers}
        if body:
            sent |= {"Content-Type": "application/json", "Content-Encoding": "gzip"}
        again = self._used
        while True:
            try:
                return self._asked(method, self.path + path, body, sent)
            except (OSError, http.client.HTTPException, zlib.error) as error:
                self.close()
                if not (again and isinstance(error, ConnectionError | http.client.BadStatusLine)):
                    raise Unanswered(f"{self.place}: {explained(error)}") from None
                again = False

    def close(self) -> None:
        """Let the connection go; the next request opens another."""
        self._http.close()
        self._used = False

    def _asked(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        if self._http.sock is None:
            self._http.connect()
            self._check_pin()
        try:
            self._http.request(method, path, body or None, dict(headers))
        except (BrokenPipeError, ConnectionResetError):
            # A proxy that finds the request too large answers and closes before it has read it all.
            if not self._has_answer():
                raise
        response = self._http.getresponse()
        data = response.read(LARGEST_ANSWER + 1)
        if len(data) > LARGEST_ANSWER:
            raise http.client.HTTPException(f"an answer of more than {LARGEST_ANSWER} bytes")
        self._used = not response.will_close
        if response.will_close:
            self._http.close()
        if response.headers.get("Content-Encoding") == "gzip":
            data = _inflated(data)
        return Answer(response.status, response.headers, data)

    def _has_answer(self) -> bool:
        """Whether something came before the other side closed."""
        sock = self._http.sock
        try:
            return sock is not None and bool(select.select([sock], [], [], 0)[0] and sock.recv(1, socket.MSG_PEEK))
        except (OSError, ValueError):  # ValueError: TLS cannot peek
            return sock is not None

    def _check_pin(self) -> None:
        """The other side's certificate is the pinned one; it has shown that it holds the key."""
        sock = self._http.sock
        if (
            self._pin is not None
            and isinstance(sock, ssl.SSLSocket)
            and sock.getpeercert(binary_form=True) != self._pin
        ):
            raise ssl.SSLCertVerificationError(1, "it is not the pinned certificate")


def tls(ca_file: Path | None, pin_file: Path | None) -> tuple[ssl.SSLContext, bytes | None]:
    """A context that verifies: by the system's roots, those of `ca_file`, or the one certificate in `pin_file`.

    The second is that certificate (DER), which `Connection` compares: the name in it then plays no part. Raises
    EnvironmentRefused for files that cannot be used.
    """
    try:
        if pin_file is None:
            return ssl.create_default_context(cafile=str(ca_file) if ca_file else None), None
        pin = ssl.PEM_cert_to_DER_cert(pin_file.read_text("ascii").strip())
        context = ssl.create_default_context(cadata=pin)
        context.check_hostname = False
        # The pinned certificate need not be an authority's, nor be signed by itself, nor have all that one should have.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        return context, pin
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        key, file = ("pin_file", pin_file) if pin_file else ("ca_file", ca_file)
        raise EnvironmentRefused(f"sync.tls.{key}: {file} cannot be used: {error}; expected PEM") from None


def explained(error: Exception) -> str:
    """What went wrong and what to look at, for people."""
    if isinstance(error, ssl.SSLCertVerificationError):
        said = getattr(error, "verify_message", "") or error.strerror or str(error)
        return f"its certificate is not trusted ({said}); name its authority in sync.tls.ca_file, or pin it"
    if isinstance(error, ssl.SSLError):
        return f"TLS failed ({error.reason or error}); does this port speak TLS?"
    if isinstance(error, socket.gaierror):
        return "its name cannot be resolved; check sync.url"
    if isinstance(error, ConnectionRefusedError):
        return "nobody listens there (connection refused); is the gateway running, is sync.url right?"
    if isinstance(error, TimeoutError):
        return "no answer in time (sync.timeout)"
    if isinstance(error, http.client.RemoteDisconnected | ConnectionError):
        return "the connection was cut"
    return str(error) or type(error).__name__


def _gzipped(pieces: Iterable[bytes]) -> bytes:
    """One gzip member of all pieces; nothing for none. Deflate inside base64 still gives a quarter back."""
    packer = zlib.compressobj(1, zlib.DEFLATED, _GZIP)
    packed = [packer.compress(piece) for piece in pieces]
    return b"".join([*packed, packer.flush()]) if packed else b""


def _inflated(data: bytes) -> bytes:
    unpacker = zlib.decompressobj(_GZIP)
    found = unpacker.decompress(data, LARGEST_ANSWER + 1)
    if len(found) > LARGEST_ANSWER or not unpacker.eof:
        raise http.client.HTTPException("an answer that is cut short or too long once inflated")
    return found
