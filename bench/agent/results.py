"""How late answers are behind a real Mosquitto, how many come, and what they cost: by default and one a reading."""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench.agent.broker import PATIENCE, _agent, _mosquitto, _processor
from bench.agent.messages import published
from bench.agent.worlds import WORLDS, World

from sluicegate_agent.errors import EnvironmentRefused
from sluicegate_agent.state import read_status

SECONDS = 10.0
#: (what, messages a second, windows of so many readings, `results.every`).
ASKED = (
    ("defaults", 1_000, 1_000, "1s"),
    ("each reading", 1_000, 1_000, "reading"),
    ("each reading", 1_000, 10_000, "reading"),
    ("each reading", 1_000, 1_000_000, "reading"),
    ("none, to compare", 1_000, 1_000, ""),
    ("each reading", 12_000, 1_000, "reading"),
    ("none, to compare", 12_000, 1_000, ""),
)


def measured(only: str = "") -> list[dict[str, Any]]:
    """A row a case: results for 1,000 readings, ms from the newest reading to its result, µs of processor a message."""
    if shutil.which("mosquitto") is None:
        return [{"what": "mosquitto is not on PATH: nothing was measured"}]
    return [_run(*asked) for asked in ASKED if only in asked[0]]


def _run(what: str, rate: int, length: int, every: str) -> dict[str, Any]:
    window = {"name": "w", "policy": {"count": length}, "aggregate": "mean", "buckets": 64}
    world = World(what, 1, dict(WORLDS[0].source) | {"time_format": "us"}, WORLDS[0].payload)
    more = {"window": [window], "results": {"every": every} if every else {"topic": ""}}
    heard: list[tuple[int, int]] = []
    with (
        tempfile.TemporaryDirectory() as name,
        _mosquitto(Path(name)) as port,
        _agent(world, Path(name), port, 0, more) as (process, _),
        _listening(port, heard),
    ):
        before = _processor(process.pid)
        count, end = _publish(port, rate), time.time_ns() // 1000
        took = _wait(Path(name), count)
        spent = _processor(process.pid) - before
    # The first second is the start's, and after the last message a commit waits for others.
    late = sorted(now - newest for now, newest in heard if end - 1e6 * (SECONDS - 1) < now < end)
    row: dict[str, Any] = {"what": what, "a_second": rate, "window": length, "messages": count, "results": len(heard)}
    row |= {"us": round(1e6 * spent / count, 1), "messages_s": round(count / (SECONDS + took))}
    for rank, share in (("p50_ms", 0.5), ("p99_ms", 0.99)):
        row[rank] = round(late[int(share * len(late))] / 1000, 1) if late else None
    return row


def _wait(folder: Path, count: int) -> float:
    """Until the agent has taken so many; how many seconds later than they were published that was."""
    begun = time.monotonic()
    while time.monotonic() - begun < PATIENCE:
        with contextlib.suppress(OSError, sqlite3.Error, EnvironmentRefused):
            if read_status(folder / "state")["counters"]["messages"] >= count:
                break
        time.sleep(0.2)
    took = time.monotonic() - begun
    time.sleep(1.5)  # until the last answers have come
    return took


class _listening:  # noqa: N801  used as a context
    """Notes, of each result, when it came and its newest reading's time, in µs; or of what else a topic has."""

    def __init__(
        self,
        port: int,
        heard: list[tuple[int, int]],
        topic: str = "sluicegate/bench/results",
        times: Callable[[Any], list[int]] = lambda said: [each["time_us"] for each in said["results"]],
    ) -> None:
        self._sock = socket.create_connection(("127.0.0.1", port), 60)
        self._heard, self._topic, self._times = heard, topic.encode(), times
        self._thread = threading.Thread(target=self._listen, daemon=True)

    def __enter__(self) -> None:
        self._sock.sendall(b"\x10\x10\x00\x04MQTT\x05\x02\x00\x00\x00\x00\x03sub")
        self._sock.recv(64)
        topic = self._topic
        body = b"\x00\x01\x00" + len(topic).to_bytes(2, "big") + topic + b"\x00"
        self._sock.sendall(b"\x82" + bytes([len(body)]) + body)
        self._sock.recv(64)
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._sock.shutdown(socket.SHUT_RDWR)
        self._thread.join(10)
        self._sock.close()

    def _listen(self) -> None:
        data = b""
        while more := self._received():
            now = time.time_ns() // 1000
            data += more
            while (whole := _packet(data)) is not None:
                begin, end = whole
                if data[0] >> 4 == 3:
                    said = json.loads(data[data.index(b"{", begin) : end])
                    self._heard += [(now, each) for each in self._times(said)]
                data = data[end:]

    def _received(self) -> bytes:
        try:
            return self._sock.recv(65_536)
        except OSError:
            return b""


def _packet(data: bytes) -> tuple[int, int] | None:
    """Where the first packet's body begins and ends; None where it is not whole."""
    length = 0
    for place in range(1, min(5, len(data))):
        length |= (data[place] & 127) << (7 * (place - 1))
        if data[place] < 128:
            return (place + 1, place + 1 + length) if len(data) > place + length else None
    return None


@contextlib.contextmanager
def _publishing(port: int) -> Iterator[socket.socket]:
    """A connection that publishes at once, and takes what the broker answers."""
    with socket.create_connection(("127.0.0.1", port), 10) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.sendall(b"\x10\x10\x00\x04MQTT\x05\x02\x00\x00\x00\x00\x03pub")
        sock.recv(64)
        threading.Thread(target=_drain, args=(sock,), daemon=True).start()
        yield sock


def _publish(port: int, rate: int) -> int:
    """So many messages a second, each with the time of now; how many."""
    with _publishing(port) as sock:
        begun, count = time.monotonic(), 0
        while (passed := time.monotonic() - begun) < SECONDS:
            while count < passed * rate:
                payload = json.dumps({"n": count, "t": time.time_ns() // 1000, "temp": count % 97 / 3}).encode()
                sock.sendall(published(payload, count % 65_000 + 1))
                count += 1
            time.sleep(0.001)
        return count


def _drain(sock: socket.socket) -> None:
    try:
        while sock.recv(65_536):
            pass
    except OSError:
        pass
