"""The agent's own suites once more, with every row of its state in Couchbase Lite; and what is its alone."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
pytest.importorskip("cffi", reason="missing: cffi (pip install 'sluicegate[cblite]')")

import killing
import test_pipeline as of_pipeline
import test_sync as of_sync
from durable_agent import configured, timed
from test_pipeline import *  # noqa: F403  the same suite
from test_pipeline import Board, content
from test_pipeline_refusals import Refusing
from test_sync import *  # noqa: F403  the same suite

from sluicegate import cblite
from sluicegate_agent import config as agent_config
from sluicegate_agent.errors import EnvironmentRefused
from sluicegate_agent.state import NewerStore, State, StoreDamaged, read_status, schema
from sluicegate_agent.state import couchbase_lite as documents
from sluicegate_agent.state.couchbase_lite import CouchbaseLiteStore

IN_DOCUMENTS = {"store": "couchbase-lite"}


@pytest.fixture(autouse=True)
def in_documents(real: cblite.Library, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every configuration of these suites keeps its state in Couchbase Lite."""
    for suite in (of_pipeline, of_sync):
        monkeypatch.setattr(suite, "configured", on_couchbase_lite)


def on_couchbase_lite(folder: Path, **tables: Any) -> agent_config.Config:
    """The suites' configuration with the other store."""
    return configured(folder, **{**tables, "state": IN_DOCUMENTS | tables.get("state", {})})


def opened(folder: Path, **tables: Any) -> Board:
    """A board of test_pipeline."""
    return Board(folder, **tables)


def test_it_is_the_store_that_was_asked_for(tmp_path: Path) -> None:
    """A database and no SQLite file of ours; each row of each table a document."""
    one = opened(tmp_path)
    one.take(*of_pipeline.batch(0))
    assert isinstance(one.state.store, CouchbaseLiteStore)
    assert not list((tmp_path / "state").glob("*.db"))
    expected = {
        table: one.state.store.connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: S608
        for table in ("stream", "outbox", "window", "window_leaf", "sequence", "identity", "counter", "meta")
    }
    one.state.close()
    with cblite.Database("state", tmp_path / "state") as database:
        found = {table: len(database.collection(table)) for table in expected}
    assert found == expected
    assert expected["outbox"] > 0


def test_every_row_comes_back(tmp_path: Path) -> None:
    """After commits through evictions and squeezes, closing and opening gives the same tables."""
    one = opened(tmp_path, outbox={"rows": 12, "chunk_buckets": 4})
    for start in range(0, 60, 4):
        one.take(*of_pipeline.batch(start))
        if start % 20 == 0:
            before = content(one)
            one.restart()
            assert content(one) == before
    one.state.close()


def test_a_full_disk_stops_acknowledging_and_nothing_more(tmp_path: Path) -> None:
    """A file that may not grow: no PUBACK while it lasts, all when it may, each reading once."""
    one = opened(tmp_path, mqtt={"receive_maximum": 60000})
    one.take(timed(0, 1))
    for minute in range(1, 8000):
        one.pipeline.accept(timed(minute, minute + 1, value=minute / 8))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    largest = max(path.stat().st_size for path in (tmp_path / "state").rglob("*") if path.is_file())
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest, hard))
    try:
        for _ in range(2):
            with pytest.raises(sqlite3.OperationalError):
                one.pipeline.commit()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert one.pipeline.pending == 7999
    assert len(one.pipeline.commit()) == 7999
    one.restart()
    assert one.accepted() == {"heat": 8000}
    assert sum(bucket.n for bucket in one.outbox("heat")) == 8000
    one.state.close()


def test_a_commit_refused_at_statements_of_its_own(tmp_path: Path) -> None:
    """Every eleventh statement, those that read what changed among them: nothing is there, then all of it is."""
    acknowledged: list[int] = []
    for at in range(3, 2000, 11):
        one = opened(tmp_path / str(at), outbox={"rows": 12, "chunk_buckets": 4})
        one.take(*of_pipeline.batch(0))
        for message in of_pipeline.batch(4):
            one.pipeline.accept(message)
        before, real = content(one), one.state.store.connection
        one.state.store.connection = Refusing(real, at)  # type: ignore[assignment]
        with contextlib.suppress(sqlite3.OperationalError):
            acknowledged = one.pipeline.commit()
        one.state.store.connection = real
        if not acknowledged:
            assert content(one) == before
            assert len(one.pipeline.commit()) == 12
        found = content(one)
        one.restart()
        assert content(one) == found
        one.state.close()
        if acknowledged:
            break
    assert at > 30


@pytest.mark.parametrize("at", [1, 2, 7])
def test_a_document_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    """The n-th save of a commit fails: neither tables nor database have any of it, and the next commit has all."""
    one = opened(tmp_path)
    one.take(*of_pipeline.batch(0))
    before = content(one)
    for message in of_pipeline.batch(4):
        one.pipeline.accept(message)
    save, saved = cblite.Collection.save, []

    def failing(self: cblite.Collection, *arguments: Any) -> None:
        saved.append(arguments[0])
        if len(saved) == at:
            raise cblite.Refused("the disk is full", 5, 13)
        save(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(cblite.Collection, "save", failing)
        with pytest.raises(sqlite3.OperationalError, match="disk is full"):
            one.pipeline.commit()
    found = content(one)
    assert {name: rows for name, rows in found.items() if name != "answers"} == {
        name: rows for name, rows in before.items() if name != "answers"
    }
    assert one.pipeline.commit()
    after = content(one)
    one.restart()
    assert content(one) == after
    one.state.close()


def test_a_damaged_database_is_set_aside(tmp_path: Path) -> None:
    """The next incarnation begins from zero and says what happened."""
    one = opened(tmp_path)
    one.take(*of_pipeline.batch(0))
    incarnation = one.state.incarnation
    one.state.close()
    file = tmp_path / "state/state.cblite2/db.sqlite3"
    file.write_bytes(b"\xa5" * file.stat().st_size)
    for beside in file.parent.glob("db.sqlite3-*"):
        beside.unlink()
    one.restart()
    assert one.accepted() == {}
    assert one.state.incarnation > incarnation
    assert one.state.status()["stores_set_aside"] == 1
    assert [path.suffix for path in (tmp_path / "state").glob("damaged-*") if path.is_dir()] == [".cblite2"]
    one.state.close()


@pytest.mark.parametrize("table", ["stream", "sequence", "outbox", "meta"])
def test_documents_that_say_nonsense_are_damage_too(tmp_path: Path, table: str) -> None:
    """Whole documents of the wrong shape: the store is set aside and the agent goes on."""
    one = opened(tmp_path)
    one.take(*of_pipeline.batch(0))
    one.state.close()
    with (
        cblite.Database("state", tmp_path / "state") as database,
        database.query(f"SELECT META().id FROM {table}") as ids,  # noqa: S608,
    ):
        for (id,) in list(ids.rows()):
            database.collection(table).save(id, {"r": [1]})
    try:
        one.restart()
    except StoreDamaged:
        one.restart()
    one.take(*of_pipeline.batch(4))
    assert one.state.status()["stores_set_aside"] == 1
    assert one.accepted()["heat"] == 4
    one.state.close()


def test_a_newer_store_is_left_alone(tmp_path: Path) -> None:
    """As with SQLite: refused, and nothing of it changed."""
    with State(on_couchbase_lite(tmp_path)) as state, state.transaction() as connection:
        connection.execute("UPDATE meta SET value = ? WHERE key = 'schema'", (schema.VERSION + 1,))
    with pytest.raises(NewerStore):
        State(on_couchbase_lite(tmp_path))
    with pytest.raises(NewerStore):
        read_status(tmp_path / "state")


def test_status_reads_beside_a_running_agent_in_documents(tmp_path: Path) -> None:
    """Another process sees the last commit and disturbs nothing."""
    one = opened(tmp_path)
    one.take(*of_pipeline.batch(0))
    code = (
        "import sys, pathlib; from sluicegate_agent.state import read_status as r; print(r(pathlib.Path(sys.argv[1])))"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "state"], capture_output=True, text=True, check=True)
    assert f"'accepted': {one.state.counters['accepted']}," in done.stdout
    one.take(*of_pipeline.batch(4))
    one.state.close()
    assert not read_status(tmp_path / "state")["running"]


@pytest.mark.parametrize("first", ["sqlite", "couchbase-lite"])
def test_a_state_of_the_other_kind_is_not_left_behind(tmp_path: Path, first: str) -> None:
    """What waits in it would never be sent: refused, with what to write."""
    State(configured(tmp_path, state={"store": first})).close()
    second = "sqlite" if first == "couchbase-lite" else "couchbase-lite"
    with pytest.raises(EnvironmentRefused, match=f'holds a state in "{first}"'):
        State(configured(tmp_path, state={"store": second}))
    State(configured(tmp_path, state={"store": first})).close()


def test_without_the_library_it_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """EnvironmentRefused with the key and the remedy, and no folder half made."""

    def missing() -> None:
        raise cblite.LibraryMissing("no libcblite; install it")

    monkeypatch.setattr(documents, "library", missing)
    with pytest.raises(EnvironmentRefused, match=r'state\.store = "couchbase-lite": no libcblite; install it'):
        State(on_couchbase_lite(tmp_path))


def test_identities_of_rows() -> None:
    """Numbers sort as they are, long and odd names are digests, no two keys share one."""
    keys = [(1, 2), (1, 12), ("a.b",), ("A",), ("#",), (b"A",), ("x" * 100,), (b"",), (2, 1, 0)]
    found = [documents.identity(key) for key in keys]
    assert len(set(found)) == len(keys)
    assert found[0] < found[1]
    assert all(len(id) <= 240 and not id.startswith("_") for id in found)


@pytest.mark.faults
@pytest.mark.slow
def test_killed_at_steps(tmp_path: Path) -> None:
    """A part of test_kill's steps, in a process of its own: a fork cannot take the library's threads along."""
    folder = Path(tmp_path if not Path("/dev/shm").is_dir() else "/dev/shm") / f"kill-{tmp_path.name}"  # noqa: S108
    child = Path(__file__).with_name("killed_state.py")
    try:
        path = os.pathsep.join([str(Path(killing.__file__).parent), *sys.path])
        done = subprocess.run(
            [sys.executable, child, folder, "60"], capture_output=True, text=True, timeout=300,
            env=os.environ | {"PYTHONPATH": path},
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        assert int(done.stdout.split()[-2]) >= 4
    finally:
        shutil.rmtree(folder, ignore_errors=True)
