"""The store opens after anything: empty, older, damaged; it refuses what it does not know, and says what it drops."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from durable_agent import NOON, SECOND, configured, timed
from target_suite.memory import MemoryTarget

from sluicegate.format import chunk as chunks
from sluicegate.format.bucket import Builder
from sluicegate_agent.errors import EnvironmentRefused
from sluicegate_agent.pipeline import Pipeline
from sluicegate_agent.record.recorder import Recorder
from sluicegate_agent.state import NewerStore, State, StoreDamaged, leaf_runs, read_status, schema
from sluicegate_agent.state.store import CONDEMNED, DATABASE, SET_ASIDE_KEPT, Store
from sluicegate_agent.sync import Sync

# The tables of version 1, frozen: never edit these lines, they stand for stores that are out there.
VERSION_1 = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE stream (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, row BLOB NOT NULL);
CREATE TABLE outbox (
    stream INTEGER NOT NULL, first INTEGER NOT NULL, bucket BLOB NOT NULL, PRIMARY KEY (stream, first)
) WITHOUT ROWID;
CREATE TABLE chunk (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, stream INTEGER NOT NULL, first INTEGER NOT NULL,
    readings INTEGER NOT NULL, document BLOB NOT NULL
);
CREATE TABLE window (
    id INTEGER PRIMARY KEY, stream INTEGER NOT NULL, name TEXT NOT NULL, definition TEXT NOT NULL, state BLOB NOT NULL,
    UNIQUE (stream, name)
);
CREATE TABLE window_leaf (
    window INTEGER NOT NULL, level INTEGER NOT NULL, number INTEGER NOT NULL, leaf BLOB NOT NULL,
    PRIMARY KEY (window, level, number)
) WITHOUT ROWID;
CREATE TABLE sequence (
    source TEXT NOT NULL, epoch BLOB NOT NULL, row BLOB NOT NULL, PRIMARY KEY (source, epoch)
) WITHOUT ROWID;
CREATE TABLE identity (
    source TEXT NOT NULL, last INTEGER NOT NULL, entries BLOB NOT NULL, PRIMARY KEY (source, last)
) WITHOUT ROWID;
CREATE TABLE dead_letter (
    number INTEGER PRIMARY KEY, at_us INTEGER NOT NULL, topic TEXT NOT NULL, reason TEXT NOT NULL,
    size INTEGER NOT NULL, payload BLOB NOT NULL
);
INSERT INTO meta VALUES ('schema', 1), ('incarnation', '00060a24181e4000'), ('set_aside', 0);
INSERT INTO counter VALUES ('accepted', 4);
"""

# A store as the program of version 2 left it: 18 rows, some merged, some without single readings, an open bucket.
VERSION_2 = Path(__file__).parents[1] / "cases/agent_stores/version-2.sql"
VERSION_5 = Path(__file__).parents[1] / "cases/agent_stores/version-5.sql"
RECENT = [{"name": "recent", "policy": {"time": "5min"}, "aggregate": ["mean", "max"], "buckets": 6}]


def version_1(folder: Path) -> bytes:
    """A store of version 1 with a bucket and a sealed chunk; the bucket."""
    folder.mkdir()
    builder = Builder(1.5)
    for value in (1.5, 2.5, 4.0):
        builder.add(value, 1000)
    bucket = builder.close().pack()
    connection = sqlite3.connect(folder / DATABASE)
    connection.executescript(VERSION_1)
    connection.execute("INSERT INTO outbox VALUES (7, 0, ?)", (bucket,))
    connection.execute("INSERT INTO chunk VALUES (3, 'board-1::level::00060a24181e4000::x', 7, 0, 1, 'document')")
    connection.commit()
    connection.close()
    return bucket


def columns(connection: sqlite3.Connection) -> dict[str, list[tuple[object, ...]]]:
    """Every table's columns, types and keys."""
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
    return {name: connection.execute(f"PRAGMA table_info({name})").fetchall() for (name,) in tables}


def test_version_1_is_migrated_with_all_it_holds(tmp_path: Path) -> None:
    """Buckets, sealed chunks, counters and the incarnation survive; the tables are those of a new store."""
    bucket = version_1(tmp_path / "old")
    old, new = Store(tmp_path / "old"), Store(tmp_path / "new")
    assert columns(old.connection) == columns(new.connection)
    assert old.incarnation == "00060a24181e4000"
    assert old.connection.execute("SELECT * FROM outbox").fetchall() == [(7, 0, bucket, None, None)]
    found = old.connection.execute("SELECT number, state, reason, document FROM chunk").fetchall()
    assert found == [(3, 0, None, "document")]
    assert dict(old.connection.execute("SELECT name, value FROM counter")) == {"accepted": 4}
    old.close()
    new.close()
    again = Store(tmp_path / "old")
    assert schema.version(again.connection) == schema.VERSION
    again.close()


def downgraded(path: Path) -> None:
    """The same content in the tables of version 1, as its program would have left it."""
    new = path.with_name("version-1.db")
    connection = sqlite3.connect(new)
    connection.executescript(VERSION_1[: VERSION_1.index("INSERT INTO")])
    connection.execute("ATTACH ? AS now", (str(path),))
    connection.execute("INSERT INTO main.stream SELECT id, name, row FROM now.stream")
    for table in ("meta", "counter", "window", "window_leaf", "sequence", "identity", "dead_letter"):
        info = connection.execute(f"PRAGMA main.table_info({table})").fetchall()
        columns = ", ".join(row[1] for row in info)
        connection.execute(f"INSERT INTO main.{table} SELECT {columns} FROM now.{table}")  # noqa: S608
    for (window,) in connection.execute("SELECT id FROM main.window").fetchall():
        leaves = [(window, *leaf) for leaf in leaf_runs.read(connection, window)]
        connection.executemany("INSERT INTO main.window_leaf VALUES (?, ?, ?, ?)", leaves)
    connection.execute("INSERT INTO main.outbox SELECT stream, first, bucket FROM now.outbox")
    connection.execute("INSERT INTO main.chunk SELECT number, id, stream, first, readings, document FROM now.chunk")
    connection.execute("DELETE FROM main.meta WHERE key NOT IN ('schema', 'incarnation', 'set_aside')")
    connection.execute("UPDATE main.meta SET value = 1 WHERE key = 'schema'")
    connection.commit()
    connection.close()
    new.replace(path)


def test_an_agent_goes_on_from_version_1(tmp_path: Path) -> None:
    """Updated in the middle of an outage: what waited is sent, what comes again is known, each reading arrives once."""
    config, target = configured(tmp_path), MemoryTarget()
    target.away = True
    with State(config) as state:
        pipeline, sync = Pipeline(config, state), Sync(config, state, target)
        for minute in range(100):
            pipeline.accept(timed(minute, minute % 30 + 1, value=minute / 8))
            pipeline.commit()
        sync.step(0.0)
        assert state.outbox.sealed == 3
        answers = [str(answer) for answer in pipeline.answers("heat", "recent")]
    downgraded(config.state.path / DATABASE)
    target.away = False
    with State(config) as state:
        pipeline, sync = Pipeline(config, state), Sync(config, state, target)
        assert [str(answer) for answer in pipeline.answers("heat", "recent")] == answers
        for minute in range(80, 180):
            pipeline.accept(timed(minute, minute % 30 + 1, value=minute / 8))
            pipeline.commit()
        pipeline.flush()
        pipeline.commit()
        while not sync.is_done():
            sync.step(0.0, flush=True)
        assert state.counters["duplicates"] == 20
    arrived = [chunks.decode(target.documents[name]) for name in sorted(target.documents)]
    firsts = [bucket.first for chunk in arrived for bucket in chunk.buckets]
    assert firsts == list(range(0, 180, 4))
    assert sum(bucket.total + bucket.n * c.center for c in arrived for bucket in c.buckets) == sum(range(180)) / 8


def test_an_agent_goes_on_from_a_store_of_version_2(tmp_path: Path) -> None:
    """A store that version 2 wrote in an outage, kept as it was: its shorter records are read, sent and built upon.

    What format 1 did not know stays unknown where the single readings are gone, and is known where they are there.
    """
    config, target = configured(tmp_path, window=[], outbox={"rows": 18}), MemoryTarget()
    config.state.path.mkdir()
    frozen = sqlite3.connect(config.state.path / DATABASE)
    frozen.executescript(VERSION_2.read_text())
    lengths = {row[0] for row in frozen.execute("SELECT length(bucket) FROM outbox")}
    assert (schema.version(frozen), lengths) == (2, {168})
    frozen.close()
    with State(config) as state:
        assert schema.version(state.store.connection) == schema.VERSION
        pipeline, sync = Pipeline(config, state), Sync(config, state, target)
        for minute in range(120, 180):
            pipeline.accept(timed(minute, minute % 30 + 1, value=minute / 8))
            pipeline.commit()
        assert {row[0] for row in state.store.connection.execute("SELECT length(bucket) FROM outbox")} == {256, 168}
        pipeline.flush()
        pipeline.commit()
        while not sync.is_done():
            sync.step(0.0, flush=True)
        assert state.counters["duplicates"] == 21
    arrived = [chunks.decode(target.documents[name]) for name in sorted(target.documents)]
    buckets = [bucket for chunk in arrived for bucket in chunk.buckets]
    assert [a.first + a.n for a in buckets] == [*(b.first for b in buckets[1:]), 180]
    assert sum(b.total for b in buckets) == sum(range(180)) / 8
    lacking = {bucket.first for bucket in buckets if bucket.low_n < 0}
    assert lacking
    assert all(120 <= first < 140 for first in lacking)


def test_a_migration_that_fails_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Halfway through, the power goes: the old version is still there, whole, and is migrated at the next start."""
    version_1(tmp_path / "old")
    with monkeypatch.context() as broken:
        broken.setattr(schema, "_STEPS", {1: lambda c: (schema._from_1(c), 1 / 0)})
        with pytest.raises(ZeroDivisionError):
            Store(tmp_path / "old")
    untouched = sqlite3.connect(tmp_path / "old" / DATABASE)
    assert schema.version(untouched) == 1
    assert "readings" not in [row[1] for row in untouched.execute("PRAGMA table_info(outbox)")]
    untouched.close()
    Store(tmp_path / "old").close()


def test_a_newer_store_is_refused_and_left_alone(tmp_path: Path) -> None:
    """An older Sluicegate must not guess: exit code 4, what to do, and not a byte changed."""
    Store(tmp_path).close()
    connection = sqlite3.connect(tmp_path / DATABASE)
    connection.execute("UPDATE meta SET value = ? WHERE key = 'schema'", (schema.VERSION + 1,))
    connection.commit()
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    before = (tmp_path / DATABASE).read_bytes()
    with pytest.raises(NewerStore, match="update Sluicegate") as refused:
        Store(tmp_path)
    assert refused.value.exit_code == 4
    with pytest.raises(NewerStore):
        read_status(tmp_path)
    assert (tmp_path / DATABASE).read_bytes() == before
    assert not list(tmp_path.glob("damaged-*"))


def garbage(path: Path) -> None:
    """Overwrite the whole file."""
    path.write_bytes(b"\x7fELF" * 5000)


def half(path: Path) -> None:
    """Cut the file in the middle of a page."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2 + 100])


def scribbled(path: Path) -> None:
    """Overwrite pages behind the header, as a dying SD card does."""
    data = bytearray(path.read_bytes())
    data[4096:20480] = b"\xa5" * 16384
    path.write_bytes(bytes(data))


def foreign(path: Path) -> None:
    """Another program's database."""
    path.unlink()
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE notes (text)")
    connection.commit()
    connection.close()


@pytest.mark.parametrize("damage", [garbage, half, scribbled, foreign])
def test_a_damaged_store_is_set_aside_and_a_new_one_begins(tmp_path: Path, damage: object) -> None:
    """It starts with a later incarnation, the damage is counted, and the old file is kept for whoever wants to look."""
    first = Store(tmp_path)
    incarnation = first.incarnation
    first.close()
    assert callable(damage)
    damage(tmp_path / DATABASE)
    second = Store(tmp_path)
    assert second.incarnation > incarnation
    assert second.set_aside == 1
    assert second.moved is not None
    assert second.moved.exists()
    second.close()
    assert read_status(tmp_path)["stores_set_aside"] == 1


def test_setting_aside_survives_a_kill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ended between two renames, the next start does not take the database without its log for a whole one."""
    Store(tmp_path).close()
    garbage(tmp_path / DATABASE)
    (tmp_path / "state.db-wal").write_bytes(b"log")
    rename, renamed = Path.rename, []

    def once(self: Path, to: Path) -> Path:
        renamed.append(self)
        if len(renamed) > 1:
            raise KeyboardInterrupt
        return rename(self, to)

    with monkeypatch.context() as dying:
        dying.setattr(Path, "rename", once)
        with pytest.raises(KeyboardInterrupt):
            Store(tmp_path)
    assert renamed[0].name == "state.db-wal"
    assert (tmp_path / CONDEMNED).exists()
    store = Store(tmp_path)
    assert store.moved is not None
    assert not (tmp_path / CONDEMNED).exists()
    store.close()


def test_set_aside_stores_cannot_fill_the_disk(tmp_path: Path) -> None:
    """Only the newest are kept, all are counted, and incarnations grow though the clock may not."""
    seen = []
    for _ in range(SET_ASIDE_KEPT + 3):
        store = Store(tmp_path)
        seen.append(store.incarnation)
        store.close()
        garbage(tmp_path / DATABASE)
    assert seen == sorted(set(seen))
    assert len(list(tmp_path.glob("damaged-*.db"))) == SET_ASIDE_KEPT
    assert len(list(tmp_path.glob("damaged-*.txt"))) == SET_ASIDE_KEPT
    final = Store(tmp_path)
    assert final.set_aside == SET_ASIDE_KEPT + 3
    final.close()


def test_incarnations_grow_when_the_clock_goes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A board without a clock of its own starts in 1970: its new store is still the later one."""
    first = Store(tmp_path)
    first.close()
    garbage(tmp_path / DATABASE)
    monkeypatch.setattr("time.time_ns", lambda: 0)
    second = Store(tmp_path)
    assert int(second.incarnation, 16) == int(first.incarnation, 16) + 1
    second.close()


def test_damage_found_while_running_ends_the_agent(tmp_path: Path) -> None:
    """It says which file and what to do; the transaction that found it left nothing behind."""
    store = Store(tmp_path)

    def found() -> None:
        with store.transaction() as connection:
            connection.execute("INSERT INTO counter VALUES ('x', 1, NULL)")
            raise sqlite3.DatabaseError("database disk image is malformed")

    with pytest.raises(StoreDamaged, match="start again"):
        found()
    assert store.connection.execute("SELECT count(*) FROM counter").fetchone() == (0,)
    store.close()


def test_the_store_is_durable_and_small(tmp_path: Path) -> None:
    """WAL with FULL, no memory mapping, a small cache, a log that is reused below its limit."""
    store = Store(tmp_path)
    found = {
        name: store.connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("journal_mode", "synchronous", "cache_size", "wal_autocheckpoint")
    }
    assert found == {"journal_mode": "wal", "synchronous": 2, "cache_size": -512, "wal_autocheckpoint": 256}
    for number in range(800):
        with store.transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO counter VALUES (?, ?, NULL)", (f"c{number % 50}", number))
    assert (tmp_path / "state.db-wal").stat().st_size < 2 << 20
    store.close()


def test_a_directory_that_refuses_is_named(tmp_path: Path) -> None:
    """A file where the directory should be: no traceback, but what to do."""
    config = configured(tmp_path)
    config.state.path.write_text("not a directory")
    with pytest.raises(EnvironmentRefused, match=r"\[state\] path .*give a directory"):
        State(config)


def test_status_needs_a_store(tmp_path: Path) -> None:
    """Asked of a directory without one, it says so."""
    with pytest.raises(EnvironmentRefused, match="no agent has run here yet"):
        read_status(tmp_path)


def test_status_reads_beside_a_running_agent(tmp_path: Path) -> None:
    """It sees the last commit while a transaction is open, changes nothing, and says whether an agent runs."""
    config = configured(tmp_path)
    with State(config) as state:
        with state.transaction() as connection:
            connection.execute("INSERT INTO counter VALUES ('accepted', 5, NULL)")
            assert "accepted" not in read_status(config.state.path)["counters"]
        found = read_status(config.state.path)
        assert found["running"]
        assert found["counters"] == {"accepted": 5}
        # What is free on the disk is not ours alone, and changes between two looks.
        assert found | {"disk_free": 0} == state.status() | {"disk_free": 0}
    assert not read_status(config.state.path)["running"]


def test_an_agent_goes_on_from_a_store_of_version_5(tmp_path: Path) -> None:
    """It had no record: what waits there is sent with what is recorded from now on, through a kill in the middle."""
    config, target = configured(tmp_path, window=RECENT, outbox={"rows": 40}), MemoryTarget()
    config.state.path.mkdir()
    frozen = sqlite3.connect(config.state.path / DATABASE)
    frozen.executescript(VERSION_5.read_text())
    assert schema.version(frozen) == 5
    frozen.close()
    for begin in (50, 80):  # ten come again: they are known
        with State(config) as state:
            assert schema.version(state.store.connection) == schema.VERSION
            pipeline = Pipeline(config, state, recorder=Recorder(config, state))
            for minute in range(begin, begin + 40):
                pipeline.accept(timed(minute, minute % 30 + 1, value=minute / 8))
                pipeline.commit()
    with State(config) as state:
        pipeline, sync = Pipeline(config, state, recorder=Recorder(config, state)), Sync(config, state, target)
        assert state.counters["duplicates"] == 20
        assert state.counters["windows.begun_anew"] == 0
        assert pipeline.answers("heat", "recent")[0].time_us == NOON + 119 * 60 * SECOND
        pipeline.flush()
        pipeline.commit()
        while not sync.is_done():
            sync.step(0.0, flush=True)
    arrived = [chunks.decode(target.documents[name]) for name in sorted(target.documents)]
    heat = sorted((b.first, b.n, b.total) for c in arrived if c.stream == "heat" for b in c.buckets)
    assert [first + n for first, n, _ in heat] == [*(first for first, _, _ in heat[1:]), 120]
    assert sum(n for _, n, _ in heat) == 120
