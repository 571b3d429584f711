"""A Couchbase Server as a sync target, through its SDK: for gateways that reach it, not for small boards.

A document is inserted, never replaced, as durably as `sync.couchbase.durability` says before it is acknowledged. One
that is there already is fetched and compared. The SDK is the extra `couchbase`, imported with this target alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from sluicegate_agent.errors import EnvironmentRefused
from sluicegate_agent.sync.access import Access, access
from sluicegate_agent.sync.contract import Document, Outcome, unfit
from sluicegate_agent.sync.files import OTHER_BYTES
from sluicegate_agent.sync.splitting import content, halves, missing

if TYPE_CHECKING:
    from sluicegate_agent.config import Config
    from sluicegate_agent.config.model import CouchbaseConfig

#: Bytes of a value, the server's limit. The SDK has no exception of its own for more.
LARGEST = 20 << 20


class CouchbaseTarget:
    """Chunks into one collection; connects when there is something to put, and again after a failure to."""

    def __init__(self, where: Access) -> None:
        """Raises EnvironmentRefused where the SDK is not installed."""
        self._where = where
        self._cluster: Any = None
        self._collection: Any = None
        try:
            import couchbase.exceptions as errors
        except ImportError as error:
            remedy = "pip install 'sluicegate[couchbase]'"
            raise EnvironmentRefused(f'sync.target = "couchbase" needs its SDK ({error}): {remedy}') from None
        self._errors = errors

    def put(self, documents: Sequence[Document]) -> Outcome:
        """Insert each document; stop at the first that the server does not take now, which is tried again later."""
        accepted: list[str] = []
        rejected: dict[str, str] = {}
        for document in dict.fromkeys(documents):
            try:
                reason = unfit(document) or self._stored(document)
            except self._errors.CouchbaseException as error:
                return Outcome(tuple(accepted), rejected, 0.0, self._explained(error))
            if reason:
                rejected[document.id] = reason
            else:
                accepted.append(document.id)
        return Outcome(tuple(accepted), rejected)

    def close(self) -> None:
        """Let the connections go."""
        cluster, self._cluster, self._collection = self._cluster, None, None
        if cluster is not None:
            cluster.close()

    def _stored(self, document: Document) -> str:
        """Why the server will never take the document; empty where it has it now."""
        if len(document.data) > LARGEST:
            return self._all(halves(document), f"{len(document.data)} bytes in one bucket are more than it takes")
        collection = self._opened()
        try:
            collection.insert(document.id, document.data, self._insert_options)
        except self._errors.DocumentExistsException:
            return self._compared(document)
        return ""

    def _compared(self, document: Document) -> str:
        found = self._opened().get(document.id, self._get_options).value
        rest = [] if found == document.data else missing(document, content(found))
        return self._all(rest, OTHER_BYTES)

    def _all(self, parts: Sequence[Document] | None, otherwise: str) -> str:
        """Store all parts; the first reason why one is never taken, or `otherwise` where there are none to try."""
        if parts is None:
            return otherwise
        return next((reason for reason in map(self._stored, parts) if reason), "")

    def _opened(self) -> Any:
        """The collection, connected to. Raises CouchbaseException."""
        if self._collection is None:
            from couchbase.cluster import Cluster

            self._prepare(self._where.sync.couchbase)
            self._cluster = Cluster(self._where.url, self._cluster_options())
            place = self._where.sync.couchbase
            self._collection = self._cluster.bucket(place.bucket).scope(place.scope).collection(place.collection)
        return self._collection

    def _prepare(self, place: CouchbaseConfig) -> None:
        from couchbase.durability import Durability, ServerDurability
        from couchbase.options import GetOptions, InsertOptions
        from couchbase.transcoder import RawJSONTranscoder

        raw = RawJSONTranscoder()  # the document's own bytes, marked as JSON for queries and for a Sync Gateway
        level = {
            "majority": Durability.MAJORITY,
            "majority_and_persist_to_active": Durability.MAJORITY_AND_PERSIST_TO_ACTIVE,
            "persist_to_majority": Durability.PERSIST_TO_MAJORITY,
        }.get(place.durability)
        durable = {} if level is None else {"durability": ServerDurability(level)}
        self._insert_options = InsertOptions(transcoder=raw, **durable)
        self._get_options = GetOptions(transcoder=raw)

    def _cluster_options(self) -> Any:
        from couchbase.auth import PasswordAuthenticator
        from couchbase.options import ClusterOptions, ClusterTimeoutOptions

        sync, patience = self._where.sync, timedelta(seconds=self._where.sync.timeout.seconds)
        waits = ClusterTimeoutOptions(
            kv_timeout=patience, kv_durable_timeout=patience, bootstrap_timeout=patience, connect_timeout=patience
        )
        trusted = sync.tls.pin_file or sync.tls.ca_file
        roots = {"cert_path": str(trusted)} if trusted else {}
        user = PasswordAuthenticator(self._where.name, self._where.secret or "", **roots)
        return ClusterOptions(user, timeout_options=waits)

    def _explained(self, error: Exception) -> str:
        """What went wrong and what to look at; the SDK's own text is long and of its inside."""
        hints = {
            "AuthenticationException": "check sync.username and the password",
            "BucketNotFoundException": "check sync.couchbase.bucket",
            "ScopeNotFoundException": "check sync.couchbase.scope",
            "CollectionNotFoundException": "check sync.couchbase.collection",
            "DurabilityImpossibleException": "too few replicas for sync.couchbase.durability",
            "RequestCanceledException": "the connection was cut",
            "UnAmbiguousTimeoutException": "no answer in time (sync.timeout)",
            "AmbiguousTimeoutException": "no answer in time (sync.timeout)",
        }
        name = type(error).__name__
        return f"{self._where.url}: {hints.get(name, 'see the server')} ({name})"


def from_config(config: Config) -> CouchbaseTarget:
    """The target that [sync] describes. Raises EnvironmentRefused for a missing secret or the SDK."""
    return CouchbaseTarget(access(config))
