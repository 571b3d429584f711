"""How a broker numbers what it delivers, learned from the numbers alone: what a packet id says depends on it.

MQTT says only that an id is not used twice at once. Brokers count upward through a session (Mosquitto), begin again
with each connection (RabbitMQ: at the packet id of our SUBSCRIBE, which is 1), or could take whatever number is free.
Until a habit was seen nothing rests on it.
"""

from __future__ import annotations

from typing import Any

LAST_ID = 65535
#: So many ids must have followed each other, while lesser ones were free for certain.
SHOWN = 4
#: So many connections must have begun at 1 although the last one had come further.
BEGUN_ANEW = 2


class Habits:
    """What is known of one session's packet ids.

    `kept`: whether they go on over connections, None while it is not known. `tip`: the last that was given out.
    `marks`: whether a connection was seen to begin with a message that has DUP, as MQTT wants it of a repeat.
    `strays`: whether a message came again on the connection that had brought it.
    """

    def __init__(self, stored: dict[str, Any] | None = None) -> None:
        found = stored or {}
        self.kept: bool | None = found.get("over")  # "kept" of old states was learned from other SUBSCRIBEs than 1
        self.tip: int = found.get("tip", 0)
        self.marks: bool = found.get("marks", False)
        self.strays: bool = found.get("strays", False)
        self._shown: int = found.get("shown", 0)
        self._begun_anew: int = found.get("anew", 0)

    def stored(self) -> dict[str, Any]:
        """For the store."""
        learned = {"over": self.kept, "tip": self.tip, "shown": self._shown, "anew": self._begun_anew}
        return learned | {"marks": self.marks, "strays": self.strays}

    @property
    def decide(self) -> bool:
        """Whether an id names one message for good: ids count upward, over connections too, and none is used again."""
        return self.kept is True and self._shown >= SHOWN

    def ahead(self, packet_id: int) -> bool:
        """Whether an id has not been given out yet, of a broker that counts upward."""
        return 0 < (packet_id - self.tip) % LAST_ID < LAST_ID // 2

    def begin(self, packet_id: int, *, dup: bool, in_flight: bool) -> None:
        """The first message of a connection whose session was there; `in_flight`: it may be one of before.

        Ids go on where it is one of before, or has the next id. Any other number shows nothing.
        """
        if packet_id != 1:
            self._begun_anew = 0
            if self.kept is None and (in_flight or packet_id == self.tip % LAST_ID + 1):
                self.kept = True
        elif self.tip not in (0, LAST_ID) and not in_flight:
            self._begun_anew += 1
            if (dup and self.kept is None) or self._begun_anew >= BEGUN_ANEW:
                self.kept = False

    def passed(self, packet_id: int, *, dup: bool, settled: bool, unconfirmed: int) -> None:
        """Any message of QoS 1; `unconfirmed`: those before it that the broker may hold to be under way.

        `settled`: it cannot be one that the broker had before this connection.
        """
        ahead = self.ahead(packet_id)
        if not self.decide and not dup and settled and not ahead:
            self.reuses()
        elif self._shown >= 0 and not dup and packet_id == self.tip % LAST_ID + 1 and packet_id > unconfirmed + 1:
            # A broker that takes the least free number would have had one below.
            self._shown = min(SHOWN, self._shown + 1)
        if ahead or not (self.decide or dup):
            self.tip = packet_id

    def reuses(self) -> None:
        """An id came again that had been acknowledged: that holds for the whole session."""
        self._shown = -1
