"""Messages with a time of their own: 128 bits of BLAKE2b over topic and payload, for the last `horizon` of them.

A sensor whose clock is coarse may honestly say the same twice within one step of it. `resolution` is that step, 0 where
two messages of one content and time are one; where it is not told, whole seconds until a fraction of one was seen, and
what is taken for another reading is in doubt.
"""

from __future__ import annotations

import sqlite3
import struct
from collections import deque
from itertools import islice
from time import monotonic

from sluicegate_agent.checksums import checksum
from sluicegate_agent.identity.forgotten import ROW, Forgotten
from sluicegate_agent.identity.stored import entries_of, last, save_entries
from sluicegate_agent.identity.verdict import DIGEST, Found, Verdict, digest_of
from sluicegate_agent.messages import Message

_SECOND = 1_000_000
_NEVER = -(1 << 62)
_CLOCK = struct.Struct("<q??6x")


class Contents:
    """The last `horizon` messages of one source, by what they say."""

    missing = 0

    def __init__(self, connection: sqlite3.Connection, source: str, horizon: int, resolution: int | None = 0) -> None:
        self.source, self.horizon, self.resolution = source, horizon, resolution
        self._total = last(connection, source)
        self._recent: deque[bytes] = deque(islice(entries_of(connection, source, DIGEST), horizon))
        self._recent.reverse()
        self._known = set(self._recent)
        self._waiting: list[bytes] = []
        self._erased: list[bytes] = []
        self._newest, self._is_fine, self._says_again, self._changed = _NEVER, False, False, False
        found = connection.execute("SELECT value FROM meta WHERE key = ?", (self._clock_name,)).fetchone()
        if found is not None:
            if not isinstance(found[0], bytes) or len(found[0]) not in (_CLOCK.size, _CLOCK.size + ROW):
                raise sqlite3.DatabaseError("a row of the table meta is malformed")
            self._newest, self._is_fine, self._says_again = _CLOCK.unpack_from(found[0])
        row = found[0][_CLOCK.size :] if found else b""
        self._forgotten = Forgotten(horizon, self._total, self._newest, row)
        self._here: set[tuple[bytes, int]] = set()  # with the request, where they come in such
        self._open: set[tuple[bytes, int]] = set()
        self.touched = False  # whether `save` may have something to write
        self.heard_at = monotonic()

    @property
    def _clock_name(self) -> str:
        return f"clock {self.source}"

    @property
    def _step(self) -> int:
        """µs within which a sensor may say the same twice; 0: it may not."""
        if self.resolution is not None:
            return self.resolution
        return 0 if self._is_fine else _SECOND

    def connected(self) -> None:
        """A new connection: what came over the old one may come again."""
        self._here.clear()
        self._open.clear()

    def check(self, message: Message, time: int = 0, *, may_be_copy: bool = False) -> Found:
        """The verdict on a message of `time` µs, which is known from now on; `may_be_copy`: two may come of one."""
        if self.take_new(message, time):
            return Found(Verdict.NEW)
        digest = digest_of(message)
        self.touched = True
        self._learn(time)
        if digest not in self._known:
            self._take(message, digest, time)
            return Found(Verdict.NEW, 1)
        found = self._again(message, digest, time, may_be_copy=may_be_copy)
        if found.verdict is Verdict.NEW:
            self._take(message, digest, time)
        return found

    def take_new(self, message: Message, time: int) -> bool:
        """Take a message that was not said before; False, and nothing is done, for any other.

        With a time that is not later than one that is forgotten it may have been.
        """
        digest = digest_of(message)
        if digest in self._known or time <= self._forgotten.until:
            return False
        self.touched = True
        self._learn(time)
        self._take(message, digest, time)
        return True

    def _again(self, message: Message, digest: bytes, time: int, *, may_be_copy: bool) -> Found:
        """What was said before: a repeat, unless it is of the newest time, by a coarse clock, and not sent again.

        Of a sensor that is known to say the same twice, what the broker sends again may be either: it is in doubt.
        """
        step = self._step
        is_repeat = message.retain or (digest, message.packet_id) in self._open
        if is_repeat or not step or time // step < self._newest // step or (message.dup and not self._says_again):
            return Found(Verdict.DUPLICATE)
        if not message.dup and not self._says_again:
            self._says_again = self._changed = True
        is_alone = _here(message, digest) in self._here and not message.dup and not may_be_copy
        is_certain = self.resolution is not None and is_alone
        return Found(Verdict.NEW, 0 if is_certain else 1)

    def _learn(self, time: int) -> None:
        if self.resolution is None and not self._is_fine and time % _SECOND:
            self._is_fine = self._changed = True

    def _take(self, message: Message, digest: bytes, time: int) -> None:
        if time > self._newest:
            self._newest, self._changed = time, True
            self._here.clear()
        if self._step and message.qos:
            self._open.add((digest, message.packet_id))
        if digest in self._known:
            return
        if self._step:
            self._here.add(_here(message, digest))
        self._known.add(digest)
        self._recent.append(digest)
        self._waiting.append(digest)
        self._changed |= self._forgotten.note(self._newest)
        if len(self._recent) > self.horizon:
            self._known.discard(self._recent.popleft())

    def take_back(self, message: Message) -> None:
        """A message that was new is refused for another reason: it is new again when it comes again."""
        digest = digest_of(message)
        self.touched = True
        if digest in self._known:
            self._known.remove(digest)
            self._recent.remove(digest)
            self._erased.append(digest)

    def save(self, connection: sqlite3.Connection) -> None:
        """Write the batch as one row and delete those beyond the horizon, inside the caller's transaction."""
        save_entries(connection, self.source, self._total, self._waiting, self.horizon)
        for digest in self._erased:
            self._erase(connection, digest)
        if self._changed:
            clock = _CLOCK.pack(self._newest, self._is_fine, self._says_again) + self._forgotten.packed()
            connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (self._clock_name, clock))

    def _erase(self, connection: sqlite3.Connection, digest: bytes) -> None:
        query = "SELECT last, entries FROM identity WHERE source = ? AND instr(entries, ?)"
        for number, entries in connection.execute(query, (self.source, digest)).fetchall():
            kept = [entries[at : at + DIGEST] for at in range(0, len(entries), DIGEST)]
            kept = [bytes(DIGEST) if each == digest else each for each in kept]
            row = (self.source, number, b"".join(kept))
            connection.execute("REPLACE INTO identity VALUES (?, ?, ?, ?)", (*row, checksum(*row)))

    def committed(self, generation: int) -> None:
        """What came so far is durable with this commit, and is being acknowledged."""

    def confirmed(self, generation: int) -> None:
        """The broker has taken the acknowledgements up to this commit's."""

    def saved(self) -> None:
        """The transaction is durable and its messages will be acknowledged: their packet ids are free again."""
        self._total += len(self._waiting)
        self._waiting = []
        self._erased = []
        self._open.clear()
        if self.touched:
            self.heard_at = monotonic()
        self._changed = self.touched = False


def _here(message: Message, digest: bytes) -> tuple[bytes, int]:
    return digest, 0 if message.qos else message.packet_id
