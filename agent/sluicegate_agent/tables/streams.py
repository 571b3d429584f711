"""A stream's rows in the tables: what it is, its tags, and what the outbox's rows of it rest on; each is checked."""

from __future__ import annotations

import sqlite3
import sys
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from sluicegate_agent.checksums import checksum

#: The greatest number of a stream that anything has.
_GREATEST = """SELECT max(id) FROM (
    SELECT max(id) AS id FROM stream UNION ALL SELECT max(stream) FROM origin UNION ALL SELECT max(stream) FROM outbox
    UNION ALL SELECT max(stream) FROM chunk UNION ALL SELECT max(stream) FROM packed
    UNION ALL SELECT max(stream) FROM handed
)"""


class Row(NamedTuple):
    """A stream's row in its table, whose last column is the checksum of these."""

    number: int
    name: str
    row: bytes
    incarnation: str
    key: str
    retired: int = 0

    def is_sound(self, crc: int | None) -> bool:
        """Whether it is as it was written; an older Sluicegate checked name and row, the row alone, or nothing."""
        return crc is None or crc in (checksum(*self), checksum(self.name, self.row), zlib.crc32(self.row))

    def write(self, connection: sqlite3.Connection) -> None:
        """Into its table, inside the caller's transaction."""
        connection.execute("INSERT OR REPLACE INTO stream VALUES (?, ?, ?, ?, ?, ?, ?)", (*self, checksum(*self)))


def stored_rows(connection: sqlite3.Connection, where: str = "1", *values: int) -> Iterator[Row]:
    """Rows of streams by their number. Raises sqlite3.DatabaseError for one that is not as it was written."""
    query = f"SELECT id, name, row, incarnation, key, retired, crc FROM stream WHERE {where} ORDER BY id"  # noqa: S608
    for *columns, crc in connection.execute(query, values).fetchall():
        row = Row(*columns)
        row = row._replace(incarnation=sys.intern(row.incarnation), key=sys.intern(row.key))  # thousands have the same
        if not row.is_sound(crc):
            raise sqlite3.DatabaseError(f"the row of stream {row.name} is malformed: its checksum is another")
        yield row


def next_number(connection: sqlite3.Connection) -> int:
    """Of a stream that is new: one that means no other, whose own row may be lost."""
    return 1 + int(connection.execute(_GREATEST).fetchone()[0] or 0)


def write_tags(connection: sqlite3.Connection, number: int, tags: str) -> None:
    """The tags of a stream, inside the caller's transaction."""
    connection.execute("INSERT OR REPLACE INTO tagged VALUES (?, ?, ?)", (number, tags, checksum(number, tags)))


def write_origin(
    connection: sqlite3.Connection, number: int, name: str, incarnation: str, key: str, center: float
) -> None:
    """What the outbox's rows of a stream rest on, inside the caller's transaction."""
    row = number, name, incarnation, key, center
    connection.execute("INSERT OR REPLACE INTO origin VALUES (?, ?, ?, ?, ?, ?)", (*row, checksum(*row)))
