"""Messages with neither number nor time: only what the broker may deliver again can be a repeat."""

from __future__ import annotations

import sqlite3
import struct
from collections import deque
from itertools import islice

from sluicegate_agent.identity.stored import entries_of, last, save_entries
from sluicegate_agent.identity.verdict import DIGEST, Verdict, digest_of
from sluicegate_agent.messages import Message

_DELIVERY = struct.Struct(f"<H{DIGEST}s")
_CONNECTION = ""


class Deliveries:
    """What the broker may deliver again: the last `most` messages without an identity of their own, in their order.

    A broker sends again only on a new connection, only what it does not know to be acknowledged, in the order in which
    it sent it first and before anything new. So after a reconnect messages are held against the log in order; the first
    that is not in it ends that: whatever comes later is new, even with a packet id and a payload seen before.
    """

    def __init__(self, connection: sqlite3.Connection, most: int) -> None:
        self.most = most
        self._total = last(connection, _CONNECTION)
        self._log: deque[bytes] = deque(islice(entries_of(connection, _CONNECTION, _DELIVERY.size), most))
        self._log.reverse()
        self._waiting: list[bytes] = []
        self._expected: list[bytes] = []
        self._open: set[bytes] = set()
        self.connected(session_present=True)

    def connected(self, *, session_present: bool) -> None:
        """A new connection: the broker repeats what it has not seen acknowledged, or has forgotten all of it."""
        if not session_present:
            self._log.clear()
        self._expected = list(self._log)
        self._open.clear()

    def check(self, message: Message) -> Verdict:
        """The verdict on a message of QoS 1, which is known from now on."""
        entry = _DELIVERY.pack(message.packet_id, digest_of(message))
        if entry in self._open or self._is_repeated(entry):
            self._open.add(entry)
            return Verdict.DUPLICATE
        self._open.add(entry)
        self._waiting.append(entry)
        self._log.append(entry)
        if len(self._log) > self.most:
            self._log.popleft()
        return Verdict.NEW

    def _is_repeated(self, entry: bytes) -> bool:
        if entry in self._expected:
            del self._expected[: self._expected.index(entry) + 1]
            return True
        self._expected.clear()
        return False

    def save(self, connection: sqlite3.Connection) -> None:
        """Write the batch as one row and delete what cannot come again, inside the caller's transaction."""
        save_entries(connection, _CONNECTION, self._total, self._waiting, self.most)

    def saved(self) -> None:
        """The transaction is durable and its messages will be acknowledged: their packet ids are free again."""
        self._total += len(self._waiting)
        self._waiting = []
        self._open.clear()
