"""Chunk documents in a Couchbase Server's collection, by its SDK: listed by key, and fetched some at a time.

A document is named by the collection's URL and its id. A chunk never changes, so the id says whether it was read: a
listing tells no size and no time. Who reads comes from the environment of each process: no secret travels with a task.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import groupby, islice
from typing import Any
from urllib.parse import urlsplit

from sluicegate.errors import ConfigurationError
from sluicegate.hosts import is_loopback
from sluicegate_cloud.errors import PlaceError, SourceError
from sluicegate_cloud.places.bucket import Object
from sluicegate_cloud.places.credentials import Names, credentials

#: How the URL of a server begins.
SERVERS = ("couchbase://", "couchbases://")
#: Who reads and writes; a password never is an option, for it would be in the list of processes.
USER, PASSWORD, CREDENTIALS, CA_FILE = (
    f"SLUICEGATE_COUCHBASE_{name}" for name in ("USER", "PASSWORD", "CREDENTIALS", "CA_FILE")
)
EXPECTED = "expected couchbases://HOST/BUCKET or couchbases://HOST/BUCKET/SCOPE/COLLECTION"
#: Documents that are fetched by one call, each of 8 MiB at most.
_TOGETHER = 16
_TIMEOUT_S = 30.0
#: device::stream::incarnation::first
_CHUNK = re.compile(r".+::.+::[0-9a-f]{16}::[0-9]{16,}")


def is_server(named: str) -> bool:
    """Whether it is the URL of a server, or of a document there."""
    return named.startswith(SERVERS)


def parsed(url: str) -> tuple[str, tuple[str, str, str]]:
    """(what the SDK connects to, (bucket, scope, collection)). Raises SourceError."""
    parts = urlsplit(url)
    names = parts.path.strip("/").split("/")
    if not parts.hostname or parts.username is not None or len(names) not in (1, 3) or not all(names):
        raise SourceError(f"{parts.scheme}://{parts.hostname or ''} names no collection: {EXPECTED}")
    if parts.scheme == "couchbase" and not is_loopback(parts.hostname):
        raise SourceError(f"{url} would send the password in the clear: use couchbases://")
    bucket, scope, collection = names if len(names) == 3 else (*names, "_default", "_default")
    return f"{parts.scheme}://{parts.netloc}", (bucket, scope, collection)


class Collection:
    """A collection of a server, connected to. Raises SourceError, PlaceError."""

    def __init__(self, url: str) -> None:
        where, names = parsed(url)
        nobody = f"nothing says who comes to the server: set {USER} and {PASSWORD}, or {CREDENTIALS}"
        who = credentials(Names(USER, PASSWORD, CREDENTIALS), nobody)
        self.root = f"{where}/{'/'.join(names)}"
        try:
            from sluicegate.stores.couchbase import connected, errors_of_sdk

            self.errors = errors_of_sdk()
            self.cluster = connected(where, *who, os.environ.get(CA_FILE) or None, _TIMEOUT_S)
        except ConfigurationError as error:
            raise SourceError(str(error)) from error
        except Exception as error:
            said = f"{url} cannot be opened ({type(error).__name__}): check it, {USER} and {PASSWORD}"
            raise PlaceError(said) from error
        bucket, scope, collection = names
        self.rows = self.cluster.bucket(bucket).scope(scope).collection(collection)

    def chunks(self) -> Iterator[Object]:
        """All chunk documents; others, such as a gateway's own, are passed over. Raises PlaceError."""
        return (Object(f"{self.root}/{name}", 0, 0) for name in self.ids() if _CHUNK.fullmatch(name))

    def ids(self) -> Iterator[str]:
        """Of all documents, page by page: a range scan, which a server has from 7.5 on. Raises PlaceError."""
        from couchbase.kv_range_scan import PrefixScan
        from couchbase.options import ScanOptions

        try:
            yield from (found.id for found in self.rows.scan(PrefixScan(""), ScanOptions(ids_only=True)))
        except self.errors.CouchbaseException as error:
            said = f"{self.root} cannot list its documents: it needs Couchbase Server 7.5"
            raise PlaceError(f"{said} ({type(error).__name__})") from error

    def contents(self, ids: list[str]) -> dict[str, bytes]:
        """Those that are there. Raises PlaceError."""
        from couchbase.options import GetMultiOptions

        try:
            found = self.rows.get_multi(ids, GetMultiOptions(transcoder=_as_they_are()))
        except self.errors.CouchbaseException as error:
            raise PlaceError(f"{self.root} does not tell its documents ({type(error).__name__}): try again") from error
        for name, why in found.exceptions.items():
            if type(why).__name__ != "DocumentNotFoundException":
                raise PlaceError(f"{self.root} does not tell {name!r} ({type(why).__name__}): try again")
        return {name: bytes(result.value) for name, result in found.results.items()}


def _as_they_are() -> Any:
    """Bytes of documents of any kind: one that is no JSON is one that cannot be read, and the SDK would end the run."""
    from couchbase.transcoder import RawJSONTranscoder

    class Bytes(RawJSONTranscoder):  # type: ignore[misc]  # the SDK has no types
        def decode_value(self, value: bytes, flags: int) -> bytes:
            return value

    return Bytes()


def chunks(url: str) -> Iterator[Object]:
    """All chunk documents of a collection. Raises SourceError, PlaceError."""
    where, names = parsed(url)
    return opened(f"{where}/{'/'.join(names)}").chunks()


def fetched(urls: Iterable[str]) -> Iterator[tuple[str, Callable[[], bytes]]]:
    """Of each document what gives its bytes, or says that it is gone; few are held. Raises SourceError, PlaceError."""
    for root, some in groupby(urls, lambda url: _apart(url)[0]):
        while few := [*islice(some, _TOGETHER)]:
            held = opened(root).contents([_apart(url)[1] for url in few])
            for url in few:
                yield url, _Loaded(held.pop(_apart(url)[1], None))


class _Loaded:
    """What `fetched` gives: the bytes once they are asked for."""

    def __init__(self, data: bytes | None) -> None:
        self._data = data

    def __call__(self) -> bytes:
        if self._data is None:
            raise ValueError("the server no longer has it: its readings are missing here")
        return self._data


def _apart(url: str) -> tuple[str, str]:
    """The collection's URL and the document's id, which may have any sign."""
    scheme, _, rest = url.partition("://")
    *names, name = rest.split("/", 4)
    return f"{scheme}://{'/'.join(names)}", name


@lru_cache(maxsize=8)
def opened(root: str) -> Collection:
    """The collection, connected to once in a process. Raises SourceError, PlaceError."""
    return Collection(root)
