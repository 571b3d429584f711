"""An outage of a month, with damage in it and disks that are full for a while: the state stays within `plan`'s disk."""

from __future__ import annotations

import contextlib
import json
import random
import sqlite3
from pathlib import Path

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from durable_agent import NOON, SECOND, configured
from target_suite.memory import MemoryTarget
from thorough import number

from sluicegate_agent.messages import Message
from sluicegate_agent.pipeline import Pipeline
from sluicegate_agent.plan import plan
from sluicegate_agent.record import file as record
from sluicegate_agent.record.recorder import Recorder
from sluicegate_agent.state import State
from sluicegate_agent.sync import Sync

STREAMS, DAYS = 8, 30
SOURCES = [
    {"topic": f"w/{n}", "streams": {f"s{n}": "v"}, "time": "t", "time_format": "us", "sequence": "n"}
    for n in range(STREAMS)
]
WINDOW = {"name": "hour", "policy": {"time": "1h"}, "aggregate": ["mean", "max"], "buckets": 32}


def on_disk(folder: Path) -> int:
    """Bytes of all that stands in the state directory: database, log, record, stores that were set aside."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_a_month_long_outage_stays_within_the_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each stream says as much as `outbox` takes many times over; counts stay exact but for what a damage lost."""
    config = configured(
        tmp_path, source=SOURCES, window=[WINDOW], outbox={"rows": 400, "bytes": "256KiB"}, bucket={"readings": 60},
        dead_letters={"rows": 200, "bytes_each": 256}, mqtt={"receive_maximum": 1000},
    )  # fmt: skip
    most, largest, rng = plan(config).disk, 0, random.Random(9)
    target = MemoryTarget()
    target.away = True
    said = accepted = 0
    a_day = number(4000, 250)
    append, refusals = record.Record.append, iter([False])

    def refused(self: record.Record, body: bytes) -> None:
        if next(refusals, False):
            raise sqlite3.OperationalError("database or disk is full")
        append(self, body)

    monkeypatch.setattr(record.Record, "append", refused)
    for day in range(DAYS):
        with State(config) as state:
            before = state.counters["accepted"]
            pipeline = Pipeline(config, state, lambda now=NOON + (day + 1) * 86_400 * SECOND: now)  # type: ignore[misc]
            pipeline.saving.recorder = Recorder(config, state)
            sync = Sync(config, state, target)
            for step in range(a_day):
                said += 1
                at = NOON + day * 86_400 * SECOND + step * (86_400 * SECOND // a_day)
                for n in range(STREAMS):
                    payload = json.dumps({"n": said, "t": at, "v": rng.random()}).encode()
                    pipeline.accept(Message(f"w/{n}", payload, said * STREAMS % 60_000 + n + 1, 1))
                if step % 9 == 0:
                    pipeline.accept(Message("w/0", rng.randbytes(300), said % 60_000 + 1, 1))
                refusals = iter([day % 5 == 2 and 100 < step < 120])
                if step % 10 == 9:
                    with contextlib.suppress(sqlite3.OperationalError):
                        pipeline.commit()
                    sync.step(day * 86_400.0 + step)
                    largest = max(largest, on_disk(config.state.path))
            pipeline.commit()
            accepted += state.counters["accepted"] - before
            largest = max(largest, on_disk(config.state.path))
            if day % 6 == 5:
                state.store.condemn("for the test")
    assert accepted == said * STREAMS
    assert len([*config.state.path.glob("damaged-*.db")]) == 2
    assert most / 20 < largest <= most
