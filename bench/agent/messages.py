"""The pipeline alone: processor time of a message from its packet to a commit that appends to the record; no socket."""

from __future__ import annotations

import logging
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.agent.worlds import TOPIC, WORLDS, World, tables

from sluicegate.format.packets import publishes
from sluicegate_agent.config import Config
from sluicegate_agent.config.load import build
from sluicegate_agent.messages import Message
from sluicegate_agent.pipeline import READINGS_MOST, Pipeline
from sluicegate_agent.record.recorder import Recorder
from sluicegate_agent.state import State

COMMIT = 500  # messages, as `mqtt.receive_maximum` has it


def measured(messages: int, rounds: int, only: str = "") -> list[dict[str, Any]]:
    """A row a world: µs of processor a message of the whole way and of its parts, the least of some rounds."""
    logging.getLogger("sluicegate").setLevel(logging.ERROR)
    found = []
    for world in WORLDS:
        if only in world.what and not world.is_sent:  # who sends is not part of the pipeline
            parts = [_round(world, max(messages // world.readings, COMMIT)) for _ in range(rounds)]
            row = {name: round(min(part[name] for part in parts), 2) for name in parts[0]}
            found.append({"what": world.what, **row, "a_reading": round(row["whole"] / world.readings, 2)})
    return found


def published(payload: bytes, packet_id: int, qos: int = 1) -> bytes:
    """A PUBLISH of MQTT 5 with QoS 0 or 1 of a world's one topic."""
    return publish(TOPIC, payload, packet_id, qos)


def publish(to: str, payload: bytes, packet_id: int, qos: int = 1) -> bytes:
    """The same to any topic."""
    topic = to.encode()
    body = len(topic).to_bytes(2, "big") + topic + packet_id.to_bytes(2, "big") * qos + b"\0" + payload
    size, length = b"", len(body)
    while True:
        length, low = divmod(length, 128)
        size += bytes([low | (128 if length else 0)])
        if not length:
            return bytes([0x30 | qos << 1]) + size + body


def _round(world: World, messages: int) -> dict[str, float]:
    packets = [published(world.payload(i), i % 65_000 + 1) for i in range(messages)]
    clock, batch = time.process_time, min(COMMIT, max(READINGS_MOST // world.readings, 1))
    with tempfile.TemporaryDirectory() as folder:
        config: Config = build(tables(world), Path(folder) / "agent.toml")
        with State(config) as state:
            pipeline = Pipeline(config, state, recorder=Recorder(config, state))
            pipeline.connected(session_present=True)
            spent = {"parse": 0.0, "accept": 0.0, "commit": 0.0}
            for begin in range(0, messages, batch):
                received = b"".join(packets[begin : begin + batch])
                at = clock()
                arrived, _, _ = publishes(received, 0, True, len(received), batch, len(received), Message)
                parsed = clock()
                if pipeline.accept_all(arrived) < len(arrived):
                    raise RuntimeError("a message was not taken: the measurement is worth nothing")
                accepted = clock()
                pipeline.commit()
                pipeline.confirmed(pipeline.generation)
                done = clock()
                spent["parse"] += parsed - at
                spent["accept"] += accepted - parsed
                spent["commit"] += done - accepted
            counted = state.counters.as_dict().get("accepted", 0)
    if counted != messages * world.readings:
        raise RuntimeError(f"{counted} of {messages * world.readings} readings were counted")
    spent["whole"] = sum(spent.values())
    return {name: 1e6 * seconds / messages for name, seconds in spent.items()}
