"""A source's sequence numbers: a bitmap of the last `horizon` numbers of each of its last few epochs."""

from __future__ import annotations

import sqlite3
import struct
from hashlib import blake2b

from sluicegate_agent.identity.verdict import DIGEST, Verdict

EPOCHS_KEPT = 4
JUMP_MOST = 1 << 40
MISSING_MOST = 1 << 60
_EPOCH_ROW = struct.Struct("<4sqqqqqI")
_MAGIC = b"SGQ1"


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

    def committed(self, generation: int) -> None:
        """What came so far is durable with this commit, and is being acknowledged."""

    def confirmed(self, generation: int) -> None:
        """The broker has taken the acknowledgements up to this commit's."""

    def saved(self) -> None:
        """The transaction is durable: nothing is waiting."""
        self._forgotten.clear()
        for epoch in self._epochs.values():
            epoch.changed = False


def _epoch_key(epoch: str | int | None) -> bytes:
    return blake2b(f"{type(epoch).__name__}:{epoch}".encode(), digest_size=DIGEST).digest()
