"""A session: what one client subscribed to and what it has not acknowledged, in order, across connections."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace

from sluicegate_demo.broker.packets import Message

FILTERS = 64  # most topic filters a session may hold


def matches(name: str, topic: str) -> bool:
    """Whether a topic filter takes a topic; `+` is one level, `#` all that follow, neither takes `$…` (MQTT 5, 4.7)."""
    if topic.startswith("$") and name[0] in "+#":
        return False
    levels, wanted = topic.split("/"), name.split("/")
    if wanted[-1] == "#":
        wanted = wanted[:-1]
        levels = levels[: len(wanted)]
    return len(levels) == len(wanted) and all(want in ("+", have) for want, have in zip(wanted, levels, strict=True))


def well_formed(name: str) -> bool:
    """Whether a filter is one: `#` only as the last level, `+` and `#` alone in theirs, no NUL, no shared group."""
    levels = name.split("/")
    if not name or "\0" in name or name.startswith("$share/") or "#" in levels[:-1]:
        return False
    return all(level in ("+", "#") or not {"+", "#"} & set(level) for level in levels)


class Session:
    """The queue and the window in flight of one client id. Bounded by messages and bytes; never drops what it took."""

    def __init__(self, client: str, limit: int, limit_bytes: int) -> None:
        self.client = client
        self.filters: dict[str, int] = {}
        self.expiry: int | None = 0
        self.epoch = 0  # connections so far: an expiry set for an earlier one is void
        self._limit, self._limit_bytes = limit, limit_bytes
        self._queue: deque[Message] = deque()
        self._bytes = 0
        self._inflight: dict[int, Message] = {}
        self._again: deque[int] = deque()
        self._last_id = 0
        self._waiting: list[Callable[[], None]] = []

    @property
    def full(self) -> bool:
        """Whether a publisher has to wait."""
        return len(self._queue) >= self._limit or self._bytes >= self._limit_bytes

    @property
    def waiting(self) -> int:
        """Messages the client has not acknowledged, sent or not."""
        return len(self._queue) + len(self._inflight)

    def wants(self, topic: str) -> int | None:
        """The QoS this client takes the topic at; None: not at all."""
        return max((qos for name, qos in self.filters.items() if matches(name, topic)), default=None)

    def add(self, message: Message, qos: int) -> None:
        """Queue a message at no more than the QoS subscribed to."""
        if qos < message.qos:
            message = replace(message, qos=qos)
        self._queue.append(message)
        self._bytes += len(message.payload)

    def resume(self) -> None:
        """A new connection: all in flight goes out again, in order, before anything new; QoS 0 is not kept."""
        self.epoch += 1
        self._again = deque(self._inflight)
        kept = [message for message in self._queue if message.qos]
        self._queue, self._bytes = deque(kept), sum(len(message.payload) for message in kept)

    def take(self, receive_maximum: int) -> tuple[Message, int, bool] | None:
        """The next message to send, its packet id (0 at QoS 0) and whether it went out before; None: not now."""
        if len(self._inflight) - len(self._again) >= receive_maximum:
            return None
        if self._again:
            packet = self._again.popleft()
            return self._inflight[packet], packet, True
        if not self._queue:
            return None
        message = self._queue.popleft()
        self._bytes -= len(message.payload)
        packet = self._new_id(message) if message.qos else 0
        return message, packet, False

    def _new_id(self, message: Message) -> int:
        while True:
            self._last_id = self._last_id % 65535 + 1
            if self._last_id not in self._inflight:
                self._inflight[self._last_id] = message
                return self._last_id

    def acknowledged(self, packet: int) -> bool:
        """The client answers for a message; False: for none that is in flight (a duplicate's second PUBACK)."""
        if packet in self._again:
            self._again.remove(packet)
        return self._inflight.pop(packet, None) is not None

    def when_room(self, call: Callable[[], None]) -> None:
        """Call back once this session is no longer full, or is gone."""
        self._waiting.append(call)

    def wake(self, *, gone: bool = False) -> None:
        """Let waiting publishers on if there is room, or if nothing will be kept here any more."""
        if self._waiting and (gone or not self.full):
            waiting, self._waiting = self._waiting, []
            for call in waiting:
                call()
