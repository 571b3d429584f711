"""How fast the agent takes what a Mosquitto holds for it: without a publisher, so that each of the two has a core."""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.agent.broker import _agent, _broker, _process, _processor, _publish, _run_of
from bench.agent.worlds import WORLDS, World

from sluicegate_agent.state import read_status

#: By what the publisher sent them with; with 0 nothing is acknowledged.
QOS = (1, 0)
#: Seconds without work of the agent's after which it is looked at whether all was taken.
STILL = 1.0


def measured(messages: int, rounds: int, only: str = "") -> list[dict[str, Any]]:
    """A row a world and QoS: messages a second, and µs of processor a message: ours, and the broker's."""
    if shutil.which("mosquitto") is None:
        return [{"what": "mosquitto is not on PATH: nothing was measured"}]
    found = []
    for world in (each for each in WORLDS if only in each.what):
        for qos in QOS:
            runs = [_run(world, max(messages // world.readings, 10_000), qos) for _ in range(rounds)]
            row = {"what": world.what, "qos": qos, "messages_s": max(each[0] for each in runs)}
            found.append(row | {"us": min(each[1] for each in runs), "broker_us": min(each[2] for each in runs)})
    return found


def _run(world: World, count: int, qos: int) -> tuple[int, float, float]:
    with (
        tempfile.TemporaryDirectory() as name,
        _broker(Path(name), "queue_qos0_messages true\nmax_queued_bytes 0\n") as (broker, port),
    ):
        with _agent(world, Path(name), port, count):
            pass  # its session stays
        _publish(world, port, count, qos)
        held = _processor(broker.pid)
        with _process(_run_of(Path(name))) as process:
            while _processor(broker.pid) == held and process.poll() is None:
                time.sleep(0.01)
            begun, before = time.monotonic(), _processor(process.pid)
            spent, ended = before, begun
            while time.monotonic() - ended < STILL:
                now = _processor(process.pid)
                if now > spent + 0.02:
                    spent, ended = now, time.monotonic()
                time.sleep(0.02)
        taken = read_status(Path(name) / "state")["counters"].get("messages", 0)  # the last commit came with its end
        if taken < count:
            raise RuntimeError(f"{world.what}: it took {taken} of {count} messages")
        of_broker = _processor(broker.pid) - held
    return round(count / (ended - begun)), round(1e6 * (spent - before) / count, 2), round(1e6 * of_broker / count, 2)
