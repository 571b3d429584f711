"""An agent whose buckets carry something, before a target in memory: readings, commits, restarts, then all arrives."""

from __future__ import annotations

import random
from array import array
from pathlib import Path
from typing import Any

from durable_agent import NOON, configured, timed
from target_suite.memory import MemoryTarget

from sluicegate.format import chunk as chunks
from sluicegate_agent.pipeline import Pipeline
from sluicegate_agent.state import State
from sluicegate_agent.sync import Sync

AGGREGATES = [
    "slope(1h)", "intercept", "time_weighted_mean", "quantiles(16)", "distinct_count(8)", "top_k(3)",
    "count_min(32, 2)", "bloom_filter(256, 3)", "mean",
]  # fmt: skip
ASKED: dict[str, Any] = {
    "name": "asked",
    "policy": {"time": "1h"},
    "aggregate": AGGREGATES,
    "buckets": 8,
    "cloud": True,
}
READINGS = 1000


class Sent:
    """An agent over a target in memory that is away until the end; every reading, by ordinal."""

    def __init__(self, folder: Path, seed: int, asked: dict[str, Any] | None = None, **tables: Any) -> None:
        self.config = configured(folder, [ASKED] if asked is None else [asked] if asked else [], **tables)
        self.target, self.rng = MemoryTarget(), random.Random(seed)
        self.target.away = True
        self.values, self.times = array("d"), array("q")
        self.open()

    def open(self) -> None:
        """Start, or start again."""
        self.state = State(self.config)
        self.pipeline = Pipeline(self.config, self.state, clock=lambda: NOON + 10**12)
        self.sync = Sync(self.config, self.state, self.target)

    def feed(self, restarts: bool, readings: int = READINGS) -> None:
        """Readings of which some go back in time, commits between them, and the agent killed now and then."""
        minute = 0.0
        for i in range(readings):
            minute += 1e-6 + self.rng.choice((0.0, 0.5, 1.0, -3.0 if self.rng.random() < 0.1 else 2.0))
            value = round(self.rng.gauss(20, 4), 1)
            self.values.append(value)
            self.times.append(NOON + round(minute * 60_000_000))
            self.pipeline.accept(timed(minute, i % 65535 + 1, value))
            if self.rng.random() < 0.2 or self.pipeline.pending > 30:
                self.pipeline.commit()
                outbox = self.state.outbox
                assert outbox.bytes_held <= outbox.bytes_most
                kept = sum(lane.cost for lane in outbox.lanes.values()), outbox.rows
                outbox.load(self.state.store.connection)
                assert kept == (sum(lane.cost for lane in outbox.lanes.values()), outbox.rows)
                if restarts and self.rng.random() < 0.05:
                    self.state.close()
                    self.open()
        self.pipeline.flush()
        self.pipeline.commit()

    def arrived(self) -> list[chunks.Chunk]:
        """What reaches the target once it is back."""
        self.target.away, now = False, 0.0
        while not self.sync.is_done():
            now += 1000.0
            self.sync.step(now, flush=True)
        self.state.close()
        return [chunks.decode(self.target.documents[name]) for name in sorted(self.target.documents)]
