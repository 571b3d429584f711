"""Requests with a key: how many messages of each were taken, so that one that is sent again counts once, however long.

What has neither key, number nor time and may be sent again, since its sender was not told that it counts, is in doubt.
"""

from __future__ import annotations

import logging
import sqlite3
import zlib
from collections import Counter
from collections.abc import Iterable
from hashlib import blake2b
from itertools import islice

from sluicegate_agent.checksums import checksum
from sluicegate_agent.identity.stored import entries_of, last, save_entries
from sluicegate_agent.identity.verdict import DIGEST, digest_of
from sluicegate_agent.messages import Message

log = logging.getLogger("sluicegate.http")
_NAME = 12
#: Of the number beside a name: how many messages were taken. The bits above are a mark of the body, 0: it is not known.
_TAKEN = (1 << 24) - 1
#: Requests with a key that are known, at least.
KEYS_LEAST = 4096
#: Messages that may be sent again and are known, at most; their row in `meta`: a checksum, then so much of each digest.
AGAIN_MOST = 4096
UNANSWERED, _CRC, _SHORT = "unanswered", 4, 8


class Posted:
    """The last `horizon` requests with a key."""

    missing = 0

    def __init__(self, connection: sqlite3.Connection, name: str, horizon: int) -> None:
        """`name`: in the place of a source."""
        self._name, self._horizon = name, horizon
        self._total = last(connection, name)
        entries = [each for _, each in zip(range(horizon), entries_of(connection, name, DIGEST), strict=False)]
        #: An older Sluicegate kept a digest of each message.
        self._older = set(entries)
        self._taken: dict[bytes, int] = {}
        for each in reversed(entries):
            self._taken.pop(each[:_NAME], None)
            self._taken[each[:_NAME]] = int.from_bytes(each[_NAME:], "little")
        self._waiting: dict[bytes, int] = {}

    def is_of_another(self, topic: str, key: str, mark: int) -> bool:
        """Whether the key came with another body before: what it brings now would be taken for that."""
        return self._taken.get(_name(topic, key), 0) >> 24 not in (0, mark)

    def take(self, topic: str, key: str, at: int, mark: int) -> bool:
        """Whether message `at` of a request was not taken before; it is known from now on. `mark`: of its body."""
        name = _name(topic, key)
        taken = self._taken.get(name, 0) & _TAKEN
        if at < taken or digest_of(Message(topic, f"{key}\0{at}".encode(), 0, 0)) in self._older:
            return False
        self._taken.pop(name, None)
        self._taken[name] = self._waiting[name] = min(at + 1, _TAKEN) | mark << 24
        if len(self._taken) > self._horizon:
            del self._taken[next(iter(self._taken))]
        return True

    @property
    def touched(self) -> bool:
        """Whether `save` has something to write."""
        return bool(self._waiting)

    def save(self, connection: sqlite3.Connection) -> None:
        """Write how much was taken, inside the caller's transaction."""
        entries = [name + taken.to_bytes(DIGEST - _NAME, "little") for name, taken in self._waiting.items()]
        save_entries(connection, self._name, self._total, entries, self._horizon)

    def saved(self) -> None:
        """The transaction is durable."""
        self._total += len(self._waiting)
        self._waiting = {}


def _name(topic: str, key: str) -> bytes:
    return blake2b(f"{topic}\0{key}".encode(), digest_size=_NAME).digest()


def mark_of(body: bytes) -> int:
    """Tells most bodies apart: 1 to 255."""
    return 1 + zlib.crc32(body) % 255


class Unanswered:
    """Messages that counted and whose senders may not know it: who says the same once more may repeat one.

    What a commit takes of requests is durable with it: a kill before the answer leaves their senders without one.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Raises sqlite3.DatabaseError for a damaged row."""
        self._again, self._now, self._row, self._written = Counter[bytes](), Counter[bytes](), b"", b""
        found = connection.execute("SELECT value FROM meta WHERE key = ?", (UNANSWERED,)).fetchone()
        if found:
            self._row = self._written = found[0]
            self._again.update(read_digests(found[0]))

    def take_now(self, digests: Iterable[bytes]) -> None:
        """Messages of these (`short_of`) are being counted, and their sender waits for the answer."""
        room = max(0, AGAIN_MOST - self._now.total())
        self._now.update(islice(digests, room))

    def add(self, digests: Iterable[bytes]) -> None:
        """Messages of these (`short_of`) may be sent again."""
        count = self._again.total()
        for digest in digests:
            if count >= AGAIN_MOST:
                log.warning("more than %d messages may be sent again: further ones count anew if they are", AGAIN_MOST)
                return
            self._again[digest] += 1
            _less(self._now, digest)
            count += 1

    def take(self, digest: bytes) -> bool:
        """Whether a message may be one of them; it is the one then."""
        return _less(self._again, short_of(digest))

    def save(self, connection: sqlite3.Connection) -> None:
        """Write them, inside the caller's transaction."""
        all_of = b"".join([*self._again.elements(), *self._now.elements()][:AGAIN_MOST])
        self._row = _sealed(all_of) if all_of else b""
        if self._row != self._written:
            connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (UNANSWERED, self._row))

    def saved(self) -> None:
        """It is durable."""
        self._written = self._row

    def answered(self) -> None:
        """All that is being counted was answered; the next commit says so."""
        self._now.clear()

    def __bool__(self) -> bool:
        return bool(self._again)


def short_of(digest: bytes) -> bytes:
    """As much of a message's digest as is kept of it here."""
    return digest[:_SHORT]


def _less(counted: Counter[bytes], digest: bytes) -> bool:
    """One less of it; whether there was one."""
    found = counted[digest] > 0
    counted[digest] -= found
    if not counted[digest]:
        del counted[digest]
    return found


def read_digests(row: object) -> list[bytes]:
    """What the row of `Unanswered` says. Raises sqlite3.DatabaseError for one that is not as it was written."""
    if row == b"":
        return []
    if not isinstance(row, bytes) or row != _sealed(row[_CRC:]):
        raise sqlite3.DatabaseError(f"a malformed row in the table meta: {UNANSWERED} has a wrong checksum")
    return [row[at : at + _SHORT] for at in range(_CRC, len(row), _SHORT)]


def _sealed(digests: bytes) -> bytes:
    return checksum(UNANSWERED, digests).to_bytes(_CRC, "little") + digests
