"""A broker written from the MQTT specification, with the freedom that it leaves: how it numbers what it delivers.

What is sent travels over two wires, one each way, and a cut loses what is on them. QoS 1 only; one subscriber.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

#: Ids count upward through the session (Mosquitto); begin at 1 with each connection (RabbitMQ); the least that is free.
Habit = Literal["counting", "anew", "least"]


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

    def publish(self, serial: int, content: str) -> None:
        """A sensor publishes."""
        self.waiting.append(Pending(serial, content))
        self.send()

    def connect(self) -> None:
        """The subscriber is back: in order, what was not acknowledged, then what is new."""
        self.connected = True
        if self.habit == "anew":
            self.tip = 0
        for pending in self.under_way:
            if self.habit == "anew":
                pending.packet_id = self._next_id()
            self.down.append(Sent(pending.serial, pending.content, pending.packet_id, pending.sent))
            pending.sent = True
        self.send()

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
