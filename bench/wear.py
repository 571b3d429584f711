"""Bytes that the agent writes to its card: streams with a reading a second, as the kernel counts them.

`python -m bench.wear --streams 100 --minutes 60` runs pipeline and sync on a simulated clock, a reading a stream and
second, on a real file system, and reads `write_bytes` of /proc/self/io: whole pages, without the file system's journal.
The target takes every document at once. It prints a table and writes JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sluicegate_agent import ticks
from sluicegate_agent.config import Config
from sluicegate_agent.config.load import build
from sluicegate_agent.messages import Message
from sluicegate_agent.pipeline import Pipeline
from sluicegate_agent.record.file import NAME
from sluicegate_agent.record.limits import limits
from sluicegate_agent.record.recorder import Recorder, is_recorded
from sluicegate_agent.state import State
from sluicegate_agent.sync import Document, Outcome, Sync

NOON = 1_750_000_000_000_000
SECOND = 1_000_000
DAY = 86_400


class Clock:
    """The time, simulated: µs since 1970, and seconds that are never set."""

    now = NOON

    def wall(self) -> int:
        """As of now."""
        return self.now

    def ticking(self) -> float:
        """As of now."""
        return (self.now - NOON) / SECOND


class Taking:
    """A target that has everything at once."""

    documents = bytes = 0

    def put(self, documents: Sequence[Document]) -> Outcome:
        """Take them."""
        self.documents += len(documents)
        self.bytes += sum(len(each.data) for each in documents)
        return Outcome(accepted=[each.id for each in documents])

    def close(self) -> None:
        """Nothing is held open."""


def configured(folder: Path, streams: int, identity: str, **tables: Any) -> Config:
    """Defaults, but for the budgets that so many streams need."""
    field = {
        "sequence": {"sequence": "n", "time": "t", "time_format": "us"},
        "time": {"time": "t", "time_format": "us"},
    }
    raw: dict[str, Any] = {
        "device": {"id": "board-1"},
        "state": {"path": "state", "memory": "4GiB", "disk": "64GiB"},
        "source": [{"topic": f"plant/{n}", "streams": {f"s{n}": "v"}, **field[identity]} for n in range(streams)],
        "window": [{"name": "hour", "policy": {"time": "1h"}, "aggregate": ["mean", "max"], "buckets": 64}],
    }
    return build(raw | tables, folder / "agent.toml")


def written() -> int:
    """Bytes that this process had written to a disk."""
    text = Path("/proc/self/io").read_text(encoding="ascii")
    return int(next(line for line in text.splitlines() if line.startswith("write_bytes")).split()[1])


def filled(config: Config) -> None:
    """The record's file as it is after the first folds: a commit then writes over it, and no file grows."""
    config.state.path.mkdir()
    with (config.state.path / NAME).open("wb") as file:
        file.write(bytes(limits(config).file))
        os.fsync(file.fileno())
        # What one write brought into the cache stays together there, and is counted as written together.
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def run(config: Config, streams: int, identity: str, minutes: int) -> dict[str, Any]:
    """So many minutes of a reading a stream and second; the first ten are not counted."""
    clock, rng, target = Clock(), random.Random(1), Taking()
    time.monotonic = clock.ticking
    ticks.Ticks.__init__.__defaults__ = (clock.ticking,)
    marks: dict[str, int] = {}
    filled(config)
    with State(config) as state:
        recorder = Recorder(config, state) if is_recorded(config) else None
        pipeline = Pipeline(config, state, clock.wall, recorder)
        sync = Sync(config, state, target)
        values = [20.0] * streams
        commits = folds = packet = 0
        fold = pipeline.saving.fold

        def counted() -> None:
            nonlocal folds
            folds += 1
            fold()

        pipeline.saving.fold = counted  # type: ignore[method-assign]
        began = time.perf_counter()
        warm = min(10, minutes // 4)
        for second in range(minutes * 60):
            if second == warm * 60:
                marks = {"written": written(), "commits": commits, "folds": folds}
            for n in rng.sample(range(streams), streams):
                clock.now += SECOND // streams
                values[n] = round(values[n] + rng.gauss(0, 0.1), 2)
                packet = packet % 65535 + 1
                said = {"t": clock.now - rng.randrange(20_000), "v": values[n]}
                if identity == "sequence":
                    said["n"] = second
                pipeline.accept(Message(f"plant/{n}", json.dumps(said).encode(), packet, 1))
                if pipeline.due(clock.ticking()):
                    commits += bool(pipeline.commit())
                    pipeline.confirmed(pipeline.generation)
            sync.step(clock.ticking())
        took = time.perf_counter() - began
        counted_seconds = (minutes - warm) * 60
        gave = written() - marks["written"]
        readings = counted_seconds * streams
        return {
            "streams": streams, "identity": identity, "minutes": minutes, "recorded": recorder is not None,
            "gb_a_day": round(gave / counted_seconds * DAY / 1e9, 3),
            "bytes_a_reading": round(gave / readings, 1),
            "commits_a_day": round((commits - marks["commits"]) / counted_seconds * DAY),
            "folds_a_day": round((folds - marks["folds"]) / counted_seconds * DAY, 1),
            "document_bytes_a_reading": round(target.bytes / (minutes * 60 * streams), 2),
            "microseconds_a_reading": round(took / (minutes * 60 * streams) * 1e6, 1),
        }  # fmt: skip


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--streams", type=int, default=100)
    parser.add_argument("--minutes", type=int, default=60)
    parser.add_argument("--identity", choices=("sequence", "time"), default="sequence")
    parser.add_argument("--set", action="append", default=[], help="table.key=value of the configuration")
    parser.add_argument("--folder", type=Path, help="on the file system to measure")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    tables: dict[str, Any] = {}
    for each in asked.set:
        name, _, value = each.partition("=")
        table, _, key = name.partition(".")
        tables.setdefault(table, {})[key] = json.loads(value)
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        config = configured(Path(folder), asked.streams, asked.identity, **tables)
        found = run(config, asked.streams, asked.identity, asked.minutes) | {"set": asked.set}
    print(json.dumps(found))
    if asked.out:
        asked.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
