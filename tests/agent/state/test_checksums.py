"""A flipped bit in a row is found by the row's checksum, and costs that row alone."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from durable_agent import configured

from sluicegate_agent.checksums import LEFT, keep_time, kept_time, named
from sluicegate_agent.config import Config
from sluicegate_agent.doubts import Doubts
from sluicegate_agent.messages import Message
from sluicegate_agent.pipeline import Pipeline
from sluicegate_agent.replay import Replay, jsonl_payloads
from sluicegate_agent.state import State, StoreDamaged

NOW = 1_750_000_000_000_000
HORIZON = 512


def setting(folder: Path) -> Config:
    """A source with numbers, one with times, and a window of buckets."""
    sources = [
        {"topic": "w", "sequence": "n", "streams": {"a": "v"}},
        {"topic": "t", "time": "t", "time_format": "us", "streams": {"b": "v"}},
    ]
    windows: list[dict[str, Any]] = [{"name": "mean", "policy": {"count": 4000}, "buckets": 64}]
    more: dict[str, Any] = {"guard": {"future": "1d"}, "identity": {"horizon": HORIZON}}
    return configured(folder, source=sources, window=windows, mqtt={"receive_maximum": 100}, **more)


def numbered(number: int) -> Message:
    """A message with a number."""
    return Message("w", json.dumps({"n": number, "v": float(number)}).encode(), number % 60_000 + 1, 1)


def timed(time_us: int) -> Message:
    """A message with a time."""
    return Message("t", json.dumps({"t": time_us, "v": 1.0}).encode(), time_us % 60_000 + 1, 1)


def taken(folder: Path, *, again: bool = False) -> dict[str, int]:
    """300 messages of each source, and one ahead of the clock; the counters of this life."""
    config = setting(folder)
    with State(config) as state:
        before = state.counters.as_dict()
        pipeline = Pipeline(config, state, lambda: NOW)
        for number in range(300):
            pipeline.accept(numbered(number))
            pipeline.accept(timed(NOW - 400_000_000 + number))
            if number % 50 in (1, 49):  # few buckets, which have rows of their own, and many
                pipeline.commit()
        if not again:
            pipeline.accept(timed(NOW + 3 * 86_400_000_000))
        pipeline.commit()
        return {name: count - before.get(name, 0) for name, count in state.counters.as_dict().items()}


#: table → the column that is flipped, and how many of what was counted before count again for it at most.
FLIPPED = {
    "window": ("state", 0),
    "window_leaf": ("leaf", 0),
    "window_run": ("leaves", 0),
    "sequence": ("row", 300),
    "identity": ("entries", 50),
    "held": ("payload", 0),
}


@pytest.mark.parametrize("table", FLIPPED)
def test_a_flipped_bit_costs_one_row(table: str, tmp_path: Path) -> None:
    """It is found at the next start or where the row is read; the other rows of its table are kept."""
    taken(tmp_path)
    column, most = FLIPPED[table]
    with contextlib.closing(sqlite3.connect(tmp_path / "state/state.db", isolation_level=None)) as store:
        rows = store.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: S608
        query = f"SELECT * FROM {table} WHERE length({column}) > 8 LIMIT 1"  # noqa: S608
        cursor = store.execute(query)
        names, row = [told[0] for told in cursor.description], cursor.fetchone()
        data = bytearray(row[names.index(column)])
        data[len(data) // 2] ^= 4
        where = " AND ".join(f"{name} IS ?" for name in names)
        update = f"UPDATE {table} SET {column} = ? WHERE {where}"  # noqa: S608
        assert store.execute(update, (bytes(data), *row)).rowcount == 1
    for _ in range(3):
        try:
            counted = taken(tmp_path, again=True)
            break
        except StoreDamaged:
            continue
    else:
        pytest.fail("it never went on")
    assert counted.get("accepted", 0) <= most
    assert counted["duplicates"] >= 600 - most
    config = setting(tmp_path)
    with State(config) as state:
        if table.startswith("window"):
            assert state.counters["windows.begun_anew"] == 1
        else:
            assert state.counters[f"rows.lost.{table}"] == 1
            assert state.counters[f"rows.salvaged.{table}"] == rows - 1


BESIDE = {
    "counter": ["name", "value"],
    "departed": ["number", "sender"],
    "replay": ["topic", "bytes", "digest", "lines"],
    "dead_letter": ["number", "at_us", "topic", "reason", "size", "payload"],
}


@pytest.mark.parametrize("table", BESIDE)
def test_a_flipped_bit_in_counts_letters_files_and_senders_is_told(table: str, tmp_path: Path) -> None:
    """That row alone is lost, and counted."""
    source = {"topic": "p/{key}", "sequence": "n", "streams": {"t": "v"}, "keys": {"most": 2, "evict": "oldest"}}
    config = configured(tmp_path, source=[source], window=[])
    path = tmp_path / "state/state.db"
    with State(config) as state:
        pipeline = Pipeline(config, state)
        for number in range(4):
            pipeline.accept(numbered(number)._replace(topic=f"p/{number}"))
            pipeline.accept(Message(f"p/{number}", b"nonsense", number + 100, 1))
            pipeline.commit()
        with state.transaction() as connection:
            for number in range(2):
                row = named("replay", number, "p/1", 7, b"digest", 1, 1)
                connection.execute("INSERT INTO replay VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    whole = path.read_bytes()
    for column in BESIDE[table]:
        path.write_bytes(whole)
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as store:
            rows = store.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: S608  our own names
            changed = f"CASE typeof({column}) WHEN 'integer' THEN {column} + 64 ELSE 'q' || substr({column}, 2) END"
            kept = f"CASE typeof({column}) WHEN 'blob' THEN CAST({changed} AS BLOB) ELSE {changed} END"
            where = f"rowid = (SELECT max(rowid) FROM {table})" if table != "counter" else "name = 'accepted'"  # noqa: S608
            assert store.execute(f"UPDATE {table} SET {column} = {kept} WHERE {where}").rowcount == 1  # noqa: S608
        with State(config) as state:
            assert state.counters[f"rows.lost.{table}"] == 1, column
            assert state.counters[f"rows.salvaged.{table}"] == rows - 1, column


@pytest.mark.parametrize("is_whole", [True, False])
def test_a_file_that_may_have_been_replayed_counts_in_doubt(is_whole: bool, tmp_path: Path) -> None:
    """Where it is not known any more, and only what is not later than the loss; a line that it says twice, too."""
    source = {"topic": "t", "time": "t", "time_format": "us", "streams": {"b": "v"}}
    config = configured(tmp_path, source=[source], window=[], identity={"horizon": 1}, mqtt={"receive_maximum": 4})
    file = tmp_path / "history.jsonl"
    line = '{{"t": {}, "v": 1.0}}\n'
    file.write_text("".join(line.format(NOW + number // 2) for number in range(64)))

    def replayed() -> None:
        with State(config) as state:
            run = Replay(config, state, config.sources[0], file)
            for payload in jsonl_payloads(file, run.progress.passed):
                run.feed(payload)
            run.finish(drain=False)

    replayed()
    if not is_whole:
        with contextlib.closing(sqlite3.connect(tmp_path / "state/state.db", isolation_level=None)) as store:
            store.execute("UPDATE replay SET digest = ?", (bytes(16),))
    replayed()
    file.write_text(line.format(time.time_ns() // 1000 + 1_000_000))
    replayed()
    with State(config) as state:
        assert state.counters["accepted"] == (65 if is_whole else 129)
        assert Pipeline(config, state).doubts.get("b", Doubts()).total == (0 if is_whole else 64)


@pytest.mark.parametrize("flipped", ["row", "name"])
def test_a_flipped_bit_in_what_is_in_doubt_or_in_a_name_is_found(flipped: str, tmp_path: Path) -> None:
    """Else an answer would hide its doubt, and buckets would go out under another stream's name."""
    config = configured(tmp_path, source=[{"topic": "w", "sequence": "n", "streams": {"a": "v"}}], window=[])
    with State(config) as state:
        pipeline = Pipeline(config, state)
        pipeline.accept(numbered(1))
        pipeline.commit()
        with state.transaction() as connection:
            doubts = Doubts()
            doubts.add(0, NOW, 1.0)
            doubts.save(connection, state.streams["a"].number)
    with contextlib.closing(sqlite3.connect(tmp_path / "state/state.db", isolation_level=None)) as store:
        if flipped == "row":
            (row,) = store.execute("SELECT row FROM doubtful").fetchone()
            store.execute("UPDATE doubtful SET row = ?", (row[:8] + bytes([row[8] ^ 2]) + row[9:],))
        else:
            store.execute("UPDATE stream SET name = 'c'")
    with contextlib.suppress(StoreDamaged), State(config) as state:
        Pipeline(config, state)
    with State(config) as state:
        assert state.counters["rows.lost.doubtful" if flipped == "row" else "rows.lost.stream"] == 1
        assert Pipeline(config, state).doubts["a"].losses


@pytest.mark.parametrize("flipped", [False, True])
def test_keys_that_left_are_not_forgotten_with_a_damaged_store(flipped: bool, tmp_path: Path) -> None:
    """A stream by key that comes new says that it may lack readings: its own row may be gone, or that of who left."""
    source = {"topic": "p/{key}", "sequence": "n", "streams": {"t": "v"}, "keys": {"most": 2, "evict": "refuse"}}
    config = configured(tmp_path, source=[source], window=[])
    with State(config) as state:
        pipeline = Pipeline(config, state)
        pipeline.accept(numbered(1)._replace(topic="p/1"))
        pipeline.commit()
        with state.transaction() as connection:
            keep_time(connection, LEFT, NOW)
            if flipped:
                value = connection.execute("SELECT value FROM meta WHERE key = 'left'").fetchone()[0]
                connection.execute("UPDATE meta SET value = ? WHERE key = 'left'", ("9" + value[1:],))
        if not flipped:
            state.store.condemn("for the test")
    if flipped:
        with contextlib.suppress(StoreDamaged), State(config) as state:
            Pipeline(config, state)
    with State(config) as state:
        pipeline = Pipeline(config, state)
        pipeline.accept(numbered(1)._replace(topic="p/2"))
        pipeline.commit()
        name = next(each for each in state.streams if "2" in each)
        assert pipeline.doubts[name].losses
        assert state.counters["rows.lost.meta"] == flipped


def test_times_of_before_are_read() -> None:
    """A plain number, without a checksum."""
    with contextlib.closing(sqlite3.connect(":memory:")) as store:
        store.execute("CREATE TABLE meta (key TEXT PRIMARY KEY, value)")
        store.execute("INSERT INTO meta VALUES ('left', 7)")
        assert kept_time(store, LEFT) == 7
        keep_time(store, LEFT, -8)
        assert kept_time(store, LEFT) == -8


def test_retained_states_survive_a_salvage(tmp_path: Path) -> None:
    """Their rows look like those of numbers of an older version."""
    config = configured(tmp_path, source=[{"topic": "door", "format": "number", "streams": {"d": ""}}], window=[])
    with State(config) as state:
        pipeline = Pipeline(config, state)
        pipeline.accept(Message("door", b"20.5", 1, 1, retain=True))
        pipeline.commit()
        state.store.condemn("for the test")
    with State(config) as state:
        pipeline = Pipeline(config, state)
        pipeline.accept(Message("door", b"20.5", 1, 1, retain=True))
        pipeline.commit()
        assert state.counters["accepted"] == 1
        assert state.counters["duplicates"] == 1
