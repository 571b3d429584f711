"""What could not be counted: acknowledged, counted by reason, the newest kept with topic, reason and first bytes."""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from sluicegate_agent.checksums import named

_TOPIC_MOST = 256
_REASON_MOST = 200


class DeadLetter(NamedTuple):
    """One message or reading that was refused."""

    at_us: int
    topic: str
    reason: str
    size: int
    payload: bytes


class DeadLetters:
    """A ring of `rows` letters in the store; those of the open batch wait here, at most as many."""

    def __init__(self, connection: sqlite3.Connection, rows: int, bytes_each: int) -> None:
        self.rows, self.bytes_each = rows, bytes_each
        self._waiting: deque[tuple[int, DeadLetter]] = deque(maxlen=max(rows, 1))
        self._next = int(connection.execute("SELECT coalesce(max(number), 0) + 1 FROM dead_letter").fetchone()[0])
        self._shrink = True
        self._recorded = 0

    @property
    def recent(self) -> list[tuple[int, DeadLetter]]:
        """Those since the last commit, recorded or written, with their numbers."""
        return [each for each in self._waiting if each[0] > self._recorded]

    def recorded(self) -> None:
        """Those that wait stand in the record; their rows are still to be written."""
        self._recorded = self._next - 1

    def add(self, at_us: int, topic: str, reason: str, payload: bytes, size: int | None = None) -> None:
        """Keep one letter; `size` is the payload's whole length where it came truncated."""
        if self.rows == 0:
            return
        whole = len(payload) if size is None else size
        letter = DeadLetter(at_us, topic[:_TOPIC_MOST], reason[:_REASON_MOST], whole, payload[: self.bytes_each])
        self._waiting.append((self._next, letter))
        self._next += 1

    def save(self, connection: sqlite3.Connection) -> None:
        """Write the waiting letters and drop the oldest beyond the ring, inside the caller's transaction."""
        if not self._waiting and not self._shrink:
            return
        write(connection, ((number, *letter) for number, letter in self._waiting))
        connection.execute("DELETE FROM dead_letter WHERE number < ?", (self._next - self.rows,))

    def saved(self) -> None:
        """The transaction is durable: nothing is waiting."""
        self._waiting.clear()
        self._shrink = False


def write(connection: sqlite3.Connection, letters: Iterable[tuple[int, int, str, str, int, bytes]]) -> None:
    """Write letters behind their numbers, inside the caller's transaction."""
    rows = (named("dead_letter", *letter) for letter in letters)
    connection.executemany("INSERT OR REPLACE INTO dead_letter VALUES (?, ?, ?, ?, ?, ?, ?)", rows)


def read(connection: sqlite3.Connection, most: int = 20) -> list[DeadLetter]:
    """The newest letters, newest first."""
    query = "SELECT at_us, topic, reason, size, payload FROM dead_letter ORDER BY number DESC LIMIT ?"
    return [DeadLetter(*row) for row in connection.execute(query, (most,))]
