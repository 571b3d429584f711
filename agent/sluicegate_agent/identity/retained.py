"""Messages that a broker keeps for new subscribers: a bare one is known by its content, however often it comes.

A retained message comes with a subscription, as often as that is made. It is no reading of now: it counts only where
what it says was not the last thing counted of its topic. It may come ahead of the same message, which waits for us in
the broker's session, by more than one connection.
"""

from __future__ import annotations

import sqlite3

from sluicegate_agent.identity.verdict import DIGEST, Verdict, digest_of
from sluicegate_agent.messages import Message

#: Retained messages of a topic that were counted and have not come out of the session, the newest.
AHEAD_MOST = 32


class Retained:
    """Of each bare topic what was counted last, what was retained last, and what came ahead: one row a topic."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        rows = connection.execute("SELECT topic, counted, kept FROM retained")
        self._known: dict[str, tuple[bytes, bytes, bytes]] = {
            topic: (counted, kept[:DIGEST], kept[DIGEST:]) for topic, counted, kept in rows
        }
        self._changed: set[str] = set()
        self._here: set[tuple[str, bytes]] = set()

    def connected(self, *, session_present: bool) -> None:
        """A new connection: what came ahead over an older one may still wait, if the session is the same."""
        self._here.clear()
        if not session_present:
            for topic, (counted, kept, ahead) in self._known.items():
                if ahead:
                    self._note(topic, counted, kept, b"")

    def settled(self) -> None:
        """All that waited for us seems to have come: the same content may be another reading from now on."""
        self._here.clear()

    def check(self, message: Message, *, queued: bool) -> Verdict:
        """The verdict on a retained message, which is known from now on.

        `queued`: it may have come ahead of the same message, waiting for us in the broker's session.
        """
        digest = digest_of(message)
        counted, kept, ahead = self._known.get(message.topic, (b"", b"", b""))
        if digest in (counted, kept):
            self._note(message.topic, counted, digest, ahead)
            return Verdict.DUPLICATE
        if queued:
            ahead = (ahead + digest)[-AHEAD_MOST * DIGEST :]
            self._here.add((message.topic, digest))
        self._note(message.topic, digest, digest, ahead)
        return Verdict.NEW

    def judge(self, message: Message, verdict: Verdict) -> Verdict:
        """What a live message is that is no repeat by its delivery, where a retained one came ahead of it.

        Over the same connection, and while more waits there, it is that one; later it may be.
        """
        digest = digest_of(message)
        counted, kept, ahead = self._known.get(message.topic, (b"", b"", b""))
        places = [at for at in range(0, len(ahead), DIGEST) if ahead[at : at + DIGEST] == digest]
        if not places:
            self._note(message.topic, digest, kept, ahead)
            return verdict
        is_here = (message.topic, digest) in self._here
        self._here.discard((message.topic, digest))
        ahead = ahead[: places[0]] + ahead[places[0] + DIGEST :]
        self._note(message.topic, counted if is_here else digest, kept, ahead)
        return Verdict.DUPLICATE if is_here else Verdict.UNDECIDABLE

    def _note(self, topic: str, counted: bytes, kept: bytes, ahead: bytes) -> None:
        if self._known.get(topic) != (counted, kept, ahead):
            self._known[topic] = counted, kept, ahead
            self._changed.add(topic)

    def save(self, connection: sqlite3.Connection) -> None:
        """Write the topics that changed, inside the caller's transaction."""
        rows = [(topic, counted, kept + ahead) for topic, (counted, kept, ahead) in self._known.items()]
        rows = [row for row in rows if row[0] in self._changed]
        connection.executemany("INSERT OR REPLACE INTO retained VALUES (?, ?, ?)", rows)

    def saved(self) -> None:
        """The transaction is durable: nothing is waiting."""
        self._changed.clear()
