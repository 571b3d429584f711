"""Windows as documents promise the rows of the version that was published, each window once, wherever they lie."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytest.importorskip("pyspark", reason="tables need the extra `cloud`")
from click.testing import CliRunner
from cloud_streams import fold
from random_worlds import Cut, random_fleet
from table_worlds import anew, definition_of, documents_of, store_at, table_of, take_in

from gateway import databases, mock
from sluicegate.format.bucket import Bucket
from sluicegate.format.chunk import Chunk, encode
from sluicegate_cloud.commands import cloud
from sluicegate_cloud.errors import SinkError
from sluicegate_cloud.feed import gateway as places
from sluicegate_cloud.feed.client import Client
from sluicegate_cloud.places import server as servers
from sluicegate_cloud.table.couchbase import documents, publishing, server
from sluicegate_cloud.table.couchbase.gateway import GatewayPlace
from sluicegate_cloud.table.read import rows_of
from sluicegate_cloud.table.versions import Store, Version

CUT = Cut(60_000_000, 3, 0, 30)


class Held(NamedTuple):
    """As a place tells it."""

    content: Any
    mark: int


class Memory:
    """The contract of a place, as small as can be; `dies`: after so many writes."""

    told = "memory://"

    def __init__(self) -> None:
        self.held: dict[str, Held] = {}
        self.writes, self.dies = 0, 1 << 40

    def get(self, ids: Sequence[str]) -> Mapping[str, Held]:
        """Those that are there."""
        return {name: self.held[name] for name in ids if name in self.held}

    def put(self, told: Mapping[str, Any], marks: Mapping[str, Any]) -> set[str]:
        """Each for itself."""
        lost = {name for name in told if marks.get(name) != (self.held[name].mark if name in self.held else None)}
        for name in told.keys() - lost:
            self._written()
            self.held[name] = Held(dict(told[name]), self.writes)
        return lost

    def remove(self, marks: Mapping[str, Any]) -> set[str]:
        """Each for itself."""
        for name in marks:
            self._written()
            del self.held[name]
        return set()

    def ids(self, prefix: str) -> Iterator[str]:
        """In order."""
        return iter(sorted(name for name in self.held if name.startswith(prefix)))

    def _written(self) -> None:
        self.writes += 1
        if self.writes > self.dies:
            raise KeyboardInterrupt


@pytest.fixture(scope="module")
def mocked() -> Iterator[Any]:
    """A server's key-value part."""
    if why := mock.lacking():
        pytest.skip(why)
    with mock.CouchbaseMock() as running, pytest.MonkeyPatch.context() as environment:
        environment.setenv(servers.USER, mock.BUCKET)
        environment.setenv(servers.PASSWORD, mock.PASSWORD)
        with server.ServerPlace(f"{running.url}/{mock.BUCKET}") as place:
            yield place


@pytest.fixture(params=["memory", "gateway", "server"])
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Each keeps the promise."""
    if request.param == "memory":
        yield Memory()
    elif request.param == "server":
        yield request.getfixturevalue("mocked")
    else:
        monkeypatch.setenv(places.USER, databases.READER)
        monkeypatch.setenv(places.PASSWORD, databases.PASSWORD)
        real = request.getfixturevalue("real_gateway")
        real.purge()
        with Client(places.Gateway.at(f"{real.public_url}/{databases.PLAIN}")) as client:
            yield GatewayPlace(client)


@pytest.fixture
def table(tmp_path: Path) -> tuple[Store, Version, list[bytes]]:
    """An empty one, and what will come."""
    rng = random.Random(20)
    told = documents_of(random_fleet(rng, CUT, 3, 30, ordinary=True), "s", rng)
    rng.shuffle(told)
    return *store_at(tmp_path / "table", definition_of(CUT, ("count", "mean", "std"), by=(("site",),))), told


def wanted(store: Store, version: Version, name: str) -> dict[str, Any]:
    """The documents of a version."""
    rows = rows_of(store, version).to_pylist()
    out = {documents.id_of(name, row): documents.document_of(row) for row in rows}
    assert len(out) == len(rows), "two windows of one id"
    return out


def found(place: Any, ids: set[str]) -> dict[str, Any]:
    """What is there under these ids."""
    return {name: {of: value for of, value in held.content.items() if of[:1] != "_"}
            for name, held in place.get(sorted(ids)).items()}  # fmt: skip


def test_documents_follow_the_table(place: Any, table: Any) -> None:
    """Published after each run, and twice: what went is gone, and nothing is written again."""
    store, version, told = table
    known: set[str] = set()
    third, gone = len(told) // 3, 0
    for at in range(3):
        version = take_in(store, version, table_of(told[at * third : (at + 1) * third], at * third))
        rows = wanted(store, version, "followed")
        gone += len(known - {*rows})
        if at == 0 and isinstance(place, server.ServerPlace):  # the mock lists no documents: none can be there
            place.ids = lambda _: iter(())
        assert publishing.publish(store, version, place, "followed") > 0
        known |= {*rows}
        assert found(place, known) == rows
        assert publishing.publish(store, version, place, "followed") == 0
    assert gone > 0, "no row ever went: choose another seed"


def test_an_older_revision_replaces_nothing(place: Any, table: Any) -> None:
    """A window that a later version has answered stays, and one that changes under the publisher's hands is looked at
    again.
    """
    store, version, told = table
    version = take_in(store, version, table_of(told[:4]))
    rows = wanted(store, version, "newer")
    newest, changed = sorted(rows)[:2]
    later = {newest: rows[newest] | {"revision": 7}}
    assert place.put(later, {}) == set()
    assert place.put(later, {}) == {newest}, "it is there: another was first"
    assert place.put({changed: rows[changed] | {"revision": 0}}, {}) == set()
    seen = place.get([changed])
    assert place.put({changed: rows[changed]}, {changed: seen[changed].mark}) == set()
    assert place.put({changed: {}}, {changed: seen[changed].mark}) == {changed}, "it has changed since"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(place), "ids", lambda *_: iter(()))
        publishing.publish(store, version, place, "newer")
    assert found(place, {*rows}) == rows | later


@pytest.mark.parametrize("place", ["memory", "gateway"], indirect=True)
def test_what_is_far_behind_is_listed(place: Any, table: Any) -> None:
    """The version that is there is no longer kept: what the newest does not have goes."""
    store, version, told = table
    version = take_in(store, version, table_of(told[:5]))
    publishing.publish(store, version, place, "behind")
    stray = {"behind::0::1::gone::::s": {"type": documents.TYPE, "revision": 1}}
    assert place.put(stray, {}) == set()
    version = store.commit(anew(store, version))
    store.vacuum(kept=1, abandoned_s=-1)
    rows = wanted(store, version, "behind")
    assert publishing.publish(store, version, place, "behind") == len(rows) + 1
    assert found(place, {*rows, *stray}) == rows
    assert {*place.ids("behind::")} == {*rows, "behind::published"}


def test_who_dies_is_made_up_for(table: Any) -> None:
    """After any number of writes: the next one comes to the same, and says that the version is there only then."""
    store, version, told = table
    one = take_in(store, version, table_of(told[:6]))
    two = take_in(store, one, table_of(told[6:], 6))
    rows, rng = wanted(store, two, "w"), random.Random(1)
    place = Memory()
    changes = [publishing.publish(store, of, place, "w") for of in (one, two)][1]
    for _ in range(8):
        place = Memory()
        publishing.publish(store, one, place, "w")
        place.dies = place.writes + rng.randrange(changes + 1)
        with pytest.raises(KeyboardInterrupt):
            publishing.publish(store, two, place, "w")
        assert place.held["w::published"].content["revision"] == 1
        place.dies = 1 << 40
        publishing.publish(store, two, place, "w")
        assert {name: held.content for name, held in place.held.items() if name != "w::published"} == rows


def test_what_a_dead_publisher_left_of_a_version_between_goes(table: Any) -> None:
    """A window that only the version has that was half published: neither the one noted nor the newest names it."""
    store, _, _ = table
    one, two, three = _cut_in_two(store)
    only_two = {*wanted(store, two, "w")} - {*wanted(store, one, "w")} - {*wanted(store, three, "w")}
    assert only_two, "choose other times"
    for kept in (3, 1):
        place = Memory()
        publishing.publish(store, one, place, "w")
        place.dies = place.writes + len(wanted(store, two, "w")) + 1
        with pytest.raises(KeyboardInterrupt):
            publishing.publish(store, two, place, "w")
        assert only_two & {*place.held}
        place.dies = 1 << 40
        store.vacuum(kept=kept, abandoned_s=-1)
        publishing.publish(store, three, place, "w")
        assert {of: held.content for of, held in place.held.items() if of != "w::published"} == wanted(
            store, three, "w"
        )
        assert publishing.publish(store, three, place, "w") == 0


class Met(Memory):
    """A place at which, at one of its calls, somebody else does something."""

    def __init__(self) -> None:
        super().__init__()
        self.calls, self.at, self.meets = 0, -1, lambda: None

    def get(self, ids: Sequence[str]) -> Mapping[str, Held]:
        """As it is after that."""
        self._met()
        return super().get(ids)

    def put(self, told: Mapping[str, Any], marks: Mapping[str, Any]) -> set[str]:
        """In the state after that."""
        self._met()
        return super().put(told, marks)

    def remove(self, marks: Mapping[str, Any]) -> set[str]:
        """In the state after that."""
        self._met()
        same = {name: mark for name, mark in marks.items() if name in self.held and self.held[name].mark == mark}
        super().remove(same)
        return {*marks} - {*same}

    def _met(self) -> None:
        self.calls += 1
        if self.calls == self.at:
            self.meets()


@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
def test_what_two_publishers_at_once_left_is_found_by_the_next(order: tuple[int, int], table: Any) -> None:
    """One comes and ends at any moment of another, with an older version or a newer one."""
    store, versions = table[0], _cut_in_two(table[0])
    rows = wanted(store, versions[2], "w")
    at, calls = 1, 2
    while at < calls:
        place = Met()
        publishing.publish(store, versions[0], place, "w")
        place.at, place.meets = (
            place.calls + at,
            lambda place=place: publishing.publish(store, versions[order[1]], place, "w"),
        )
        before = place.calls
        publishing.publish(store, versions[order[0]], place, "w")
        at, calls = at + 1, place.calls - before
        publishing.publish(store, versions[2], place, "w")
        assert {of: held.content for of, held in place.held.items() if of != "w::published"} == rows, at
        assert publishing.publish(store, versions[2], place, "w") == 0
    assert at > 5


def _cut_in_two(store: Store) -> list[Version]:
    """Three versions: the second has a span that is in neither of the others."""
    versions, version = [], Version(0, definition_of(Cut(60_000_000, 1, 0, 5), ("count",), shards=1))
    for number, minutes in enumerate(((0,), (0, 40), (20,))):  # a span from 1 to 39, and what cuts it in two
        bucket = Bucket(**fold([(minute * 60_000_000, 1.0) for minute in minutes], 1.0, 0))
        told = encode(Chunk("press", "s", f"{number:016x}", 1.0, [bucket], [None]))
        version = take_in(store, version, table_of([told], since=number))
        versions.append(version)
    return versions


@pytest.mark.parametrize("place", ["memory", "gateway"], indirect=True)
def test_a_table_made_anew_at_the_same_place_replaces_all(place: Any, table: Any) -> None:
    """Its versions have the numbers of the old one's: what the old one answered goes, whatever revision it has."""
    store, version, told = table
    for at in range(3):
        version = take_in(store, version, table_of(told[at::3], at * 20))
    publishing.publish(store, version, place, "anew")
    known = {*wanted(store, version, "anew")}
    shutil.rmtree(store.root)
    store, version = store_at(store.root, replace(version.definition, slide_us=CUT.slide * 3))
    for at in range(2):
        version = take_in(store, version, table_of(told[at : at + 1], at))
        publishing.publish(store, version, place, "anew")
        rows = wanted(store, version, "anew")
        assert found(place, {*rows, *known}) == rows


def test_places_that_cannot_be_are_named(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another table's documents, a name that is none, a password in the clear, nobody who writes."""
    store, version, told = table
    version = take_in(store, version, table_of(told[:2]))
    place = Memory()
    publishing.publish(store, version, place, "w")
    other, of_other = store_at(Path(store.root).parent / "other", version.definition)
    with pytest.raises(SinkError, match="under another --name"):
        publishing.publish(other, take_in(other, of_other, table_of(told[:2])), place, "w")
    with pytest.raises(SinkError, match="is no name for windows"):
        publishing.publish(store, version, place, "a b")
    monkeypatch.delenv(servers.USER, raising=False)
    for url, reason in (
        ("couchbase://db.example/plant", "in the clear"),
        ("couchbases://db.example", "expected couchbases://HOST/BUCKET"),
        ("couchbases://me:secret@db.example/plant", "names no collection"),
        ("couchbases://db.example/plant", "nothing says who comes"),
    ):
        with pytest.raises(SinkError, match=reason) as raised:
            publishing.publish_at(url, store, version, "w")
        assert "secret" not in str(raised.value)


def test_the_command_publishes_to_a_gateway(real_gateway: Any, table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a user of the gateway; one whom it does not let in is told so."""
    store, version, told = table
    version = take_in(store, version, table_of(told[:5]))
    real_gateway.purge()
    monkeypatch.setenv(places.USER, databases.READER)
    monkeypatch.setenv(places.PASSWORD, databases.PASSWORD)
    asked = ["publish", str(store.root), "--couchbase", f"{real_gateway.public_url}/{databases.PLAIN}"]
    done = CliRunner().invoke(cloud, asked)
    assert done.exit_code == 0, done.output
    held = real_gateway.documents_of(databases.PLAIN)
    assert held.pop("windows::published")["place"] == str(store.root)
    assert held == wanted(store, version, "windows")
    refused = CliRunner().invoke(cloud, [*asked[:-1], f"{real_gateway.public_url}/{databases.TELEMETRY}"])
    assert refused.exit_code != 0
    assert "does not take" in str(refused.exception), refused.output
