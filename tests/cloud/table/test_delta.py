"""A Delta table promises the rows of the version that was published, each window once; its log is read by hand."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq
import pytest
from clusters import driver
from jars_of_make import listed_jars, pinned_jars
from random_worlds import Cut, buckets_of, random_fleet
from table_worlds import anew, definition_of, documents_of, store_at, table_of, take_in, windows
from thorough import WHOLE

from sluicegate.format.chunk import Chunk, encode
from sluicegate_cloud.errors import SinkError
from sluicegate_cloud.names import SILENT
from sluicegate_cloud.schema import ddl
from sluicegate_cloud.table import delta, read

ROOT = Path(__file__).parents[3]
CUT = Cut(60_000_000, 3, 0, 30)


@pytest.fixture(scope="module")
def jars() -> Path:
    """Those that `make dev` gets."""
    return listed_jars("delta")


def test_the_checksums_are_those_of_the_script(tmp_path: Path) -> None:
    """What the script gets is what a session takes; another file is refused."""
    pinned = (line.split() for line in (ROOT / "deploy/spark/delta.sha256").read_text().splitlines())
    assert {name: digest for digest, name in pinned} == delta.JARS == pinned_jars("delta")
    with pytest.raises(SinkError, match=r"deploy/spark/jars\.sh delta"):
        delta.settings(tmp_path)
    for name in delta.JARS:
        (tmp_path / name).write_text("another")
    with pytest.raises(SinkError, match="is not the file that was tried"):
        delta.settings(tmp_path)


def rows(place: Path, upto: int | None = None) -> dict[Any, Any]:
    """What the table's log says is there, or was once so many commits had come, as `table_worlds.windows` tells it."""
    files: dict[str, Any] = {}
    for commit in commits(place)[:upto]:
        for action in map(json.loads, commit.read_text().splitlines()):
            if "remove" in action:
                files.pop(action["remove"]["path"])
            if "add" in action:
                assert "deletionVector" not in action["add"]
                files[action["add"]["path"]] = action["add"]
    found = [row for path in files for row in pq.ParquetFile(place / unquote(path)).read().to_pylist()]
    for row in found:
        row.pop("day")
    out = {tuple(row[of] for of in ("device", "stream", "rollup", "tag_site", "window_start", "window_end")): row
           for row in found}  # fmt: skip
    assert len(out) == len(found), "two rows of one window"
    return out


def commits(place: Path) -> list[Path]:
    """Of the table's log."""
    return sorted((place / "_delta_log").glob("*.json"))


@dataclass
class Noting:
    """A session whose Delta table has these commits, the newest first."""

    notes: list[dict[str, Any] | str | int]

    def sql(self, statement: str) -> Noting:
        """The history."""
        assert statement == "DESCRIBE HISTORY delta.`out`"
        return self

    def where(self, *_: Any) -> Noting:
        """All have a note."""
        return self

    orderBy = select = where  # noqa: N815 - Spark's name

    def toLocalIterator(self) -> Iterator[tuple[int, str, dict[str, Any], str | None]]:  # noqa: N802 - Spark's name
        """Their numbers and notes; one that is a number restores that commit."""
        for number, one in zip(range(len(self.notes) - 1, -1, -1), self.notes, strict=True):
            if isinstance(one, int):
                yield number, "RESTORE", {"version": str(one) if one >= 0 else None}, None
            else:
                yield number, "MERGE", {}, one if isinstance(one, str) else json.dumps({"sluicegate": one})


def test_a_table_made_anew_at_the_same_place_has_published_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its versions have the numbers of the old one's: the identity tells them apart, where it was noted. Nor does a
    commit say what is there that looked before the one before it came, or that was undone.
    """
    monkeypatch.setattr(delta, "sf", SimpleNamespace(desc=str))
    rng = random.Random(3)
    documents = documents_of(random_fleet(rng, CUT, 1, 20, ordinary=True), "s", rng, lost=0.0)
    made = []
    for _ in range(2):
        store, version = store_at(tmp_path / "table", definition_of(CUT, ("count",)))
        made.append(take_in(store, version, table_of(documents)))
        shutil.rmtree(store.root)
    old, new = made
    assert (old.number, new.number) == (1, 1)
    note = {"place": str(store.root), "version": 1}
    told = {of.identity: note | {"identity": of.identity} for of in made}
    for notes, wanted in (
        ([told[old.identity]], None),
        ([told[new.identity], told[old.identity]], 1),
        (["not ours", told[new.identity]], 1),
        ([note], 1),
        ([], None),
        ([1, told[new.identity] | {"version": 2}, told[new.identity], told[old.identity]], 1),
        ([2, "not ours", 0, told[new.identity] | {"version": 2}, told[new.identity]], 1),
        ([-1, told[new.identity]], None),
        ([told[new.identity] | {"since": 3}, told[new.identity] | {"version": 3}], 1),
        ([told[new.identity] | {"since": 3}, "not ours", told[new.identity] | {"version": 2}], None),
        ([told[new.identity] | {"since": 3}], 1),
        ([told[new.identity] | {"since": None}, told[new.identity] | {"version": 2}], 1),
    ):
        session: Any = Noting(notes)
        assert delta._since(session, store, new, "delta.`out`") == wanted


@pytest.mark.spark
@pytest.mark.slow
def test_a_delta_table_follows_the_table(jars: Path, tmp_path: Path) -> None:
    """Published after each run, and twice: the rows are the table's, to the bit, with their revisions.

    What was there before stays, by its number, though the table keeps one version. So are they of another table at the
    same place, whose versions have the same numbers. The clocks of two boards are where no calendar is.
    """
    rng, out = random.Random(8), tmp_path / "out"
    documents = documents_of(random_fleet(rng, CUT, 4, 40, ordinary=True), "s", rng)
    documents += [encode(Chunk(f"far-{at}", "s", "0" * 16, 1.0, buckets_of([(at, 1.0)], 1), [None]))
                  for at in (1 << 60, -(1 << 60))]  # fmt: skip
    rng.shuffle(documents)
    store, version = store_at(tmp_path / "table", definition_of(CUT, ("count", "mean", "max"), by=(("site",),)))
    third, gone, then = len(documents) // 3, 0, dict[int, Any]()
    with driver("local[2]", tmp_path, str(jars)) as at:

        def published() -> int:
            told = at.done("publish", table="table", place="out")
            assert list(told) == ["rows"], told
            assert rows(out) == windows(store, version)
            return int(told["rows"])

        older = {name: kind for name, kind in read.schema_of(version.definition).items() if name != SILENT}
        made = f"CREATE TABLE delta.`{out}` ({ddl(older)}, day date) USING delta PARTITIONED BY (day)"
        at.done("sql", statements=[made])  # as a Sluicegate did that knew of no silence
        for run_of in range(3):
            known = windows(store, version) if version.number else {}
            version = take_in(
                store, version, table_of(documents[run_of * third : (run_of + 1) * third], run_of * third)
            )
            gone += len(known.keys() - windows(store, version).keys())
            assert published() > 0
            assert published() == 0
            then[len(commits(out))] = windows(store, version)
        assert gone > 0, "no row ever went: choose another seed"
        at.done(
            "sql", statements=[f"OPTIMIZE delta.`{out}`", f"RESTORE delta.`{out}` TO VERSION AS OF {min(then) - 1}"]
        )
        assert rows(out) == then[min(then)]
        assert published() > 0
        assert published() == 0
        version = store.commit(anew(store, version))
        store.vacuum(kept=1, abandoned_s=-1)
        assert published() == len(windows(store, version)), "the version that is there is not kept: all is replaced"
        assert all(rows(out, upto) == known for upto, known in then.items()), "the Delta table keeps what it had"
        old, known = version, windows(store, version)
        shutil.rmtree(store.root)
        store, version = store_at(store.root, version.definition)
        for run_of in range(old.number):  # made anew at the same place: other rows under the same numbers
            version = take_in(store, version, table_of(documents[run_of : run_of + 1], run_of))
        assert (version.number, version.identity != old.identity) == (old.number, True)
        assert published() > 0
        assert known.keys() - rows(out).keys(), "nothing of the old one went: choose another seed"
        assert published() == 0
        version = take_in(store, version, table_of(documents[third:], third))
        assert published() > 0
        shutil.copytree(store.root, tmp_path / "other")
        assert "has the windows of" in at.done("publish", table="other", place="out")["text"]
        assert "has other columns" in at.done("publish", table=str(_other(tmp_path)), place="out")["text"]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.faults
@pytest.mark.skipif(not WHOLE, reason="a session for each kill: of the nightly tests")
def test_a_publisher_that_is_killed_is_made_up_for(jars: Path, tmp_path: Path) -> None:
    """At any moment of a publication: the Delta table has a version as a whole, and the next try the newest."""
    rng, out = random.Random(9), tmp_path / "out"
    documents = documents_of(random_fleet(rng, CUT, 3, 30, ordinary=True), "s", rng)
    store, version = store_at(tmp_path / "table", definition_of(CUT, ("count", "mean"), by=(("site",),)))
    third, wanted = len(documents) // 3, []
    for at in range(3):
        version = take_in(store, version, table_of(documents[at * third : (at + 1) * third], at * third))
        wanted.append(windows(store, version))
        with driver("local[2]", tmp_path, str(jars)) as dying:
            dying.ask("publish", table="table", place="out")
            time.sleep(rng.uniform(2.0, 12.0))
            os.kill(dying.process.pid, signal.SIGKILL)
        assert rows(out) in ({}, *wanted)
        with driver("local[2]", tmp_path, str(jars)) as living:
            living.done("publish", table="table", place="out")
        assert rows(out) == wanted[-1]


def _other(folder: Path) -> Path:
    store, version = store_at(folder / "narrow", definition_of(CUT, ("count",)))
    rng = random.Random(1)
    take_in(store, version, table_of(documents_of(random_fleet(rng, CUT, 1, 9, ordinary=True), "s", rng)))
    return store.root


@pytest.mark.spark
def test_a_session_without_delta_is_told_what_it_lacks(spark: Any, tmp_path: Path) -> None:
    """Before anything is made."""
    store, version = store_at(tmp_path / "table", definition_of(CUT, ("count",)))
    with pytest.raises(SinkError, match="this Spark has no Delta Lake: give --jars"):
        delta.publish(spark, store, version, str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()
