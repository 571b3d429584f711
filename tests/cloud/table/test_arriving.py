"""What comes into a folder is read once a query, at offsets that mean the same files whoever died meanwhile."""

from __future__ import annotations

import itertools
import os
import pickle
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from test_devices import document

from sluicegate_cloud.errors import SourceError
from sluicegate_cloud.sql.source import SluicegateSource
from sluicegate_cloud.table import arriving
from sluicegate_cloud.table.arriving import ArrivalReader


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    """Three documents."""
    folder = tmp_path / "inbox"
    folder.mkdir()
    for number in range(3):
        put(folder, number)
    return folder


def put(folder: Path, number: int) -> None:
    """A document of ten seconds."""
    (folder / f"{number}.json").write_bytes(document("press", 20 * number))
    os.utime(folder / f"{number}.json", (number, number))


def reader(inbox: Path, **more: str) -> ArrivalReader:
    """As Spark makes one for each query."""
    return ArrivalReader({"path": str(inbox), "noted": str(inbox.parent / "noted"), "rows": "documents", **more})


def names(of: ArrivalReader, start: Any, end: Any) -> list[str]:
    """What is read between two offsets."""
    parts = of.partitions(start, end)
    rows = [row for part in parts for batch in pickle.loads(pickle.dumps(of)).read(part) for row in batch.to_pylist()]  # noqa: S301
    return [Path(row["path"]).name for row in rows]


def test_each_file_is_read_once_oldest_first(inbox: Path) -> None:
    """So many at a time; nothing new is the same offset; a file that changed is read again."""
    of, two = reader(inbox, maxDocuments="2"), ReadMaxRows(2)
    assert of.getDefaultReadLimit() == two
    offsets = [of.initialOffset()]
    for _ in range(3):
        offsets.append(of.latestOffset(offsets[-1], two))
    assert [names(of, *pair) for pair in itertools.pairwise(offsets)] == [
        ["0.json", "1.json"],
        ["2.json"],
        [],
    ]
    put(inbox, 3)
    (inbox / "0.json").write_bytes(document("press", 0, 9.0))
    assert names(of, offsets[-1], of.latestOffset(offsets[-1], two)) == ["3.json", "0.json"]


def test_a_list_that_spark_did_not_know_of_is_taken_first(inbox: Path) -> None:
    """The query died between: another reader answers the same offset with the same files, and then what came."""
    died = reader(inbox)
    start = died.initialOffset()
    died.latestOffset(start, ReadAllAvailable())
    put(inbox, 3)
    of = reader(inbox)
    first = of.latestOffset(start, ReadAllAvailable())
    assert names(of, start, first) == ["0.json", "1.json", "2.json"]
    assert names(of, first, of.latestOffset(first, ReadAllAvailable())) == ["3.json"]


def test_a_list_that_was_half_made_is_none(inbox: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The query died after the list was written and before it counted: the next one goes on."""
    died = reader(inbox)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "hardlink_to", dies)
        patch.setattr(Path, "unlink", dies)
        with pytest.raises(KeyboardInterrupt):
            died.latestOffset(died.initialOffset(), ReadAllAvailable())
    assert [*(inbox.parent / "noted/arrived").iterdir()]
    of = reader(inbox)
    start = of.initialOffset()
    assert len(names(of, start, of.latestOffset(start, ReadAllAvailable()))) == 3


def dies(*_: Any, **__: Any) -> None:
    """As by SIGKILL."""
    raise KeyboardInterrupt


def test_available_now_ends_with_what_was_there(inbox: Path) -> None:
    """What comes meanwhile is the next query's."""
    of = reader(inbox)
    start = of.initialOffset()
    of.prepareForTriggerAvailableNow()
    put(inbox, 3)
    end = of.latestOffset(start, ReadAllAvailable())
    assert len(names(of, start, end)) == 3
    assert of.latestOffset(end, ReadAllAvailable()) == end


def test_old_lists_become_one(inbox: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without files that are gone; what was read is not read again, in a query that goes on or begins anew here."""
    monkeypatch.setattr(arriving, "_MOST", 6)
    monkeypatch.setattr(arriving, "_STAY", 2)
    of = reader(inbox)
    at = of.initialOffset()
    for number in range(3, 20):
        put(inbox, number)
        at = of.latestOffset(at, ReadAllAvailable())
        of.commit(at)
        if number == 6:
            (inbox / "0.json").unlink()
    noted = [*(inbox.parent / "noted").rglob("*.parquet")]
    assert len(noted) <= 8
    again = reader(inbox)
    assert again.latestOffset(at, ReadAllAvailable()) == at
    assert names(again, {"lists": at["lists"] - 2}, at) == ["18.json", "19.json"]
    put(inbox, 0)
    assert names(again, at, again.latestOffset(at, ReadAllAvailable())) == ["0.json"]
    start = again.initialOffset()
    assert len(names(again, start, reader(inbox).latestOffset({"lists": at["lists"]}, ReadAllAvailable()))) == 20


def test_options_that_will_not_do_say_so(inbox: Path) -> None:
    """No place for the lists, a word that is none, rows that there are not."""
    with pytest.raises(SourceError, match="give the option noted"):
        ArrivalReader({"path": str(inbox)})
    with pytest.raises(SourceError, match="no option 'version'"):
        reader(inbox, version="1")
    with pytest.raises(SourceError, match="expected buckets or documents"):
        reader(inbox, rows="windows")


def test_a_table_is_not_streamed(inbox: Path) -> None:
    """None of its files is a document: a stream of it would have nothing, and not say so."""
    source = SluicegateSource({"path": str(inbox), "noted": str(inbox.parent / "noted")})
    schema: Any = None
    assert isinstance(source.streamReader(schema), ArrivalReader)
    (inbox / "versions").mkdir()
    (inbox / "versions/00000001.json").write_text("{}")
    with pytest.raises(SourceError, match="is a table, and only what comes into a folder of documents is streamed"):
        source.streamReader(schema)
