"""Has this message been counted? Three answers, by what the message tells of itself; never by the DUP flag.

`Sequences`   a sequence number: a bitmap of the last `horizon` numbers of each of the last few epochs of a source.
`Contents`    a time of its own: 128 bits of BLAKE2b over topic and payload, kept for the last `horizon` messages.
`Deliveries`  neither: a sensor may honestly say the same twice, so only what the broker may deliver again counts as
              known: (packet id, payload) of the messages it may not know to be acknowledged, in their order.

Each is changed in memory as messages come, written by `save` inside the commit's transaction, and clean after `saved`.
"""

from __future__ import annotations

import sqlite3
import struct
from collections import deque
from collections.abc import Iterator
from enum import Enum
from hashlib import blake2b
from itertools import islice

from sluicegate_agent.messages import Message

DIGEST = 16
EPOCHS_KEPT = 4
JUMP_MOST = 1 << 40
MISSING_MOST = 1 << 60
_EPOCH_ROW = struct.Struct("<4sqqqqqI")
_MAGIC = b"SGQ1"
_DELIVERY = struct.Struct(f"<H{DIGEST}s")
_CONNECTION = ""


class Verdict(Enum):
    """What is known of a message; all but NEW are refused, each with its own counter."""

    NEW = "new"
    DUPLICATE = "duplicate"
    BEYOND_HORIZON = "beyond_horizon"
    SEQUENCE_JUMP = "sequence_jump"


def digest_of(message: Message) -> bytes:
    """128 bits over topic and payload; the lengths are unambiguous because no topic contains a zero byte."""
    return blake2b(message.topic.encode() + b"\0" + message.payload, digest_size=DIGEST).digest()


class Epoch:
    """The numbers seen since a source last began to count: a ring of bits for the newest `horizon` of them."""

    __slots__ = ("base", "bits", "changed", "high", "horizon", "missing", "order")

    def __init__(self, order: int, horizon: int, first: int) -> None:
        self.order, self.horizon = order, horizon
        self.base = self.high = first
        self.missing = 0
        self.bits = bytearray((horizon + 7) // 8)
        self._set(first)
        self.changed = True

    def check(self, number: int) -> Verdict:
        """The verdict on `number`, which is marked as seen where it is new."""
        if number > self.high:
            return self._advance(number)
        if number <= self.high - self.horizon:
            return Verdict.BEYOND_HORIZON
        if self._seen(number):
            return Verdict.DUPLICATE
        self._fill(number)
        return Verdict.NEW

    def _advance(self, number: int) -> Verdict:
        if number - self.high > JUMP_MOST:
            return Verdict.SEQUENCE_JUMP
        for passed in range(max(self.high + 1, number - self.horizon + 1), number):
            self._clear(passed)
        self.missing += number - self.high - 1
        self.high = number
        self._set(number)
        self.changed = True
        return Verdict.NEW

    def _fill(self, number: int) -> None:
        """A late arrival: one less is missing; below the first ever seen, those between become missing."""
        self.missing += -1 if number > self.base else self.base - number - 1
        self.base = min(self.base, number)
        self._set(number)
        self.changed = True

    def _seen(self, number: int) -> bool:
        at = number % self.horizon
        return bool(self.bits[at >> 3] >> (at & 7) & 1)

    def _set(self, number: int) -> None:
        at = number % self.horizon
        self.bits[at >> 3] |= 1 << (at & 7)

    def _clear(self, number: int) -> None:
        at = number % self.horizon
        self.bits[at >> 3] &= ~(1 << (at & 7)) & 0xFF

    def pack(self, carried: int) -> bytes:
        """The epoch as a row; `carried` is what the epochs forgotten before it still miss."""
        head = (_MAGIC, self.order, self.base, self.high, self.missing, carried, self.horizon)
        return _EPOCH_ROW.pack(*head) + bytes(self.bits)

    @classmethod
    def unpack(cls, row: bytes, horizon: int) -> tuple[Epoch, int]:
        """The epoch of a row, its bits moved to another horizon where the setting changed; and what it carried."""
        head = row[: _EPOCH_ROW.size].ljust(_EPOCH_ROW.size, b"\0")
        magic, order, base, high, missing, carried, stored = _EPOCH_ROW.unpack(head)
        if magic != _MAGIC or len(row) != _EPOCH_ROW.size + (stored + 7) // 8:
            raise sqlite3.DatabaseError("a row of the table sequence is malformed")
        kept = cls(order, stored, high)
        kept.base, kept.missing, kept.bits = base, missing, bytearray(row[_EPOCH_ROW.size :])
        return (kept if stored == horizon else kept._resized(horizon)), carried

    def _resized(self, horizon: int) -> Epoch:
        """A longer horizon cannot know what the shorter one forgot: those numbers count as seen, never twice."""
        new = Epoch(self.order, horizon, self.high)
        new.base, new.missing = self.base, self.missing
        for number in range(max(0, self.high - horizon + 1), self.high):
            if number <= self.high - self.horizon or self._seen(number):
                new._set(number)
        return new


class Sequences:
    """The sequence numbers of one source; its last EPOCHS_KEPT epochs are known, an older one begins afresh."""

    def __init__(self, connection: sqlite3.Connection, source: str, horizon: int) -> None:
        self.source, self.horizon = source, horizon
        self._carried = 0
        self._epochs: dict[bytes, Epoch] = {}
        self._forgotten: list[bytes] = []
        rows = connection.execute("SELECT epoch, row FROM sequence WHERE source = ?", (source,)).fetchall()
        for epoch, row in rows:
            self._epochs[epoch], carried = Epoch.unpack(row, horizon)
            self._carried = max(self._carried, carried)

    @property
    def missing(self) -> int:
        """Messages that the sequence numbers say exist and that have not come."""
        return min(MISSING_MOST, self._carried + sum(epoch.missing for epoch in self._epochs.values()))

    def check(self, number: int, epoch: str | int | None) -> Verdict:
        """The verdict on a number, which is marked as seen where it is new."""
        key = _epoch_key(epoch)
        known = self._epochs.get(key)
        if known is not None:
            return known.check(number)
        order = 1 + max((other.order for other in self._epochs.values()), default=0)
        self._epochs[key] = Epoch(order, self.horizon, number)
        self._forget()
        return Verdict.NEW

    def _forget(self) -> None:
        while len(self._epochs) > EPOCHS_KEPT:
            oldest = min(self._epochs, key=lambda key: self._epochs[key].order)
            self._carried += self._epochs.pop(oldest).missing
            self._forgotten.append(oldest)

    def save(self, connection: sqlite3.Connection) -> None:
        """Write the epochs that changed, inside the caller's transaction."""
        for key in self._forgotten:
            connection.execute("DELETE FROM sequence WHERE source = ? AND epoch = ?", (self.source, key))
        for key, epoch in self._epochs.items():
            if epoch.changed:
                row = (self.source, key, epoch.pack(self._carried))
                connection.execute("INSERT OR REPLACE INTO sequence VALUES (?, ?, ?)", row)

    def saved(self) -> None:
        """The transaction is durable: nothing is waiting."""
        self._forgotten.clear()
        for epoch in self._epochs.values():
            epoch.changed = False


def _epoch_key(epoch: str | int | None) -> bytes:
    return blake2b(f"{type(epoch).__name__}:{epoch}".encode(), digest_size=DIGEST).digest()


class Contents:
    """The last `horizon` messages of one source, by what they say."""

    missing = 0

    def __init__(self, connection: sqlite3.Connection, source: str, horizon: int) -> None:
        self.source, self.horizon = source, horizon
        self._total = _last(connection, source)
        self._recent: deque[bytes] = deque(islice(_digests(connection, source), horizon))
        self._recent.reverse()
        self._known = set(self._recent)
        self._waiting: list[bytes] = []

    def check(self, message: Message) -> Verdict:
        """The verdict on a message, which is known from now on."""
        digest = digest_of(message)
        if digest in self._known:
            return Verdict.DUPLICATE
        self._known.add(digest)
        self._recent.append(digest)
        self._waiting.append(digest)
        if len(self._recent) > self.horizon:
            self._known.discard(self._recent.popleft())
        return Verdict.NEW

    def save(self, connection: sqlite3.Connection) -> None:
        """Write the batch as one row and delete those beyond the horizon, inside the caller's transaction."""
        _save_entries(connection, self.source, self._total, self._waiting, self.horizon)

    def saved(self) -> None:
        """The transaction is durable: nothing is waiting."""
        self._total += len(self._waiting)
        self._waiting = []


class Deliveries:
    """What the broker may deliver again: the last `most` messages without an identity of their own, in their order.

    A broker sends again only on a new connection, only what it does not know to be acknowledged, in the order in which
    it sent it first and before anything new. So after a reconnect messages are held against the log in order; the first
    that is not in it ends that: whatever comes later is new, even with a packet id and a payload seen before.
    """

    def __init__(self, connection: sqlite3.Connection, most: int) -> None:
        self.most = most
        self._total = _last(connection, _CONNECTION)
        self._log: deque[bytes] = deque(islice(_entries(connection, _CONNECTION, _DELIVERY.size), most))
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
        _save_entries(connection, _CONNECTION, self._total, self._waiting, self.most)

    def saved(self) -> None:
        """The transaction is durable and its messages will be acknowledged: their packet ids are free again."""
        self._total += len(self._waiting)
        self._waiting = []
        self._open.clear()


def _last(connection: sqlite3.Connection, source: str) -> int:
    found = connection.execute("SELECT max(last) FROM identity WHERE source = ?", (source,)).fetchone()[0]
    return found or 0


def _entries(connection: sqlite3.Connection, source: str, width: int) -> Iterator[bytes]:
    """The stored entries of a source, newest first."""
    rows = connection.execute("SELECT entries FROM identity WHERE source = ? ORDER BY last DESC", (source,))
    for (entries,) in rows:
        if len(entries) % width:
            raise sqlite3.DatabaseError("a row of the table identity is malformed")
        for at in range(len(entries) - width, -1, -width):
            yield entries[at : at + width]


def _digests(connection: sqlite3.Connection, source: str) -> Iterator[bytes]:
    return _entries(connection, source, DIGEST)


def _save_entries(connection: sqlite3.Connection, source: str, before: int, waiting: list[bytes], horizon: int) -> None:
    if not waiting:
        return
    last = before + len(waiting)
    connection.execute("INSERT OR REPLACE INTO identity VALUES (?, ?, ?)", (source, last, b"".join(waiting)))
    connection.execute("DELETE FROM identity WHERE source = ? AND last <= ?", (source, last - horizon))
