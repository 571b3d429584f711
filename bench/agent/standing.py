"""What standing costs: how long a start takes and how much memory is resident, with few streams and with many.

Streams are sensors of a plant with two windows of 16 buckets each, as most gateways have them; all have spoken before
the start that is timed. `after`: resident once started, with every stream silent. `spoken`: once each has spoken again.
`long`: ten streams with windows of a million readings, full. `flat`: the same streams with windows of 10,000 readings:
once each has had 100,000 readings, and once it has had a million. The broker says when all that was sent is durable: it
holds none of it any more.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from bench.agent.broker import PATIENCE, _mosquitto, _process, _processor, _run_of
from bench.agent.messages import publish
from bench.agent.worlds import BEGIN, write_toml

from sluicegate_agent.config import load
from sluicegate_agent.plan import plan

STREAMS = (1, 1_000, 10_000)
LONG, MILLION, ITEMS = 10, 1_000_000, 100
#: Times that each sensor speaks before the start that is timed.
SPOKEN = 3
#: Messages that the broker keeps of its own, at most (Mosquitto: some 60).
SAID_BY_ITSELF = 100
MIB = 1 << 20
WINDOWS = [
    {"name": "hour", "policy": {"time": "1h"}, "aggregate": "mean", "buckets": 16},
    {"name": "day", "policy": {"time": "24h"}, "aggregate": ["mean", "max"], "buckets": 16},
]


def measured(only: str = "") -> list[dict[str, Any]]:
    """A row a number of streams: seconds, of the clock and of processor, to a start; MiB resident, and planned."""
    if shutil.which("mosquitto") is None:
        return [{"what": "mosquitto is not on PATH: nothing was measured"}]
    found = [_standing(streams) for streams in STREAMS if only in f"{streams:,}"]
    found += [_long("long", MILLION, 0)] if only in "long" else []
    return [*found, *([_long("flat", MILLION // 100, MILLION // 10)] if only in "flat" else [])]


def _standing(streams: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name, _mosquitto(Path(name)) as port:
        folder = Path(name)
        write_toml(folder / "agent.toml", _plant(streams, port))
        with _started(folder):
            for turn in range(SPOKEN):
                _speak(port, streams, turn)
                _wait(port)
        with _started(folder) as (process, took, spent):
            after = _resident(process.pid)
            _speak(port, streams, SPOKEN)
            _wait(port)
            return _row(f"{streams:,} streams", folder, took, spent, after, _resident(process.pid))


def _long(what: str, length: int, warm: int) -> dict[str, Any]:
    """Each message has a hundred readings of each stream; `after` is taken when each has had `warm` readings."""
    with tempfile.TemporaryDirectory() as name, _mosquitto(Path(name)) as port:
        folder, names = Path(name), [f"s{i}" for i in range(LONG)]
        source = {"topic": "plant/line", "format": "array", "time": "t", "time_format": "s"}
        window = {"name": "w", "policy": {"count": length}, "aggregate": ["mean", "max"], "buckets": 64}
        write_toml(folder / "agent.toml", _tables(port, source | {"streams": {each: each for each in names}}, [window]))
        with _started(folder) as (process, took, spent):
            first, messages = warm // ITEMS, int(1.1 * MILLION) // ITEMS
            _send(port, (("plant/line", _list(names, i)) for i in range(first)), first)
            _wait(port)
            after = _resident(process.pid)
            _send(port, (("plant/line", _list(names, i)) for i in range(first, messages)), messages - first)
            _wait(port)
            title = f"{what}: {LONG} streams, windows of {length:,}"
            return _row(title, folder, took, spent, after, _resident(process.pid))


def _row(what: str, folder: Path, took: float, spent: float, after: float, spoken: float) -> dict[str, Any]:
    planned = round(plan(load(folder / "agent.toml")).memory / MIB, 1)
    seconds = {"start_s": round(took, 2), "start_processor_s": round(spent, 2)}
    return {"what": what, **seconds, "after": after, "spoken": spoken, "planned": planned}


def _plant(streams: int, port: int) -> dict[str, Any]:
    source = {"topic": "plant/{sensor}", "time": "t", "time_format": "s", "sequence": "n", "streams": {"temp": "temp"}}
    return _tables(port, source | {"keys": {"most": streams}}, WINDOWS)


def _tables(port: int, source: dict[str, Any], windows: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "device": {"id": "bench"},
        "state": {"path": "state", "memory": "2GiB", "disk": "8GiB"},
        "mqtt": {"host": "127.0.0.1", "port": port},
        "source": [source],
        "window": windows,
        "results": {"topic": ""},
        "sync": {"target": "none"},
    }


@contextlib.contextmanager
def _started(folder: Path) -> Iterator[tuple[subprocess.Popen[str], float, float]]:
    """The agent, once it says so as to systemd; seconds until then, of the clock and of processor."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as heard:
        path = folder / "notify"
        path.unlink(missing_ok=True)
        heard.bind(str(path))
        heard.settimeout(PATIENCE)
        # As installed: who compiles each module at each start takes half a second more, and a MiB.
        environment = {name: said for name, said in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        begun = time.monotonic()
        with _process(_run_of(folder), env=environment | {"NOTIFY_SOCKET": str(path)}) as process:
            while not heard.recv(400).startswith(b"READY=1"):
                pass
            took, spent = time.monotonic() - begun, _processor(process.pid)
            time.sleep(1.0)  # until the broker has granted the subscription, and the heap has been given back
            yield process, took, spent


def _speak(port: int, streams: int, turn: int) -> None:
    said = json.dumps({"n": turn, "t": BEGIN + turn, "temp": turn / 3}).encode()
    _send(port, ((f"plant/sensor-{i:05d}", said) for i in range(streams)), streams)


def _list(names: list[str], i: int) -> bytes:
    first = BEGIN + i * ITEMS
    return json.dumps([{"t": first + k} | dict.fromkeys(names, (first + k) % 97) for k in range(ITEMS)]).encode()


def _send(port: int, messages: Iterator[tuple[str, bytes]], count: int) -> None:
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as sock:
        sock.sendall(b"\x10\x10\x00\x04MQTT\x05\x02\x00\x00\x00\x00\x03pub")
        sock.recv(64)
        for begin in range(0, count, 100):
            some = [publish(*each, i % 65_000 + 1) for i, each in enumerate(islice(messages, 100), begin)]
            sock.sendall(b"".join(some))
            left = 4 * len(some)  # bytes of PUBACKs without a reason
            while left > 0:
                left -= len(sock.recv(65_536))


def _wait(port: int) -> None:
    """Until the broker holds next to nothing but what it says of itself, and the last commit was made."""
    end = time.monotonic() + 10 * PATIENCE
    time.sleep(2.0)  # what it says is a second old
    while _held(port) > SAID_BY_ITSELF:
        if time.monotonic() > end:
            raise RuntimeError("not all messages were taken")
        time.sleep(1.0)
    time.sleep(2.0)


def _held(port: int) -> int:
    """Messages in the broker's store."""
    topic = b"$SYS/broker/store/messages/count"
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as sock:
        sock.sendall(b"\x10\x0f\x00\x04MQTT\x04\x02\x00\x00\x00\x03ask")
        sock.recv(64)
        body = b"\x00\x01" + len(topic).to_bytes(2, "big") + topic + b"\x00"
        sock.sendall(b"\x82" + bytes([len(body)]) + body)
        said = b""
        while not (found := re.search(topic.replace(b"$", rb"\$") + rb"(\d+)", said)):
            said += sock.recv(4096)
        return int(found[1])


def _resident(process: int) -> float:
    """MiB."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return round(pages * os.sysconf("SC_PAGE_SIZE") / MIB, 1)
