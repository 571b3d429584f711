"""What a damaged store lost of one stream is missing in its windows: none says that it has all."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="the cloud's tests need the extra `cloud`")
pytest.importorskip("msgspec", reason="the readings come from an agent, which needs the extra `agent`")
from durable_agent import NOON, SECOND, configured, sequenced
from target_suite.memory import MemoryTarget
from test_sent_truth import in_batch

from sluicegate_agent.config import Config
from sluicegate_agent.pipeline import Pipeline
from sluicegate_agent.record.recorder import Recorder
from sluicegate_agent.state import State
from sluicegate_agent.sync import Sync
from sluicegate_cloud.grid import Grid

MINUTE = 60 * SECOND
WIDTH = 10 * MINUTE


def _life(config: Config, target: MemoryTarget, numbers: Sequence[int], *, records: bool, ends: bool = False) -> None:
    """A reading a minute, by its number; the first 20 are in the tables, what follows may be in the record."""
    with State(config) as state:
        pipeline = Pipeline(config, state, lambda: NOON + 10**12, Recorder(config, state) if records else None)
        sync, now = Sync(config, state, target), 0.0
        for number in numbers:
            pipeline.accept(sequenced(number, number))
            if number == 20:
                pipeline.fold_next()
            if number % 10 == 0:
                pipeline.commit()
        if ends:
            pipeline.flush()
            pipeline.fold_next()
        pipeline.commit()
        while ends and not sync.is_done():
            now += 1000.0
            sync.step(now, flush=True)


def _damage(config: Config, statement: str) -> None:
    with contextlib.closing(sqlite3.connect(config.state.path / "state.db", isolation_level=None)) as store:
        assert store.execute(statement).rowcount


@pytest.mark.parametrize("records", [False, True])
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE stream SET crc = crc + 1 WHERE name = 'level'",
        "UPDATE sequence SET crc = crc + 1 WHERE substr(row, 1, 3) = CAST('SGQ' AS BLOB)",
    ],
    ids=["its row", "its numbers"],
)
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([*range(1, 43)], [*range(60, 201)]),
        ([*range(1, 30), *range(50, 120), *range(122, 143)], [*range(143, 151), *range(155, 251)]),
    ],
    ids=["lost meanwhile", "lost before and after"],
)
def test_what_a_stream_lost_is_missing(
    tmp_path: Path, before: list[int], after: list[int], statement: str, *, records: bool
) -> None:
    """The row of one stream is damaged, or what is known of its numbers: each window says at most what it has."""
    config, target = configured(tmp_path, bucket={"readings": 8}), MemoryTarget()
    _life(config, target, before, records=records)
    _damage(config, statement)
    _life(config, target, after, records=records, ends=True)
    judged = 0
    for row in in_batch([*target.documents.values()], Grid(WIDTH, 1, 0), 10_000):
        if row["stream"] not in ("level", "flow") or row["device"] is None:
            continue
        for start in range(row["window_start"], row["window_end"] - WIDTH + 1, WIDTH):
            taken = sum(start <= NOON + number * MINUTE < start + WIDTH for number in range(1, max(after) + 1))
            judged += 1
            if row["count_high"] < taken:
                assert row["completeness"] is not None
                assert row["completeness"] <= row["count_high"] / taken + 1e-9
    assert judged > max(after) / 6
