"""A table's windows in Couchbase: what changed since the version that is there, each window one document.

An older revision never replaces a newer one, and one that is there is not written again. A version is noted when it is
begun, and when all of it is there: so publishing again does nothing, and whoever dies in between has left some windows
of the newer version and the others of the older, until the next time, which looks for those of both. Documents are
found by id, without an index.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Protocol

from sluicegate_cloud.errors import SinkError
from sluicegate_cloud.table import read
from sluicegate_cloud.table.couchbase.documents import ROWS, Document, documents
from sluicegate_cloud.table.noted import Noted
from sluicegate_cloud.table.versions import Store, Version

#: How often a document is looked at again that another publisher has changed meanwhile.
_TRIES = 5
_NOTE = "sluicegate.published"
_LONGEST_NAME = 50


class Held(Protocol):
    """A document that is there: what it says, and the mark of this state of it."""

    @property
    def content(self) -> Document: ...

    @property
    def mark(self) -> Any: ...


class Place(Protocol):
    """Where documents are. All raise SinkError or GatewayError where it refuses or does not answer."""

    @property
    def told(self) -> str:
        """Its URL."""
        ...

    def get(self, ids: Sequence[str]) -> Mapping[str, Held]:
        """Those that are there."""
        ...

    def put(self, documents: Mapping[str, Document], marks: Mapping[str, Any]) -> set[str]:
        """Make new ones, or replace those of `marks` in that state; the ids of which another was first."""
        ...

    def remove(self, marks: Mapping[str, Any]) -> set[str]:
        """Those in that state; the ids of which another was first."""
        ...

    def ids(self, prefix: str) -> Iterator[str]:
        """All that begin so."""
        ...


def publish(store: Store, version: Version, place: Place, name: str) -> int:
    """Bring the documents of `name` at `place` to `version`; how many were written or removed. Raises SinkError."""
    if not (name.isidentifier() and name.isascii() and len(name) <= _LONGEST_NAME):
        raise SinkError(f"{name!r} is no name for windows: letters, digits and _, at most {_LONGEST_NAME}")
    note = f"{name}::published"
    there = _note_down(store, place, note, lambda noted: _beginning(noted, store, version))
    since = there.since(store, version)
    if since.is_at(version):
        return 0
    mine = since.beginning(version)
    changed = 0 if since is there else _removed(place, {*place.ids(f"{name}::")} - {note})
    written, gone = _changes(store, version, [since.revision, *since.begun], place, name)
    gone.discard(note)
    for some in documents(store, version, written, name):
        gone.difference_update(some)
        changed += _put(place, some)
    changed += _removed(place, gone)
    _note_down(store, place, note, lambda noted: mine.ended(version, noted))
    return changed


def _beginning(noted: Noted, store: Store, version: Version) -> Noted | None:
    """What to note before the first window is written; None where there is nothing to do."""
    since = noted.since(store, version)
    return None if since.is_at(version) else since.beginning(version)


def publish_at(url: str, store: Store, version: Version, name: str) -> int:
    """`publish` at a gateway's database or a server's collection. Raises SinkError, SourceError, GatewayError."""
    from sluicegate_cloud.places.server import is_server
    from sluicegate_cloud.table.couchbase.server import ServerPlace

    if is_server(url):
        with ServerPlace(url) as server:
            return publish(store, version, server, name)
    from sluicegate_cloud.feed.client import Client
    from sluicegate_cloud.feed.gateway import Gateway
    from sluicegate_cloud.table.couchbase.gateway import GatewayPlace

    with Client(Gateway.at(url)) as client:
        return publish(store, version, GatewayPlace(client), name)


def _note_down(store: Store, place: Place, note: str, told: Callable[[Noted], Noted | None]) -> Noted:
    """Note what `told` makes of what the document `note` says: this is returned, and nobody notes anything between.

    Raises SinkError where it is another table's.
    """
    remedy = f" under this name: publish {store.root} under another --name"
    for _ in range(_TRIES):
        there = place.get([note])
        noted = Noted.of(there[note].content if there else None, store, place.told, remedy)
        new = told(noted)
        marks = {of: held.mark for of, held in there.items()}
        if new is None or not place.put({note: {"type": _NOTE, **new.note(store)}}, marks):
            return noted
    raise SinkError(f"{place.told}: others publish to {note} all the time: publish again")


def _changes(
    store: Store, version: Version, before: Sequence[int], place: Place, name: str
) -> tuple[list[str], set[str]]:
    """The files with what is new since any of the versions `before`, and the ids of what these had.

    All that is there, where one of them is no longer kept.
    """
    if not {*before} <= {*store.numbers()}:
        return [*read.window_files(store, version)], {*place.ids(f"{name}::")}
    changed = [read.changed_files(store, store.load(number), version) for number in before]
    removed = sorted({file for _, files in changed for file in files})
    written = sorted({file for files, _ in changed for file in files})
    return written, {of for some in documents(store, version, removed, name) for of in some}


def _put(place: Place, wanted: Mapping[str, Document]) -> int:
    """How many of them were not there, or older."""
    changed, left = 0, {*wanted}
    for _ in range(_TRIES):
        there = place.get(sorted(left))
        old = {of for of in left & there.keys() if there[of].content.get("revision", -1) >= wanted[of]["revision"]}
        new = sorted(left - old)
        left = place.put({of: wanted[of] for of in new}, {of: there[of].mark for of in new if of in there})
        changed += len(new) - len(left)
        if not left:
            return changed
    raise SinkError(f"{place.told}: {sorted(left)[0]!r} is changed by another all the time: publish from one place")


def _removed(place: Place, ids: Iterable[str]) -> int:
    return sum(_remove(place, some) for some in _batched(sorted(ids)))


def _remove(place: Place, ids: Sequence[str]) -> int:
    there = place.get(ids)
    return len(there) - len(place.remove({of: held.mark for of, held in there.items()})) if there else 0


def _batched(ids: Iterable[str]) -> Iterator[list[str]]:
    left = iter(ids)
    while some := [*islice(left, ROWS)]:
        yield some
