"""SIGKILL at random steps while machines behind a wildcard come, leave for others and come back: each reading once."""

from __future__ import annotations

import json
import os
import random
import signal
import struct
import time
import traceback
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from plants import NOON, SECOND, arrived, configured

from sluicegate_agent import faults
from sluicegate_agent.messages import Message
from sluicegate_agent.pipeline import Pipeline
from sluicegate_agent.record.recorder import Recorder
from sluicegate_agent.state import State
from sluicegate_agent.sync import DirectoryTarget, Sync

SOURCES: tuple[dict[str, Any], ...] = (
    {
        "topic": "plant/{machine}",
        "streams": {"temp": "temp"},
        "time": "t",
        "time_format": "us",
        "sequence": "n",
        "keys": {"most": 3, "evict": "lru"},
        "tags": {"mode": "{payload.mode}"},
    },
    {"topic": "up/+", "key": "{payload.id}", "streams": {"level": "v"}, "time": "t", "time_format": "us"},
)
_POSITIONS = struct.Struct("<qq")
Work = list[tuple[str, bytes]]


def work(count: int, seed: int) -> tuple[Work, dict[tuple[str, str], list[float]]]:
    """Messages in the order of the broker, and the values that each stream has when each counts once."""
    rng = random.Random(seed)
    truth: dict[tuple[str, str], list[float]] = defaultdict(list)
    numbers: dict[str, int] = defaultdict(int)
    made: Work = []
    for position in range(count):
        at = NOON + position * SECOND
        if rng.random() < 0.3:
            key = rng.choice("xyz")
            made.append((f"up/{rng.choice('ab')}", json.dumps({"id": key, "t": at, "v": position}).encode()))
            truth["gateway", f"level/{key}"].append(float(position))
            continue
        machine = rng.choice("abcde")
        said = {"n": numbers[machine], "t": at, "temp": position, "mode": "on" if position < count // 2 else "off"}
        numbers[machine] += 1
        made.append((f"plant/{machine}", json.dumps(said).encode()))
        truth["gateway", f"temp/{machine}"].append(float(position))
    return made, dict(truth)


def live(folder: Path, made: Work, at: int) -> None:
    """One life, to the end unless it is killed at its step `at`; the broker's two positions are kept in a file."""
    faults.arm(at)
    config = configured(folder, *SOURCES)
    file = os.open(folder / "acknowledged", os.O_RDWR | os.O_CREAT)
    sent, acknowledged = _POSITIONS.unpack(os.pread(file, _POSITIONS.size, 0) or bytes(_POSITIONS.size))
    with State(config) as state:
        pipeline = Pipeline(config, state, lambda: NOON, Recorder(config, state))
        sync = Sync(config, state, DirectoryTarget(folder / "chunks"))
        for position in range(acknowledged, len(made)):
            os.pwrite(file, _POSITIONS.pack(max(sent, position + 1), acknowledged), 0)
            topic, payload = made[position]
            pipeline.accept(Message(topic, payload, position % 65535 + 1, 1, dup=position < sent))
            if pipeline.pending >= 7:
                acknowledged += len(pipeline.commit())
                os.pwrite(file, _POSITIONS.pack(max(sent, position + 1), acknowledged), 0)
                sync.step(time.monotonic() + 1000.0 * position)
        pipeline.flush()
        pipeline.commit()
        for _ in range(1000):
            sync.step(time.monotonic(), flush=True)
        assert sync.is_done()


def in_child(folder: Path, made: Work, at: int) -> bool:
    """A life in a process of its own; whether it reached its end."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            live(folder, made, at)
            status = 0
        except BaseException:  # a forked child must never return into pytest
            traceback.print_exc()
        finally:
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, -signal.SIGKILL), f"the child ended with {status}"
    return status == 0


@pytest.mark.parametrize("seed", range(3))
def test_each_reading_of_a_plant_is_there_once_whenever_it_is_killed(tmp_path: Path, seed: int) -> None:
    """Killed again and again on its way through 120 messages, the agent hands each reading on exactly once."""
    rng, (made, truth) = random.Random(seed), work(120, seed)
    (tmp_path / "chunks").mkdir()
    lives = 0
    while not in_child(tmp_path, made, rng.randrange(20, 400) if lives < 25 else 0):
        lives += 1
    found = arrived(tmp_path)
    assert {name: sorted(values) for name, values in found.items()} == truth
    assert lives > 3
