"""Entries of fixed width in the table `identity`: one row a commit, read newest first, the oldest deleted."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from sluicegate_agent.checksums import checksum, require_sound


def last(connection: sqlite3.Connection, source: str) -> int:
    """How many entries of the source were ever written."""
    found = connection.execute("SELECT max(last) FROM identity WHERE source = ?", (source,)).fetchone()[0]
    return found or 0


def entries_of(connection: sqlite3.Connection, source: str, width: int) -> Iterator[bytes]:
    """The stored entries of a source, newest first."""
    rows = connection.execute("SELECT last, entries, crc FROM identity WHERE source = ? ORDER BY last DESC", (source,))
    for newest, entries, crc in rows:
        require_sound("identity", crc, source, newest, entries)
        if len(entries) % width:
            raise sqlite3.DatabaseError("a row of the table identity is malformed")
        for at in range(len(entries) - width, -1, -width):
            yield entries[at : at + width]


def save_entries(connection: sqlite3.Connection, source: str, before: int, waiting: list[bytes], horizon: int) -> None:
    """Write a commit's entries as one row and delete those beyond the horizon, inside the caller's transaction."""
    if not waiting:
        return
    newest = before + len(waiting)
    row = (source, newest, b"".join(waiting))
    connection.execute("INSERT OR REPLACE INTO identity VALUES (?, ?, ?, ?)", (*row, checksum(*row)))
    connection.execute("DELETE FROM identity WHERE source = ? AND last <= ?", (source, newest - horizon))
