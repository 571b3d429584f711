"""Couchbase Lite as a sync target: a push-only replicator carries chunks to a Sync Gateway and acknowledges each.

A chunk is saved in a database beside the agent's state, always as a first revision; the library keeps the connection,
the authentication and the retries. Its document listener says what became of each chunk. What it acknowledged is
accepted and purged here. What it did not simply take (a conflict, a refusal, one that was there already) is put by
REST, which fetches and compares: that verdict is the one that counts, so nothing is accepted that is not there.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sluicegate.cblite import (
    Activity,
    Collection,
    CouchbaseLiteError,
    Database,
    LibraryMissing,
    LibraryUnsupported,
    Replicated,
    Replicator,
    Settings,
    library,
)
from sluicegate_agent.errors import EnvironmentRefused
from sluicegate_agent.sync.access import access
from sluicegate_agent.sync.contract import Document, Outcome, Target, unfit
from sluicegate_agent.sync.rest import Later, rest_target

if TYPE_CHECKING:
    from sluicegate_agent.config import Config

DATABASE = "sync"
#: Seconds after which a document that the replicator has nothing to say of is asked of the gateway itself: one that was
#: there already is passed over in silence.
SILENCE = 1.0
_TURN = 0.1
_STOPPING = 5.0


class CouchbaseLiteTarget:
    """Chunks pushed from the database `sync` in `folder` to `url` (`wss://host:4984/name`).

    `beside` puts by REST what the replicator does not settle. `keep`: seconds for which acknowledged documents stay
    in the database; 0: they are purged at once.
    """

    def __init__(
        self, folder: Path, url: str, settings: Settings, beside: Target, timeout: float = 30.0, keep: float = 0.0
    ) -> None:
        self.folder, self.url, self.settings, self.beside = folder, url, settings, beside
        self.timeout, self.keep = timeout, keep
        self._guard = threading.Lock()
        self._closing = False
        self._open: Pushing | None = None

    def put(self, documents: Sequence[Document]) -> Outcome:
        """Push the documents; wait until each is settled, the gateway is away, or `timeout` has passed."""
        with self._guard:
            try:
                return self._put(documents)
            except CouchbaseLiteError as error:
                self._let_go()
                return Outcome((), {}, 0.0, f"Couchbase Lite: {error}")

    def close(self) -> None:
        """Stop the replicator, close the database; a `put` under way ends first."""
        self._closing = True
        with self._guard:
            self._let_go()
        self.beside.close()

    def _let_go(self) -> None:
        pushing, self._open = self._open, None
        if pushing is not None:
            with contextlib.suppress(CouchbaseLiteError):
                pushing.close()

    def _put(self, documents: Sequence[Document]) -> Outcome:
        refused = {each.id: reason for each in documents if (reason := unfit(each))}
        fit = list({each.id: each for each in documents if each.id not in refused}.values())
        if not fit or self._closing:
            return Outcome((), refused)
        if self._open is None:
            self._open = Pushing(self.folder, self.url, self.settings)
        pushing = self._open
        pushing.save(fit)
        reason = self._settled(pushing, {each.id for each in fit})
        accepted = [each.id for each in fit if each.id in pushing.taken]
        asked = [each for each in fit if each.id in pushing.unsettled]
        pushing.forget(accepted, self.keep)
        return _joined(accepted, refused, reason, self._asked(pushing, asked))

    def _settled(self, pushing: Pushing, ids: set[str]) -> str:
        """Wait for the documents; why the rest has to wait, empty where nothing is left."""
        end, quiet = time.monotonic() + self.timeout, time.monotonic() + SILENCE
        for heard, away in pushing.turns():
            now = time.monotonic()
            quiet = now + SILENCE if heard or not pushing.is_idle else quiet
            left = ids - pushing.taken - pushing.unsettled
            if not left or away:
                return away if left else ""
            if now >= quiet:
                pushing.unsettled |= left
                return ""
            if now >= end or self._closing:
                return f"{self.url}: no answer in time; it is tried again"
        return ""

    def _asked(self, pushing: Pushing, documents: list[Document]) -> Outcome:
        """The gateway's own verdict on what the replicator did not simply take."""
        if not documents:
            return Outcome()
        outcome = self.beside.put(documents)
        pushing.forget([each.id for each in documents], 0.0)
        return outcome


class Pushing:
    """The open database and its replicator; `taken` and `unsettled` are what is known of the documents in it."""

    def __init__(self, folder: Path, url: str, settings: Settings) -> None:
        self.taken: set[str] = set()
        self.unsettled: set[str] = set()
        self._waiting: dict[str, bytes] = {}
        self._database = Database(DATABASE, folder)
        try:
            self._chunks = self._database.collection()
            self._forget_all()
            self._replicator = Replicator(self._database, url, [self._chunks], settings)
            self._documents = self._replicator.documents()
        except BaseException:
            self._database.close()
            raise

    def _forget_all(self) -> None:
        """What an earlier process left: the outbox gives again what was not acknowledged."""
        with self._database.query("SELECT META().id FROM _") as query:
            ids = [str(id) for (id,) in query.rows()]
        with self._database.transaction():
            for id in ids:
                self._chunks.purge(id)

    def save(self, documents: Sequence[Document]) -> None:
        """Save what is not under way already, each as a first revision; begin to push."""
        new = [each for each in documents if self._waiting.get(each.id) != each.data]
        with self._database.transaction():
            for each in new:
                self._chunks.purge(each.id)
                self._saved(self._chunks, each)
        for each in new:
            self._waiting[each.id] = each.data
            self.taken.discard(each.id)
            self.unsettled.discard(each.id)
        self._begin()

    def _saved(self, chunks: Collection, document: Document) -> None:
        try:
            chunks.save_json(document.id, document.data, insert=True)
        except ValueError:
            # No JSON, or an id that only the gateway might take: its own verdict is asked for.
            self.unsettled.add(document.id)

    def _begin(self) -> None:
        """Connect now, whatever the replicator's own patience says: when to try is the agent's to decide."""
        activity = self._replicator.status.activity
        if activity == Activity.OFFLINE:
            self._replicator.stop()
            activity = self._replicator.wait(_STOPPING).activity
        self._replicator.states.take()
        if activity == Activity.STOPPED:
            self._replicator.start()

    def turns(self) -> Iterator[tuple[bool, str]]:
        """Again and again: whether a document was heard of, and why the gateway is away, empty where it is not."""
        while True:
            heard = self._documents.take(_TURN)
            self._note(heard)
            away = ""
            for status in self._replicator.states.take():
                gone = status.activity in (Activity.OFFLINE, Activity.STOPPED)
                away = f"{status.error or 'the connection was closed'}" if gone else ""
            yield bool(heard), away

    def _note(self, heard: list[Replicated]) -> None:
        for each in heard:
            if each.id in self._waiting:
                (self.taken if each.error is None else self.unsettled).add(each.id)

    @property
    def is_idle(self) -> bool:
        """Whether the replicator has nothing to do."""
        return self._replicator.status.activity == Activity.IDLE

    def forget(self, ids: Sequence[str], keep: float) -> None:
        """Purge settled documents, or have them expire after `keep` seconds."""
        with self._database.transaction():
            for id in ids:
                if keep and id in self._chunks:
                    self._chunks.expire(id, int((time.time() + keep) * 1000))
                else:
                    self._chunks.purge(id)
        for id in ids:
            self._waiting.pop(id, None)
            self.taken.discard(id)
            self.unsettled.discard(id)

    def close(self) -> None:
        """Stop, and close the database."""
        self._database.close()


def _joined(accepted: Sequence[str], refused: dict[str, str], reason: str, asked: Outcome) -> Outcome:
    """One outcome of what the replicator settled, what was refused here, and what the gateway said."""
    retry_after = asked.retry_after if asked.retry_after is not None else (0.0 if reason else None)
    both = (*accepted, *asked.accepted)
    return Outcome(both, refused | asked.rejected, retry_after, reason or asked.error)


def from_config(config: Config) -> CouchbaseLiteTarget:
    """The target that [sync] describes. Raises EnvironmentRefused for a missing library, secret or certificate."""
    try:
        library()
    except (LibraryMissing, LibraryUnsupported) as error:
        raise EnvironmentRefused(f'sync.target = "couchbase-lite": {error}') from None
    beside = Later(lambda: rest_target(config))
    sync, url, name, secret = access(config)
    pinned, roots = _certificates("pin_file", sync.tls.pin_file), _certificates("ca_file", sync.tls.ca_file)
    settings = Settings(user=name if secret is not None else "", password=secret or "", pinned=pinned, roots=roots)
    folder, keep = config.state.path, sync.couchbase_lite.keep.seconds
    return CouchbaseLiteTarget(folder, replicator_url(url), settings, beside, sync.timeout.seconds, keep)


def _certificates(key: str, file: Path | None) -> bytes:
    """A file's PEM; the library verifies, so Python's TLS is not loaded for it. Raises EnvironmentRefused."""
    try:
        data = file.read_bytes() if file else b""
    except OSError as error:
        raise EnvironmentRefused(f"sync.tls.{key}: {file} cannot be used: {error.strerror}; expected PEM") from None
    if file and b"-----BEGIN CERTIFICATE-----" not in data:
        raise EnvironmentRefused(f"sync.tls.{key}: {file} cannot be used: no certificate in it; expected PEM")
    return data


def replicator_url(url: str) -> str:
    """The address that a replicator takes, of a REST one too (credentials files name that)."""
    scheme, separator, rest = url.partition("://")
    return {"https": "wss", "http": "ws"}.get(scheme, scheme) + separator + rest
