"""The whole agent behind a real Mosquitto, and paho's own client that acknowledges each message, in turns."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, cast

from bench.agent.messages import published
from bench.agent.worlds import TOPIC, WORLDS, World, tables, write_toml

from sluicegate_agent.errors import EnvironmentRefused
from sluicegate_agent.state import read_status
from sluicegate_demo.ports import free_port

_TICKS = os.sysconf("SC_CLK_TCK")
PATIENCE = 60.0

PEER = f"""
import sys, time
import paho.mqtt.client as paho
most, count = int(sys.argv[2]), 0
client = paho.Client(paho.CallbackAPIVersion.VERSION2, client_id="peer", manual_ack=True, protocol=paho.MQTTv5)
def heard(client, _, message):
    global count
    count += 1
    client.ack(message.mid, message.qos)
    if count == most:
        print("done", flush=True)
client.on_message = heard
client.on_connect = lambda c, *_: c.subscribe("{TOPIC}", qos=1)
client.on_subscribe = lambda *_: print("ready", flush=True)
client.connect("127.0.0.1", int(sys.argv[1]))
client.loop_forever()
"""


def measured(messages: int, rounds: int, only: str = "") -> list[dict[str, Any]]:
    """A row a world: messages a second and µs of processor a message, ours and paho's; empty without a Mosquitto."""
    if shutil.which("mosquitto") is None:
        return [{"what": "mosquitto is not on PATH: nothing was measured"}]
    found = []
    for world in (each for each in WORLDS if only in each.what):
        count = max(messages // world.readings, 2_000)
        ours, peer = [], []
        for _ in range(rounds):
            ours.append(_run(world, count, _agent))
            peer.append(_run(world, count, _paho))
        row = {"what": world.what, "messages_s": max(each[0] for each in ours), "us": min(each[1] for each in ours)}
        row |= {"paho_messages_s": max(each[0] for each in peer), "paho_us": min(each[1] for each in peer)}
        found.append(row | {"ratio": round(row["us"] / row["paho_us"], 2)})
    return found


def _run(world: World, count: int, subject: Any) -> tuple[int, float]:
    with tempfile.TemporaryDirectory() as name, _mosquitto(Path(name)) as port:
        with subject(world, Path(name), port, count) as (process, is_done):
            before, begun = _processor(process.pid), time.monotonic()
            _publish(world, port, count)
            end = begun + PATIENCE
            while not is_done():
                if time.monotonic() > end or process.poll() is not None:
                    raise RuntimeError(f"{world.what}: it did not take {count} messages")
                time.sleep(0.02)
            spent, took = _processor(process.pid) - before, time.monotonic() - begun
        return round(count / took), round(1e6 * spent / count, 2)


@contextlib.contextmanager
def _mosquitto(folder: Path) -> Iterator[int]:
    with _broker(folder) as (_, port):
        yield port


@contextlib.contextmanager
def _broker(folder: Path, more: str = "") -> Iterator[tuple[subprocess.Popen[str], int]]:
    port = free_port()
    (folder / "m.conf").write_text(
        f"listener {port} 127.0.0.1\nallow_anonymous true\nmax_queued_messages 0\nsys_interval 1\n{more}"
    )
    with _process(["mosquitto", "-c", str(folder / "m.conf")]) as process:
        for _ in range(500):
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            time.sleep(0.01)
        yield process, port


@contextlib.contextmanager
def _process(command: list[str], **options: Any) -> Iterator[subprocess.Popen[str]]:
    options = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "text": True} | options
    process = subprocess.Popen(command, **options)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(60)


@contextlib.contextmanager
def _agent(world: World, folder: Path, port: int, count: int, more: dict[str, Any] | None = None) -> Iterator[Any]:
    write_toml(folder / "agent.toml", tables(world, port) | (more or {}))
    with _process(_run_of(folder)) as process:

        def status() -> dict[str, Any]:
            with contextlib.suppress(OSError, sqlite3.Error, EnvironmentRefused):
                return read_status(folder / "state")
            return {}

        end = time.monotonic() + PATIENCE
        while not status().get("counters", {}).get("mqtt.connects"):
            if time.monotonic() > end or process.poll() is not None:
                raise RuntimeError(f"the agent did not connect: {status()}")
            time.sleep(0.05)
        time.sleep(1.0)  # until the broker has granted the subscription
        yield process, lambda: status().get("counters", {}).get("messages", 0) >= count


def _run_of(folder: Path) -> list[str]:
    return [sys.executable, "-m", "sluicegate", "run", str(folder / "agent.toml"), "--log", "error"]


@contextlib.contextmanager
def _paho(_: World, folder: Path, port: int, count: int) -> Iterator[Any]:
    file = folder / "peer.py"
    file.write_text(PEER)
    with _process([sys.executable, str(file), str(port), str(count)], stdout=subprocess.PIPE) as process:
        told = cast("IO[str]", process.stdout)
        told.readline()
        yield process, lambda: bool(select.select([told], [], [], 0)[0]) and "done" in told.readline()


def _publish(world: World, port: int, count: int, qos: int = 1) -> None:
    """As fast as the broker takes it, from a plain socket: nothing of the publisher is measured."""
    connect = b"\x10\x10\x00\x04MQTT\x05\x02\x00\x00\x00\x00\x03pub"
    with socket.create_connection(("127.0.0.1", port), 10) as sock:
        sock.sendall(connect)
        sock.recv(64)
        for begin in range(0, count, 500):
            ids = range(begin, min(begin + 500, count))
            sock.sendall(b"".join(published(world.payload(i), i % 65_000 + 1, qos) for i in ids))
            left = 4 * len(ids) * qos  # bytes of PUBACKs without a reason
            while left > 0:
                left -= len(sock.recv(65_536))


def _processor(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS
