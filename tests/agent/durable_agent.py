"""What the durability tests share: a small configuration, messages, and a reader of what reached the target."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sluicegate_agent.config import Config
from sluicegate_agent.config.load import build
from sluicegate_agent.messages import Message
from sluicegate_agent.record import file
from sluicegate_agent.record.sectors import HELD, SECTOR

NOON = 1_750_000_000_000_000
SECOND = 1_000_000
SEQUENCED, TIMED, BARE, LISTED = "plant/sequenced", "plant/timed", "plant/bare", "plant/listed"

#: A source whose messages are lists of readings of two streams.
LISTS: dict[str, Any] = {
    "topic": LISTED, "format": "array", "streams": {"x": "x", "y": "y"}, "time": "t", "time_format": "us"
}  # fmt: skip

WITH_ENDS: list[dict[str, Any]] = [
    {
        "name": "each_20s",
        "kind": "hopping",
        "evict": {"time": "1min", "hop": "20s"},
        "aggregate": ["mean", "last"],
        "lateness": "40s",
    },
    {"name": "runs", "kind": "session", "evict": {"time": "2s"}, "aggregate": "count", "lateness": "5s"},
    {"name": "by_7", "kind": "sliding", "evict": {"count": 9}, "trigger": {"count": 7}, "buckets": 0},
]


def configured(
    folder: Path, more: Sequence[dict[str, Any]] = (), sources: Sequence[dict[str, Any]] = (), **tables: Any
) -> Config:
    """Three sources, one for each kind of identity, small buckets and windows; `tables` replaces keys of tables, None
    takes one away.

    `more`, `sources`: windows and sources beside those.
    """
    raw: dict[str, Any] = {
        "device": {"id": "board-1"},
        "state": {"path": "state"},
        "mqtt": {"receive_maximum": 40},
        "guard": {"future": 0},
        "source": [
            {
                "topic": SEQUENCED,
                "streams": {"level": "level", "flow": "flow"},
                "time": "t",
                "time_format": "us",
                "sequence": "n",
                "epoch": "boot",
            },
            {"topic": TIMED, "streams": {"heat": "heat"}, "time": "t", "time_format": "us"},
            {"topic": BARE, "streams": {"door": ""}, "format": "number"},
            *sources,
        ],
        "window": [
            {"name": "recent", "policy": {"time": "5min"}, "aggregate": ["mean", "max", "sum"], "buckets": 6},
            {"name": "last9", "policy": {"count": 9}, "aggregate": ["min", "first"], "buckets": 0},
            {
                "name": "hopping",
                "policy": {"time": "30s", "hop": "10s"},
                "aggregate": ["mean", "sum"],
                "buckets": 9,
                "sum_like": {"error": "5%", "floor": 0.5},
                "hop": {"hint": 8, "deviation": 2.0},
            },
            {
                "name": "peak",
                "policy": {"time": "2min", "up_to": "max"},
                "aggregate": "max",
                "buckets": 7,
                "max_like": {"block": 5},
            },
            {
                "name": "merged",
                "policy": {"time": "20min"},
                "aggregate": ["mean", "min"],
                "buckets": 5,
                "merge": "pairs",
            },
            {
                "name": "steps",
                "policy": {"time": "20min"},
                "aggregate": "max",
                "buckets": 6,
                "merge": "pairs",
                "max_like": {"staircase": True, "staging": 4},
            },
            {"name": "steps_short", "policy": {"time": "1min"}, "aggregate": "max", "shares": "steps"},
            {"name": "merged_short", "policy": {"time": "2min"}, "aggregate": "mean", "shares": "merged"},
            *more,
        ],
        "bucket": {"readings": 4},
        "outbox": {"rows": 1000, "bytes": "1MiB", "chunk_buckets": 8},
        "sync": {"target": "directory", "path": "chunks", "every": "1ms"},
        "dead_letters": {"rows": 10, "bytes_each": 16},
    }
    for name, table in tables.items():
        merged = {**raw[name], **table} if isinstance(table, dict) and name in raw else table
        if isinstance(merged, dict):
            merged = {key: value for key, value in merged.items() if value is not None}
        raw[name] = merged
    return build(raw, folder / "agent.toml")


def frames_of(path: Path, fold: int) -> list[tuple[int, int]]:
    """Where each frame of a record begins that follows a fold, and how many bytes its head and body have."""
    data, found = path.read_bytes(), []
    for body in file.Frames(file.Reader(data, len(data), b"SGR1"), fold):
        start = file.framed(fold, len(found) + 1, body)
        found.append((data.index(start, sum(found[-1]) if found else 0), file.HEAD + len(body)))
    return found


def in_sectors(place: int) -> int:
    """Where a byte of a frame stands behind its begin."""
    return place // HELD * SECTOR + place % HELD


def sequenced(number: int, packet: int, boot: str = "a", **values: Any) -> Message:
    """A message with a sequence number; its time and values follow from the number unless given."""
    fields = {"n": number, "boot": boot, "t": NOON + number * 60 * SECOND, "level": number % 17 / 8, "flow": number % 5}
    return Message(SEQUENCED, json.dumps(fields | values).encode(), packet, 1)


def timed(minute: float, packet: int, value: float = 1.0) -> Message:
    """A message that has a time and no number."""
    payload = json.dumps({"t": NOON + round(minute * 60 * SECOND), "heat": value})
    return Message(TIMED, payload.encode(), packet, 1)


def bare(value: float, packet: int, qos: int = 1) -> Message:
    """A message that is a number and nothing else."""
    return Message(BARE, str(value).encode(), packet, qos)
