"""An agent whose readings have two values, before a target in memory: fed, killed, started again; all of it known."""

from __future__ import annotations

import json
import random
from fractions import Fraction
from math import inf, sqrt
from pathlib import Path
from typing import Any

from durable_agent import NOON, SECOND
from target_suite.memory import MemoryTarget

from sluicegate.format import chunk as chunks
from sluicegate_agent.config.load import build
from sluicegate_agent.messages import Message, Result
from sluicegate_agent.pipeline import Pipeline
from sluicegate_agent.record.recorder import Recorder
from sluicegate_agent.state import State
from sluicegate_agent.sync import Sync

TOPIC = "plant/climate"
BOTH = ["covariance", "correlation"]
WINDOWS: list[dict[str, Any]] = [
    {"name": "buckets", "policy": {"time": "10min"}, "aggregate": [*BOTH, "mean"], "buckets": 12},
    {"name": "short", "policy": {"time": "3min"}, "aggregate": BOTH, "shares": "buckets"},
    {"name": "each", "policy": {"count": 20}, "aggregate": [*BOTH, "max"], "buckets": 0},
    {"name": "single", "policy": {"time": "5min"}, "aggregate": "mean", "buckets": 8},
]
Reading = tuple[int, float, float]


class Climate:
    """One agent and every reading that it took, in the order in which they came."""

    def __init__(self, folder: Path, seed: int, device: str = "greenhouse", **tables: Any) -> None:
        raw: dict[str, Any] = {
            "device": {"id": device},
            "state": {"path": "state"},
            "mqtt": {"receive_maximum": 1000},
            "guard": {"future": 0},
            "source": [
                {
                    "topic": TOPIC, "streams": {"warmth": "t", "door": "door"}, "time": "at", "time_format": "us",
                    "values": {"warmth": {"with": "air.humidity", "offset": 0.5}},
                }
            ],
            "window": [each | {"streams": ["warmth"]} for each in WINDOWS],
            "bucket": {"readings": 16},
            "sync": {"target": "directory", "path": "chunks"},
        }  # fmt: skip
        self.config = build(raw | tables, folder / "agent.toml")
        self.target, self.rng = MemoryTarget(), random.Random(seed)
        self.target.away = True
        self.readings: list[Reading] = []
        self.pending: list[Reading] = []
        self.minute, self.packet = 0.0, 0
        self.open()

    def open(self) -> None:
        """Start, or start again: what was not committed comes once more, as the broker sees to."""
        self.state = State(self.config)
        recorder = Recorder(self.config, self.state)
        self.pipeline = Pipeline(self.config, self.state, lambda: NOON + 10**12, recorder)
        self.sync = Sync(self.config, self.state, self.target)

    def take(self) -> None:
        """One more reading; now and then it is late, or in the same instant as the one before."""
        rng = self.rng
        self.minute += rng.choice((0.0, 0.01, 0.3, 1.0))
        late = rng.random() < 0.08
        at = NOON + round((self.minute - (rng.uniform(0, 14) if late else 0.0)) * 60 * SECOND) + len(self.readings)
        warm = round(rng.gauss(20, 3), 1)
        reading = at, warm + 0.5, round(70 - 1.5 * warm + rng.gauss(0, 4), 1)
        self.readings.append(reading)
        self.pending.append(reading)
        self.send(reading)

    def send(self, reading: Reading) -> None:
        """The message of a reading; the door's is in it, too."""
        self.packet = self.packet % 65535 + 1
        at, warm, humid = reading
        told = {"at": at, "t": warm - 0.5, "air": {"humidity": humid}, "door": 1}
        self.pipeline.accept(Message(TOPIC, json.dumps(told).encode(), self.packet, 1))

    def commit(self) -> None:
        """All that came is durable."""
        self.pipeline.commit()
        self.pending.clear()

    def kill(self) -> None:
        """The process ends without a commit and starts again; the broker sends what was not acknowledged."""
        self.state.close()
        self.open()
        for reading in self.pending:
            self.send(reading)

    def step(self, kills: float = 0.03) -> None:
        """A reading, now and then a commit, seldom a kill."""
        self.take()
        if self.rng.random() < 0.2:
            self.commit()
        if self.rng.random() < kills:
            self.kill()

    def documents(self) -> dict[str, bytes]:
        """What reaches the target once it is back, by id."""
        self.pipeline.flush()
        self.commit()
        self.target.away, now = False, 0.0
        while not self.sync.is_done():
            now += 1000.0
            self.sync.step(now, flush=True)
        self.state.close()
        return dict(self.target.documents)

    def arrived(self) -> list[chunks.Chunk]:
        """The same, of the stream of two values, decoded."""
        found = self.documents()
        return [chunk for name in sorted(found) if (chunk := chunks.decode(found[name])).stream == "warmth"]

    def inside(self, window: str) -> list[Reading]:
        """What a window holds by its definition."""
        if window == "each":
            return self.readings[-20:]
        minutes = {"buckets": 10, "short": 3, "single": 5}[window]
        now = max(at for at, _, _ in self.readings)
        return [each for each in self.readings if each[0] > now - minutes * 60 * SECOND]


def told(aggregate: str, inside: list[Reading]) -> float | None:
    """What an aggregate of these readings is, by definition."""
    n = len(inside)
    xs, ys = [Fraction(x) for _, x, _ in inside], [Fraction(y) for _, _, y in inside]
    if aggregate in ("mean", "max"):
        return float(sum(xs) / n if aggregate == "mean" else max(xs))
    mean_x, mean_y = sum(xs) / n, sum(ys) / n
    xy = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True))
    xx, yy = sum((x - mean_x) ** 2 for x in xs), sum((y - mean_y) ** 2 for y in ys)
    if aggregate == "covariance":
        return float(xy / n)
    return float(xy) / sqrt(float(xx) * float(yy)) if xx and yy else None


def holds(result: Result, inside: list[Reading]) -> bool:
    """Whether an answer keeps its promise: the definition in its interval, and its value where it is exact."""
    truth = told(result.aggregate, inside)
    if truth is None:
        return result.value is None or not result.exact
    slack = 1e-9 * max(1.0, abs(truth))
    low = -inf if result.low is None else result.low
    high = inf if result.high is None else result.high
    assert isinstance(low, float)
    assert isinstance(high, float)
    if result.exact and not (isinstance(result.value, float) and abs(result.value - truth) <= slack):
        return False
    return low - slack <= truth <= high + slack
