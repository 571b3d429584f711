"""What is lost while a state parts is missing where it was taken, though no incarnation has both of its ends."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="the cloud's tests need the extra `cloud`")
pytest.importorskip("msgspec", reason="the readings come from an agent, which needs the extra `agent`")
from durable_agent import NOON, SECOND, SEQUENCED, configured, sequenced
from target_suite.memory import MemoryTarget
from test_sent_truth import in_batch

from sluicegate_agent.changes import asked
from sluicegate_agent.config import Config
from sluicegate_agent.messages import Message
from sluicegate_agent.pipeline import Pipeline
from sluicegate_agent.state import State
from sluicegate_agent.state.parting import note_overtaken
from sluicegate_agent.sync import Sync
from sluicegate_cloud.grid import Grid

MINUTE = 60 * SECOND
WIDTH = 10 * MINUTE
BUCKET = {"readings": 4}
#: As many streams as an outbox has rows at least.
FOUR = ("level", "flow", "level_2", "flow_2")


def _life(config: Config, target: MemoryTarget, numbers: Sequence[int], *, ends: bool = False) -> None:
    """A reading a minute, by its number; at the end all goes on."""
    with State(config) as state:
        state.remember(asked(config))
        pipeline, sync, now = Pipeline(config, state, clock=lambda: NOON + 10**12), Sync(config, state, target), 0.0
        for number in numbers:
            pipeline.accept(sequenced(number, number))
            if number % 10 == 0:
                pipeline.commit()
        if ends:
            pipeline.flush()
        pipeline.commit()
        while ends and not sync.is_done():
            now += 1000.0
            sync.step(now, flush=True)


def _parted(folder: Path, config: Config, kind: str) -> Config:
    """The state as it goes on."""
    if kind == "put back":
        with State(config) as state, state.transaction() as connection:
            note_overtaken(connection)
        return config
    shutil.copytree(config.state.path, folder / kind)
    return configured(folder, state={"path": kind}, bucket=BUCKET)


@pytest.mark.parametrize("kinds", [("copied",), ("put back",), ("copied", "once more")])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([*range(1, 41)], [*range(161, 201)]),
        ([*range(1, 42)], [*range(161, 201)]),
        ([*range(1, 21), 60], [*range(61, 101)]),
        ([*range(1, 30), *range(31, 41)], [30, *range(161, 201)]),
        ([*range(1, 5), *range(6, 21), *range(22, 41), 5, 42], [43, 44, 21, *range(45, 61)]),
    ],
    ids=[
        "between buckets",
        "in a bucket",
        "before an open bucket",
        "and the first one comes late",
        "told before and late after",
    ],
)
def test_what_is_lost_while_a_state_parts_is_missing(
    tmp_path: Path, kinds: tuple[str, ...], before: list[int], after: list[int]
) -> None:
    """No window with less than all that was taken in it says that it has all, or that nothing is known."""
    config, target = configured(tmp_path, bucket=BUCKET), MemoryTarget()
    _life(config, target, before)
    for kind in kinds:
        config = _parted(tmp_path, config, kind)
    _life(config, target, after, ends=True)
    _judge(target, "level", {*before, *after})


def test_a_row_alone_says_since_when_its_first_loss_is(tmp_path: Path) -> None:
    """Where there is room for one row of a stream and nothing else."""
    source: dict[str, Any] = {
        "topic": SEQUENCED,
        "streams": dict(zip(FOUR, FOUR[:2] * 2, strict=True)),
        "sequence": "n",
    }
    source |= {"time": "t", "time_format": "us"}
    outbox = {"rows": 4, "bytes": "4KiB", "chunk_buckets": 2}
    config, target = configured(tmp_path, source=[source], window=[], bucket=BUCKET), MemoryTarget()
    _life(config, target, range(1, 41), ends=True)
    shutil.copytree(config.state.path, tmp_path / "copied")
    config = configured(tmp_path, source=[source], window=[], state={"path": "copied"}, bucket=BUCKET, outbox=outbox)
    _life(config, target, range(161, 201))
    _life(config, target, range(201, 221), ends=True)
    _judge(target, "level", {*range(1, 41), *range(161, 221)})


def _judge(target: MemoryTarget, stream: str, came: set[int], noon: int = NOON) -> None:
    """Hold each window of the device to the numbers that came; one a minute was taken, since `noon`."""
    rows, end = 0, max(came) + 1
    for row in in_batch([*target.documents.values()], Grid(WIDTH, 1, 0), 10_000):
        if row["stream"] != stream or row["device"] is None:
            continue
        for start in range(row["window_start"], row["window_end"] - WIDTH + 1, WIDTH):
            taken = [number for number in range(1, end) if start <= noon + number * MINUTE < start + WIDTH]
            here, said = len(came.intersection(taken)), row["completeness"]
            rows += 1
            if here < len(taken):
                assert said is not None
                assert said <= here / len(taken) + 1e-9
    assert rows >= (end - 2) // 10


@pytest.mark.parametrize("timed", [True, False])
def test_what_a_key_lost_while_it_was_away_is_missing_since_then(tmp_path: Path, *, timed: bool) -> None:
    """It left for others; when it comes back its numbers say how many are lost, and none of its buckets is of then."""
    source: dict[str, Any] = {"topic": "plant/{s}/x", "streams": {"w": "v"}, "sequence": "n", "key": "{s}"}
    source |= {"keys": {"most": 2, "evict": "lru"}} | ({"time": "t", "time_format": "us"} if timed else {})
    config, target, now = configured(tmp_path, source=[source], window=[]), MemoryTarget(), [0]
    noon = time.time_ns() // 1000  # as that of the incarnation
    with State(config) as state:
        pipeline, sync = Pipeline(config, state, clock=lambda: now[0]), Sync(config, state, target)
        for key, numbers in (("A", range(1, 41)), ("B", range(41, 44)), ("C", range(44, 47)), ("A", range(161, 201))):
            for number in numbers:
                now[0] = noon + number * MINUTE
                told = {"n": number, "v": number, "t": now[0]}
                pipeline.accept(Message(f"plant/{key}/x", json.dumps(told).encode(), number, 1))
            pipeline.commit()
        pipeline.flush()
        pipeline.commit()
        while not sync.is_done():
            sync.step(float(len(target.documents)) * 1000.0, flush=True)
    _judge(target, "w/A", {*range(1, 41), *range(161, 201)}, noon)
