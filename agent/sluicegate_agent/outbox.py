"""What waits for the cloud, within its budget: closed base buckets as rows, and sealed chunks that never change.

When rows or bytes run out, nothing is dropped but detail: single readings first, then neighbouring buckets of one
stream are merged, the smallest pair of the stream with most rows, the oldest of equals, so that all stay about equally
coarse. What was sealed may have been sent and is left alone; little is sealed at a time, so a backlog can shrink.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterable
from typing import Any, NamedTuple

from sluicegate.format import chunk as chunks
from sluicegate.format.bucket import PACKED
from sluicegate.format.late import LATE_NAME
from sluicegate_agent import carried
from sluicegate_agent.backlog.lanes import Lane
from sluicegate_agent.backlog.rows import ROW_COST, insert_rows, sound
from sluicegate_agent.backlog.squeeze import Squeeze
from sluicegate_agent.behind import Behind, packed_rows
from sluicegate_agent.carried import pack_readings
from sluicegate_agent.checksums import checksum
from sluicegate_agent.streams import SINGLES_MOST, Closed

SEALED, REJECTED = 0, 1
#: A document's header and the agent's health in it.
DOCUMENT_COST = 2048
REJECTED_KEPT = 8
#: Once there are too many bytes, room is made for this part of the budget, so that not every commit has to.
EASED = 32
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


class Outbox:
    """Rows and sealed chunks within `rows_most` and `bytes_most`; `rows` and `bytes_held` are what is held now.

    `carries`: by stream, what its buckets are to carry once they lose their single readings.
    """

    def __init__(self, connection: sqlite3.Connection, rows_most: int, bytes_most: int) -> None:
        """Raises sqlite3.DatabaseError for a row of a document that is not as it was written."""
        self.rows_most, self.bytes_most = rows_most, bytes_most
        self.carries: dict[int, tuple[str, ...]] = {}
        self.lanes: dict[int, Lane] = {}
        self.merges = self.singles_dropped = 0
        self.behind = Behind()
        for row in connection.execute("SELECT * FROM chunk"):
            if not is_sound_chunk(*row):
                raise sqlite3.DatabaseError(f"a malformed row in the table chunk: {row[1]} has a wrong checksum")
        self.load(connection)

    def load(self, connection: sqlite3.Connection) -> None:
        """Read the index anew: when the store is opened, and after rows were made of a document."""
        self.lanes = {}
        query = """SELECT stream, first, substr(bucket, 9, 8), coalesce(length(readings), 0), length(bucket)
            FROM outbox ORDER BY 1, 2"""
        for stream, first, n, length, record in connection.execute(query):
            self._lane(stream).append(first, int.from_bytes(n, "little"), length // 16, max(0, record - PACKED))
        for stream, shape in self.behind.load(connection):
            self._lane(stream).append(*shape)
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
            insert_rows(connection, stream, rows)
        self._note(stream, rows)

    def take(self, stream: int, closed: Iterable[Closed]) -> None:
        """Add closed buckets of one stream, in order, that are durable in the record: their rows are written later."""
        rows = [*closed]
        self.behind.take(stream, rows)
        self._note(stream, rows)

    def _note(self, stream: int, rows: list[Closed]) -> None:
        if not rows:
            return
        lane = self._lane(stream)
        before = lane.cost
        firsts, sizes, buckets, readings, _ = zip(*rows, strict=True)
        singles = [len(each) // 16 if each else 0 for each in readings]
        lengths = [*map(len, buckets)]
        sections = [max(0, length - PACKED) for length in lengths] if max(lengths) > PACKED else bytes(len(rows))
        lane.extend(firsts, sizes, singles, sections)
        self.rows += len(rows)
        self._cost += lane.cost - before

    def reload(self, connection: sqlite3.Connection) -> None:
        """Read the index anew after a transaction that failed."""
        self.behind.failed()
        self.load(connection)

    @property
    def excess(self) -> tuple[int, int]:
        """So many rows, and bytes, are too many while it is made coarser: bytes down to a little below the budget."""
        return self.rows - self.rows_most, self.bytes_held - self.bytes_most + self.bytes_most // EASED

    def cheaper(self, rows: int, cost: int) -> None:
        """So many rows and bytes fewer."""
        self.rows -= rows
        self._cost -= cost

    def squeeze(self, connection: sqlite3.Connection, most: int = 1 << 62) -> int:
        """Make room, inside the caller's transaction: as many steps as are needed, or `most`. The steps taken.

        A commit needs about as many as it inserted rows. It ends early where no stream has two rows left.
        """
        steps, held = 0, self._singles
        while self.is_over and steps < most:
            squeeze = Squeeze(self)
            taken = squeeze.decide(most - steps)
            squeeze.apply(connection)
            if not taken:
                break
            steps += taken
        self.singles_dropped += held - self._singles
        return steps

    @property
    def _singles(self) -> int:
        return sum(lane.held for lane in self.lanes.values())

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
            behind, left = self.behind.unpack(connection, stream, lane.following(taken - 1)), taken - len(found)
            found += [(item.bucket, item.readings) for item in behind[:left]]
            insert_rows(connection, stream, behind[left:])
        return found

    def seal(self, connection: sqlite3.Connection, stream: int, rows: int, sealed: Sealed, first: int) -> None:
        """Replace the oldest rows of a stream by the document that holds them, inside the caller's transaction."""
        lane = self._lane(stream)
        end = lane.firsts[rows] if rows < len(lane) else first + sealed.readings
        connection.execute("DELETE FROM outbox WHERE stream = ? AND first < ?", (stream, end))
        row = (sealed.number, sealed.id, stream, first, sealed.readings, SEALED, None, sealed.document)
        connection.execute("INSERT INTO chunk VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", (*row, chunk_checksum(*row)))
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
        # Zeros over them would cost the card as much as they did; one that is salvaged is sent once more.
        connection.execute("PRAGMA secure_delete = FAST").fetchall()
        names = {(name,) for name in ids}
        if names == {*connection.execute("SELECT id FROM chunk")}:
            connection.execute("DELETE FROM chunk")  # all at once: no page of it is written
        else:
            connection.executemany("DELETE FROM chunk WHERE id = ?", names)
        connection.execute("PRAGMA secure_delete = ON").fetchall()
        self.load_sealed(connection)

    def regroup(self, connection: sqlite3.Connection, name: str) -> int:
        """Make rows of a sealed document again, all but its first; the readings of that one."""
        query = "SELECT stream, document FROM chunk WHERE id = ?"
        stream, document = connection.execute(query, (name,)).fetchone()
        connection.execute("DELETE FROM chunk WHERE id = ?", (name,))
        first, *others = rows_in(document)
        insert_rows(connection, stream, others)
        self.load(connection)
        return first.n

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
        for name, reason in reasons.items():
            for *row, _ in connection.execute("SELECT * FROM chunk WHERE id = ?", (name,)).fetchall():
                row[5:7] = REJECTED, reason
                insert = "INSERT OR REPLACE INTO chunk VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
                connection.execute(insert, (*row, chunk_checksum(*row)))
        newest = "SELECT number FROM chunk WHERE state = 1 ORDER BY number DESC LIMIT 1 OFFSET ?"
        stale = f"FROM chunk WHERE state = 1 AND number <= ({newest})"
        dropped = connection.execute(f"SELECT total(readings) {stale}", (REJECTED_KEPT,)).fetchone()[0]
        connection.execute(f"DELETE {stale}", (REJECTED_KEPT,))
        self.load_sealed(connection)
        return int(dropped)


def chunk_checksum(
    number: int, name: str, stream: int, first: int, readings: int, state: int, reason: str | None, document: bytes
) -> int:
    """The checksum of a sealed document's row."""
    return checksum(number, name, stream, first, readings, state, reason or "", document)


def is_sound_chunk(*row: Any) -> bool:
    """Whether a row of the table, with its checksum, is as it was written; older ones have that of the document."""
    *columns, crc = row
    return crc is None or crc in (chunk_checksum(*columns), zlib.crc32(columns[7]))


def rows_in(document: bytes) -> list[Closed]:
    """The rows that a sealed document was made of."""
    chunk, rows = chunks.decode(document), []
    for i, (bucket, singles) in enumerate(zip(chunk.buckets, chunk.readings, strict=True)):
        parts = {name: part for name, each in chunk.extras.items() if (part := each[i]) is not None}
        says_all = singles is not None and bucket.n <= SINGLES_MOST and parts.keys() <= {LATE_NAME}
        readings = pack_readings(*singles) if singles is not None and says_all else None
        rows.append(Closed(bucket.first, bucket.n, carried.joined(bucket.pack(), parts), readings))
    return rows


def waiting_of(connection: sqlite3.Connection, stream: int) -> list[tuple[int, bytes]]:
    """Number and bytes of a stream's sealed documents that no target has answered."""
    query = "SELECT number, document FROM chunk WHERE stream = ? AND state = ? ORDER BY number"
    return connection.execute(query, (stream, SEALED)).fetchall()


def spread(connection: sqlite3.Connection) -> None:
    """Make rows of all that is packed, inside the caller's transaction."""
    for _, stream, closed in [*packed_rows(connection)]:
        insert_rows(connection, stream, closed)
    connection.execute("DELETE FROM packed")
