"""A sensor: what it publishes and what the broker acknowledged, written down as it happens. The oracle's only list.

Each identity is a way to make messages: `sequence` numbers them, `epochs` numbers them anew at each boot under the
boot's name, `time` stamps them, `bare` says a unique number and nothing else, `constant` one of few numbers.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf
from typing import Any

import msgspec

from campaign import wire

STREAM, MARKER = "level", 999_999_937
WINDOW = 40  # messages that are sent and not yet acknowledged, at most


@dataclass(slots=True)
class Message:
    """One message: what it says, when it was first sent and last acknowledged by the broker (monotonic seconds)."""

    payload: bytes
    value: int
    number: int | None = None
    epoch: int = 0
    retain: bool = False
    sends: int = 0
    acknowledged: float = inf
    sent: float = inf
    repeat: bool = False
    kind: str = ""


@dataclass
class Habits:
    """What this sensor does beside telling the truth once: each is a share of the messages."""

    skip: float = 0.0
    repeat: float = 0.0
    shuffle: float = 0.0
    reboot: float = 0.0
    late: float = 0.0
    retain: float = 0.0
    wrap: int = 0


def messages(identity: str, count: int, habits: Habits, rng: random.Random, form: str = "json") -> Iterator[Message]:
    """`count` readings and then the marker, each message once; repeats of the same object are the sensor's own."""
    recent: list[Message] = []
    held: Message | None = None
    modulus = 1 << habits.wrap if habits.wrap else 0
    number = modulus - rng.randint(1, max(1, count // 2)) if modulus else rng.choice((0, 1, 17, 70_000))
    number = 0 if form == "sparkplug" else number
    epoch, began = 1, number
    used: set[int] = {MARKER}
    for position in range(count + 1):
        last = position == count
        if recent and not last and rng.random() < habits.repeat:
            yield rng.choice(recent)
            continue
        if rng.random() < habits.reboot and number - began > 5 and not last:
            if held is not None:  # what was taken before a reboot is not sent after it
                yield held
                held = None
            epoch, number = epoch + 1, rng.choice((0, 1))
            began = number
        elif rng.random() < habits.skip and position and not last:  # an edge node's first message is its birth
            number += rng.randint(1, 3)
        value = MARKER if last else _value(identity, used, rng)
        made = _message(identity, value, number % modulus if modulus else number, epoch, habits, rng, form)
        made.retain = habits.retain > 0 and rng.random() < habits.retain
        number += 1
        if held is None and not last and rng.random() < habits.shuffle:
            held = made
            continue
        yield made
        recent = [*recent[-20:], made]
        if held is not None and (last or rng.random() < 0.3):
            yield held
            held = None


def _value(identity: str, used: set[int], rng: random.Random) -> int:
    if identity == "constant":
        return rng.randrange(3)
    while (value := rng.randrange(1, 1 << 40)) in used:
        pass
    used.add(value)
    return value


def _message(
    identity: str, value: int, number: int, epoch: int, habits: Habits, rng: random.Random, form: str
) -> Message:
    if identity in ("bare", "constant"):
        return Message(str(value).encode(), value)
    if identity == "time":
        now = time.time_ns() // 1000 - (rng.randrange(2_000_000) if rng.random() < habits.late else 0)
        return Message(_written({"t": now, "v": value}, form), value)
    if form == "sparkplug":
        return _sparkplug(value, number)
    told = {"n": number, "v": value} | ({"boot": f"b{epoch}"} if identity == "epochs" else {})
    return Message(_written(told, form), value, number, epoch)


def _sparkplug(value: int, number: int) -> Message:
    """The birth of an edge node, or data of it: the bytes of `sparkplug_b.proto`, the metric under its name."""
    now, is_birth = time.time_ns() // 1_000_000, number == 0
    metrics = [_metric("Level", 10, bytes([13 << 3 | 1]) + struct.pack("<d", value))]
    metrics += [_metric("bdSeq", 4, bytes([11 << 3, 0]))] if is_birth else []
    body = bytes([1 << 3]) + _varint(now) + b"".join(metrics) + bytes([3 << 3]) + _varint(number % 256)
    return Message(body, value, number, kind="NBIRTH" if is_birth else "NDATA")


def _metric(name: str, kind: int, value: bytes) -> bytes:
    said = bytes([1 << 3 | 2, len(name)]) + name.encode() + bytes([4 << 3, kind]) + value
    return bytes([2 << 3 | 2, len(said)]) + said


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def _written(told: dict[str, Any], form: str) -> bytes:
    """What is told in a form; "items": a list of one, known by its number."""
    if form == "msgpack":
        return msgspec.msgpack.encode(told)
    if form == "cbor":
        import cbor2

        packed: bytes = cbor2.dumps(told)
        return packed
    if form == "line":
        return f"m,by=sensor v={told['v']}i {told['t']}".encode()
    return json.dumps([told] if form == "items" else told).encode()


@dataclass
class Sensor:
    """Publishes to the broker's own port, QoS 1, and goes on after a broken connection.

    What was in flight then may have arrived or not. It is sent again, as a sensor does, where the agent can know it
    again; a bare number that may have arrived is left at that.
    """

    port: int
    identity: str
    name: str
    topic: str
    published: list[Message] = field(default_factory=list)
    reconnects: int = 0
    paused: bool = False

    def __post_init__(self) -> None:
        self._flight: dict[int, Message] = {}
        self._packet = 0
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None

    async def send(self, message: Message) -> None:
        """Publish one message as soon as there is room in the window."""
        while self.paused or len(self._flight) >= WINDOW:
            if not self._connected():
                await self._connect()
            await asyncio.sleep(0.005)
        if not message.sends:
            self.published.append(message)
        message.repeat |= message.sends > 0
        await self._put(message)

    async def settle(self, seconds: float) -> bool:
        """Wait until the broker has acknowledged all; whether it did."""
        end = time.monotonic() + seconds
        while self._flight and time.monotonic() < end:
            if not self._connected() and not self.paused:
                await self._connect()
            await asyncio.sleep(0.005)
        return not self._flight

    async def close(self) -> None:
        """Hang up."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)
        if self._writer is not None:
            self._writer.transport.abort()

    def hang_up(self) -> None:
        """Lose the connection."""
        if self._writer is not None:
            self._writer.transport.abort()

    def _connected(self) -> bool:
        return self._writer is not None and self._reading is not None and not self._reading.done()

    async def _put(self, message: Message) -> None:
        while not self._connected():
            await self._connect()
        while True:
            self._packet = self._packet % 65535 + 1
            if self._packet not in self._flight:
                break
        self._flight[self._packet] = message
        message.sent = min(message.sent, time.monotonic())
        message.sends += 1
        topic = f"spBv1.0/{self.topic.rpartition('/')[2]}/{message.kind}/node" if message.kind else self.topic
        packet = wire.publish(topic.encode(), message.payload, self._packet, retain=message.retain)
        assert self._writer is not None
        with contextlib.suppress(OSError, RuntimeError):
            self._writer.write(packet)

    async def _connect(self) -> None:
        lost, self._flight = self._flight, {}
        if self._writer is not None:
            self._writer.transport.abort()
        try:
            reader, self._writer = await asyncio.open_connection("127.0.0.1", self.port)
            self._writer.write(wire.connect(self.name))
            answer = await asyncio.wait_for(reader.readexactly(4), 10)
            if answer[3]:
                raise ConnectionRefusedError
        except (OSError, EOFError, TimeoutError):
            self._flight = lost | self._flight
            self._reading = None
            await asyncio.sleep(0.02)
            return
        self.reconnects += 1
        self._reading = asyncio.get_running_loop().create_task(self._read(reader))
        if self.identity not in ("bare", "constant"):
            for message in lost.values():
                await self._put(message)

    async def _read(self, reader: asyncio.StreamReader) -> None:
        packets = wire.Packets()
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                for packet in packets.feed(data):
                    if packet[0] >> 4 == wire.PUBACK:
                        message = self._flight.pop(wire.packet_id(packet), None)
                        if message is not None:
                            message.acknowledged = time.monotonic()
