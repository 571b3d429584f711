"""A broker of its own and a sensor: numbered readings at QoS 1, sent again until the broker has acknowledged each."""

from __future__ import annotations

import contextlib
import json
import random
import signal
import socket
import subprocess
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

from bench.peers.subjects import TOPIC

from sluicegate_demo.ports import free_port

_UNDER_WAY = 20  # messages without an acknowledgement: one sensor, not a flood
_FLOOD = 500
CLOSES = 30.0  # seconds


class Broker:
    """Mosquitto on loopback, which saves its sessions at each change; `kill()` is SIGKILL, `start()` begins again."""

    def __init__(self, folder: Path) -> None:
        self.port, self._folder = free_port(), folder
        folder.mkdir()
        (folder / "m.conf").write_text(
            f"listener {self.port} 127.0.0.1\nallow_anonymous true\nuser root\nmax_queued_messages 0\n"
            f"persistence true\npersistence_location {folder}/\nautosave_on_changes true\nautosave_interval 50\n"
            f"log_dest file {folder}/told\nlog_type subscribe\nlog_type error\n"
        )

    def start(self) -> None:
        """Returns when it listens."""
        with (self._folder / "log").open("ab") as log:
            command = ["mosquitto", "-c", str(self._folder / "m.conf")]
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        for _ in range(1000):
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            time.sleep(0.01)
        raise RuntimeError("mosquitto does not listen")

    def subscribed(self, seconds: float = 30.0) -> None:
        """Waits until a client has asked for the topic. Raises RuntimeError where none does."""
        end = time.monotonic() + seconds
        told = self._folder / "told"
        while not told.exists() or TOPIC.encode() not in told.read_bytes():
            if time.monotonic() > end:
                raise RuntimeError("nobody has subscribed")
            time.sleep(0.05)
        time.sleep(0.5)  # the grant has to come, too

    def kill(self) -> None:
        """As a power cut would."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def close(self) -> None:
        """An orderly end."""
        self._process.terminate()
        self._process.wait(30)


def payload(number: int, at: float) -> bytes:
    """A reading: its number, the sensor's time (s since 1970), and a value."""
    return json.dumps({"n": number, "t": round(at * 1000), "v": round(20 + number * 7919 % 1000 / 100, 2)}).encode()


def publish(
    port: int, count: int, rate: float, at_half: Callable[[], None] = lambda: None, late: float = 0, seed: int = 1
) -> None:
    """Readings 0 … count − 1, `rate` a second (0: as fast as they are taken); `at_half` is called at the middle.

    `late`: every tenth reading is sent so many seconds after its time, and one more at the end is CLOSES ahead, so that
    what goes by the readings' own times knows that theirs is over. A broken connection is made again, and what was
    not acknowledged is sent again with DUP, as MQTT asks of a sensor.
    """
    chance = random.Random(seed)
    begun = time.time()
    times = [begun + number / rate if rate else begun for number in range(count)]
    order = [(at + (late if late and chance.random() < 0.1 else 0), number) for number, at in enumerate(times)]
    if late:
        times.append(times[-1] + CLOSES)
        order.append((times[-2] + late + 1, count))
    waiting, unanswered = deque(sorted(order)), deque[tuple[int, bytes]]()
    most, sent, sock, kept = _UNDER_WAY if rate else _FLOOD, 0, None, b""
    while waiting or unanswered:
        try:
            if sock is None:
                sock, kept = _connected(port), b""
                for number, body in unanswered:
                    sock.sendall(_packet(number, body, again=True))
            while waiting and len(unanswered) < most and (not rate or waiting[0][0] <= time.time()):
                _, number = waiting.popleft()
                body = payload(number, times[number] if rate else time.time())
                unanswered.append((number, body))
                sock.sendall(_packet(number, body))
                sent += 1
                if sent == count // 2:
                    at_half()
            kept = _answers(sock, kept, unanswered, bool(waiting) and len(unanswered) < most)
        except OSError:
            if sock is not None:
                sock.close()
            sock = None
            time.sleep(0.05)
    if sock is not None:
        sock.close()


def _connected(port: int) -> socket.socket:
    sock = socket.create_connection(("127.0.0.1", port), 10)
    sock.sendall(b"\x10\x12\x00\x04MQTT\x04\x02\x00\x3c\x00\x06sensor")
    if sock.recv(4)[:1] != b"\x20":
        sock.close()
        raise ConnectionError("no CONNACK")
    return sock


def _packet(number: int, body: bytes, again: bool = False) -> bytes:
    topic = TOPIC.encode()
    whole = len(topic).to_bytes(2, "big") + topic + (number % 65_000 + 1).to_bytes(2, "big") + body
    low, high = len(whole) & 127, len(whole) >> 7
    return bytes([0x3A if again else 0x32, *([low | 128, high] if high else [low])]) + whole


def _answers(sock: socket.socket, kept: bytes, unanswered: deque[tuple[int, bytes]], soon: bool) -> bytes:
    """Takes away what the broker acknowledged; waits a little where nothing can be sent meanwhile."""
    sock.settimeout(0.001 if soon else 0.02)
    try:
        data = sock.recv(65_536)
    except TimeoutError:
        return kept
    if not data:
        raise ConnectionError("closed")
    kept += data
    whole = len(kept) // 4 * 4
    ids = {int.from_bytes(kept[i + 2 : i + 4], "big") for i in range(0, whole, 4)}
    for _ in range(len(unanswered)):
        number, body = unanswered.popleft()
        if number % 65_000 + 1 not in ids:
            unanswered.append((number, body))
    return kept[whole:]
