"""Holds outbox rows that are not in the table yet: closed buckets in memory, and buckets packed, a row a stream.

Buckets that a commit recorded wait in memory. Where they are many they are packed there, deflated, a row a stream: a
hundredth of the bytes of rows of their own where single readings say all of them (folded again they are the same to the
bit), else a tenth. Rows of their own are made where one has to be looked at: to be sealed or merged. Of one stream
those in the table are the oldest, those in memory the newest.
"""

from __future__ import annotations

import sqlite3
import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from sluicegate.format.bucket import PACKED, refold, unfold
from sluicegate.format.steps import packed_times, packed_values, unpacked_times, unpacked_values
from sluicegate_agent.checksums import checksum, require_sound
from sluicegate_agent.streams import Closed

#: Bytes of a closed bucket in memory beside its record and readings.
CLOSED_OBJECTS = 300
#: Bytes of one row's buckets at most, so that a damaged length takes no memory.
_MOST = 64 << 20
_ITEM = struct.Struct("<qqIi")
#: What a row begins with that has readings in place of buckets: center, number of both, columns.
_BY_READINGS, _FOLDED = b"SGR1", struct.Struct("<dII")
#: A fifth of the time of the usual one, for a twentieth to a tenth more bytes.
_LEVEL = 1


class Shape(NamedTuple):
    """What the outbox keeps in mind of a bucket: ordinal, readings, single ones of them, bytes that it carries."""

    first: int
    n: int
    singles: int
    section: int


class Dense(NamedTuple):
    """A row of packed buckets in memory: its stream, the ordinal after them, and as they are packed."""

    stream: int
    end: int
    buckets: bytes

    @property
    def cost(self) -> int:
        """Bytes in memory."""
        return len(self.buckets) + CLOSED_OBJECTS


class Behind:
    """What waits for the outbox's table; `settled` follows a transaction that succeeds, `failed` and `load` another."""

    def __init__(self) -> None:
        self.waiting: dict[int, list[Closed]] = {}
        self.bytes = 0
        self._sizes: dict[int, int] = {}  # by stream, of `bytes`
        self._packed: dict[int, list[tuple[int, int]]] = {}  # by stream, number and first ordinal
        self._dense: dict[int, Dense] = {}  # by number, packed rows that no table has yet
        self._written: set[int] = set()  # streams whose waiting buckets left memory in this transaction
        self._left: set[int] = set()  # numbers of packed rows that did
        self._next = 1

    def load(self, connection: sqlite3.Connection) -> Iterator[tuple[int, Shape]]:
        """Know what is packed; the shapes of all that waits, by stream, in order."""
        self._packed = {}
        for number, stream, closed in packed_rows(connection):
            self._packed.setdefault(stream, []).append((number, closed[0].first))
            self._next = number + 1
            yield from ((stream, shape_of(each)) for each in closed)
        for number, dense in self._dense.items():
            if number not in self._left:
                closed = unpacked(dense.buckets)
                self._packed.setdefault(dense.stream, []).append((number, closed[0].first))
                yield from ((dense.stream, shape_of(each)) for each in closed)
        self._next = max(self._next, *self._dense) + 1 if self._dense else self._next
        for stream, waiting in self.waiting.items():
            if stream not in self._written:
                yield from ((stream, shape_of(each)) for each in waiting)

    def holds(self, stream: int) -> bool:
        """Whether any of a stream is not in the table."""
        return stream in self._packed or (stream in self.waiting and stream not in self._written)

    def take(self, stream: int, closed: list[Closed]) -> None:
        """More of a stream, which are durable in the record."""
        if closed:
            self.waiting.setdefault(stream, []).extend(closed)
            self._note(stream, _size(closed))

    def _note(self, stream: int, more: int) -> None:
        self._sizes[stream] = self._sizes.get(stream, 0) + more
        self.bytes += more

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits in memory."""
        return not self.waiting and not self._dense

    def shrink(self) -> None:
        """Pack what waits in memory, where it is; no transaction may be open."""
        for stream, waiting in self.waiting.items():
            dense = Dense(stream, waiting[-1].first + waiting[-1].n, packed(waiting))
            self._packed.setdefault(stream, []).append((self._next, waiting[0].first))
            self._dense[self._next] = dense
            self.bytes += dense.cost - self._sizes.pop(stream)
            self._next += 1
        self.waiting.clear()

    def write(self, connection: sqlite3.Connection) -> None:
        """Have all that waits in memory packed in the table, inside the caller's transaction."""
        for number, dense in self._dense.items():
            if number not in self._left:
                self._insert(connection, number, dense.stream, dense.buckets)
                self._leave(connection, number)
        for stream, waiting in self.waiting.items():
            if stream not in self._written:
                self.pack(connection, stream, waiting)
                self._hand(connection, stream, waiting)

    def pack(self, connection: sqlite3.Connection, stream: int, closed: list[Closed]) -> None:
        """Add a row of packed buckets, the newest of their stream, inside the caller's transaction."""
        if not closed:
            return
        number, self._next = self._next, self._next + 1
        self._insert(connection, number, stream, packed(closed))
        self._packed.setdefault(stream, []).append((number, closed[0].first))

    def _insert(self, connection: sqlite3.Connection, number: int, stream: int, buckets: bytes) -> None:
        row = number, stream, buckets, checksum(number, stream, buckets)
        connection.execute("INSERT INTO packed VALUES (?, ?, ?, ?)", row)

    def unpack(self, connection: sqlite3.Connection, stream: int, end: int = 1 << 62) -> list[Closed]:
        """What of a stream is packed, or waits, with any before ordinal `end`: the caller makes rows of it.

        Inside its transaction.
        """
        found: list[Closed] = []
        packed = self._packed.get(stream, [])
        while packed and packed[0][1] < end:
            number, _ = packed.pop(0)
            if number in self._dense and number not in self._left:
                found += unpacked(self._dense[number].buckets)
                self._leave(connection, number)
                continue
            query = "SELECT number, stream, buckets, crc FROM packed WHERE number = ?"
            found += _unpacked(*connection.execute(query, (number,)).fetchone())
            connection.execute("DELETE FROM packed WHERE number = ?", (number,))
        if not packed:
            self._packed.pop(stream, None)
        waiting = self.in_memory(stream)
        if waiting and waiting[0].first < end:
            self._hand(connection, stream, waiting)
            found += waiting
        return found

    def in_memory(self, stream: int) -> list[Closed]:
        """What of a stream waits in memory as it came."""
        return [] if stream in self._written else self.waiting.get(stream, [])

    def recast(self, stream: int, coarser: list[Closed]) -> None:
        """The same readings in fewer or lighter buckets, in the place of what waits in memory."""
        self._note(stream, _size(coarser) - self._sizes[stream])
        self.waiting[stream] = coarser

    def _hand(self, connection: sqlite3.Connection, stream: int, waiting: list[Closed]) -> None:
        _handed(connection, stream, waiting[-1].first + waiting[-1].n)
        self._written.add(stream)

    def _leave(self, connection: sqlite3.Connection, number: int) -> None:
        _handed(connection, self._dense[number].stream, self._dense[number].end)
        self._left.add(number)

    def settled(self) -> None:
        """The transaction is durable: what it wrote waits no more."""
        for stream in self._written:
            del self.waiting[stream]
            self.bytes -= self._sizes.pop(stream)
        for number in self._left:
            self.bytes -= self._dense.pop(number).cost
        self.failed()

    def failed(self) -> None:
        """The transaction failed: nothing of it was written."""
        self._written.clear()
        self._left.clear()


def _handed(connection: sqlite3.Connection, stream: int, end: int) -> None:
    """Say up to which ordinal a stream's buckets have left the record, so that none is played back again."""
    connection.execute("INSERT OR REPLACE INTO handed VALUES (?, ?, ?)", (stream, end, checksum(stream, end)))


def packed_rows(connection: sqlite3.Connection) -> Iterator[tuple[int, int, list[Closed]]]:
    """Number, stream and buckets of each packed row, the oldest first.

    Raises sqlite3.DatabaseError for one that is not as it was written.
    """
    for row in connection.execute("SELECT number, stream, buckets, crc FROM packed ORDER BY number"):
        yield row[0], row[1], _unpacked(*row)


def _unpacked(number: int, stream: int, buckets: bytes, crc: int | None) -> list[Closed]:
    require_sound("packed", crc, number, stream, buckets)
    try:
        return unpacked(buckets)
    except ValueError as error:
        raise sqlite3.DatabaseError(f"a malformed row in the table packed: {error}") from error


def shape_of(closed: Closed) -> Shape:
    """What to keep in mind of it."""
    return Shape(closed.first, closed.n, len(closed.readings or b"") // 16, max(0, len(closed.bucket) - PACKED))


def packed(closed: list[Closed]) -> bytes:
    """Closed buckets, deflated: by their readings alone where these make just them again."""
    center = closed[0].center if closed else None
    if center is not None and (found := unfold(closed, center)) is not None:
        columns, times, values = found
        head = _FOLDED.pack(center, len(closed), len(times))
        parts = [head, *map(packed_times, (*columns, times)), packed_values(values)]
        return _BY_READINGS + zlib.compress(b"".join(parts), _LEVEL)
    parts = []
    for each in closed:
        singles = -1 if each.readings is None else len(each.readings)
        parts += [_ITEM.pack(each.first, each.n, len(each.bucket), singles), each.bucket, each.readings or b""]
    return zlib.compress(b"".join(parts), _LEVEL)


def unpacked(data: bytes) -> list[Closed]:
    """What `packed` made. Raises ValueError for anything else."""
    by_readings = data.startswith(_BY_READINGS)
    try:
        inflating = zlib.decompressobj()
        plain = inflating.decompress(data[len(_BY_READINGS) :] if by_readings else data, _MOST)
        found, at = (_refolded if by_readings else _as_they_are)(plain)
    except (zlib.error, struct.error, ValueError, OverflowError) as error:
        raise ValueError(f"not packed buckets: {error}") from error
    if at != len(plain) or not inflating.eof:
        raise ValueError("packed buckets end in the middle of one")
    return found


def _as_they_are(plain: bytes) -> tuple[list[Closed], int]:
    """Buckets, and how many bytes they took."""
    found, at = list[Closed](), 0
    while at < len(plain):
        first, n, length, singles = _ITEM.unpack_from(plain, at)
        bucket = plain[at + _ITEM.size : at + _ITEM.size + length]
        at += _ITEM.size + length
        readings = None if singles < 0 else plain[at : at + singles]
        at += max(singles, 0)
        found.append(Closed(first, n, bucket, readings))
    return found, at


def _refolded(plain: bytes) -> tuple[list[Closed], int]:
    """The same of buckets by their readings."""
    center, buckets, readings = _FOLDED.unpack_from(plain)
    at, columns = _FOLDED.size, []
    for count in (*[buckets] * 5, readings):
        column, size = unpacked_times(plain[at:], count)
        columns.append(column)
        at += size
    values, size = unpacked_values(plain[at:], readings)
    *of_each, times = columns
    return [*map(Closed._make, refold(center, (*of_each,), times, values))], at + size


def _size(closed: list[Closed]) -> int:
    """Bytes of closed buckets in memory, at least one, their objects among them."""
    _, _, buckets, readings, _ = zip(*closed, strict=True)
    return sum(map(len, buckets)) + sum(map(len, filter(None, readings))) + len(closed) * CLOSED_OBJECTS
