"""A Couchbase Server as a source promises what the same documents in a folder give, each read once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="the cloud's tests need the extra `cloud`")
pytest.importorskip("couchbase", reason="missing: the SDK (pip install 'sluicegate[couchbase]')")

from test_devices import document

from gateway import mock
from sluicegate_cloud.documents import ARROW, decode_files
from sluicegate_cloud.errors import PlaceError, SinkError, SourceError
from sluicegate_cloud.places import server
from sluicegate_cloud.sources import list_sources
from sluicegate_cloud.table import sources as seen
from sluicegate_cloud.table.couchbase.server import ServerPlace
from sluicegate_cloud.table.versions import Store

SENT = {json.loads(data)["id"]: data for data in (document(f"press/{at % 5}", 20 * at) for at in range(40))}
#: As it is: here the mock's ids are listed in its place.
IDS = server.Collection.ids
#: What else lies in such a bucket.
OTHERS = ("_sync:user:x", "windows::1::2::press-1::::temp", "a::b::0000000000000001::12", "notes")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A collection with the documents, as the agent's target puts them, and others."""
    if why := mock.lacking():
        pytest.skip(why)
    from couchbase.options import UpsertMultiOptions
    from couchbase.transcoder import RawJSONTranscoder

    with mock.CouchbaseMock() as running, pytest.MonkeyPatch.context() as environment:
        environment.setenv(server.USER, mock.BUCKET)
        environment.setenv(server.PASSWORD, mock.PASSWORD)
        place = f"{running.url}/{mock.BUCKET}"
        at = server.opened(f"{place}/_default/_default")
        raw = UpsertMultiOptions(transcoder=RawJSONTranscoder())
        assert not at.rows.upsert_multi(SENT | dict.fromkeys(OTHERS, b"{}"), raw).exceptions
        environment.setattr(server.Collection, "ids", lambda _: iter([*OTHERS, *SENT]))  # the mock lists none
        yield place


def rows(paths: list[str]) -> list[dict[str, Any]]:
    """Of documents, what is read of them, but for where they lay."""
    batch = pa.RecordBatch.from_pydict({"path": pa.array(paths, pa.string())})
    table = pa.Table.from_batches(decode_files([batch]), ARROW)
    return sorted((row | {"path": ""} for row in table.to_pylist()), key=str)


def test_its_documents_are_those_of_a_folder(url: str, tmp_path: Path) -> None:
    """All chunks, byte for byte, and nothing else that lies there; folders beside it are read too."""
    for at, data in enumerate(SENT.values()):
        (tmp_path / f"{at}.json").write_bytes(data)
    listed, here = list_sources([url]), list_sources([tmp_path])
    assert rows(listed.files) == rows(here.files)
    assert len(listed.files) == len(SENT)
    assert {row["reason"] for row in rows(listed.files)} == {None}
    assert len(rows([*listed.files, *here.files])) == 2 * len(SENT)


def test_a_next_run_fetches_what_is_new(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A document never changes: its id says whether it was read, so a run goes on where one ended."""
    monkeypatch.setattr(server.Collection, "ids", lambda _: iter([*SENT][:30]))
    store, first = Store(tmp_path / "table"), list_sources([url])
    files = seen.listed(first.files, first.objects)
    lists = seen.noted(store, (), files, files, [url])
    monkeypatch.setattr(server.Collection, "ids", lambda _: iter(SENT))
    again = list_sources([url])
    new = seen.unseen(store, lists, seen.listed(again.files, again.objects))
    assert [path.rpartition(f"/{mock.BUCKET}/_default/_default/")[2] for path in new["path"].to_pylist()] == sorted(
        [*SENT][30:]
    )


def test_few_documents_are_held_and_one_that_is_gone_is_told(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixteen a call; what a server has no longer is a document that cannot be read, with the reason."""
    asked: list[int] = []
    contents = server.Collection.contents
    monkeypatch.setattr(server.Collection, "contents", lambda at, ids: asked.append(len(ids)) or contents(at, ids))
    gone = f"{server.opened(f'{url}/_default/_default').root}/press::gone::0000000000000001::0000000000000000"
    found = rows([*list_sources([url]).files, gone])
    assert max(asked) == 16
    assert [row["reason"] for row in found if row["reason"]] == [
        "the server no longer has it: its readings are missing here"
    ]


def test_a_document_that_is_no_json_stops_no_other(url: str) -> None:
    """Somebody wrote bytes under an id such as chunks have: that one cannot be read, and says why."""
    from couchbase.options import UpsertMultiOptions
    from couchbase.transcoder import RawBinaryTranscoder

    at = server.opened(f"{url}/_default/_default")
    name = "press::raw::0000000000000001::0000000000000000"
    assert not at.rows.upsert_multi({name: b"\0\1"}, UpsertMultiOptions(transcoder=RawBinaryTranscoder())).exceptions
    found = rows([f"{at.root}/{name}", *list_sources([url]).files])
    assert len(found) == 1 + len(SENT)
    assert len([row["reason"] for row in found if row["reason"]]) == 1


def test_a_server_that_does_not_answer_ends_the_run(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is set aside for its sake."""
    at = server.opened(f"{url}/_default/_default")

    class Away:
        def get_multi(self, ids: list[str], _: Any) -> Any:
            return type("Found", (), {"exceptions": {ids[0]: TimeoutError()}, "results": {}})

    monkeypatch.setattr(at, "rows", Away())
    with pytest.raises(PlaceError, match="TimeoutError"):
        rows([f"{at.root}/{next(iter(SENT))}"])


def test_ids_are_listed_by_a_range_scan(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids alone; a server that has none says which it needs."""
    from couchbase.kv_range_scan import PrefixScan

    from couchbase import exceptions

    class Rows:
        def scan(self, what: Any, options: Any) -> Any:
            assert isinstance(what, PrefixScan)
            assert options["ids_only"] is True
            yield type("Found", (), {"id": "one"})
            raise exceptions.FeatureUnavailableException()

    at = server.Collection.__new__(server.Collection)
    at.root, at.rows, at.errors = "couchbases://h/b/s/c", Rows(), exceptions
    found = IDS(at)
    assert next(found) == "one"
    with pytest.raises(PlaceError, match=r"needs Couchbase Server 7\.5"):
        next(found)


def test_who_reads_comes_from_the_environment_or_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The certificate is verified by the authority that is named; no error repeats a password."""
    import sluicegate.stores.couchbase as sdk

    told: list[Any] = []
    monkeypatch.setattr(sdk, "connected", lambda *of: told.append(of) or 1 / 0)
    for name in (server.USER, server.PASSWORD, server.CREDENTIALS):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(SourceError, match="nothing says who comes"):
        server.Collection("couchbases://db.example/plant")
    (tmp_path / "reader.json").write_text('{"user": "reader", "password": "geheim"}')
    monkeypatch.setenv(server.CREDENTIALS, str(tmp_path / "reader.json"))
    monkeypatch.setenv(server.CA_FILE, "/etc/ca.pem")
    with pytest.raises(PlaceError) as raised:
        server.Collection("couchbases://db.example/plant")
    assert told[0][:4] == ("couchbases://db.example", "reader", "geheim", "/etc/ca.pem")
    assert "geheim" not in str(raised.value)
    (tmp_path / "reader.json").write_text('{"user": "reader"}')
    with pytest.raises(SourceError, match="expected JSON with user and password"):
        server.Collection("couchbases://db.example/plant")


@pytest.mark.parametrize("asked", ["couchbase://db.example/plant", "couchbases://db.example", "couchbases://a:b@h/plant",
                                   "couchbases://h/a/b"])  # fmt: skip
def test_what_is_no_place_is_refused(asked: str) -> None:
    """In the clear elsewhere, without a bucket, with a password: as a source and as a sink."""
    with pytest.raises(SourceError) as raised:
        server.Collection(asked)
    assert "a:b" not in str(raised.value)
    with pytest.raises(SinkError):
        ServerPlace(asked)
