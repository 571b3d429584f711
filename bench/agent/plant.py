"""What a plant costs whose sensors send one reading each, in turn: processor and instructions of a message.

A commit then touches each stream once or a few times, so that what is paid for a stream is paid for a message.
"""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.agent.messages import COMMIT, publish
from bench.agent.worlds import BEGIN, WINDOWS

from sluicegate.format.packets import publishes
from sluicegate_agent.config.load import build
from sluicegate_agent.messages import Message
from sluicegate_agent.pipeline import Pipeline
from sluicegate_agent.record.recorder import Recorder
from sluicegate_agent.state import State

SENSORS = (1, 250, 1000)
#: Of a plant, so that windows, records and rows are those of a day's work and not of a start.
WARM = 4
#: Messages that callgrind follows: the difference of a run with as many more is theirs alone.
FOLLOWED = 3_000


def measured(messages: int, rounds: int) -> list[dict[str, Any]]:
    """A row a number of sensors: µs a message, the least of some rounds, and instructions where valgrind is there."""
    logging.getLogger("sluicegate").setLevel(logging.ERROR)
    found = []
    for sensors in SENSORS:
        row = {"sensors": sensors, "us": round(min(1e6 * run(sensors, messages) / messages for _ in range(rounds)), 1)}
        if shutil.which("valgrind"):
            row["instructions"] = instructions(sensors)
        found.append(row)
    return found


def instructions(sensors: int) -> int:
    """Of one message, by callgrind: what a run with more messages has more."""
    less, more = (_followed(sensors, count) for count in (FOLLOWED, 2 * FOLLOWED))
    return round((more - less) / FOLLOWED)


def run(sensors: int, messages: int) -> float:
    """Seconds of processor that the pipeline takes for so many messages, each sensor in its turn; commits included."""
    warm = WARM * sensors
    packets = [_packet(i % sensors, i // sensors, i % 65_000 + 1) for i in range(warm + messages)]
    with tempfile.TemporaryDirectory() as folder:
        config = build(_tables(sensors), Path(folder) / "agent.toml")
        with State(config) as state:
            pipeline = Pipeline(config, state, recorder=Recorder(config, state))
            pipeline.connected(session_present=True)
            _take(pipeline, packets[:warm])
            begun = time.process_time()
            _take(pipeline, packets[warm:])
            spent = time.process_time() - begun
            if state.counters.as_dict().get("accepted") != warm + messages:
                raise RuntimeError(f"not all were counted: {state.counters.as_dict()}")
    return spent


def _take(pipeline: Pipeline, packets: list[bytes]) -> None:
    for begin in range(0, len(packets), COMMIT):
        received = b"".join(packets[begin : begin + COMMIT])
        arrived, _, _ = publishes(received, 0, True, len(received), COMMIT, len(received), Message)
        while arrived:
            arrived = arrived[pipeline.accept_all(arrived) :]
        pipeline.commit()
        pipeline.confirmed(pipeline.generation)


def _packet(sensor: int, count: int, packet_id: int) -> bytes:
    value = round(20 + (sensor * 7919 + count * 31) % 1000 / 100, 2)
    payload = json.dumps({"n": count, "t": BEGIN + count, "temp": value}).encode()
    return publish(f"plant/sensor-{sensor:04d}", payload, packet_id)


def _tables(sensors: int) -> dict[str, Any]:
    source = {"topic": "plant/{sensor}", "sequence": "n", "time": "t", "time_format": "s", "streams": {"temp": "temp"}}
    return {
        "device": {"id": "bench"},
        "state": {"path": "state"},
        "source": [source | {"keys": {"most": max(sensors, 100)}}],
        "window": list(WINDOWS[:1]),
        "results": {"topic": ""},
        "sync": {"target": "none"},
        "outbox": {"bytes": "512MiB", "rows": 100_000},
    }


def _followed(sensors: int, messages: int) -> int:
    """Instructions of a whole process that runs so many messages."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out", sys.executable, "-m", __name__]
        environment = os.environ | {"PYTHONHASHSEED": "0"}
        asked = [*command, str(sensors), str(messages)]
        ran = subprocess.run(asked, env=environment, capture_output=True, text=True, check=True)
    return int(re.search(r"Collected\s*:\s*(\d+)", ran.stderr).group(1))  # type: ignore[union-attr]


if __name__ == "__main__":
    run(int(sys.argv[1]), int(sys.argv[2]))
