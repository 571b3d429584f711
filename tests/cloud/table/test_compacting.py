"""Compacted documents are a source that says what the chunk files said, whenever whoever compacted them died."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from random_worlds import MINUTE, Cut, random_fleet
from table_worlds import documents_of
from test_table_in_spark import batch

from sluicegate_cloud.errors import SourceError, TableError
from sluicegate_cloud.places import compacted
from sluicegate_cloud.sources import list_sources, read_documents
from sluicegate_cloud.table import compacting
from sluicegate_cloud.table.versions import Store

pytestmark = pytest.mark.spark


@pytest.fixture
def chunks(tmp_path: Path) -> Path:
    """Files of boards, some of them twice, and one that is no document."""
    rng = random.Random(5)
    found = documents_of(random_fleet(rng, Cut(60 * MINUTE, 3, 0, 40), 3, 25, ordinary=True), "s", rng)
    folder = tmp_path / "chunks"
    folder.mkdir()
    for number, data in enumerate([*found, *found[:2], b"{"]):
        (folder / f"{number}.json").write_bytes(data)
    return folder


def said(spark: Any, *sources: Path) -> set[str]:
    """What documents can be read, by their bytes. None is there twice where all are compacted."""
    found = read_documents(spark, [*sources]).where("reason is null").select("digest").collect()
    return {row["digest"] for row in found}


def test_compacted_and_new_say_what_all_said(spark: Any, chunks: Path, tmp_path: Path) -> None:
    """In two runs with new files between them, then removed: the windows are those of all files."""
    to, kept = tmp_path / "to", tmp_path / "kept"
    wanted, files = batch(spark, chunks), sorted(chunks.iterdir())
    kept.mkdir()
    for path in files[:4]:
        path.rename(kept / path.name)
    bad = next(path for path in [*files[4:]] if path.read_bytes() == b"{")
    first = compacting.compact(spark, [str(chunks)], to)
    assert (first.refused, first.removed) == (1, 0)
    assert compacting.compact(spark, [str(chunks)], to) == (0, 1, 0), "nothing is new but what cannot be read"
    assert said(spark, to, kept) == said(spark, chunks, kept)
    second = compacting.compact(spark, [str(chunks), str(kept)], to, remove=True)
    assert second.removed == len(files) - 1
    assert [*chunks.iterdir(), *kept.iterdir()] == [bad]
    rows = read_documents(spark, to).select("digest").collect()
    assert len(rows) == len({row["digest"] for row in rows}) == first.documents + second.documents
    assert batch(spark, tmp_path) == wanted, "found below another folder too"


def _in_a_file(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(compacting, "_write", _after(compacting._write))


def _before_it_counts(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(compacted, "commit", _dies)


def _before_removing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(compacted, "commit", _after(compacted.commit))


def _in_removing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(compacting, "remove_file", _after(compacting.remove_file))


@pytest.mark.parametrize("at", [_in_a_file, _before_it_counts, _before_removing, _in_removing])
def test_who_dies_loses_nothing(
    spark: Any, chunks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: Callable[[pytest.MonkeyPatch], None]
) -> None:
    """All documents are in one of the two at every moment, and in the new place alone after the next run."""
    to, wanted = tmp_path / "to", {*said(spark, chunks)}
    at(monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        compacting.compact(spark, [str(chunks)], to, remove=True)
    monkeypatch.undo()
    left = [place for place in (to, chunks) if place.exists()]
    assert said(spark, *left) == wanted
    compacting.compact(spark, [str(chunks)], to, remove=True)
    assert said(spark, to) == wanted
    assert len([*chunks.iterdir()]) == 1


def test_a_file_that_changed_is_not_removed(spark: Any, chunks: Path, tmp_path: Path) -> None:
    """Only what is as it was read goes."""
    some = sorted(chunks.iterdir())[0]
    compacting.compact(spark, [str(chunks)], tmp_path / "to")
    some.write_bytes(some.read_bytes() + b" ")
    before = len([*chunks.iterdir()])
    state = compacted.load(Store(tmp_path / "to").place)
    assert compacting._removed(Store(tmp_path / "to"), state, [str(chunks)]) == before - 2
    assert some.exists()


def test_what_cannot_be_compacted_says_why(spark: Any, chunks: Path, tmp_path: Path) -> None:
    """A place within what is read, one that another run has, a gateway."""
    compacting.compact(spark, [str(chunks)], chunks / "to")
    with pytest.raises(SourceError, match="lies in what is to be compacted"):
        compacting.compact(spark, [str(chunks)], chunks / "to")
    with Store(tmp_path / "to").writing(), pytest.raises(TableError, match="wait for it to end"):
        compacting.compact(spark, [str(chunks)], tmp_path / "to")
    with pytest.raises(SourceError, match="a gateway has --keep"):
        compacting.compact(spark, ["https://gateway:4984/plant"], tmp_path / "to")


def test_a_file_that_no_list_names_is_none(chunks: Path, tmp_path: Path) -> None:
    """Whatever lies beside; and a device may have the name of the lists' folder."""
    place = tmp_path / "to" / compacted.FOLDER
    place.mkdir(parents=True)
    (tmp_path / "to" / "documents").mkdir()
    (tmp_path / "to" / "documents" / "left.parquet").write_bytes(b"")
    (place / "00000001.json").write_text('{"format": 1, "number": 1, "files": [], "sources": []}')
    with pytest.raises(SourceError, match="there are no files"):
        list_sources(str(tmp_path / "to"))
    device = chunks / compacted.FOLDER / "s"
    device.mkdir(parents=True)
    (device / "0-0.json").write_bytes(b"{")
    assert str(device / "0-0.json") in list_sources(str(chunks)).files


def _after(done: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *of: (done(*of), _dies())


def _dies(*_: Any) -> None:
    raise KeyboardInterrupt("killed")
