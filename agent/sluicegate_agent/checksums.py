"""A checksum beside a row: a page of SQLite has none, so a flipped bit would go unseen.

Its key is in it, so a row under another row's key is found, too. Rows of an older version have none (NULL).
"""

from __future__ import annotations

import sqlite3
import struct
import zlib
from collections.abc import Mapping

#: Times in `meta`: the newest of streams that made room; until when streams, and files that were replayed, may have
#: been that a damaged store lost.
LEFT, LOST, FILES = "left", "lost", "files"
TIMES = (LEFT, LOST, FILES)
#: In `meta`, like these, of the record as the tables were written last: which fold its first frame follows, its size.
BEFORE, BYTES = "record before", "record bytes"
#: In `meta` of a store that was salvaged: all that was known as seen is in it.
SURE = "sure"


Part = int | float | str | bytes
_length = struct.Struct("<Q").pack


def checksum(*parts: Part) -> int:
    """The CRC-32 of a row's columns; of two rows that differ it differs, but for one in 2^32."""
    found: list[bytes] = []
    for part in parts:
        data = part if part.__class__ is bytes else str(part).encode()
        found += (_length(len(data)), data)
    return zlib.crc32(b"".join(found))


def checksum_for(connection: sqlite3.Connection, *parts: Part) -> int:
    """The same; 0 where the row is not for a table (`record.rows.Changes`): it gets one when it is written there."""
    return 0 if getattr(connection, "is_checked", False) else checksum(*parts)


def is_sound(crc: int | None, *parts: Part) -> bool:
    """Whether a row is as it was written, as far as that can be told."""
    return crc is None or crc == checksum(*parts)


#: Tables whose checksums are of their name, too: their rows may look like those of another one.
NAMED = ("retained", "counter", "departed", "replay", "dead_letter")


def named(table: str, *columns: Part) -> tuple[Part, ...]:
    """A row of one of NAMED with its checksum, as it is written."""
    return *columns, checksum(table, *columns)


def verify(connection: sqlite3.Connection) -> None:
    """See that rows that are asked for by what they hold are as they were written: a damaged one would never be found.

    Raises sqlite3.DatabaseError.
    """
    for table in ("sequence", "identity", "departed", "replay", "dead_letter"):
        for *columns, crc in connection.execute(f"SELECT * FROM {table}"):  # noqa: S608  our own names
            require_sound(table, crc, *([table] if table in NAMED else []), *columns)


def counts(connection: sqlite3.Connection) -> dict[str, int]:
    """All of the table `counter`, as of any version. Raises sqlite3.DatabaseError for a row that is damaged."""
    found = {}
    for name, value, *crc in connection.execute("SELECT * FROM counter"):
        require_sound("counter", crc[0] if crc else None, "counter", name, value)
        found[name] = value
    return found


def count(connection: sqlite3.Connection, amounts: Mapping[str, int]) -> None:
    """Add to the table `counter`, inside the caller's transaction. Raises sqlite3.DatabaseError, see `counts`."""
    query = "SELECT value, crc FROM counter WHERE name = ?"
    for name, amount in amounts.items():
        if amount:
            value, crc = connection.execute(query, (name,)).fetchone() or (0, None)
            require_sound("counter", crc, "counter", name, value)
            write_count(connection, name, value + amount)


def write_count(connection: sqlite3.Connection, name: str, value: int) -> None:
    """Write a row of the table `counter`, inside the caller's transaction."""
    connection.execute("INSERT OR REPLACE INTO counter VALUES (?, ?, ?)", named("counter", name, value))


def keep_time(connection: sqlite3.Connection, name: str, time_us: int) -> None:
    """Write a time in `meta` with its checksum, inside the caller's transaction."""
    value = f"{time_us} {checksum(name, time_us)}"
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))


def kept_time(connection: sqlite3.Connection, name: str) -> int | None:
    """What `keep_time` wrote; None where nothing is. Raises sqlite3.DatabaseError where it is damaged."""
    found = connection.execute("SELECT value FROM meta WHERE key = ?", (name,)).fetchone()
    if found is not None and not is_sound_time(name, found[0]):
        raise sqlite3.DatabaseError(f"a malformed row in the table meta: {name} has a wrong checksum")
    return int(str(found[0]).split()[0]) if found else None


def is_sound_time(name: str, value: object) -> bool:
    """Whether it is a time of `meta`; those of before are a plain number."""
    time_us, _, crc = str(value).partition(" ")
    return isinstance(value, int) or (isinstance(value, str) and crc == str(checksum(name, time_us)))


def is_hexadecimal(text: object, digits: int) -> bool:
    """Whether it is a text of so many lower-case hexadecimal digits."""
    return isinstance(text, str) and len(text) == digits and not text.strip("0123456789abcdef")


def require_sound(table: str, crc: int | None, *parts: Part) -> None:
    """Raises sqlite3.DatabaseError for a row that is not as it was written: the others of its table may be."""
    if not is_sound(crc, *parts):
        raise sqlite3.DatabaseError(f"a malformed row in the table {table}: its checksum is wrong")
