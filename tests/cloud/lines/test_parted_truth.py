"""What is lost while a state parts is missing where it was taken, though no incarnation has both of its ends."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="the cloud's tests need the extra `cloud`")
pytest.importorskip("msgspec", reason="the readings come from an agent, which needs the extra `agent`")
from durable_agent import NOON, SECOND, configured, sequenced
from target_suite.memory import MemoryTarget
from test_sent_truth import in_batch

from sluicegate_agent.changes import asked
from sluicegate_agent.config import Config
from sluicegate_agent.pipeline import Pipeline
from sluicegate_agent.state import State
from sluicegate_agent.state.parting import note_overtaken
from sluicegate_agent.sync import Sync
from sluicegate_cloud.grid import Grid

MINUTE = 60 * SECOND
WIDTH = 10 * MINUTE
BUCKET = {"readings": 4}


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
    ],
    ids=["between buckets", "in a bucket", "before an open bucket", "and the first one comes late"],
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
    came, rows = {*before, *after}, 0
    for row in in_batch([*target.documents.values()], Grid(WIDTH, 1, 0), 10_000):
        if row["stream"] != "level" or row["device"] is None:
            continue
        for start in range(row["window_start"], row["window_end"] - WIDTH + 1, WIDTH):
            taken = [number for number in range(1, after[-1] + 1) if start <= NOON + number * MINUTE < start + WIDTH]
            here, said = len(came.intersection(taken)), row["completeness"]
            rows += 1
            if here < len(taken):
                assert said is not None
                assert said <= here / len(taken) + 1e-9
    assert rows >= (after[-1] - 1) // 10
