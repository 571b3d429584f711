"""One table from the library's (domain, code) to exceptions that say what to do."""

from __future__ import annotations

from typing import Any, NamedTuple

from sluicegate.errors import SluicegateError

CBL, POSIX, SQLITE, FLEECE, NETWORK, WEBSOCKET, MBEDTLS = range(1, 8)
DOMAINS = {
    CBL: "CBL", POSIX: "POSIX", SQLITE: "SQLite", FLEECE: "Fleece", NETWORK: "network", WEBSOCKET: "HTTP or WebSocket",
    MBEDTLS: "TLS",
}  # fmt: skip


class CouchbaseLiteError(SluicegateError):
    """What the library reported: `domain` and `code` as it says, `advice` what to do about it."""

    def __init__(self, message: str, domain: int = 0, code: int = 0, advice: str = "") -> None:
        super().__init__(f"{message}; {advice}" if advice else message)
        self.domain, self.code, self.advice = domain, code, advice


class ClosedError(CouchbaseLiteError):
    """A handle was used after `close()`, or after the database it belongs to was closed."""


class NotFound(CouchbaseLiteError):
    """There is no such document, collection, blob or index."""


class Conflict(CouchbaseLiteError):
    """Somebody else has saved or deleted the document since it was read: read it again and decide."""


class Busy(CouchbaseLiteError):
    """Another process or thread has the database: try again."""


class Refused(CouchbaseLiteError):
    """The system refused: a full or read-only disk, a missing permission. The database is as it was before."""


class Damaged(CouchbaseLiteError):
    """The file is damaged or is no database: set it aside and begin a new one, or restore a copy."""


class InvalidArgument(CouchbaseLiteError, ValueError):
    """What was passed cannot be: a document id, a query, a parameter, a value that has no JSON."""


class Unreachable(CouchbaseLiteError):
    """The other side did not answer or let go of the connection: try again later."""


class Untrusted(CouchbaseLiteError):
    """The other side's certificate is not the one to trust: check pin, roots, name and clock."""


class Unauthorized(CouchbaseLiteError):
    """The other side knows no such user, or does not let it: check user, password and its channels."""


class RefusedByServer(CouchbaseLiteError):
    """The other side answered with an HTTP or WebSocket status that is not about who asks."""


class Meaning(NamedTuple):
    """What a code means here."""

    kind: type[CouchbaseLiteError]
    advice: str


_DISK = Meaning(Refused, "make room on the disk, or give a folder that this user may write to")
_BROKEN = Meaning(Damaged, "set the database's folder aside and begin a new one, or restore a copy")
_AWAY = Meaning(Unreachable, "check address, port and network; it is tried again")
_CERTIFICATE = Meaning(
    Untrusted, "check the pinned certificate or the roots, the server's name and this machine's clock"
)
_CLOCK = Meaning(Untrusted, "its certificate is not valid by this machine's clock: set the clock, or renew it")
_WHO = Meaning(
    Unauthorized,
    "check user name and password, the database's name in the address (a gateway may answer so for one that it does "
    "not have), and the rights the server gives that user",
)
_ARGUMENT = Meaning(InvalidArgument, "correct what was passed")

TABLE: dict[tuple[int, int], Meaning] = {
    **{(CBL, code): _BROKEN for code in (4, 5, 15, 20, 21)},
    **{(CBL, code): _DISK for code in (11, 12, 14)},
    (CBL, 3): Meaning(CouchbaseLiteError, "the database is encrypted, which the Community Edition cannot read"),
    (CBL, 6): Meaning(ClosedError, "open the database, or keep it open while its parts are used"),
    (CBL, 7): Meaning(NotFound, "check name and id; it may have been deleted or have expired"),
    (CBL, 8): Meaning(Conflict, "read the document again and decide, or save without a check"),
    (CBL, 9): _ARGUMENT,
    (CBL, 13): Meaning(CouchbaseLiteError, "not enough memory: open fewer things, or give the process more"),
    (CBL, 16): Meaning(Busy, "another process or an open transaction has it: try again"),
    (CBL, 17): Meaning(CouchbaseLiteError, "begin a transaction first"),
    (CBL, 18): Meaning(CouchbaseLiteError, "end the transaction first"),
    (CBL, 23): Meaning(InvalidArgument, "correct the query"),
    (CBL, 24): Meaning(NotFound, "make the index that the query needs"),
    (CBL, 25): Meaning(InvalidArgument, "give every parameter that the query names"),
    (CBL, 27): Meaning(CouchbaseLiteError, "open it once with the version that wrote it, then upgrade in steps"),
    (CBL, 28): Meaning(CouchbaseLiteError, "use the newer version of the library that wrote it"),
    (CBL, 29): Meaning(InvalidArgument, "an id is 1 to 240 bytes of UTF-8 and does not begin with _"),
    (CBL, 30): Meaning(CouchbaseLiteError, "give it room to upgrade, or restore a copy"),
    (POSIX, 2): Meaning(NotFound, "check the path"),
    **{(POSIX, code): _DISK for code in (5, 13, 28, 30, 122)},
    **{(POSIX, code): _AWAY for code in (32, 101, 103, 104, 110, 111, 112, 113)},
    **dict.fromkeys(((SQLITE, 5), (SQLITE, 6)), Meaning(Busy, "another process has the file: try again")),
    **{(SQLITE, code): _DISK for code in (3, 8, 10, 13, 14)},
    **{(SQLITE, code): _BROKEN for code in (11, 26)},
    **{(NETWORK, code): _AWAY for code in (1, 2, 3, 13)},
    (NETWORK, 4): Meaning(InvalidArgument, "expected ws://host:port/database or wss://…"),
    **{(NETWORK, code): _CERTIFICATE for code in (6, 8, 9, 10, 11, 14, 15)},
    (NETWORK, 7): _CLOCK,
    **{(WEBSOCKET, code): _WHO for code in (401, 403)},
    (WEBSOCKET, 404): Meaning(NotFound, "there is no such database on that server, or the document is unknown"),
    (WEBSOCKET, 409): Meaning(Conflict, "the server has another version of this document"),
    (WEBSOCKET, 413): Meaning(RefusedByServer, "the document is larger than the server takes"),
    **{(WEBSOCKET, code): _AWAY for code in (408, 429, 500, 502, 503, 504, 1001, 1005, 1006, 1011, 1012, 1013)},
}  # fmt: skip
"""What each code asks for. What is not in it is a CouchbaseLiteError, or RefusedByServer for HTTP and WebSocket."""


def ruling(domain: int, code: int) -> Meaning:
    """What a code asks for. Extended SQLite codes count as their primary one."""
    found = TABLE.get((domain, code & 0xFF if domain == SQLITE else code))
    if found is not None:
        return found
    if domain == MBEDTLS:
        return _CERTIFICATE
    return Meaning(RefusedByServer if domain == WEBSOCKET else CouchbaseLiteError, "")


def error_of(domain: int, code: int, message: str, what: str) -> CouchbaseLiteError:
    """The exception for a code, not raised."""
    found = ruling(domain, code)
    text = f"{what}: {message or 'no message'} ({DOMAINS.get(domain, domain)} {code})"
    return found.kind(text, domain, code, found.advice)


def message_of(ffi: Any, lib: Any, error: Any) -> str:
    """The library's own words for an error it filled in."""
    result = lib.CBLError_Message(error)
    if result.buf == ffi.NULL:
        return ""
    try:
        return bytes(ffi.buffer(result.buf, result.size)).decode("utf-8", "replace")
    finally:
        lib._FLBuf_Release(result.buf)


def fail(ffi: Any, lib: Any, error: Any, what: str) -> CouchbaseLiteError:
    """The exception for what a call has filled in."""
    return error_of(error.domain, error.code, message_of(ffi, lib, error), what)
