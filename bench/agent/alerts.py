"""How late an alert's message is behind a real Mosquitto: from the reading's publication to the message at the broker.

Each reading of the watched stream raises or clears the alert. `beside`: messages a second of another source, which the
same commits make durable.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.agent.broker import _agent, _mosquitto, _processor
from bench.agent.messages import publish
from bench.agent.results import _listening, _publishing
from bench.agent.worlds import World

SECONDS = 20.0
#: Changes of the alert a second.
RATE = 16
#: (`commit.every`, messages a second of another source).
ASKED = (("20ms", 0), ("20ms", 1_000), ("20ms", 5_000))
WATCHED = {"topic": "plant/watched", "time": "t", "time_format": "us", "sequence": "n", "streams": {"heat": "x"}}
BESIDE = WATCHED | {"topic": "plant/line", "streams": {"temp": "x"}}
WINDOWS = [
    {"name": "last", "policy": {"count": 1}, "aggregate": "max", "streams": ["heat"]},
    {"name": "hour", "policy": {"time": "1h"}, "aggregate": "mean", "buckets": 64},
]


def measured(only: str = "") -> list[dict[str, Any]]:
    """A row a case: changes published and told, ms from the reading's publication to the alert's message."""
    if shutil.which("mosquitto") is None:
        return [{"what": "mosquitto is not on PATH: nothing was measured"}]
    return [_run(*asked) for asked in ASKED if only in asked[0]]


def _run(every: str, beside: int) -> dict[str, Any]:
    world = World("an alert", 1, WATCHED, lambda _: b"")
    more = {
        "source": [WATCHED, BESIDE],
        "window": WINDOWS,
        "commit": {"every": every},
        "alert": [{"name": "hot", "window": "last", "above": 0.5}],
    }
    heard: list[tuple[int, int]] = []
    with (
        tempfile.TemporaryDirectory() as name,
        _mosquitto(Path(name)) as port,
        _agent(world, Path(name), port, 0, more) as (process, _),
        _listening(port, heard, "sluicegate/bench/alerts/#", lambda said: [said["time_us"]]),
    ):
        before = _processor(process.pid)
        changes = _publish(port, beside)
        time.sleep(2.0)
        spent = _processor(process.pid) - before
    late = sorted(now - then for now, then in heard)
    row = {"commit": every, "beside_s": beside, "changes": changes, "told": len(heard)}
    row |= {"processor_s": round(spent, 2)}
    for rank, share in (("p50_ms", 0.5), ("p99_ms", 0.99), ("most_ms", 1.0)):
        row[rank] = round(late[min(len(late) - 1, int(share * len(late)))] / 1000, 1) if late else None
    return row


def _publish(port: int, beside: int) -> int:
    """RATE changes a second, at times that no commit keeps; how many."""
    with _publishing(port) as sock:
        begun, sent, changes = time.monotonic(), 0, 0
        while (passed := time.monotonic() - begun) < SECONDS:
            if changes < passed * RATE:
                sock.sendall(publish("plant/watched", _said(changes, changes % 2 == 0), 40_000 + changes % 20_000))
                changes += 1
            while sent < passed * beside:
                sock.sendall(publish("plant/line", _said(sent, sent % 97 / 3), sent % 39_000 + 1))
                sent += 1
            time.sleep(0.001)
        return changes


def _said(number: int, value: float) -> bytes:
    return json.dumps({"n": number, "t": time.time_ns() // 1000, "x": float(value)}).encode()
