"""A broker written from the MQTT specification and from what brokers were seen to do: how it numbers and repeats.

What is sent travels over two wires, one each way, and a cut loses what is on them. QoS 1 only; one subscriber.
"""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

#: Ids count upward through the session (Mosquitto); begin at 1 with each connection (RabbitMQ); the least that is free.
#: Beside the specification: each delivery has a new id and no DUP (Artemis); repeats have their old ids and no DUP, new
#: ids begin anywhere (Aedes); repeats come later than new messages, on the same connection too, in any order (NATS).
Habit = Literal["counting", "anew", "least", "fresh", "unmarked", "late"]


class Sent(NamedTuple):
    """A message on its way: which one it is (never told to the subscriber), and what the subscriber sees."""

    serial: int
    content: str
    packet_id: int
    dup: bool


@dataclass
class Pending:
    """A message that the broker has not seen acknowledged."""

    serial: int
    content: str
    packet_id: int = 0
    sent: bool = False


@dataclass
class Broker:
    """The broker's side of one session."""

    habit: Habit
    window: int
    waiting: deque[Pending] = field(default_factory=deque)
    under_way: list[Pending] = field(default_factory=list)
    tip: int = 0
    down: deque[Sent] = field(default_factory=deque)
    up: deque[tuple[str, int]] = field(default_factory=deque)
    answers: list[int] = field(default_factory=list)
    connected: bool = False
    connections: int = 0

    def publish(self, serial: int, content: str) -> None:
        """A sensor publishes."""
        self.waiting.append(Pending(serial, content))
        self.send()

    def connect(self) -> None:
        """The subscriber is back: in order, what was not acknowledged, then what is new."""
        self.connected, self.connections = True, self.connections + 1
        if self.habit == "anew":
            self.tip = 0
        elif self.habit == "unmarked":
            self.tip = random.Random(self.connections).randrange(65535)
        if self.habit != "late":
            self._send_again(self.under_way)
        self.send()

    def repeat(self) -> None:
        """Send again what was not acknowledged in time, on the same connection."""
        if self.habit == "late":
            self._send_again(random.Random(self.tip).sample(self.under_way, len(self.under_way)))

    def _send_again(self, repeated: list[Pending]) -> None:
        for pending in repeated:
            if self.habit in ("anew", "fresh"):
                pending.packet_id = self._next_id()
            dup = pending.sent and self.habit not in ("fresh", "unmarked")
            self.down.append(Sent(pending.serial, pending.content, pending.packet_id, dup))
            pending.sent = True

    def send(self) -> None:
        """What the window has room for."""
        while self.connected and self.waiting and len(self.under_way) < self.window:
            pending = self.waiting.popleft()
            pending.packet_id, pending.sent = self._next_id(), True
            self.under_way.append(pending)
            self.down.append(Sent(pending.serial, pending.content, pending.packet_id, False))

    def _next_id(self) -> int:
        if self.habit == "least":
            taken = {pending.packet_id for pending in self.under_way}
            return next(number for number in range(1, 65536) if number not in taken)
        self.tip = self.tip % 65535 + 1
        return self.tip

    def read(self, most: int) -> None:
        """Take so much of what the subscriber has sent."""
        for _ in range(min(most, len(self.up))):
            kind, number = self.up.popleft()
            if kind == "ping":
                self.answers.append(number)
            else:
                self.under_way = [pending for pending in self.under_way if pending.packet_id != number]
                self.send()

    def cut(self) -> None:
        """The connection is gone with all that is on the wires."""
        self.connected = False
        self.down.clear()
        self.up.clear()
        self.answers.clear()

    def save(self) -> tuple[list[Pending], list[Pending], int]:
        """What a broker that keeps its state on disk now and then writes."""
        return [replace(p) for p in self.under_way], [replace(p) for p in self.waiting], self.tip

    def go_back(self, saved: tuple[list[Pending], list[Pending], int]) -> None:
        """Killed and started with what it saved last; as Mosquitto, it sends that again without DUP."""
        self.cut()
        under_way, waiting, self.tip = saved
        self.under_way = [replace(p, sent=False) for p in under_way]
        self.waiting = deque(replace(p) for p in waiting)
