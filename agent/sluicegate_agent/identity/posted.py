"""Requests with a key: how many messages of each were taken, so that one that is sent again counts once, however long.

What has neither key, number nor time and may be sent again, since its sender was not told that it counts, is in doubt.
"""

from __future__ import annotations

import logging
import sqlite3
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from hashlib import blake2b

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
#: Messages that may be sent again and are known, at most; their row in `meta`: a checksum, so much of each digest,
#: and in four bytes how many more there are, if any.
AGAIN_MOST, _BEYOND_MOST = 4096, (1 << 32) - 1
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

    What a commit takes of requests is durable with it: a kill before the answer leaves their senders without one. Of
    those beyond AGAIN_MOST nothing is known but how many they are: as many that are posted later may repeat them.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Raises sqlite3.DatabaseError for a damaged row."""
        self._again, self._now, self._row, self._written = Counter[bytes](), Counter[bytes](), b"", b""
        self._beyond = self._beyond_now = 0
        found = connection.execute("SELECT value FROM meta WHERE key = ?", (UNANSWERED,)).fetchone()
        if found:
            self._row = self._written = found[0]
            digests, self._beyond = read_digests(found[0])
            self._again.update(digests)

    def take_now(self, digests: Sequence[bytes], more: int = 0) -> None:
        """Messages of these (`short_of`) are being counted, and `more` of any; their sender waits for the answer."""
        room = max(0, AGAIN_MOST - self._now.total())
        self._now.update(digests[:room])
        self._beyond_now += len(digests[room:]) + more

    def add(self, digests: Sequence[bytes], more: int = 0) -> int:
        """Messages of these (`short_of`) may be sent again, and `more` of any; how many of them all are not known."""
        room = max(0, AGAIN_MOST - self._again.total())
        for digest in digests[:room]:
            self._again[digest] += 1
            _less(self._now, digest)
        beyond = len(digests[room:]) + more
        self._beyond += beyond
        self._beyond_now = max(0, self._beyond_now - beyond)
        if beyond:
            log.warning("more than %d messages may be sent again: as many later ones count in doubt", AGAIN_MOST)
        return beyond

    def heard(self, digests: Iterable[bytes], more: int = 0) -> None:
        """The sender of these, and of `more` of any, knows after all that they count."""
        for digest in digests:
            more += not _less(self._again, digest)
        self._beyond = max(0, self._beyond - more)

    def take(self, message: Message, digest: bytes) -> bool:
        """Whether a message of this digest may be one of them; it is the one then."""
        if _less(self._again, short_of(digest)):
            return True
        may_be = self._beyond > 0 and message.packet_id > 0  # at QoS 0 only what was posted has a number
        self._beyond -= may_be
        return may_be

    def save(self, connection: sqlite3.Connection) -> None:
        """Write them, inside the caller's transaction."""
        all_of = [*self._again.elements(), *self._now.elements()]
        beyond = self._beyond + self._beyond_now + len(all_of[AGAIN_MOST:])
        self._row = _sealed(all_of[:AGAIN_MOST], beyond) if all_of or beyond else b""
        if self._row != self._written:
            connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (UNANSWERED, self._row))

    def saved(self) -> None:
        """It is durable."""
        self._written = self._row

    def answered(self) -> None:
        """All that is being counted was answered; the next commit says so."""
        self._now.clear()
        self._beyond_now = 0

    def __bool__(self) -> bool:
        return bool(self._again) or self._beyond > 0


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


def read_digests(row: object) -> tuple[list[bytes], int]:
    """What the row of `Unanswered` says: digests, and how many more there are.

    Raises sqlite3.DatabaseError for one that is not as it was written.
    """
    if row == b"":
        return [], 0
    if not isinstance(row, bytes) or row[:_CRC] != checksum(UNANSWERED, row[_CRC:]).to_bytes(_CRC, "little"):
        raise sqlite3.DatabaseError(f"a malformed row in the table meta: {UNANSWERED} has a wrong checksum")
    beyond = (len(row) - _CRC) % _SHORT  # 0 where there are no more, as in rows of before
    digests = range(_CRC, len(row) - beyond, _SHORT)
    return [row[at : at + _SHORT] for at in digests], int.from_bytes(row[len(row) - beyond :], "little")


def _sealed(digests: Iterable[bytes], beyond: int) -> bytes:
    said = b"".join(digests) + (min(beyond, _BEYOND_MOST).to_bytes(4, "little") if beyond else b"")
    return checksum(UNANSWERED, said).to_bytes(_CRC, "little") + said
