"""A flipped bit in a row is found by the row's checksum, and costs that row alone."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from durable_agent import configured

from sluicegate_agent.checksums import LEFT, keep_time, kept_time
from sluicegate_agent.config import Config
from sluicegate_agent.doubts import Doubts
from sluicegate_agent.messages import Message
from sluicegate_agent.pipeline import Pipeline
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
