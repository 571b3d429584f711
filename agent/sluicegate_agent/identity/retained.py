"""Messages that a broker keeps for new subscribers: a bare one is known by its content, however often it comes.

A retained message comes with a subscription, as often as that is made. It is no reading of now: it counts only where
what it says was not the last thing counted of its topic. It may come ahead of the same message, which waits for us in
the broker's session, by more than one connection. Until it is acknowledged the session brings it again, with DUP.
"""

from __future__ import annotations

import sqlite3

from sluicegate_agent.checksums import named, require_sound
from sluicegate_agent.identity.verdict import DIGEST, Verdict, digest_of
from sluicegate_agent.messages import Message

#: Retained messages of a topic that were counted and have not come out of the session, the newest.
AHEAD_MOST = 32
#: Retained messages of a topic that have come in this session, the newest: each may come again with DUP.
CAME_MOST = 32
#: A topic, what was counted and came, what is kept and came ahead, and a checksum of these.
WRITE = "INSERT OR REPLACE INTO retained VALUES (?, ?, ?, ?)"
_Known = tuple[bytes, bytes, bytes, bytes]
_NOTHING = b"", b"", b"", b""


class Retained:
    """Of each bare topic what was counted and retained last, what came ahead, and what came: one row a topic."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        rows = connection.execute("SELECT topic, counted, kept, crc FROM retained")
        self._known: dict[str, _Known] = {row[0]: _read(*row) for row in rows}
        self._changed: set[str] = set()
        self._here: set[tuple[str, bytes]] = set()

    def forget(self, topic: str) -> None:
        """Let a topic's row go out of memory; it is durable."""
        self._known.pop(topic, None)
        self._changed.discard(topic)
        if self._here:
            self._here = {each for each in self._here if each[0] != topic}

    def know(self, connection: sqlite3.Connection, topic: str) -> None:
        """Read a topic's row that was let go."""
        row = connection.execute("SELECT topic, counted, kept, crc FROM retained WHERE topic = ?", (topic,)).fetchone()
        if row is not None and topic not in self._known:
            self._known[topic] = _read(*row)

    def connected(self, *, session_present: bool) -> None:
        """A new connection: what came ahead over an older one may still wait, if the session is the same."""
        self._here.clear()
        if not session_present:
            for topic, (counted, kept, ahead, came) in self._known.items():
                if ahead or came:
                    self._note(topic, counted, kept, b"", b"")

    def settled(self) -> None:
        """All that waited for us seems to have come: the same content may be another reading from now on."""
        self._here.clear()

    def has_come(self, topic: str) -> bool:
        """Whether a retained message of this topic has come in this session."""
        return bool(self._known.get(topic, _NOTHING)[3])

    def check(self, message: Message, *, queued: bool) -> Verdict:
        """The verdict on a retained message, which is known from now on.

        `queued`: it may have come ahead of the same message, waiting for us in the broker's session.
        """
        digest = digest_of(message)
        counted, kept, ahead, came = self._known.get(message.topic, _NOTHING)
        if message.dup and digest in _digests(came):
            return Verdict.DUPLICATE
        came = (came + digest)[-CAME_MOST * DIGEST :]
        if digest in (counted, kept):
            self._note(message.topic, counted, digest, ahead, came)
            return Verdict.DUPLICATE
        if queued:
            ahead = (ahead + digest)[-AHEAD_MOST * DIGEST :]
            self._here.add((message.topic, digest))
        self._note(message.topic, digest, digest, ahead, came)
        return Verdict.NEW

    def judge(self, message: Message, digest: bytes, verdict: Verdict) -> Verdict:
        """What a live message is that is no repeat by its delivery, where a retained one came ahead of it.

        Over the same connection, and while more waits there, it is that one; later it may be.
        """
        counted, kept, ahead, came = self._known.get(message.topic, _NOTHING)
        waiting = _digests(ahead)
        if digest not in waiting:
            self._note(message.topic, digest, kept, ahead, came)
            return verdict
        is_here = (message.topic, digest) in self._here
        self._here.discard((message.topic, digest))
        waiting.remove(digest)
        self._note(message.topic, counted if is_here else digest, kept, b"".join(waiting), came)
        return Verdict.DUPLICATE if is_here else Verdict.UNDECIDABLE

    def _note(self, topic: str, counted: bytes, kept: bytes, ahead: bytes, came: bytes) -> None:
        known = counted, kept, ahead, came
        if self._known.get(topic) != known:
            self._known[topic] = known
            self._changed.add(topic)

    def save(self, connection: sqlite3.Connection) -> None:
        """Write the topics that changed, inside the caller's transaction."""
        changed = [(topic, *self._known[topic]) for topic in self._changed]
        rows = [(topic, counted + came, kept + ahead) for topic, counted, kept, ahead, came in changed]
        connection.executemany(WRITE, [named("retained", *row) for row in rows])

    def saved(self) -> None:
        """The transaction is durable: nothing is waiting."""
        self._changed.clear()


def _read(topic: str, counted: bytes, kept: bytes, crc: int | None) -> _Known:
    """A row of its table. Raises sqlite3.DatabaseError for one that is not as it was written."""
    require_sound("retained", crc, "retained", topic, counted, kept)
    return counted[:DIGEST], kept[:DIGEST], kept[DIGEST:], counted[DIGEST:]


def _digests(joined: bytes) -> list[bytes]:
    return [joined[at : at + DIGEST] for at in range(0, len(joined), DIGEST)]
