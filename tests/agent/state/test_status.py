"""`status` says how many messages wait, and for what."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from durable_agent import configured

from sluicegate_agent.errors import EnvironmentRefused
from sluicegate_agent.messages import Message
from sluicegate_agent.pipeline import Pipeline
from sluicegate_agent.record.recorder import Recorder
from sluicegate_agent.state import State, read_status, status
from sluicegate_agent.state.status import reading
from sluicegate_agent.status import gather, show

NOW = 1_750_000_000_000_000


def _is_ours(path: Path) -> bool:
    """Whether it is a file, and not SQLite's index of who reads."""
    return path.is_file() and not path.name.endswith("-shm")


def test_who_looks_into_a_state_writes_nothing_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent may append to the record just then: what was read of it a moment ago must not be written over that."""
    source = {"topic": "w", "sequence": "n", "streams": {"a": "v"}}
    config = configured(tmp_path, source=[source], window=[])
    with State(config) as state:
        pipeline = Pipeline(config, state, lambda: NOW, Recorder(config, state))
        for number in range(3):
            pipeline.accept(Message("w", json.dumps({"n": number, "v": 1.0}).encode(), number, 1))
            pipeline.commit()
        before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in tmp_path.rglob("*") if _is_ours(path)}
        real = os.open

        def opened(path: Any, flags: int, *more: Any, **options: Any) -> int:
            assert not flags & (os.O_WRONLY | os.O_RDWR | os.O_TRUNC), path
            return real(path, flags, *more, **options)

        monkeypatch.setattr(os, "open", opened)
        assert read_status(config.state.path)["counters"]["accepted"] == 3
        monkeypatch.setattr(os, "open", real)
        for path, (data, time) in before.items():
            assert (path.read_bytes(), path.stat().st_mtime_ns) == (data, time), path


def test_what_waits_is_counted_by_what_it_waits_for(tmp_path: Path) -> None:
    """Two readings ahead of the clock, one number that nothing confirms yet, three unacknowledged, one in doubt."""
    sources = [
        {"topic": "w", "sequence": "n", "streams": {"a": "v"}},
        {"topic": "t", "time": "t", "time_format": "s", "streams": {"b": "v"}},
    ]
    config = configured(tmp_path, source=sources, window=[], guard={"future": "1d"})
    with State(config) as state:
        pipeline = Pipeline(config, state, lambda: NOW)
        for number in (1, 2, 90_000):
            pipeline.accept(Message("w", json.dumps({"n": number, "v": 1.0}).encode(), number, 1))
        for days in (0, 3, 4):
            body = {"t": NOW // 1_000_000 + days * 86_400, "v": 1.0}
            pipeline.accept(Message("t", json.dumps(body).encode(), 100 + days, 1))
        pipeline.commit()
    found = gather(config)
    assert found["held"]["for_clock"] == 2
    assert found["held"]["for_second_message"] == 1
    assert found["held"]["bytes"] > 0
    found |= {"running": True, "process": {"mqtt": {"broker": "b", "tls": False, "state": "s", "unacknowledged": 3}}}
    found["process"] |= {"uptime_s": 1, "clock_us": NOW, "rss_bytes": 1, "peak_rss_bytes": 1}
    found["streams"]["a"]["undecidable"] = 1
    found["counters"] |= {"record.folds.due": 3, "record.folds.waiting": 1}
    text = show(found)
    assert "3 for their commit and acknowledgement" in text
    assert "2 ahead of the clock or before it is set, 1 for a second message" in text
    assert "readings in doubt: 1" in text
    assert "record folded into the tables 4 times, 1 of them early (waiting 1)" in text


def test_streams_that_say_nothing_are_named_while_the_broker_is_there(tmp_path: Path) -> None:
    """A topic or path with a mistake in it makes no error anywhere: nothing comes."""
    config = configured(tmp_path, source=[{"topic": "w", "streams": {f"s{n}": "v" for n in range(7)}}], window=[])
    with State(config) as state:
        Pipeline(config, state, lambda: NOW).commit()
    found = gather(config)
    process = {"uptime_s": 1, "clock_us": NOW, "rss_bytes": 1, "peak_rss_bytes": 1}
    told = {"broker": "b", "tls": False, "state": "connected", "unacknowledged": 0}
    found |= {"running": True, "process": process | {"mqtt": told}}
    found["streams"]["s0"]["accepted"] = 1
    said = "no reading yet of s1, s2, s3, s4, s5 … (6): are their topic and paths right?"
    assert said in show(found)
    told["state"] = "connecting"
    assert "no reading yet" not in show(found)


def test_a_state_that_takes_too_long_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """10,000 streams on a busy machine: it said `interrupted`, which tells nobody what to do."""
    path = tmp_path / "state.db"
    sqlite3.connect(path).close()
    monkeypatch.setattr(status, "READ_SECONDS", -1.0)
    long = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000) SELECT sum(i) FROM n"
    with pytest.raises(EnvironmentRefused, match=r"longer than .* ask the agent's listener"), reading(path) as found:
        found.execute(long).fetchall()
