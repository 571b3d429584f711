"""A checksum beside a row: a page of SQLite has none, so a flipped bit would go unseen.

Its key is in it, so a row under another row's key is found, too. Rows of an older version have none (NULL).
"""

from __future__ import annotations

import sqlite3
import zlib


def checksum(*parts: int | str | bytes) -> int:
    """The CRC-32 of a row's columns; of two rows that differ it differs, but for one in 2^32."""
    crc = 0
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode()
        crc = zlib.crc32(data, zlib.crc32(len(data).to_bytes(8, "little"), crc))
    return crc


def is_sound(crc: int | None, *parts: int | str | bytes) -> bool:
    """Whether a row is as it was written, as far as that can be told."""
    return crc is None or crc == checksum(*parts)


def require_sound(table: str, crc: int | None, *parts: int | str | bytes) -> None:
    """Raises sqlite3.DatabaseError for a row that is not as it was written: the others of its table may be."""
    if not is_sound(crc, *parts):
        raise sqlite3.DatabaseError(f"a malformed row in the table {table}: its checksum is wrong")
