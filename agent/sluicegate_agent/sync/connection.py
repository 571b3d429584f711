"""One kept HTTP connection to a gateway: verified TLS, gzip both ways, bounded answers, every failure said in words.

A time-out is about silence: a slow link that moves bytes is never given up. Standard library only; imported where a
target of HTTP is configured, not before.
"""

from __future__ import annotations

import contextlib
import fcntl
import http.client
import select
import socket
import termios
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from sluicegate_agent.errors import EnvironmentRefused
from sluicegate_agent.lean import load_tls
from sluicegate_agent.lean import tls as tls_layer

if TYPE_CHECKING:
    import ssl

_GZIP = 16 + zlib.MAX_WBITS
#: The chunks' largest document and its envelope: more is read of no answer.
LARGEST_ANSWER = 9 * 2**20
#: Bytes of an answer that was not asked for a document: more is read of none.
SHORT_ANSWER = 64 << 10
#: Bytes of an answer's head, and of the lines between its pieces.
LARGEST_HEAD = 64 << 10
#: Seconds that an answer may take from its first byte to its last, however steadily it comes.
LONGEST_ANSWER = 600.0
#: Bytes given to the system at once: each has the whole time-out. What the system may hold of them.
_PIECE, _BUFFER = 8 << 10, 64 << 10
_TURN = 0.5
#: OpenSSL's X509_V_ERR_CERT_NOT_YET_VALID and X509_V_ERR_CERT_HAS_EXPIRED.
_NOT_YET, _NO_MORE = 9, 10


class Unanswered(Exception):  # noqa: N818  the other side did not answer; nothing is wrong with what was asked
    """There was no whole answer; whether the request was carried out is not known. The message says why."""


class Answer(NamedTuple):
    """A whole answer."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes


class _Response(http.client.HTTPResponse):
    """An answer whose head, and whose lines between pieces, are bounded together."""

    def __init__(
        self, sock: socket.socket, debuglevel: int = 0, method: str | None = None, url: str | None = None
    ) -> None:
        super().__init__(sock, debuglevel, method, url)
        self.fp: IO[bytes] = _Bounded(self.fp)  # type: ignore[assignment]


class _Bounded:
    """A file whose lines are LARGEST_HEAD bytes at most in all."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._left = file, LARGEST_HEAD

    def readline(self, size: int = -1) -> bytes:
        """A line. Raises HTTPException where they are too many."""
        line = self._file.readline(min(size, self._left + 1) if size >= 0 else self._left + 1)
        self._left -= len(line)
        if self._left < 0:
            raise http.client.HTTPException(f"an answer with more than {LARGEST_HEAD} bytes of headers")
        return line

    def __getattr__(self, name: str) -> object:
        return getattr(self._file, name)


class Connection:
    """Requests to one base URL, one after the other; opened when needed, kept while the other side keeps it."""

    def __init__(self, url: str, context: ssl.SSLContext | None, pin: bytes | None, timeout: float) -> None:
        """`context`: for https; `pin`: the only certificate (DER) that is taken; `timeout`: seconds without any."""
        parts = urlsplit(url)
        self.place = f"{parts.scheme}://{parts.netloc}"
        self.path = parts.path.rstrip("/")
        self._pin, self._used, self._timeout = pin, False, timeout
        host, port = parts.hostname or "", parts.port
        if parts.scheme == "https":
            self._http: http.client.HTTPConnection = http.client.HTTPSConnection(
                host, port, timeout=timeout, context=context
            )
        else:
            self._http = http.client.HTTPConnection(host, port, timeout=timeout)
        self._http.response_class = _Response

    def ask(
        self,
        method: str,
        path: str,
        pieces: Iterable[bytes] = (),
        headers: Mapping[str, str] = {},
        most: int = SHORT_ANSWER,
    ) -> Answer:
        """Send `pieces` as one gzipped JSON body and read the whole answer; `path` is below the URL's own.

        `most`: bytes of an answer of success, inflated; of another one only the beginning is read. A kept connection
        that the other side has let go meanwhile is opened again, once: everything asked here may be asked twice.
        Raises Unanswered.
        """
        body = _gzipped(pieces)
        sent = {"Accept-Encoding": "gzip", "Accept": "application/json", **headers}
        if body:
            sent |= {"Content-Type": "application/json", "Content-Encoding": "gzip"}
        again = self._used
        while True:
            try:
                return self._asked(method, self.path + path, body, sent, min(most, LARGEST_ANSWER))
            except (OSError, http.client.HTTPException, zlib.error, ValueError) as error:
                # ValueError: a name that is none, a header that cannot be sent back.
                self.close()
                if not (again and isinstance(error, ConnectionError | http.client.BadStatusLine)):
                    raise Unanswered(f"{self.place}: {explained(error)}") from None
                again = False

    def close(self) -> None:
        """Let the connection go; the next request opens another."""
        self._http.close()
        self._used = False

    def _asked(self, method: str, path: str, body: bytes, headers: Mapping[str, str], most: int) -> Answer:
        if self._http.sock is None:
            self._http.connect()
            self._limit_buffer()
            self._check_pin()
        told = {**headers, "Content-Length": str(len(body))} if body else dict(headers)
        try:
            self._http.request(method, path, _in_pieces(body) if body else None, told)
        except (BrokenPipeError, ConnectionResetError):
            # A proxy that finds the request too large answers and closes before it has read it all.
            if not self._has_answer():
                raise
        self._wait()
        response = self._http.getresponse()
        data = self._read(response, most)
        self._used = not response.will_close
        if response.will_close or not response.isclosed():
            self.close()
        return Answer(response.status, response.headers, data)

    def _limit_buffer(self) -> None:
        """Have the system take little more than what is on its way, so that a piece it took is soon sent."""
        if self._http.sock is not None:
            self._http.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER)

    def _wait(self) -> None:
        """Wait for the answer's first byte; as long as the system still gets bytes away this is no silence."""
        sock: Any = self._http.sock
        left, end = _unsent(sock), time.monotonic() + self._timeout
        is_secure = isinstance(sock, tls_layer().SSLSocket)
        while not (is_secure and sock.pending()) and not select.select([sock], [], [], _TURN)[0]:
            before, left = left, _unsent(sock)
            now = time.monotonic()
            end = now + self._timeout if left < before else end
            if now >= end:
                raise TimeoutError

    def _read(self, response: http.client.HTTPResponse, most: int) -> bytes:
        """The answer, inflated piece by piece: all of it, or the beginning of one that only says what is wrong."""
        is_good, end = response.status in (200, 201), time.monotonic() + LONGEST_ANSWER
        limit = most if is_good else SHORT_ANSWER
        data = bytearray()
        for piece in _inflated(response, end):
            data += piece[: limit + 1 - len(data)]
            if len(data) > limit:
                if is_good:
                    raise http.client.HTTPException(f"an answer of more than {limit} bytes, which was not asked for")
                return bytes(data[:limit])
        return bytes(data)

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
            and isinstance(sock, tls_layer().SSLSocket)
            and sock.getpeercert(binary_form=True) != self._pin
        ):
            raise tls_layer().SSLCertVerificationError(1, "it is not the pinned certificate")


def tls(ca_file: Path | None, pin_file: Path | None) -> tuple[ssl.SSLContext, bytes | None]:
    """A context that verifies: by the system's roots, those of `ca_file`, or the one certificate in `pin_file`.

    The second is that certificate (DER), which `Connection` compares: the name in it then plays no part. Raises
    EnvironmentRefused for files that cannot be used.
    """
    load_tls()
    import ssl

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
    if isinstance(error, tls_layer().SSLCertVerificationError):
        if getattr(error, "verify_code", 0) in (_NOT_YET, _NO_MORE):
            when = "is not valid yet" if error.verify_code == _NOT_YET else "has expired"
            clock = datetime.now(UTC).strftime("%Y-%m-%d %H:%M")
            return f"its certificate {when}, by this board's clock ({clock} UTC): set the clock, or renew it"
        said = getattr(error, "verify_message", "") or error.strerror or str(error)
        return f"its certificate is not trusted ({said}); name its authority in sync.tls.ca_file, or pin it"
    if isinstance(error, tls_layer().SSLError):
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


def _in_pieces(body: bytes) -> Iterator[bytes]:
    """The body so that each piece has the whole time-out: Python's `sendall` has one for all of them."""
    return (body[at : at + _PIECE] for at in range(0, len(body), _PIECE))


def _unsent(sock: socket.socket) -> int:
    """Bytes that the other side has not acknowledged yet; 0 where the system does not say."""
    with contextlib.suppress(OSError):
        return int.from_bytes(fcntl.ioctl(sock, termios.TIOCOUTQ, b"\0" * 4), "little")
    return 0


def _inflated(response: http.client.HTTPResponse, end: float) -> Iterator[bytes]:
    """The body in pieces of at most 16 KiB, inflated where it is deflated. Raises HTTPException for one cut short."""
    encoding = (response.headers.get("Content-Encoding") or "identity").strip().lower()
    if encoding not in ("identity", "gzip"):
        raise http.client.HTTPException(f"an answer in the encoding {encoding[:20]!r}, which was not asked for")
    unpacker = zlib.decompressobj(_GZIP) if encoding == "gzip" else None
    while data := response.read1(2 * _PIECE):
        if time.monotonic() > end:
            raise http.client.HTTPException(f"an answer that had not ended after {LONGEST_ANSWER:.0f} s")
        while unpacker is not None and data:
            yield unpacker.decompress(data, 2 * _PIECE)
            data = unpacker.unconsumed_tail
        if data:
            yield data
    if response.length or (unpacker is not None and not unpacker.eof):
        raise http.client.IncompleteRead(b"")
    response.close()  # Python 3.11 takes one that was read by `read1` for unread, and its connection could not be kept
