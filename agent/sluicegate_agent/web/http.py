"""HTTP/1.1 as far as a listener for reading needs it: one bounded request, one response, the connection closed."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import parse_qsl, unquote

#: Bytes of a request's line and headers, and how many headers.
HEAD_MOST, HEADERS_MOST = 8192, 64
_QUERY_MOST = 16
_REASONS = {
    200: "OK", 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed",
    408: "Request Timeout", 411: "Length Required", 413: "Content Too Large", 415: "Unsupported Media Type",
    421: "Misdirected Request", 422: "Unprocessable Content", 431: "Request Header Fields Too Large",
    503: "Service Unavailable",
}  # fmt: skip
#: What every response says: nothing is kept, nothing is guessed, nothing foreign is loaded, nobody frames it.
_ALWAYS = (
    b"Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n"
    b"Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    b"img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n"
)


class Request(NamedTuple):
    """One request; header names in small letters."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    length: int = 0
    body: bytes = b""


class Response(NamedTuple):
    """What goes back."""

    status: int
    body: bytes
    kind: str = "text/plain; charset=utf-8"


class Refused(Exception):  # noqa: N818  an answer to the peer, not a failure of the agent
    """Raised for a request that cannot be served; `response` says why."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.response = Response(status, f"{why}\n".encode())


def parse(head: bytes, body: int = 0) -> Request:
    """The request of a head without its empty line; `body`: bytes that may follow, 0: it is for reading.

    Raises Refused for what is none, or has more.
    """
    try:
        first, *lines = head.decode("ascii").split("\r\n")
        method, target, version = first.split(" ")
    except ValueError:
        raise Refused(400, "expected one request of HTTP/1.1") from None
    if version not in ("HTTP/1.1", "HTTP/1.0") or not target.startswith("/") or not target.isprintable():
        raise Refused(400, "expected one request of HTTP/1.1")
    headers = _headers(lines)
    if method not in ("GET", "HEAD") and not (body and method == "POST"):
        raise Refused(405, "this listener is for reading: GET and HEAD" if not body else "readings are taken by POST")
    length = _length(headers, body if method == "POST" else 0)
    path, _, query = target.partition("?")
    return Request(method, unquote(path), _query(query), headers, length)


def _length(headers: dict[str, str], most: int) -> int:
    told = headers.get("content-length", "0")
    if "transfer-encoding" in headers or (most and "content-length" not in headers):
        raise Refused(411 if most else 413, "say the body's Content-Length" if most else "a request has no body here")
    if not (told.isdecimal() and told.isascii() and len(told) <= 12):
        raise Refused(400, "expected Content-Length as a whole number")
    if int(told) > most:
        raise Refused(413, f"a body has at most {most} bytes" if most else "a request for reading has no body")
    return int(told)


def _headers(lines: list[str]) -> dict[str, str]:
    if len(lines) > HEADERS_MOST:
        raise Refused(431, f"more than {HEADERS_MOST} headers")
    found: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name or name != name.strip() or not line.isprintable():
            raise Refused(400, "a header line is malformed")
        # Two values under one name could be read in two ways: which host, which token?
        if found.setdefault(name.lower(), value.strip()) != value.strip():
            raise Refused(400, f"the header {name.lower()} came twice")
    return found


def _query(text: str) -> dict[str, str]:
    try:
        return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=_QUERY_MOST, errors="strict"))
    except ValueError:
        raise Refused(400, f"expected at most {_QUERY_MOST} parameters in UTF-8") from None


def written(response: Response, *, head_only: bool = False) -> bytes:
    """A response as bytes; the connection ends with it."""
    head = head_of(response.status, response.kind, b"Content-Length: %d\r\n" % len(response.body))
    return head if head_only else head + response.body


def head_of(status: int, kind: str, more: bytes = b"") -> bytes:
    """The head of a response."""
    wants = b'WWW-Authenticate: Bearer realm="sluicegate"\r\n' if status == 401 else b""
    line = f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: {kind}\r\n".encode()
    return line + b"Connection: close\r\n" + wants + more + _ALWAYS + b"\r\n"
