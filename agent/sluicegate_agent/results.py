"""Answers to the outside: at most so often, in messages of bounded size, the newest of each window, none twice.

What is offered rests on a commit (agent.py); after a start each window's answer is offered once more.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import msgspec

from sluicegate_agent.config import Config
from sluicegate_agent.messages import Result

PER_MESSAGE = 32
_encode = msgspec.json.Encoder().encode


class Sender(Protocol):
    """Whatever takes a result's bytes and says whether it did: the MQTT link."""

    def publish(self, topic: str, payload: bytes) -> bool:
        """Send one message; False when it has to wait."""


class Results:
    """Holds the newest unsent answer of each window and publishes them when their time has come."""

    def __init__(self, config: Config, sender: Sender) -> None:
        self.device = config.device.id
        self.topic = config.results.topic.replace("{device}", config.device.id)
        self.every = config.results.every.seconds
        self._is_asked = bool(self.topic) or config.metrics.listen is not None or bool(config.alert)
        self._sender = sender
        self._waiting: dict[tuple[str, str, str], Result] = {}
        self._next = 0.0

    def due(self, now: float) -> bool:
        """Whether answers should be asked for at monotonic second `now`: to be published, or for the listener."""
        return self._is_asked and now >= self._next

    def offer(self, answers: Iterable[Result], now: float) -> None:
        """Take new answers, replacing older ones that never left, and send what the link takes."""
        for answer in answers if self.topic else ():
            self._waiting[answer.stream, answer.window, answer.aggregate] = answer
        self._next = now + self.every
        while self._waiting:
            keys = list(self._waiting)[:PER_MESSAGE]
            if not self._sender.publish(self.topic, encode(self.device, [self._waiting[key] for key in keys])):
                return
            for key in keys:
                del self._waiting[key]


def encode(device: str, answers: list[Result]) -> bytes:
    """One message: {"device": …, "results": [{stream, window, aggregate, time_us, value, low, high, …}, …]}."""
    return _encode({"device": device, "results": answers})
