"""Messages that a broker keeps for new subscribers: a bare one is known by its content, however often it comes.

A retained message comes with a subscription, as often as that is made. It is no reading of now: it counts only where
what it says was not the last thing counted of its topic.
"""

from __future__ import annotations

import sqlite3

from sluicegate_agent.identity.verdict import Verdict, digest_of
from sluicegate_agent.messages import Message


class Retained:
    """Of each bare topic the last message that was counted, and the last retained one: one row a topic."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        rows = connection.execute("SELECT topic, counted, kept FROM retained")
        self._known: dict[str, tuple[bytes, bytes]] = {topic: (counted, kept) for topic, counted, kept in rows}
        self._changed: set[str] = set()
        self._ahead: dict[str, bytes] = {}

    def connected(self) -> None:
        """A new connection, or one over which all that waited for us has come."""
        self._ahead.clear()

    def check(self, message: Message, *, queued: bool) -> Verdict:
        """The verdict on a retained message, which is known from now on.

        `queued`: it may have come ahead of the same message, waiting for us in the broker's session.
        """
        digest = digest_of(message)
        counted, kept = self._known.get(message.topic, (b"", b""))
        if digest in (counted, kept):
            self._note(message.topic, counted, digest)
            return Verdict.DUPLICATE
        self._note(message.topic, digest, digest)
        if queued:
            self._ahead[message.topic] = digest
        return Verdict.NEW

    def is_repeated_by(self, message: Message) -> bool:
        """Whether a live message is the retained one that came ahead of it; otherwise it is the last one counted."""
        digest = digest_of(message)
        if self._ahead.get(message.topic) == digest:
            del self._ahead[message.topic]
            return True
        self._note(message.topic, digest, self._known.get(message.topic, (b"", b""))[1])
        return False

    def _note(self, topic: str, counted: bytes, kept: bytes) -> None:
        if self._known.get(topic) != (counted, kept):
            self._known[topic] = counted, kept
            self._changed.add(topic)

    def save(self, connection: sqlite3.Connection) -> None:
        """Write the topics that changed, inside the caller's transaction."""
        rows = [(topic, *self._known[topic]) for topic in self._changed]
        connection.executemany("INSERT OR REPLACE INTO retained VALUES (?, ?, ?)", rows)

    def saved(self) -> None:
        """The transaction is durable: nothing is waiting."""
        self._changed.clear()
