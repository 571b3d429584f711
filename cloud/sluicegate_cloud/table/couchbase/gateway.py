"""Windows through a Sync Gateway: `_bulk_docs` in batches, each document replaced in the revision that was seen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from sluicegate_cloud.errors import SinkError
from sluicegate_cloud.feed.client import Client
from sluicegate_cloud.table.couchbase.documents import Document

#: Bytes of an answer, at most.
_MOST = 64 << 20
_PAGE = 1_000
_BEYOND = "\uffff"


class Held(NamedTuple):
    """A document and the gateway's name of its revision."""

    content: Document
    mark: str


class GatewayPlace:
    """Documents of a gateway's database, as the user that the environment names."""

    def __init__(self, client: Client) -> None:
        self._client = client

    @property
    def told(self) -> str:
        """The database's URL."""
        return self._client.gateway.url

    def get(self, ids: Sequence[str]) -> Mapping[str, Held]:
        """Those that are there."""
        rows = self._asked("_all_docs", {"include_docs": "true"}, {"keys": list(ids)})["rows"]
        there = [row for row in rows if "error" not in row and row.get("doc")]
        return {row["id"]: Held(row["doc"], row["value"]["rev"]) for row in there}

    def put(self, documents: Mapping[str, Document], marks: Mapping[str, Any]) -> set[str]:
        """Make new ones, or replace those of `marks` in that state; the ids of which another was first."""
        return self._bulk([{**of, **_head(name, marks.get(name))} for name, of in documents.items()])

    def remove(self, marks: Mapping[str, Any]) -> set[str]:
        """Those in that state; the ids of which another was first."""
        return self._bulk([{"_deleted": True, **_head(name, mark)} for name, mark in marks.items()])

    def ids(self, prefix: str) -> Iterator[str]:
        """All that begin so."""
        last = prefix
        while True:
            within = {"startkey": f'"{last}"', "endkey": f'"{prefix}{_BEYOND}"', "limit": str(_PAGE)}
            rows = self._client.get("_all_docs", within, _MOST)["rows"]
            names = [row["id"] for row in rows if row["id"] != last]
            yield from names
            if not names:
                return
            last = names[-1]

    def _bulk(self, told: list[Document]) -> set[str]:
        if not told:
            return set()
        rows = self._asked("_bulk_docs", {}, {"docs": told})
        refused = [row for row in rows if "error" in row and row.get("status") != 409]
        if refused:
            row = refused[0]
            raise SinkError(f"{self.told} does not take {row.get('id')!r}: {row.get('reason') or row['error']}")
        return {row["id"] for row in rows if row.get("status") == 409}

    def _asked(self, path: str, query: Mapping[str, str], told: Document) -> Any:
        return self._client.post(path, query, told, _MOST)


def _head(name: str, mark: str | None) -> Document:
    return {"_id": name, "_rev": mark} if mark else {"_id": name}
