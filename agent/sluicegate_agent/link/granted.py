"""Learns how many unacknowledged messages a broker allows from how it delivers: MQTT 3.1.1 has no way to ask.

RabbitMQ grants 10 by default, Mosquitto 20. A broker whose window is full falls silent until it is acknowledged, so
acknowledgements that wait for a timer would hold intake down to one window a commit.
"""

from __future__ import annotations

#: So many commits by the timer, one after the other, have to look alike before their size is believed.
CONFIRMED_BY = 2
#: After so many commits of a full window one waits for the timer again, to see whether more is granted; then twice as
#: many, to the most.
LOOK_AGAIN, LOOK_AGAIN_MOST = 8, 1024


class GrantedWindow:
    """The window of one broker; `size` 0: it is not known, or was never full.

    It is believed where the timer found the same number of messages in flight twice in a row, nothing had come for the
    longer half of the wait, and the acknowledgements brought the next one quickly. A sensor may look like that by
    chance: then commits come as often as its messages, until the next look shows more in flight.
    """

    def __init__(self) -> None:
        self.size = 0
        self._seen = self._alike = 0
        self._first = self._last = 0.0
        self._acknowledged = self._quiet = 0.0
        self._full, self._until_look = 0, LOOK_AGAIN

    def is_full(self, in_flight: int) -> bool:
        """Whether the broker sends no more until some of `in_flight` messages are acknowledged."""
        return 0 < self.size <= in_flight and self._full < self._until_look

    def arrived(self, in_flight: int, now: float) -> None:
        """Messages came, so many are in flight now; in monotonic seconds."""
        if self._acknowledged:
            self._judge(now - self._acknowledged)
        if in_flight > self.size > 0:
            self.forget()
        if not self._first:
            self._first = now
        self._last = now

    def acknowledged(self, in_flight: int, now: float) -> None:
        """All that was in flight has been acknowledged."""
        if self.is_full(in_flight):
            self._full += 1
        else:
            self._by_timer(in_flight, now)
        self._first = 0.0

    def _by_timer(self, in_flight: int, now: float) -> None:
        if self._full >= self._until_look:
            # It waited, and no more came than was known.
            self._full, self._until_look = 0, min(2 * self._until_look, LOOK_AGAIN_MOST)
        if in_flight != self._seen:
            self._seen, self._alike = in_flight, 0
        quiet, waited = now - self._last, now - self._first
        self._acknowledged, self._quiet = (now, quiet) if 2 * quiet >= waited > 0 else (0.0, 0.0)

    def _judge(self, after: float) -> None:
        self._alike = self._alike + 1 if 2 * after <= self._quiet else 0
        self._acknowledged = 0.0
        if self._alike >= CONFIRMED_BY and self.size != self._seen:
            self.size, self._full, self._until_look = self._seen, 0, LOOK_AGAIN

    def forget(self) -> None:
        """Another connection, or more in flight than was believed: it is learnt again."""
        self.size = self._seen = self._alike = 0
        self._first = self._acknowledged = 0.0
        self._full, self._until_look = 0, LOOK_AGAIN
