"""A store in a Couchbase Server's collection: a document a row, through the SDK (extra `couchbase`), for big gateways.

Each write is as durable as asked for when it returns, so `sync` has nothing to do; with durability "none" what survives
is the server's affair. Writes of one batch reach the server in any order. The newest opening of a store owns it: a
window that was pushed aside is told at its next manifest.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Literal

from sluicegate.errors import ConfigurationError, StoreError
from sluicegate.stores.contract import DEFAULT, MANIFEST, Key, Plan, Row, check_key, check_rows

Durability = Literal["none", "majority", "majority_and_persist_to_active", "persist_to_majority"]
_LONGEST_NAME = 200  # bytes of a store's name: a document's id has 250


class Couchbase:
    """A window's pages as documents `NAME::LEVEL:PAGE` of the collection at `url` ("couchbases://host").

    `name` tells stores of one collection apart; `ca_file` names the authority to trust besides the system's; `timeout`
    is in seconds, for one call. Raises StoreError where the server cannot be reached, ConfigurationError where the SDK
    is not installed or a name cannot be.
    """

    ordered = False

    def __init__(
        self,
        url: str,
        bucket: str,
        name: str,
        *,
        user: str,
        password: str,
        scope: str = "_default",
        collection: str = "_default",
        durability: Durability = "majority",
        ca_file: str | None = None,
        timeout: float = 10.0,
        plan: Plan = DEFAULT,
    ) -> None:
        self.plan = plan.checked()
        self.name = _checked_name(name)
        self._place = f"{url}/{bucket}/{name}"
        self._errors = errors_of_sdk()
        self._closed = False
        self._token = secrets.token_bytes(16)
        self._options = _Options(durability)
        with self._failures("open"):
            self._cluster = connected(url, user, password, ca_file, timeout)
            try:
                self._rows = self._cluster.bucket(bucket).scope(scope).collection(collection)
                self._rows.upsert(self._owner, self._token, self._options.upsert)
            except BaseException:
                self._cluster.close()
                raise

    @property
    def _owner(self) -> str:
        return f"{self.name}::owner"

    def put(self, rows: Sequence[Row]) -> None:
        """Each row for itself: after a failure any part of them may be in. Raises StoreError."""
        self._check()
        check_rows(self._place, rows)
        if any(key.level == MANIFEST for key, _ in rows):
            self._check_owner()
        if rows:
            with self._failures("write"):
                documents = {self._id(key): bytes(value) for key, value in rows}
                _raise_first(self._rows.upsert_multi(documents, self._options.upsert_many).exceptions.values())

    def get(self, keys: Sequence[Key]) -> list[bytes | None]:
        """The values; None for a row that is not there. Raises StoreError."""
        self._check()
        ids = [self._id(check_key(key)) for key in keys]
        if not ids:
            return []
        with self._failures("read"):
            found = self._rows.get_multi(list(dict.fromkeys(ids)), self._options.get_many)
            _raise_first(self._others(found.exceptions.values()))
            return [bytes(found.results[name].value) if name in found.results else None for name in ids]

    def delete(self, keys: Sequence[Key]) -> None:
        """Each for itself; one that is not there is no error. Raises StoreError."""
        self._check()
        ids = [self._id(check_key(key)) for key in keys]
        if ids:
            with self._failures("delete"):
                found = self._rows.remove_multi(list(dict.fromkeys(ids)), self._options.remove_many)
                _raise_first(self._others(found.exceptions.values()))

    def sync(self) -> None:
        """What was written is as durable as asked for already. Raises StoreError after `close`."""
        self._check()

    def close(self) -> None:
        """Let the connections go; twice is once."""
        if not self._closed:
            self._closed = True
            self._cluster.close()

    def _id(self, key: Key) -> str:
        return f"{self.name}::{key.name}"

    def _check(self) -> None:
        if self._closed:
            raise StoreError(f"{self._place}: is closed; open the store, and the window from it, again")

    def _check_owner(self) -> None:
        """The window that opened the store last may go on, no other one."""
        with self._failures("read"):
            owner = self._rows.get(self._owner, self._options.get).value
        if owner != self._token:
            raise StoreError(f"{self._place}: another window has opened this store since; close this one")

    def _others(self, errors: Iterable[Exception]) -> Iterator[Exception]:
        return (error for error in errors if not isinstance(error, self._errors.DocumentNotFoundException))

    @contextmanager
    def _failures(self, what: str) -> Iterator[None]:
        try:
            yield
        except self._errors.CouchbaseException as error:
            kind = type(error).__name__
            raise StoreError(f"{self._place}: could not {what} ({kind}); the next call tries again") from error


class _Options:
    """The options of every call: values are bytes as they are, writes as durable as asked for."""

    def __init__(self, durability: Durability) -> None:
        from couchbase.durability import Durability as Level
        from couchbase.durability import ServerDurability
        from couchbase.transcoder import RawBinaryTranscoder

        from couchbase import options

        raw = RawBinaryTranscoder()
        durable: dict[str, Any] = {}
        if durability != "none":
            durable = {"durability": ServerDurability(Level[durability.upper()])}
        self.upsert = options.UpsertOptions(transcoder=raw, **durable)
        self.upsert_many = options.UpsertMultiOptions(transcoder=raw, **durable)
        self.get, self.get_many = options.GetOptions(transcoder=raw), options.GetMultiOptions(transcoder=raw)
        self.remove_many = options.RemoveMultiOptions(**durable)


def errors_of_sdk() -> Any:
    """The SDK's exceptions, imported when it is needed. Raises ConfigurationError where it is not installed."""
    try:
        import couchbase.exceptions as errors
    except ImportError as error:
        remedy = "pip install 'sluicegate[couchbase]'"
        raise ConfigurationError(f"store: Couchbase needs its SDK ({error}): {remedy}") from None
    return errors


def connected(url: str, user: str, password: str, ca_file: str | None, timeout: float) -> Any:
    """A cluster. Raises CouchbaseException."""
    from couchbase.auth import PasswordAuthenticator
    from couchbase.cluster import Cluster
    from couchbase.options import ClusterOptions, ClusterTimeoutOptions

    patience = timedelta(seconds=timeout)
    waits = ClusterTimeoutOptions(
        kv_timeout=patience, kv_durable_timeout=patience, bootstrap_timeout=patience, connect_timeout=patience
    )
    roots = {"cert_path": ca_file} if ca_file else {}
    return Cluster(url, ClusterOptions(PasswordAuthenticator(user, password, **roots), timeout_options=waits))


def _checked_name(name: str) -> str:
    if not name or "::" in name or not name.isprintable() or len(name.encode()) > _LONGEST_NAME:
        raise ConfigurationError(f"store: name {name!r}, expected 1 to {_LONGEST_NAME} printable bytes without `::`")
    return name


def _raise_first(errors: Iterable[Exception]) -> None:
    for error in errors:
        raise error
