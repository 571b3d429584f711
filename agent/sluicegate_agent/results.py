"""Answers to the outside: at most so often, in messages of bounded size, the newest of each window, none twice.

What is offered rests on a commit (agent.py); after a start each window's answer is offered once more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from sluicegate_agent.config import Config
from sluicegate_agent.messages import EndedResult, Result

if TYPE_CHECKING:
    from collections import deque

    from sluicegate_agent.each_reading import EachReading

PER_MESSAGE = 32
#: Messages of QoS 1 that the broker has not acknowledged, at most.
IN_FLIGHT = 32
#: Results of one window with ends, an aggregate, that wait while the link takes none; the oldest of more are dropped.
ENDED_MOST = 64
#: Answers after each reading that wait at most (`results.every = "reading"`).
EACH_MOST = 8192
_encode = msgspec.json.Encoder().encode
Key = tuple[str, str, str, int]  # stream, window, aggregate; where the window begins, 0 for one without an end


class Sender(Protocol):
    """Whatever takes a result's bytes and says whether it did: the MQTT link."""

    def publish(self, topic: str, payload: bytes, *, retain: bool = False) -> bool:
        """Send one message with QoS 0; False when it has to wait."""

    def send(self, topic: str, payload: bytes, *, retain: bool) -> Any:
        """Send one with QoS 1: something whose `is_published()` says when it was taken; None when it has to wait."""


class Results:
    """Holds the newest unsent answer of each window and publishes them when their time has come."""

    def __init__(
        self,
        config: Config,
        sender: Sender,
        note: Callable[[str], None] | None = None,
        each: EachReading | None = None,
    ) -> None:
        """`note`: told "results.dropped" for each result that nobody will get. `each`: answers after each reading."""
        self._each, self._has_begun = each, False
        self.device = config.device.id
        self.topic = config.results.topic.replace("{device}", config.device.id)
        self.every = config.results.every.seconds
        self.config = config.results
        self._is_asked = bool(self.topic) or config.metrics.listen is not None or bool(config.alert)
        self._sender = sender
        self._waiting: dict[Key, Result] = {}
        self._last: dict[Key, Result] = {}
        self._flying: list[Any] = []
        self._starts: dict[tuple[str, str, str], dict[int, None]] = {}  # of windows with ends, the newest last
        self._note = note
        self._next = 0.0

    def due(self, now: float) -> bool:
        """Whether answers should be asked for at monotonic second `now`: to be published, or for who asks here."""
        return self._is_asked and now >= self._next

    def offer(self, answers: Iterable[Result], now: float) -> None:
        """Take new answers, replacing older ones that never left, and send what the link takes."""
        for answer in answers if self.topic else ():
            # Once after a start the newest is told, whatever was on its way when the process before ended.
            if self._each is None or not self._has_begun or not self._each.speaks_for(answer.window):
                self._wait(answer)
        self._has_begun = True
        self._next = now + self.every
        if self._each is not None and not self._send_each(self._each.waiting):
            return
        while self._waiting:
            topic, keys = self._next_message()
            if not self._sent(topic, encode(self.device, [self._waiting[key] for key in keys])):
                return
            for key in keys:
                answer = self._waiting.pop(key)
                if self.config.on_change and not isinstance(answer, EndedResult):
                    self._last[key] = answer

    def _send_each(self, waiting: deque[Result]) -> bool:
        """Send answers after each reading, in their order; whether the link took them all."""
        has_places = "{" in self.topic
        while waiting:
            topic, taken, last = self._place(waiting[0]), 0, dict[Key, Result]()
            answers: list[Result] = []
            for answer in waiting:
                if len(answers) == PER_MESSAGE or (has_places and self._place(answer) != topic):
                    break
                taken += 1
                if self.config.on_change:
                    key = answer.stream, answer.window, answer.aggregate, 0
                    if not self._has_changed(last.get(key) or self._last.get(key), answer):
                        continue
                    last[key] = answer
                answers.append(answer)
            if answers and not self._sent(topic, encode(self.device, answers)):
                return False
            if self.config.on_change:
                self._last |= last
            for _ in range(taken):
                waiting.popleft()
        return True

    def _place(self, answer: Result) -> str:
        return topic_of(self.topic, answer.stream, answer.window, answer.aggregate)

    def _wait(self, answer: Result) -> None:
        """The newest of each window; of windows that end the newest of each of the newest ENDED_MOST."""
        place = answer.stream, answer.window, answer.aggregate
        if isinstance(answer, EndedResult):
            self._wait_for_end(place, answer)
            return
        key = (*place, 0)
        if self.config.on_change and not self._has_changed(self._last.get(key), answer):
            self._waiting.pop(key, None)  # the answer is again what was sent last
        else:
            self._waiting[key] = answer

    def _wait_for_end(self, place: tuple[str, str, str], answer: EndedResult) -> None:
        for start in answer.replaces:
            self._waiting.pop((*place, start), None)
        self._waiting[(*place, answer.start_us)] = answer
        starts = self._starts.setdefault(place, {})
        starts[answer.start_us] = None
        if len(starts) > ENDED_MOST:
            oldest = next(iter(starts))
            del starts[oldest]
            if self._waiting.pop((*place, oldest), None) is not None and self._note:
                self._note("results.dropped")

    def _next_message(self) -> tuple[str, list[Key]]:
        """The topic of the answer that has waited longest, and those that go with it."""
        first = topic_of(self.topic, *next(iter(self._waiting))[:3])
        if first == self.topic:
            return first, list(self._waiting)[:PER_MESSAGE]
        keys = [key for key in self._waiting if topic_of(self.topic, *key[:3]) == first]
        return first, keys[:PER_MESSAGE]

    def _sent(self, topic: str, payload: bytes) -> bool:
        if self.config.qos == 0:
            return self._sender.publish(topic, payload, retain=self.config.retain)
        self._flying = [info for info in self._flying if not info.is_published()]
        info = None
        if len(self._flying) < IN_FLIGHT:
            info = self._sender.send(topic, payload, retain=self.config.retain)
        if info is not None:
            self._flying.append(info)
        return info is not None

    def _has_changed(self, before: Result | None, now: Result) -> bool:
        """Whether value, interval or exactness differ from what was sent by more than the deadband."""
        if before is None or before.exact != now.exact:
            return True
        pairs = ((before.value, now.value), (before.low, now.low), (before.high, now.high))
        return any(_differ(was, is_now, self.config.deadband) for was, is_now in pairs)


@lru_cache(maxsize=1024)
def topic_of(template: str, stream: str, window: str, aggregate: str) -> str:
    """Where an answer goes; what a topic cannot have in a name (`histogram(0, 1, 2)` is fine, `+` is not) is `_`."""
    safe = "".join("_" if c in "+#/" else c for c in aggregate)
    return template.replace("{stream}", stream).replace("{window}", window).replace("{aggregate}", safe)


def _differ(was: object, now: object, deadband: float) -> bool:
    if isinstance(was, int | float) and isinstance(now, int | float):
        return was != now and not abs(now - was) <= deadband
    return was != now


def encode(device: str, answers: list[Result]) -> bytes:
    """One message: {"device": …, "results": [{stream, window, aggregate, time_us, value, low, high, …}, …]}."""
    return _encode({"device": device, "results": answers})
