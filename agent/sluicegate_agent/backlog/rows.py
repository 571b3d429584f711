"""A row of the outbox as it is stored: bucket, what it carries, single readings, checksum; and what it counts as."""

from __future__ import annotations

import sqlite3
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence

from sluicegate.format.bucket import PACKED, Bucket, merge_packed
from sluicegate.format.late import LATE_NAME, NEVER, CameLate
from sluicegate_agent import carried
from sluicegate_agent.backlog.late import came_late, may_say_more
from sluicegate_agent.carried import unpack_readings
from sluicegate_agent.streams import Closed

#: Bytes a row is counted with: its record as base64 in a document at worst, its key and the page's share.
ROW_COST = PACKED * 4 // 3 + 64
#: The same for a single reading of 16 bytes.
READING_COST = 22
DELETE = "DELETE FROM outbox WHERE stream = ? AND first >= ? AND first < ?"
_INSERT = "INSERT INTO outbox VALUES (?, ?, ?, ?, ?)"
_SELECT = "SELECT first, bucket, readings, crc FROM outbox WHERE stream = ? AND first >= ? AND first < ? ORDER BY first"
_KEY = struct.Struct("<qq")


def encoded(section: int) -> int:
    """Bytes of a section as they are counted: as base64, at worst."""
    return section * 4 // 3


def insert_rows(connection: sqlite3.Connection, stream: int, closed: Iterable[Closed]) -> None:
    """Put closed buckets into the table, inside the caller's transaction."""
    values = [(stream, c.first, c.bucket, c.readings, check_of(stream, c.first, c.bucket, c.readings)) for c in closed]
    connection.executemany(_INSERT, values)


def rows_of(connection: sqlite3.Connection, stream: int, begin: int, end: int) -> Iterator[Closed]:
    """A stream's rows of the ordinals from `begin` to before `end`. Raises sqlite3.DatabaseError for damaged ones."""
    for first, bucket, readings, crc in connection.execute(_SELECT, (stream, begin, end)):
        if crc is None:
            unpacked(bucket)  # nothing else says whether it is one
        n = int.from_bytes(bucket[8:16], "little")
        yield Closed(first, n, *sound(stream, first, bucket, readings, crc))


def check_of(stream: int, first: int, bucket: bytes, readings: bytes | None) -> int:
    """A row's checksum: the pages of a store have none, and a number that a medium changed looks like any other."""
    of_bucket = zlib.crc32(bucket, zlib.crc32(_KEY.pack(stream, first)))
    return zlib.crc32(readings, of_bucket) if readings else of_bucket


def sound(
    stream: int, first: int, bucket: bytes, readings: bytes | None, crc: int | None
) -> tuple[bytes, bytes | None]:
    """A row's bucket and readings as they were written. Raises sqlite3.DatabaseError for others; rows of an older
    version have no checksum."""
    if crc is not None and crc != check_of(stream, first, bucket, readings):
        raise sqlite3.DatabaseError(f"a row of the table outbox is malformed: stream {stream}, first {first}")
    return bucket, readings


def parts_of(row: bytes, singles: bytes | None, names: tuple[str, ...]) -> carried.Parts:
    """What a row carries, and, of these names, what it is to carry when its single readings go.

    Raises sqlite3.DatabaseError for a row that is none.
    """
    try:
        parts = carried.parted(row)[1]
        if singles and names:
            times, values = unpack_readings(singles)
            parts |= carried.fold(names, values, times)
        return parts
    except ValueError as error:
        raise sqlite3.DatabaseError(f"a row of the table outbox is malformed: {error}") from error


def unpacked(row: bytes) -> Bucket:
    """A stored bucket. Raises sqlite3.DatabaseError for bytes that are none: the store is damaged."""
    try:
        return Bucket.unpack(carried.parted(row)[0])
    except ValueError as error:
        raise sqlite3.DatabaseError(f"a row of the table outbox is malformed: {error}") from error


def one_of(items: Sequence[Closed], names: tuple[str, ...], *, keeps: bool, alone: bool = False) -> Closed:
    """Neighbours as one bucket, with their single readings or with what it carries in their place.

    `alone`: it is the only row of its stream, for which there is room, and for nothing beside it but since when its
    first loss is. Raises sqlite3.DatabaseError for rows that are none.
    """
    first, n = items[0].first, items[-1].first + items[-1].n - items[0].first
    try:
        bucket = merge_packed([item.bucket[:PACKED] for item in items])
    except ValueError as error:
        raise sqlite3.DatabaseError(f"a row of the table outbox is malformed: {error}") from error
    readings = _joined([item.readings or b"" for item in items]) if keeps else None
    if not names and not may_say_more(items):
        return Closed(first, n, bucket, readings)
    late, takes_back = came_late(items)
    if late is not None and (alone or (len(items) == 1 and late.begin == NEVER and len(late.rows) < 2)):
        late, takes_back = _since(late, items), len(items) == 1  # a bucket that was not merged says it, more or less
    if not takes_back and (merged := Bucket.unpack(bucket)).gap < 0:
        bucket = merged._replace(gap=0).pack()
    parts = carried.Parts() if keeps else _parts(items, names)
    if late is not None:
        parts[LATE_NAME] = late.pack()
    return Closed(first, n, carried.joined(bucket, parts), readings)


def _since(late: CameLate, items: Sequence[Closed]) -> CameLate | None:
    """What no bucket can do without: that a loss before its first reading lies since the last one of another stream."""
    first = min(Bucket.unpack(item.bucket[:PACKED]).t_first for item in items)
    return late._replace(rows=()) if NEVER < late.begin < first else None


def _parts(items: Sequence[Closed], names: tuple[str, ...]) -> carried.Parts:
    """What neighbours carry together, but for what came late."""
    parts = parts_of(items[0].bucket, items[0].readings, names)
    for item in items[1:]:
        parts = carried.merged(parts, parts_of(item.bucket, item.readings, names))
    parts.pop(LATE_NAME, None)
    return parts


def _joined(readings: list[bytes]) -> bytes:
    """All times before all values, as those of each are."""
    halves = [len(each) // 2 for each in readings]
    pairs = [*zip(readings, halves, strict=True)]
    return b"".join([*(each[:half] for each, half in pairs), *(each[half:] for each, half in pairs)])
