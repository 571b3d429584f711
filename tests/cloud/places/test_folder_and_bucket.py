"""A place promises that a name is given once, whoever asks when, and that what is there is read as it was written."""

from __future__ import annotations

import threading
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from s3_server import BUCKET

from sluicegate_cloud.errors import PlaceError, SinkError, SourceError, TableError
from sluicegate_cloud.places.named import Place, place_of
from sluicegate_cloud.table.job import definition_of
from sluicegate_cloud.table.versions import Store, Version

HOUR = 3_600_000_000


@pytest.fixture(params=["folder", "bucket"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """An empty one of each kind."""
    if request.param == "folder":
        return place_of(str(tmp_path / "table"))
    request.getfixturevalue("s3")
    return place_of(f"s3a://{BUCKET}/{uuid.uuid4()}/table/")


def test_a_file_is_read_as_it_was_written(place: Place) -> None:
    """Whole, in part, listed with its time; gone once it is removed, which may be done twice."""
    with place.written("windows/a") as into:
        into.write(b"0123456789")
    place.settle(["windows/a"])
    assert place.read("windows/a") == b"0123456789"
    assert [*place.names("windows")] == ["windows/a"]
    assert place.names("windows")["windows/a"] > 1_700_000_000
    assert [*place.names("fleet")] == []
    place.remove("windows/a")
    place.remove("windows/a")
    with pytest.raises(FileNotFoundError):
        place.read("windows/a")


def test_of_many_that_create_one_name_one_does(place: Place) -> None:
    """At once: what is there is what that one said."""
    done: list[int] = []
    begin = threading.Barrier(8)

    def create(number: int) -> None:
        begin.wait()
        try:
            place.create("versions/1.json", b"%d" % number)
        except FileExistsError:
            return
        done.append(number)

    threads = [threading.Thread(target=create, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == 1
    assert place.read("versions/1.json") == b"%d" % done[0]


def test_a_version_counts_once(place: Place) -> None:
    """Another of its number is refused; columns and rows of a file come back as asked; old ones go."""
    store = Store(str(place.root))
    rows = pa.table({"device": ["a", "b", "c"], "count": [1, 2, 3]})
    for number in (1, 2, 3):
        name = store.write("fleet", rows, 1)
        store.commit(version := Version(number, definition_of(HOUR, HOUR, ("mean",)), fleet={"0": name}))
    with pytest.raises(TableError, match="nothing of this one counts"):
        store.commit(version)
    assert store.read(name, ["count"], [("device", "==", "b")]).to_pylist() == [{"count": 2}]
    assert store.vacuum(kept=2, abandoned_s=-10) == 1
    assert store.numbers() == [2, 3]
    assert store.read(name).equals(rows)


@pytest.mark.parametrize("named", ["s3://", "s3:///table"])
def test_a_url_without_a_bucket_is_refused(named: str) -> None:
    """It says what is expected."""
    with pytest.raises(SourceError, match="expected s3://BUCKET/PREFIX"):
        place_of(named)


def test_a_server_that_refuses_is_told(s3: dict[str, str]) -> None:
    """A bucket that is not there."""
    place = place_of("s3://nobodys/table")
    with pytest.raises(PlaceError, match="s3://nobodys/table does not answer as asked"):
        place.create("versions/1.json", b"")


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    """A file is in the way."""
    (tmp_path / "file").write_text("")
    with pytest.raises(SinkError, match="cannot write"):
        place_of(str(tmp_path / "file")).create("versions/1.json", b"")


def test_plain_http_has_to_be_asked_for(s3: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is sent where the environment says http and no more."""
    monkeypatch.delenv("AWS_ALLOW_HTTP")
    with pytest.raises(PlaceError, match="does not answer as asked"):
        place_of("s3://other/table").read("versions/1.json")


def test_a_bucket_needs_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """And says which."""
    import sys

    place: Any = place_of("s3://never-asked/table")
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(SourceError, match=r"pip install 'sluicegate\[s3\]'"):
        place.read("a")
