"""A checksum beside a row: a page of SQLite has none, so a flipped bit would go unseen.

Its key is in it, so a row under another row's key is found, too. Rows of an older version have none (NULL).
"""

from __future__ import annotations

import sqlite3
import zlib

#: Times in `meta`: the newest of streams that made room; until when streams may have been that a damaged store lost.
LEFT, LOST = "left", "lost"
TIMES = (LEFT, LOST)
#: In `meta` of a store that was salvaged: all that was known as seen is in it.
SURE = "sure"


Part = int | float | str | bytes


def checksum(*parts: Part) -> int:
    """The CRC-32 of a row's columns; of two rows that differ it differs, but for one in 2^32."""
    crc = 0
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode()
        crc = zlib.crc32(data, zlib.crc32(len(data).to_bytes(8, "little"), crc))
    return crc


def is_sound(crc: int | None, *parts: Part) -> bool:
    """Whether a row is as it was written, as far as that can be told."""
    return crc is None or crc == checksum(*parts)


def of_retained(topic: str, counted: bytes, kept: bytes) -> tuple[Part, ...]:
    """What the checksum of a row of `retained` is of: its table, too, since a row of `sequence` looks like it."""
    return "retained", topic, counted, kept


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
