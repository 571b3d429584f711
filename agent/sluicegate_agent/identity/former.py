"""What sessions that are gone had under way: a broker that comes back with one of them sends it again.

Two brokers may be behind one name, and a session that the second does not have is not lost at the first. Each message
is taken for one repeat at most, so what is kept here wrongly costs no more doubt than it has messages.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable

from sluicegate_agent.identity.earlier import ENTRY
from sluicegate_agent.identity.stored import entries_of, save_entries

#: In the place of a source.
FORMER = "\x1fformer"


class Former:
    """The newest `most` entries that were unconfirmed when their session was gone, known by topic and payload."""

    def __init__(self, connection: sqlite3.Connection, most: int) -> None:
        self._most = most
        self._entries = [*entries_of(connection, FORMER, ENTRY)][::-1]
        self._due = Counter(entry[2:] for entry in self._entries)
        self._changed = False

    def add(self, entries: Iterable[bytes]) -> None:
        """Their session is gone."""
        added = [*entries]
        if added:
            self._entries = [*self._entries, *added][-self._most :]
            self._due = Counter(entry[2:] for entry in self._entries)
            self._changed = True

    def take(self, entry: bytes) -> bool:
        """Whether this may be one of them; it is none any more."""
        if self._due[entry[2:]] <= 0:
            return False
        self._due[entry[2:]] -= 1
        del self._entries[next(at for at, kept in enumerate(self._entries) if kept[2:] == entry[2:])]
        self._changed = True
        return True

    def save(self, connection: sqlite3.Connection) -> None:
        """Write them where they changed, inside the caller's transaction."""
        if self._changed:
            connection.execute("DELETE FROM identity WHERE source = ?", (FORMER,))
            save_entries(connection, FORMER, 0, self._entries, self._most)

    def saved(self) -> None:
        """It is durable."""
        self._changed = False
