"""What waits for the cloud, within its budget: closed base buckets as rows, and sealed chunks that never change.

When rows or bytes run out, nothing is dropped but detail: single readings first, then neighbouring buckets of one
stream are merged, the smallest pair of the stream with most rows, the oldest of equals, so that all stay about equally
coarse. What was sealed may have been sent and is left alone; little is sealed at a time, so a backlog can shrink.
"""

from __future__ import annotations

import re
import sqlite3
import struct
import zlib
from array import array
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from sluicegate.format import chunk as chunks
from sluicegate.format.bucket import PACKED, Bucket, merge
from sluicegate_agent import carried
from sluicegate_agent.behind import Behind, packed_rows
from sluicegate_agent.streams import SINGLES_MOST, Closed, pack_readings, unpack_readings

SEALED, REJECTED = 0, 1
#: Bytes a row is counted with: its record as base64 in a document at worst, its key and the page's share.
ROW_COST = PACKED * 4 // 3 + 64
#: The same for a single reading of 16 bytes.
READING_COST = 22
#: A document's header and the agent's health in it.
DOCUMENT_COST = 2048
REJECTED_KEPT = 8
TAKE = "sluicegate status FILE --take-refused FOLDER"


def least_bytes(streams: int) -> int:
    """The smallest budget that works: a row for each stream, one of them in a document."""
    return streams * ROW_COST + DOCUMENT_COST


class Sealed(NamedTuple):
    """A chunk that may have been sent: its bytes never change."""

    number: int
    id: str
    readings: int
    document: bytes


class Lane:
    """The rows of one stream in memory, 17 bytes each: first ordinal, size class, number of single readings.

    `sections`: by first ordinal, the bytes of what a row carries, where it does.
    """

    __slots__ = ("_finest", "carried", "classes", "firsts", "held", "sections", "singles")

    def __init__(self) -> None:
        self.firsts = array("q")
        self.classes = bytearray()
        self.singles = bytearray()
        self.held = self.carried = 0
        self.sections: dict[int, int] = {}
        self._finest = 0

    def __len__(self) -> int:
        return len(self.firsts)

    @property
    def cost(self) -> int:
        """Bytes of all rows as counted."""
        return len(self.firsts) * ROW_COST + self.held * READING_COST + encoded(self.carried)

    def cost_of(self, at: int) -> int:
        """Bytes of one row as counted, rounded up."""
        section = self.sections.get(self.firsts[at], 0)
        return ROW_COST + self.singles[at] * READING_COST + encoded(section)

    def carries(self, first: int, section: int) -> None:
        """The row of this ordinal has a section of so many bytes now."""
        self.carried += section - self.sections.pop(first, 0)
        if section:
            self.sections[first] = section

    def append(self, first: int, n: int, singles: int, section: int = 0) -> None:
        """A row after the newest; its size class is the number of binary digits of n."""
        size = n.bit_length()
        self.firsts.append(first)
        self.classes.append(size)
        self.singles.append(singles)
        self.held += singles
        if section or self.sections:
            self.carries(first, section)
        if size < self._finest:
            self._finest = min(self._finest, max(self.classes[-2:]))

    def finest_pair(self) -> int:
        """Position of the oldest neighbours whose larger one is as small as can be; there must be two rows."""
        while True:
            found = _neighbours(self._finest).search(self.classes)
            if found is not None:
                return found.start()
            self._finest += 1

    def first_with_singles(self) -> int | None:
        """Position of the oldest row that has single readings."""
        found = _ANY.search(self.singles) if self.held else None
        return found.start() if found else None

    def lightened(self, at: int) -> None:
        """Row `at` has no single readings any more."""
        self.held -= self.singles[at]
        self.singles[at] = 0

    def merged(self, at: int, n: int, singles: int) -> None:
        """Rows `at` and the next are one now."""
        self.held += singles - self.singles[at] - self.singles[at + 1]
        self.carries(self.firsts[at + 1], 0)
        self.classes[at], self.singles[at] = n.bit_length(), singles
        del self.firsts[at + 1], self.classes[at + 1], self.singles[at + 1]

    def dropped(self, rows: int) -> None:
        """The oldest rows are gone."""
        self.held -= sum(self.singles[:rows])
        for first in self.firsts[:rows] if self.sections else ():
            self.carries(first, 0)
        del self.firsts[:rows], self.classes[:rows], self.singles[:rows]


_ANY = re.compile(b"[^\\x00]")


@cache
def _neighbours(largest: int) -> re.Pattern[bytes]:
    return re.compile(b"[\\x00-\\x%02x]{2}" % largest)


class Outbox:
    """Rows and sealed chunks within `rows_most` and `bytes_most`; `rows` and `bytes_held` are what is held now.

    `carries`: by stream, what its buckets are to carry once they lose their single readings.
    """

    def __init__(self, connection: sqlite3.Connection, rows_most: int, bytes_most: int) -> None:
        self.rows_most, self.bytes_most = rows_most, bytes_most
        self.carries: dict[int, tuple[str, ...]] = {}
        self.lanes: dict[int, Lane] = {}
        self.merges = self.singles_dropped = 0
        self.behind = Behind()
        self.load(connection)

    def load(self, connection: sqlite3.Connection) -> None:
        """Read the index anew: when the store is opened, and after rows were made of a document."""
        self.lanes = {}
        query = """SELECT stream, first, substr(bucket, 9, 8), coalesce(length(readings), 0), length(bucket)
            FROM outbox ORDER BY 1, 2"""
        for stream, first, n, length, record in connection.execute(query):
            self._lane(stream).append(first, int.from_bytes(n, "little"), length // 16, max(0, record - PACKED))
        for stream, shape in self.behind.load(connection):
            self._lane(stream).append(shape.first, shape.n, shape.singles, max(0, shape.record - PACKED))
        self.load_sealed(connection)
        self._count()

    def load_sealed(self, connection: sqlite3.Connection) -> None:
        """How many chunks are sealed and the bytes of all documents, refused ones among them."""
        query = "SELECT total(state = 0), total(length(document)), count(*) FROM chunk"
        sealed, documents, chunks = connection.execute(query).fetchone()
        self.sealed, self.sealed_bytes, self.rejected = int(sealed), int(documents), int(chunks - sealed)

    def _count(self) -> None:
        self.rows = sum(len(lane) for lane in self.lanes.values())
        self._cost = sum(lane.cost for lane in self.lanes.values())

    def _lane(self, stream: int) -> Lane:
        return self.lanes.setdefault(stream, Lane())

    @property
    def bytes_held(self) -> int:
        """Bytes held, as counted against the budget: never less than what the tables hold."""
        return self._cost + self.sealed_bytes

    @property
    def fullness(self) -> float:
        """The share of the budget that is in use, of rows or of bytes, whichever is more."""
        return max(self.rows / self.rows_most, self.bytes_held / self.bytes_most)

    @property
    def is_over(self) -> bool:
        """Whether rows or bytes exceed the budget."""
        return self.rows > self.rows_most or self.bytes_held > self.bytes_most

    def insert(self, connection: sqlite3.Connection, stream: int, closed: Iterable[Closed]) -> None:
        """Add closed buckets of one stream, in order, inside the caller's transaction."""
        rows = [*closed]
        if self.behind.holds(stream):
            self.behind.pack(connection, stream, rows)
        else:
            for item in rows:
                connection.execute(*row_of(stream, item))
        self._note(stream, rows)

    def take(self, stream: int, closed: Iterable[Closed]) -> None:
        """Add closed buckets of one stream, in order, that are durable in the record: their rows are written later."""
        rows = [*closed]
        for item in rows:
            self.behind.take(stream, item)
        self._note(stream, rows)

    def _note(self, stream: int, rows: list[Closed]) -> None:
        lane = self._lane(stream)
        before = lane.cost
        for item in rows:
            singles = len(item.readings) // 16 if item.readings else 0
            lane.append(item.first, item.n, singles, max(0, len(item.bucket) - PACKED))
        self.rows += len(rows)
        self._cost += lane.cost - before

    def _make_rows(self, connection: sqlite3.Connection, stream: int) -> None:
        """Have all buckets of a stream stand in the table, inside the caller's transaction."""
        for item in self.behind.unpack(connection, stream) if self.behind.holds(stream) else ():
            connection.execute(*row_of(stream, item))

    def reload(self, connection: sqlite3.Connection) -> None:
        """Read the index anew after a transaction that failed."""
        self.behind.failed()
        self.load(connection)

    def squeeze(self, connection: sqlite3.Connection, most: int | None = None) -> int:
        """Make room, inside the caller's transaction: as many steps as are needed, or `most`. The steps taken.

        A commit needs about as many as it inserted rows. It ends early where no stream has two rows left.
        """
        steps = 0
        while self.is_over and (most is None or steps < most):
            if not (self._merge_one(connection) if self.rows > self.rows_most else self._lighten(connection)):
                break
            steps += 1
        return steps

    def _lighten(self, connection: sqlite3.Connection) -> bool:
        stream, lane = max(self.lanes.items(), key=lambda item: item[1].held, default=(0, Lane()))
        at = lane.first_with_singles()
        if at is None:
            return self._merge_one(connection)
        self._make_rows(connection, stream)
        key = (stream, lane.firsts[at])
        bucket, singles, crc = connection.execute(f"{_ROW} WHERE stream = ? AND first = ?", key).fetchone()
        sound(*key, bucket, singles, crc)
        if names := self.carries.get(stream, ()):
            bucket = carried.joined(unpacked(bucket).pack(), parts_of(bucket, singles, names))
            if encoded(len(bucket) - PACKED) >= lane.singles[at] * READING_COST and self._merge_one(connection):
                return True  # it would take more room than its readings do
        update = "UPDATE outbox SET bucket = ?, readings = NULL, crc = ? WHERE stream = ? AND first = ?"
        connection.execute(update, (bucket, check_of(*key, bucket, None), *key))
        before = lane.cost
        self.singles_dropped += lane.singles[at]
        lane.lightened(at)
        lane.carries(lane.firsts[at], max(0, len(bucket) - PACKED))
        self._cost += lane.cost - before
        return True

    def _merge_one(self, connection: sqlite3.Connection) -> bool:
        stream, lane = max(self.lanes.items(), key=lambda item: len(item[1]), default=(0, Lane()))
        if len(lane) < 2:
            return False
        self._make_rows(connection, stream)
        at = lane.finest_pair()
        before, cost = lane.singles[at] + lane.singles[at + 1], lane.cost
        pair = lane.firsts[at], lane.firsts[at + 1]
        n, singles, section = _merge_rows(connection, stream, *pair, self.carries.get(stream, ()))
        lane.merged(at, n, singles)
        lane.carries(lane.firsts[at], section)
        self.rows -= 1
        self._cost += lane.cost - cost
        self.singles_dropped += before - singles
        self.merges += 1
        return True

    def oldest(
        self, connection: sqlite3.Connection, stream: int, rows: int, cost: int
    ) -> list[tuple[bytes, bytes | None]]:
        """The oldest rows of a stream, at least one, at most `rows` and about `cost` bytes: (bucket, readings) each.

        Inside the transaction that seals them.
        """
        lane, taken = self._lane(stream), 0
        for at in range(min(rows, len(lane))):
            cost -= lane.cost_of(at)
            if taken and cost < 0:
                break
            taken += 1
        query = "SELECT stream, first, bucket, readings, crc FROM outbox WHERE stream = ? ORDER BY first LIMIT ?"
        found = [sound(*row) for row in connection.execute(query, (stream, taken))]
        if len(found) < taken:  # what is taken from behind needs no row; what is left gets one
            behind, left = self.behind.unpack(connection, stream), taken - len(found)
            found += [(item.bucket, item.readings) for item in behind[:left]]
            for item in behind[left:]:
                connection.execute(*row_of(stream, item))
        return found

    def seal(self, connection: sqlite3.Connection, stream: int, rows: int, sealed: Sealed, first: int) -> None:
        """Replace the oldest rows of a stream by the document that holds them, inside the caller's transaction."""
        lane = self._lane(stream)
        end = lane.firsts[rows] if rows < len(lane) else first + sealed.readings
        connection.execute("DELETE FROM outbox WHERE stream = ? AND first < ?", (stream, end))
        crc = zlib.crc32(sealed.document)
        row = (sealed.number, sealed.id, stream, first, sealed.readings, SEALED, None, sealed.document, crc)
        connection.execute("INSERT INTO chunk VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        lane.dropped(rows)
        self._count()
        self.sealed += 1
        self.sealed_bytes += len(sealed.document)

    def waiting(self, connection: sqlite3.Connection, most: int) -> list[Sealed]:
        """Sealed chunks that no target has acknowledged, oldest first."""
        query = "SELECT number, id, readings, document FROM chunk WHERE state = ? ORDER BY number LIMIT ?"
        return [Sealed(*row) for row in connection.execute(query, (SEALED, most))]

    def acknowledge(self, connection: sqlite3.Connection, ids: Iterable[str]) -> None:
        """Delete chunks that the target has, inside the caller's transaction."""
        connection.executemany("DELETE FROM chunk WHERE id = ?", [(name,) for name in ids])
        self.load_sealed(connection)

    def regroup(self, connection: sqlite3.Connection, name: str) -> int:
        """Make rows of a sealed document again, all but its first; the readings of that one."""
        query = "SELECT stream, document FROM chunk WHERE id = ?"
        stream, document = connection.execute(query, (name,)).fetchone()
        connection.execute("DELETE FROM chunk WHERE id = ?", (name,))
        chunk = chunks.decode(document)
        for i, (bucket, singles) in enumerate(zip(chunk.buckets, chunk.readings, strict=True)):
            if i:
                parts = {name: part for name, each in chunk.extras.items() if (part := each[i]) is not None}
                few = singles is not None and bucket.n <= SINGLES_MOST and not parts
                readings = pack_readings(*singles) if singles is not None and few else None
                record = carried.joined(bucket.pack(), parts)
                connection.execute(*row_of(stream, Closed(bucket.first, bucket.n, record, readings)))
        self.load(connection)
        return chunk.buckets[0].n

    def room_for(self, rejected: dict[str, str]) -> tuple[dict[str, str], str]:
        """The refused documents that there is room to set aside, and why the rest waits; empty where nothing has to."""
        room = max(0, REJECTED_KEPT - self.rejected)
        aside = dict(list(rejected.items())[:room])
        if len(aside) == len(rejected):
            return aside, ""
        name, reason = list(rejected.items())[room]
        return aside, f"{REJECTED_KEPT} refused documents wait for a person ({TAKE}), and now {name}: {reason}"

    def reject(self, connection: sqlite3.Connection, reasons: dict[str, str]) -> int:
        """Set chunks aside that the target refuses for good, the newest REJECTED_KEPT; the readings dropped beyond."""
        rows = [(REJECTED, reason, name) for name, reason in reasons.items()]
        connection.executemany("UPDATE chunk SET state = ?, reason = ? WHERE id = ?", rows)
        newest = "SELECT number FROM chunk WHERE state = 1 ORDER BY number DESC LIMIT 1 OFFSET ?"
        stale = f"FROM chunk WHERE state = 1 AND number <= ({newest})"
        dropped = connection.execute(f"SELECT total(readings) {stale}", (REJECTED_KEPT,)).fetchone()[0]
        connection.execute(f"DELETE {stale}", (REJECTED_KEPT,))
        self.load_sealed(connection)
        return int(dropped)


def spread(connection: sqlite3.Connection) -> None:
    """Make rows of all that is packed, inside the caller's transaction."""
    for _, stream, closed in [*packed_rows(connection)]:
        for item in closed:
            connection.execute(*row_of(stream, item))
    connection.execute("DELETE FROM packed")


def _merge_rows(
    connection: sqlite3.Connection, stream: int, first: int, second: int, names: tuple[str, ...]
) -> tuple[int, int, int]:
    """Make one row of two neighbours; its readings, how many single ones it still has, and bytes that it carries."""
    query = f"{_ROW} WHERE stream = ? AND first = ?"
    rows = (connection.execute(query, (stream, at)).fetchone() for at in (first, second))
    (a, singles_a), (b, singles_b) = (sound(stream, at, *row) for at, row in zip((first, second), rows, strict=True))
    bucket = merge(unpacked(a), unpacked(b))
    singles = _joined(singles_a, singles_b)
    update = "UPDATE outbox SET bucket = ?, readings = ?, crc = ? WHERE stream = ? AND first = ?"
    packed = bucket.pack()
    if not singles:
        parts = (parts_of(row, each, names) for row, each in ((a, singles_a), (b, singles_b)))
        packed = carried.joined(packed, carried.merged(*parts))
    connection.execute(update, (packed, singles, check_of(stream, first, packed, singles), stream, first))
    connection.execute("DELETE FROM outbox WHERE stream = ? AND first = ?", (stream, second))
    return bucket.n, len(singles) // 16 if singles else 0, len(packed) - PACKED


_ROW = "SELECT bucket, readings, crc FROM outbox"
_KEY = struct.Struct("<qq")


def row_of(stream: int, item: Closed) -> tuple[str, tuple[object, ...]]:
    """The statement and the values that put a closed bucket into the outbox."""
    check = check_of(stream, item.first, item.bucket, item.readings)
    return "INSERT INTO outbox VALUES (?, ?, ?, ?, ?)", (stream, item.first, item.bucket, item.readings, check)


def check_of(stream: int, first: int, bucket: bytes, readings: bytes | None) -> int:
    """A row's checksum: the pages of a store have none, and a number that a medium changed looks like any other."""
    return zlib.crc32(readings or b"", zlib.crc32(bucket, zlib.crc32(_KEY.pack(stream, first))))


def sound(
    stream: int, first: int, bucket: bytes, readings: bytes | None, crc: int | None
) -> tuple[bytes, bytes | None]:
    """A row's bucket and readings as they were written. Raises sqlite3.DatabaseError for others; rows of an older
    version have no checksum."""
    if crc is not None and crc != check_of(stream, first, bucket, readings):
        raise sqlite3.DatabaseError(f"a row of the table outbox is malformed: stream {stream}, first {first}")
    return bucket, readings


def encoded(section: int) -> int:
    """Bytes of a section as they are counted: as base64, at worst."""
    return section * 4 // 3


def parts_of(row: bytes, singles: bytes | None, names: tuple[str, ...]) -> carried.Parts:
    """What a row carries, or, of these names, what it is to carry when its single readings go.

    Raises sqlite3.DatabaseError for a row that is none.
    """
    try:
        if singles:
            times, values = unpack_readings(singles)
            return carried.fold(names, values, times)
        return carried.parted(row)[1]
    except ValueError as error:
        raise sqlite3.DatabaseError(f"a row of the table outbox is malformed: {error}") from error


def unpacked(row: bytes) -> Bucket:
    """A stored bucket. Raises sqlite3.DatabaseError for bytes that are none: the store is damaged."""
    try:
        return Bucket.unpack(carried.parted(row)[0])
    except ValueError as error:
        raise sqlite3.DatabaseError(f"a row of the table outbox is malformed: {error}") from error


def _joined(a: bytes | None, b: bytes | None) -> bytes | None:
    """Both rows' readings, times before values, while they are few; else none: a bucket has all of them or no one."""
    if not a or not b or len(a) + len(b) > 16 * SINGLES_MOST:
        return None
    i, j = len(a) // 2, len(b) // 2
    return a[:i] + b[:j] + a[i:] + b[j:]
