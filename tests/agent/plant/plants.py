"""A plant of machines as its tests see it: a configuration, an agent's inner half, and what reached the target."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from sluicegate.format import chunk as chunks
from sluicegate_agent.config import Config
from sluicegate_agent.config.load import build
from sluicegate_agent.messages import Message
from sluicegate_agent.pipeline import Pipeline
from sluicegate_agent.state import State
from sluicegate_agent.sync import DirectoryTarget, Sync

NOON = 1_750_000_000_000_000
SECOND = 1_000_000
WINDOWS: list[dict[str, Any]] = [
    {"name": "last", "policy": {"count": 5}, "aggregate": ["sum", "max"], "buckets": 0},
    {"name": "minutes", "policy": {"time": "10min"}, "aggregate": "mean", "buckets": 6},
    {"name": "minute", "policy": {"time": "1min"}, "aggregate": "mean", "shares": "minutes"},
]


def configured(folder: Path, *sources: dict[str, Any], **tables: Any) -> Config:
    """An agent that reads these sources, without a guard, into a folder of chunks."""
    raw: dict[str, Any] = {
        "device": {"id": "gateway"},
        "state": {"path": "state"},
        "mqtt": {"receive_maximum": 40},
        "guard": {"future": 0},
        "source": list(sources),
        "window": WINDOWS,
        "bucket": {"readings": 4},
        "outbox": {"rows": 5000, "bytes": "4MiB", "chunk_buckets": 8},
        "sync": {"target": "directory", "path": "chunks", "every": "1ms"},
    } | tables
    return build(raw, folder / "agent.toml")


class Plant:
    """An agent's inner half on a folder, with a clock that stands at noon."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.packet = 0
        self.open()

    def open(self) -> None:
        """Begin, or go on after a restart."""
        self.state = State(self.config)
        self.pipeline = Pipeline(self.config, self.state, clock=lambda: NOON)

    def restart(self) -> None:
        """End as `kill -9` does, and go on."""
        self.state.close()
        self.open()

    def say(self, topic: str, payload: Any, **flags: bool) -> None:
        """A message of QoS 1, an object or a number."""
        self.packet = self.packet % 65535 + 1
        self.pipeline.accept(Message(topic, json.dumps(payload).encode(), self.packet, 1, **flags))

    def commit(self) -> list[int]:
        """Make all that was said durable."""
        return self.pipeline.commit()

    def hand_over(self, folder: Path) -> dict[tuple[str, str], list[float]]:
        """Send everything; the values by device and stream that are at the target then."""
        self.pipeline.flush()
        self.commit()
        (folder / "chunks").mkdir(exist_ok=True)
        sync = Sync(self.config, self.state, DirectoryTarget(folder / "chunks"))
        for _ in range(1000):
            if sync.is_done():
                break
            sync.step(time.monotonic(), flush=True)
        assert sync.is_done(), sync.link.as_dict()
        return arrived(folder)

    def count(self, name: str) -> int:
        """A counter."""
        return self.state.counters[name]


def documents(folder: Path) -> list[chunks.Chunk]:
    """All that the target has, in order of their ids."""
    return [chunks.decode(path.read_bytes()) for path in sorted((folder / "chunks").rglob("*.json"))]


def arrived(folder: Path) -> dict[tuple[str, str], list[float]]:
    """Every single value by device and stream; of one incarnation each ordinal is there once."""
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    ordinals: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    for chunk in documents(folder):
        for bucket, singles in zip(chunk.buckets, chunk.readings, strict=True):
            assert singles is not None, "all of these buckets have their readings"
            found[chunk.device, chunk.stream] += singles[1]
            ordinals[chunk.device, chunk.stream, chunk.incarnation] += range(bucket.first, bucket.first + bucket.n)
    for name, numbers in ordinals.items():
        assert sorted(numbers) == list(range(len(numbers))), f"{name}: ordinals are missing or double"
    return dict(found)
