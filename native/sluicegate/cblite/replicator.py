"""A replicator: pushes or pulls collections to and from a Sync Gateway, and says of each document what became of it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from sluicegate.cblite import fleece
from sluicegate.cblite.errors import CouchbaseLiteError, InvalidArgument, error_of, fail, message_of
from sluicegate.cblite.handle import Handle
from sluicegate.cblite.listener import Listener, Mailbox

if TYPE_CHECKING:
    from sluicegate.cblite.collection import Collection
    from sluicegate.cblite.database import Database

#: Seconds that `close` waits for a replicator to stop.
STOPPING = 20.0


class Direction(IntEnum):
    """Which way documents go."""

    PUSH_AND_PULL = 0
    PUSH = 1
    PULL = 2


class Activity(IntEnum):
    """What a replicator does now."""

    STOPPED = 0
    OFFLINE = 1
    CONNECTING = 2
    IDLE = 3
    BUSY = 4


class Status(NamedTuple):
    """How a replicator is: `complete` from 0 to 1, documents so far, and why it is not connected."""

    activity: Activity
    complete: float
    documents: int
    error: CouchbaseLiteError | None


class Replicated(NamedTuple):
    """What became of one document: without `error` the other side has it (push) or we have it (pull)."""

    id: str
    error: CouchbaseLiteError | None
    is_push: bool
    deleted: bool
    collection: str
    scope: str


class Settings(NamedTuple):
    """How to reach and trust the other side.

    user, password   basic authentication; or `session`, a Sync Gateway session's id
    pinned           the only certificate that is trusted, PEM or DER
    roots            certificates to trust instead of the system's, PEM
    heartbeat        seconds between signs of life; attempts and longest_wait: of connecting. 0: the library's default
    """

    user: str = ""
    password: str = ""
    session: str = ""
    pinned: bytes = b""
    roots: bytes = b""
    headers: Mapping[str, str] = {}
    heartbeat: int = 0
    attempts: int = 0
    longest_wait: int = 0


class Replicator(Handle):
    """Replicates `collections` of one database with `url` (`wss://host:4984/name`) once `start` is called.

    Raises InvalidArgument for an address or certificate that cannot be.
    """

    def __init__(
        self,
        database: Database,
        url: str,
        collections: Sequence[Collection],
        settings: Settings = Settings(),  # noqa: B008  immutable
        *,
        direction: Direction = Direction.PUSH,
        continuous: bool = True,
    ) -> None:
        if not collections:
            raise InvalidArgument("a replicator needs a collection at least")
        self.url = url
        made = _created(database, url, collections, settings, direction, continuous)
        super().__init__(made, database)
        try:
            self.states = States(self)
        except BaseException:
            super().close()
            raise

    def start(self, *, reset: bool = False) -> None:
        """Begin, in the background; `reset` compares all documents anew. Not inside a transaction."""
        if getattr(self._parent, "in_transaction", False):
            raise CouchbaseLiteError("a replicator cannot be started inside a transaction; end that first")
        self._library.lib.CBLReplicator_Start(self._pointer, reset)

    def stop(self) -> None:
        """Ask it to stop; `wait` says when it has."""
        self._library.lib.CBLReplicator_Stop(self._pointer)

    @property
    def status(self) -> Status:
        """How it is now."""
        return _status(self._library, self._library.lib.CBLReplicator_Status(self._pointer))

    def wait(self, timeout: float, *activities: Activity) -> Status:
        """Wait until it does one of `activities` (STOPPED where none is named), at most `timeout` seconds."""
        wanted, end = activities or (Activity.STOPPED,), time.monotonic() + timeout
        while (now := self.status).activity not in wanted and (left := end - time.monotonic()) > 0:
            self.states.take(min(left, 0.25))
        return now

    def documents(self) -> Documents:
        """A listener that collects what becomes of each document, in batches as the library acknowledges them."""
        return Documents(self)

    def close(self) -> None:
        """Stop, wait for it, and let it go."""
        if self._held is not None:
            self.stop()
            self.wait(STOPPING)
        super().close()


class States(Listener[Status]):
    """Changes of a replicator's status."""

    _registers = "CBLReplicator_AddChangeListener"
    _signature = "void(void *, CBLReplicator *, const CBLReplicatorStatus *)"

    @staticmethod
    def _taking(library: Any, mailbox: Mailbox[Status]) -> Any:
        def take(context: Any, replicator: Any, status: Any) -> None:
            mailbox.put([_status(library, status)])

        return take


class Documents(Listener[Replicated]):
    """What became of documents. Make it before `start`, so that none is missed."""

    _registers = "CBLReplicator_AddDocumentReplicationListener"
    _signature = "void(void *, CBLReplicator *, bool, unsigned, const CBLReplicatedDocument *)"

    @staticmethod
    def _taking(library: Any, mailbox: Mailbox[Replicated]) -> Any:
        def take(context: Any, replicator: Any, is_push: bool, count: int, documents: Any) -> None:
            mailbox.put([_replicated(library, documents[i], bool(is_push)) for i in range(count)])

        return take


def _error(library: Any, error: Any, what: str) -> CouchbaseLiteError | None:
    if not error.code:
        return None
    ffi, lib = library[:2]
    copy = ffi.new("CBLError *", error)
    return error_of(error.domain, error.code, message_of(ffi, lib, copy), what)


def _status(library: Any, status: Any) -> Status:
    progress = status.progress
    error = _error(library, status.error, "replication")
    return Status(Activity(status.activity), float(progress.complete), int(progress.documentCount), error)


def _replicated(library: Any, document: Any, is_push: bool) -> Replicated:
    ffi = library.ffi
    id = fleece.text_of(ffi, document.id)
    names = fleece.text_of(ffi, document.collection), fleece.text_of(ffi, document.scope)
    return Replicated(id, _error(library, document.error, id), is_push, bool(document.flags & 1), *names)


def _created(
    database: Database,
    url: str,
    collections: Sequence[Collection],
    settings: Settings,
    direction: Direction,
    continuous: bool,
) -> Any:
    """A new replicator. What the configuration points to lives until the library has copied it."""
    library = database._library
    ffi, lib = library[:2]
    error = ffi.new("CBLError *")
    endpoint = lib.CBLEndpoint_CreateWithURL(fleece.sliced(ffi, url.encode()), error)
    if endpoint == ffi.NULL:
        raise fail(ffi, lib, error, f"address {url!r}")
    authenticator = _authenticator(library, settings)
    headers = fleece.mutable(library, settings.headers)
    try:
        listed = ffi.new("CBLReplicationCollection[]", len(collections))
        for place, collection in zip(listed, collections, strict=True):
            place.collection = collection._pointer
        config = ffi.new("CBLReplicatorConfiguration *")
        config.endpoint, config.authenticator, config.headers = endpoint, authenticator, headers
        config.collections, config.collectionCount = listed, len(collections)
        config.replicatorType, config.continuous = int(direction), continuous
        config.heartbeat, config.maxAttempts = settings.heartbeat, settings.attempts
        config.maxAttemptWaitTime = settings.longest_wait
        pinned, roots = settings.pinned, settings.roots
        if pinned:
            config.pinnedServerCertificate = fleece.sliced(ffi, pinned)
        if roots:
            config.trustedRootCertificates = fleece.sliced(ffi, roots)
        made = lib.CBLReplicator_Create(config, error)
        if made == ffi.NULL:
            raise fail(ffi, lib, error, f"replicator for {url}")
        return made
    finally:
        fleece.released(library, headers)
        lib.CBLAuth_Free(authenticator)
        lib.CBLEndpoint_Free(endpoint)


def _authenticator(library: Any, settings: Settings) -> Any:
    ffi, lib = library[:2]
    if settings.session:
        name = b"SyncGatewaySession"
        return lib.CBLAuth_CreateSession(fleece.sliced(ffi, settings.session.encode()), fleece.sliced(ffi, name))
    if settings.user:
        user, password = settings.user.encode(), settings.password.encode()
        return lib.CBLAuth_CreatePassword(fleece.sliced(ffi, user), fleece.sliced(ffi, password))
    return ffi.NULL
