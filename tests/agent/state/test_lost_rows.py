"""A damaged store that lost the row of one stream: what follows from it is durable, and told, before anything else."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from durable_agent import configured, sequenced, timed
from target_suite.memory import MemoryTarget

from sluicegate.format import chunk as chunks
from sluicegate_agent.config import Config
from sluicegate_agent.pipeline import Pipeline
from sluicegate_agent.record.recorder import Recorder
from sluicegate_agent.state import State
from sluicegate_agent.sync import Sync


def live(config: Config, numbers: range, *, ends: bool = False) -> dict[str, list[float]]:
    """A reading a minute of each source, the record behind; at the end all that waits, by stream, or only sealed."""
    target = MemoryTarget()
    target.away = not ends
    with State(config) as state:
        pipeline = Pipeline(config, state, recorder=Recorder(config, state))
        sync, now = Sync(config, state, target), 0.0
        for number in numbers:
            pipeline.accept(sequenced(number, 2 * number))
            pipeline.accept(timed(number, 2 * number + 1, float(number)))
            pipeline.commit()
        if ends:
            pipeline.flush()
            pipeline.fold_next()
            pipeline.commit()
        while ends and not sync.is_done():
            now += 1000.0
            sync.step(now, flush=True)
        sync.step(1e6, flush=True)
    found: dict[str, list[float]] = {}
    for document in map(chunks.decode, target.documents.values()):
        for singles in document.readings:
            found.setdefault(document.stream, []).extend(singles[1] if singles else [])
    return found


def damage(config: Config, *statements: str) -> None:
    """Rows are not as they were written."""
    with contextlib.closing(sqlite3.connect(config.state.path / "state.db", isolation_level=None)) as store:
        for statement in statements:
            assert store.execute(statement).rowcount


def test_a_kill_before_the_first_transaction_forgets_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The salvaged store is in its place, and what follows from the damage is not written yet."""
    config, read, calls = configured(tmp_path), State._read, list[int]()
    live(config, range(1, 30))
    State(config).close()  # the record is in the tables
    damage(config, "UPDATE identity SET crc = crc + 1", "UPDATE stream SET crc = crc + 1 WHERE name = 'heat'")

    def dying(self: State, *given: Any, **named: Any) -> None:
        calls.append(1)
        if len(calls) == 2:  # the first one finds the damage
            raise KeyboardInterrupt
        read(self, *given, **named)

    monkeypatch.setattr(State, "_read", dying)
    with contextlib.suppress(KeyboardInterrupt):
        State(config).close()
    assert len(calls) == 2
    with State(config) as state:
        pipeline = Pipeline(config, state)
        assert not any(each.exact for each in pipeline.answers("level", "recent"))
        for number in range(20, 30):
            pipeline.accept(timed(number, number, float(number)))
        assert state.counters["undecidable"] == 10
    with State(config) as state:
        assert state.store.lost_since is None


def test_a_new_stream_takes_no_number_of_one_whose_row_is_lost(tmp_path: Path) -> None:
    """Else a restart would hold its first buckets for those that the lost one had handed on."""
    last = {"topic": "plant/timed", "streams": {"heat": "heat"}, "time": "t", "time_format": "us"}
    config = configured(tmp_path, source=[last], window=[], bucket={"readings": 4})
    live(config, range(1, 41))
    State(config).close()
    damage(config, "UPDATE stream SET crc = crc + 1 WHERE name = 'heat'")
    live(config, range(41, 61))
    found = live(config, range(61, 81), ends=True)
    assert sorted(found["heat"]) == [float(number) for number in range(1, 81)]
