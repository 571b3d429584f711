"""Windows into a Couchbase Server's collection by its SDK: batches of key-value operations, each guarded by its CAS."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from sluicegate_cloud.errors import PlaceError, SinkError, SourceError
from sluicegate_cloud.places.server import Collection
from sluicegate_cloud.table.couchbase.documents import Document


class Held(NamedTuple):
    """A document and its CAS."""

    content: Document
    mark: int


class ServerPlace:
    """Documents of a collection; a context manager."""

    def __init__(self, url: str) -> None:
        """Connect to `url`. Raises SinkError."""
        self.told = url
        try:
            opened = Collection(url)
        except (SourceError, PlaceError) as error:
            raise SinkError(str(error)) from error
        self._errors, self._cluster, self._rows = opened.errors, opened.cluster, opened.rows

    def __enter__(self) -> ServerPlace:
        return self

    def __exit__(self, *_: object) -> None:
        self._cluster.close()

    def get(self, ids: Sequence[str]) -> Mapping[str, Held]:
        """Those that are there."""
        found = self._rows.get_multi(list(ids))
        self._others(found.exceptions, "DocumentNotFoundException")
        return {name: Held(result.content_as[dict], result.cas) for name, result in found.results.items()}

    def put(self, documents: Mapping[str, Document], marks: Mapping[str, Any]) -> set[str]:
        """Make new ones, or replace those of `marks` in that state; the ids of which another was first."""
        from couchbase.options import ReplaceMultiOptions, ReplaceOptions

        new = {name: of for name, of in documents.items() if name not in marks}
        old = {name: of for name, of in documents.items() if name in marks}
        lost: set[str] = set()
        if new:
            lost |= self._others(self._rows.insert_multi(new).exceptions, "DocumentExistsException")
        if old:
            guarded = ReplaceMultiOptions(per_key_options={name: ReplaceOptions(cas=marks[name]) for name in old})
            lost |= self._others(self._rows.replace_multi(old, guarded).exceptions, *_CHANGED)
        return lost

    def remove(self, marks: Mapping[str, Any]) -> set[str]:
        """Those in that state; the ids of which another was first."""
        from couchbase.options import RemoveMultiOptions, RemoveOptions

        guarded = RemoveMultiOptions(per_key_options={name: RemoveOptions(cas=mark) for name, mark in marks.items()})
        return self._others(self._rows.remove_multi(list(marks), guarded).exceptions, *_CHANGED)

    def ids(self, prefix: str) -> Iterator[str]:
        """All that begin so: a range scan, which a server has from 7.5 on."""
        from couchbase.kv_range_scan import PrefixScan
        from couchbase.options import ScanOptions

        try:
            yield from (result.id for result in self._rows.scan(PrefixScan(prefix), ScanOptions(ids_only=True)))
        except self._errors.CouchbaseException as error:
            raise SinkError(
                f"{self.told} cannot list its documents: it needs Couchbase Server 7.5 ({error})"
            ) from error

    def _others(self, errors: Mapping[str, Exception], *known: str) -> set[str]:
        """The ids of `known` failures. Raises SinkError for any other."""
        for name, error in errors.items():
            if type(error).__name__ not in known:
                raise SinkError(f"{self.told} does not take or tell {name!r} ({type(error).__name__}): publish again")
        return {*errors}


_CHANGED = ("CasMismatchException", "DocumentNotFoundException", "DocumentExistsException")
