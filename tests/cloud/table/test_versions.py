"""Versions promise that what a kept one names stays, and that nothing else of the folder is touched."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from sluicegate_cloud.errors import SourceError, TableError
from sluicegate_cloud.table.job import definition_of
from sluicegate_cloud.table.noted import Noted
from sluicegate_cloud.table.versions import Store, Version

HOUR = 3_600_000_000


def committed(store: Store, number: int) -> Version:
    """A version with one file of the fleet's."""
    name = store.write("fleet", pa.table({"count": [number]}))
    return store.commit(Version(number, definition_of(HOUR, HOUR, ("mean",)), fleet={"0": name}))


def test_vacuum_removes_what_no_version_names_and_nothing_else(tmp_path: Path) -> None:
    """Old versions and their files go, those kept stay; a stream's place in the same folder is left as it is."""
    store = Store(tmp_path)
    versions = [committed(store, number) for number in range(1, 5)]
    place = tmp_path / "stream"
    (place / "sources" / "0").mkdir(parents=True)
    (place / "metadata").write_text("{}")
    assert store.vacuum(kept=2, abandoned_s=-1) == 2
    assert store.numbers() == [3, 4]
    assert [(store.root / version.fleet["0"]).exists() for version in versions] == [False, False, True, True]
    assert (place / "metadata").exists()
    assert (place / "sources" / "0").is_dir()


def test_a_run_that_is_under_way_keeps_its_files(tmp_path: Path) -> None:
    """A file that no version names yet is left for a day."""
    store = Store(tmp_path)
    committed(store, 1)
    name = store.write("windows", pa.table({"count": [1]}))
    assert store.vacuum() == 0
    assert (store.root / name).exists()


def test_what_is_not_there_says_so(tmp_path: Path) -> None:
    """A version that is not kept, a file that is gone, a kind of file that there is not."""
    store = Store(tmp_path)
    assert store.load() is None
    version = committed(store, 1)
    with pytest.raises(SourceError, match="no version 7; there are: 1"):
        store.load(7)
    (store.root / version.fleet["0"]).unlink()
    with pytest.raises(TableError, match="is missing"):
        store.read(version.fleet["0"])
    with pytest.raises(ValueError, match="no kind of file"):
        store.new("stream")


@pytest.mark.parametrize("spelled", ["file://{}", "file:{}", "file://localhost{}", "FILE://{}"])
def test_a_table_at_a_file_uri_is_the_folder(spelled: str, tmp_path: Path) -> None:
    """However it is spelled, blanks and signs in it too."""
    folder = tmp_path / "a b%c"
    committed(Store(folder), 1)
    assert Store(spelled.format(str(folder).replace("%", "%25").replace(" ", "%20"))).numbers() == [1]


@pytest.mark.parametrize("spelled", ["gs://bucket/table", "hdfs://name:9000/t", "dbfs:/t", "file://other/srv/table"])
def test_a_table_elsewhere_is_refused(spelled: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is made where nobody looks: such a URI was taken for the name of a folder."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TableError, match="give a folder that the driver and all workers see"):
        Store(spelled)
    assert [*tmp_path.iterdir()] == []


def test_a_note_of_a_version_that_was_lost_counts_for_nothing(tmp_path: Path) -> None:
    """The table was restored from before it: with its number gone, or come again. What an older one noted may be."""
    store = Store(tmp_path)
    first = committed(store, 1)
    second = store.commit(replace(first, number=2))
    noted = Noted().since(store, second).beginning(second).ended(second, Noted().beginning(second))
    assert Noted.of(noted.note(store), store, "", "").since(store, second) == noted
    assert Noted(first.identity, 1, (2,)).since(store, second).begun == (2,)
    (store.root / "versions/00000002.json").unlink()
    assert noted.since(store, first) == Noted(first.identity, 1, (2,)).since(store, first) == Noted()
    again = store.commit(replace(first, number=2))
    assert (again.identity, again.made_us != second.made_us) == (second.identity, True)
    assert noted.since(store, again) == Noted()
    assert noted._replace(made_us=0).since(store, again).is_at(again)
