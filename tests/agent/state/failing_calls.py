"""A child with `failing_calls.c` loaded: for each N a short life of an agent in which the N-th call of a kind fails."""

from __future__ import annotations

import ctypes
import json
import logging
import shutil
import sqlite3
import sys
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

from durable_agent import NOON, SECOND, configured
from target_suite.memory import MemoryTarget

from sluicegate.format import chunk as chunks
from sluicegate_agent.errors import EnvironmentRefused
from sluicegate_agent.messages import Message
from sluicegate_agent.pipeline import Pipeline
from sluicegate_agent.record.recorder import Recorder
from sluicegate_agent.state import State
from sluicegate_agent.sync import Sync

SOURCE = {"topic": "w", "streams": {"a": "v"}, "time": "t", "time_format": "us", "sequence": "n"}
WINDOW = {"name": "all", "policy": {"count": 1000}, "aggregate": ["count", "sum"], "buckets": 8}
STEPS, LIVES = 24, 60


class Life:
    """Readings come, are committed, folded now and then, and handed on; what is refused is tried again."""

    def __init__(self, folder: Path) -> None:
        self.config = configured(folder, window=[WINDOW], source=[SOURCE], outbox={"chunk_buckets": 4})
        self.target = MemoryTarget()
        self.acknowledged: set[int] = set()
        self.sent: set[int] = set()
        self.told = 0

    def run(self) -> list[str]:
        """What is wrong afterwards. A process that ends as one that is refused by its disk is started again."""
        for _ in range(LIVES):
            try:
                return self._lived()
            except (EnvironmentRefused, OSError):  # the command ends with one clear line, and exit code 4
                self.told += 1
            except BaseException as error:
                at = " < ".join(
                    f"{Path(f.filename).name}:{f.lineno}" for f in traceback.extract_tb(error.__traceback__)
                )
                return [f"{type(error).__name__}: {error} at {at}"]
        return ["it never came back"]

    def _lived(self) -> list[str]:
        with State(self.config) as state:
            pipeline = Pipeline(self.config, state, lambda: NOON + STEPS * SECOND, Recorder(self.config, state))
            pipeline.connected(session_present=bool(self.sent))
            sync = Sync(self.config, state, self.target)
            for number in range(STEPS):
                if number not in self.acknowledged:
                    self._say(pipeline, number)
                if number % 6 == 5:
                    pipeline.fold_next()
                self._commit(state, pipeline)
                sync.step(1e6 * number, flush=number % 8 == 7)
            while len(self.acknowledged) < STEPS:
                for number in sorted(self.sent - self.acknowledged):
                    self._say(pipeline, number)
                self._commit(state, pipeline)
            (count, total) = (float(each.value or 0) for each in pipeline.answers("a", "all"))
            pipeline.flush()
            self._commit(state, pipeline)
            now = 1e9
            while not sync.is_done():
                sync.step(now, flush=True)
                now += 1e6
            return self._faults(count, total, state)

    def _say(self, pipeline: Pipeline, number: int) -> None:
        payload = json.dumps({"n": number, "t": NOON + number * SECOND, "v": float(number)}).encode()
        pipeline.accept(Message("w", payload, number + 1, 1, dup=number in self.sent))
        self.sent.add(number)

    def _commit(self, state: State, pipeline: Pipeline) -> None:
        try:
            self.acknowledged |= {each - 1 for each in pipeline.commit()}
        except sqlite3.OperationalError:
            state.counters.add("commits.failed")
            self.told += 1

    def _faults(self, count: float, total: float, state: State) -> list[str]:
        arrived = Counter[float]()
        doubt = 0
        for each in map(chunks.decode, self.target.documents.values()):
            for bucket, singles in zip(each.buckets, each.readings, strict=True):
                arrived.update(singles[1] if singles else [])
                doubt += bucket.doubt
        truth = Counter(map(float, range(STEPS)))
        if arrived - truth and (arrived - truth).total() > doubt:
            return [f"counted twice: {arrived - truth}, in doubt {doubt}"]
        if truth - arrived:
            return [f"lost: {truth - arrived}"]
        if (count, total) != (STEPS, sum(range(STEPS))) and not doubt and not state.counters["record.damaged"]:
            return [f"the window says {count}, {total}"]
        return []


def lives(folder: Path, calls: str, error: int, times: int, each: int) -> dict[str, Any]:
    """For every `each`-th N a life in which `times` calls from the N-th on fail; until there is no N-th call."""
    shim = ctypes.CDLL(None)
    kind, wrong, told, number = ctypes.create_string_buffer(calls.encode()), {}, 0, 1
    while True:
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "chunks").mkdir(parents=True)
        shim.arm(kind, number, number + times - 1, error)
        life = Life(folder)
        faults = life.run()
        seen = shim.arm(kind, 0, 0, 0)
        if seen < number:
            return {"calls": seen, "wrong": wrong, "told": told}
        told += life.told
        if faults:
            wrong[number] = faults[0]
        number += each


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    place, kind, *numbers = sys.argv[1:]
    print(json.dumps(lives(Path(place), kind, *map(int, numbers))))
