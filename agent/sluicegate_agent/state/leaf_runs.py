"""Stores the leaves that a window closed between two folds as one row at the table's end, to write fewer pages.

Rows of a table by key lie beside those of their window: ten new leaves wrote three to four pages of each window. A run
is deflated and goes to its table's end. One of a lower level is replaced by a run of what its leaves became; where two
say the same leaf, `sg.Window.rebuild` takes the higher level.
"""

from __future__ import annotations

import sqlite3
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from sluicegate.errors import SnapshotError
from sluicegate_agent.checksums import checksum, is_sound

#: Leaves of one run: fewer have rows of their own.
LEAST, MOST = 4, 256
#: Runs that a commit replaces or deletes at most.
TIDIED = 8
#: Bytes of one run's leaves at most, so that a damaged length takes no memory.
_BYTES_MOST = 64 << 20
_LEVEL = 1
_TABLE = "window_run"
Leaf = tuple[int, int, bytes]


class Closed(NamedTuple):
    """A window's closed leaves: those from `head` to `open` - 1 at `level`; below level `base` rows are of no use."""

    base: int
    level: int
    head: int
    open: int


def append(connection: sqlite3.Connection, window: int, level: int, first: int, leaves: Sequence[bytes]) -> None:
    """Write consecutive leaves of a level, inside the caller's transaction."""
    for begin in range(0, len(leaves), MOST):
        part = leaves[begin : begin + MOST]
        key = window, level, first + begin, first + begin + len(part) - 1
        lengths = struct.pack(f"<{len(part)}I", *map(len, part))
        packed = zlib.compress(lengths + b"".join(part), _LEVEL)
        insert = f"INSERT INTO {_TABLE} VALUES (NULL, ?, ?, ?, ?, ?, ?)"  # noqa: S608  our own name
        connection.execute(insert, (*key, packed, checksum(*key, packed)))


def read(connection: sqlite3.Connection, window: int) -> Iterator[Leaf]:
    """The leaves of all runs of a window, as (level, number, leaf). Raises SnapshotError for a damaged one."""
    query = f"SELECT level, first, last, leaves, crc FROM {_TABLE} WHERE window = ? ORDER BY number"  # noqa: S608
    for level, first, last, packed, crc in connection.execute(query, (window,)).fetchall():
        if not is_sound(crc, window, level, first, last, packed):
            raise SnapshotError("the checksum of a run of buckets is wrong")
        yield from ((level, first + at, leaf) for at, leaf in enumerate(_unpacked(packed, last - first + 1)))


def _unpacked(packed: bytes, count: int) -> list[bytes]:
    """So many leaves. Raises SnapshotError."""
    try:
        inflating = zlib.decompressobj()
        plain, found = inflating.decompress(packed, _BYTES_MOST), []
        at = 4 * count
        for length in struct.unpack_from(f"<{count}I", plain):
            found.append(plain[at : at + length])
            at += length
    except (zlib.error, struct.error) as error:
        raise SnapshotError(f"not a run of buckets: {error}") from error
    if at != len(plain) or not inflating.eof:
        raise SnapshotError("a run of buckets ends in the middle of one")
    return found


def clip(connection: sqlite3.Connection, window: int, closed: Closed, leaf: Callable[[int], bytes]) -> None:
    """Leave out what the open bucket took over: it is in the window's state."""
    where = "level = ? AND last >= ?"
    for number, _, first, _ in _selected(connection, window, where, (closed.level, closed.open)):
        _replace(connection, window, number, closed, max(first, closed.head), closed.open - 1, leaf)


def tidy(connection: sqlite3.Connection, window: int, closed: Closed, leaf: Callable[[int], bytes]) -> bool:
    """Delete runs that left, and replace those of lower levels, TIDIED at most; whether some may be left."""
    where = "level < ? OR last < ?"
    found = _selected(connection, window, where, (closed.level, closed.head))
    for number, level, first, last in found:
        shift = closed.level - level
        begin, end = max(first >> shift, closed.head), min(last >> shift, closed.open - 1)
        if level < closed.base or not shift:
            end = begin - 1
        _replace(connection, window, number, closed, begin, end, leaf)
    return len(found) == TIDIED


def _selected(
    connection: sqlite3.Connection, window: int, where: str, values: tuple[int, int]
) -> list[tuple[int, int, int, int]]:
    columns = "SELECT number, level, first, last"
    query = f"{columns} FROM {_TABLE} WHERE window = ? AND ({where}) ORDER BY number LIMIT ?"
    return connection.execute(query, (window, *values, TIDIED)).fetchall()


def _replace(
    connection: sqlite3.Connection, window: int, number: int, closed: Closed, begin: int, end: int,
    leaf: Callable[[int], bytes],
) -> None:  # fmt: skip
    """Leaves `begin` to `end`, none where it is before, in the place of a run."""
    connection.execute(f"DELETE FROM {_TABLE} WHERE number = ?", (number,))  # noqa: S608  our own name
    append(connection, window, closed.level, begin, [*map(leaf, range(begin, end + 1))])


def require_sound(
    number: int, definition: str, state: bytes, crc: int | None, rows: list[tuple[int, int, bytes, int | None]]
) -> None:
    """Raises SnapshotError where the state of a window, or a leaf with a row of its own, is not as it was written."""
    if not is_sound(crc, definition, state):
        raise SnapshotError("the checksum of its state is wrong")
    if not all(is_sound(each, number, level, index, leaf) for level, index, leaf, each in rows):
        raise SnapshotError("the checksum of a bucket is wrong")
