"""A device with another name: each reading counts once, under the name it was taken with, and no device misses any."""

from __future__ import annotations

import random
import shutil
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from durable_agent import NOON, SECOND, configured, timed
from target_suite.memory import MemoryTarget

from sluicegate.format import chunk as chunks
from sluicegate_agent.changes import asked
from sluicegate_agent.config import Config
from sluicegate_agent.pipeline import Pipeline
from sluicegate_agent.record.recorder import Recorder
from sluicegate_agent.state import State
from sluicegate_agent.sync import Sync

MINUTE = 60 * SECOND


def life(config: Config, target: MemoryTarget, values: range, *, sends: int = 0, ends: bool = False) -> str:
    """One life: a reading a minute, steps of the sync, an orderly end or a kill; what the newest window says."""
    with State(config) as state:
        state.remember(asked(config))
        pipeline, sync = Pipeline(config, state, recorder=Recorder(config, state)), Sync(config, state, target)
        for value in values:
            pipeline.accept(timed(value, 1, value=float(value)))
            pipeline.commit()
        if ends:
            pipeline.flush()
            pipeline.fold_next()
            pipeline.commit()
        for step in range(sends):
            if not sync.is_done():
                sync.step(1000.0 * step, flush=True)
        return str([(each.aggregate, each.value, each.count) for each in pipeline.answers("heat", "recent")])


def arrived(target: MemoryTarget) -> dict[str, list[int]]:
    """By device the minutes that count, of all documents at the target; each incarnation without a hole or a gap."""
    found: dict[str, list[int]] = defaultdict(list)
    ordinals: dict[tuple[str, str], list[int]] = defaultdict(list)
    for chunk in map(chunks.decode, target.documents.values()):
        for bucket in chunk.buckets if chunk.stream == "heat" else ():
            minutes = range((bucket.t_first - NOON) // MINUTE, (bucket.t_last - NOON) // MINUTE + 1)
            assert len(minutes) == bucket.n
            found[chunk.device] += minutes
            ordinals[chunk.device, chunk.incarnation] += range(bucket.first, bucket.first + bucket.n)
            assert bucket.gap == 0
    for mine in ordinals.values():
        assert sorted(mine) == [*range(len(mine))]
    return found


@pytest.mark.parametrize("seed", range(6))
def test_each_reading_counts_once_under_its_device(tmp_path: Path, seed: int) -> None:
    """With all, some or nothing sent, sealed or open when the name changes, and when it changes back."""
    chance = random.Random(seed)
    target = MemoryTarget()
    tables: dict[str, Any] = {"outbox": {"chunk_buckets": 4, "bytes": "1MiB"}}
    taken: dict[str, list[int]] = {"board-1": [], "board-2": []}
    following, device = 0, "board-1"
    for _ in range(6):
        config = configured(tmp_path, device={"id": device}, **tables)
        values = range(following, following + chance.choice([0, 1, 3, 30]))
        life(config, target, values, sends=chance.choice([0, 1, 50]), ends=chance.random() < 0.5)
        taken[device] += values
        following, device = values.stop, chance.choice(["board-1", "board-2"])
    life(configured(tmp_path, device={"id": device}, **tables), target, range(0), sends=200, ends=True)
    found = arrived(target)
    assert {name: sorted(values) for name, values in found.items()} == {k: v for k, v in taken.items() if v}


def test_windows_go_on(tmp_path: Path) -> None:
    """Another name for the device changes no answer."""
    told = []
    for number, name in enumerate(("board-1", "board-2")):
        folder, target = tmp_path / str(number), MemoryTarget()
        folder.mkdir()
        life(configured(folder), target, range(10), sends=3)
        told.append(life(configured(folder, device={"id": name}), target, range(10, 14)))
    assert told[0] == told[1] != "[]"


def test_a_copy_with_a_name_of_its_own(tmp_path: Path) -> None:
    """What waited counts once, as the original's, whoever sends it; what each reads alone counts under its name."""
    target, tables = MemoryTarget(), {"outbox": {"chunk_buckets": 4, "bytes": "1MiB"}}
    one = configured(tmp_path, **tables)
    other = configured(tmp_path, device={"id": "board-2"}, state={"path": "copy"}, **tables)
    life(one, target, range(10))
    shutil.copytree(one.state.path, other.state.path)
    life(one, target, range(10, 20), sends=99, ends=True)
    life(other, target, range(100, 110), sends=99, ends=True)
    sure: dict[tuple[str, str, int], int] = {}
    for chunk in map(chunks.decode, target.documents.values()):
        for bucket in chunk.buckets if chunk.stream == "heat" else ():
            for place in range(0 if bucket.doubt else bucket.n):
                minute = (bucket.t_first - NOON) // MINUTE + place
                assert sure.setdefault((chunk.device, chunk.incarnation, bucket.first + place), minute) == minute
    assert sorted(sure.values()) == [*range(20), *range(100, 110)]
    assert {device for (device, _, _), minute in sure.items() if minute >= 100} == {"board-2"}
    assert {device for (device, _, _), minute in sure.items() if minute < 100} == {"board-1"}
