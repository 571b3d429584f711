"""Keeps a window that is answered from another's buckets: one row with the last reading known to have left."""

from __future__ import annotations

import sqlite3
import struct
from typing import TYPE_CHECKING

import sluicegate as sg
from sluicegate.errors import SnapshotError
from sluicegate_agent.checksums import checksum, is_sound
from sluicegate_agent.config.questions import build_policy

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sluicegate_agent.config import WindowConfig

_EDGE = struct.Struct("<q")


class Shorter:
    """The windows over the buckets of one stored window; `numbers` are their rows."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        stream: int,
        name: str,
        longest: sg.Window,
        asked: Sequence[WindowConfig],
        numbers: Iterator[int] | None = None,
    ) -> None:
        """Continue where the last commit left off; in the caller's transaction. `numbers`: of rows that `save` makes.

        One whose definition is new, or whose longest began anew, knows of no reading that it has left: its intervals
        are certain all the same.
        """
        self.windows = sg.Windows.over(longest, name, {each.name: build_policy(each) for each in asked})
        self.aggregates = {each.name: each.aggregates for each in asked}
        self._definitions = {each.name: each.definition for each in asked}
        self.stream, self.is_new = stream, numbers is not None
        self.numbers = {
            each.name: self._row(connection, stream, each) if numbers is None else next(numbers) for each in asked
        }

    def _row(self, connection: sqlite3.Connection, stream: int, asked: WindowConfig) -> int:
        query = "SELECT id, definition, state, crc FROM window WHERE stream = ? AND name = ?"
        found = connection.execute(query, (stream, asked.name)).fetchone()
        is_same = found is not None and found[1] == asked.definition and is_sound(found[3], *found[1:3])
        if is_same and self._knows(asked.name, found[2]):
            return int(found[0])
        if found is not None:  # it kept buckets of its own before, or was another
            connection.execute("DELETE FROM window_leaf WHERE window = ?", (found[0],))
            connection.execute("DELETE FROM window_run WHERE window = ?", (found[0],))
            connection.execute("DELETE FROM window WHERE id = ?", (found[0],))
        insert = "INSERT INTO window (stream, name, definition, state, crc) VALUES (?, ?, ?, ?, ?)"
        state = self._state(asked.name)
        values = (stream, asked.name, asked.definition, state, checksum(asked.definition, state))
        return int(connection.execute(insert, values).lastrowid or 0)

    def _knows(self, name: str, state: bytes) -> bool:
        try:
            self.windows.know({name: _EDGE.unpack(state)[0]})
        except (SnapshotError, struct.error):
            return False
        return True

    def _state(self, name: str) -> bytes:
        return _EDGE.pack(self.windows.edges[name])

    def save(self, connection: sqlite3.Connection) -> None:
        """Write what is known to have left, in the caller's transaction."""
        for name, number in self.numbers.items():
            state = self._state(name)
            if self.is_new:
                make_row(connection, number, self.stream, name, self._definitions[name])
            row = (state, checksum(self._definitions[name], state), number)
            connection.execute("UPDATE window SET state = ?, crc = ? WHERE id = ?", row)


def make_row(connection: sqlite3.Connection, number: int, stream: int, name: str, definition: str) -> None:
    """The row of a window that began outside of a transaction; again where a commit failed."""
    row = (number, stream, name, definition, b"", None)
    connection.execute("INSERT OR REPLACE INTO window VALUES (?, ?, ?, ?, ?, ?)", row)
