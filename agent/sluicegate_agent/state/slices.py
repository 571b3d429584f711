"""Keeps a tumbling or hopping window as rows: one for each hop that changed since the last commit, and a small state.

A hop that is closed is written once, and again only where a late reading enters it. The newest final results are rows
too: after a start they are offered once more, since the process before may have ended before it had sent them.
"""

from __future__ import annotations

import logging
import sqlite3
import struct
from array import array
from typing import TYPE_CHECKING, Any

from sluicegate.errors import SnapshotError
from sluicegate.format.bucket import Bucket
from sluicegate.format.record import PACKED
from sluicegate.windowing.slices import SliceResult, Slices
from sluicegate.windowing.whole import answer
from sluicegate_agent.checksums import checksum, is_sound
from sluicegate_agent.doubts import Doubts, opened, widened
from sluicegate_agent.messages import EndedResult, Result, plain
from sluicegate_agent.state.shared import make_row

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sluicegate_agent.config import WindowConfig
    from sluicegate_agent.streams import Stream

log = logging.getLogger("sluicegate.windows")
FINAL = 2  # the kind of rows that hold final results, beside those of `Slices`
#: Final results that are kept to be sent again, and results that wait to be asked for.
KEPT, WAITING = 4, 64
_GIVEN = struct.Struct("<qqqddd")


class StoredSlices:
    """One window of one stream, its rows and the results that nobody asked for yet."""

    buckets = limit = 0  # no budget squeezes it

    def __init__(
        self,
        connection: sqlite3.Connection,
        stream: int,
        config: WindowConfig,
        sharing: Sequence[WindowConfig] = (),
        numbers: Iterator[int] | None = None,
    ) -> None:
        """Continue the stored window, or begin one where none has this definition; in the caller's transaction.

        `numbers`: of rows that `save` makes first.
        """
        self._stream, self.is_new = stream, numbers is not None
        self.asked = config, sharing
        self.name, self.names, self._definition = config.name, (config.name,), config.definition
        self.aggregates = config.aggregates
        self._before = max(0, config.spec.pause - 1)  # a reading so shortly before a session would be of it
        self.changed, self.begun_anew, self.is_damaged, self.is_begun = self.is_new, False, False, False
        self._dropped = 0  # windows whose result had no room, since somebody asked
        self.given: list[SliceResult] = []
        self._finals: list[SliceResult] = []
        self._stale: list[int] = []
        if numbers is not None:
            self.number, self.slices = next(numbers), Slices(config.spec)
        else:
            self.number = self._restored(connection, stream) or self._begun(connection, stream)

    def _restored(self, connection: sqlite3.Connection, stream: int) -> int | None:
        self.slices = Slices(self.asked[0].spec)
        query = "SELECT id, state, crc FROM window WHERE stream = ? AND name = ? AND definition = ?"
        found = connection.execute(query, (stream, self.name, self._definition)).fetchone()
        if found is None:
            return None
        number, state, crc = found
        query = "SELECT level, number, leaf, crc FROM window_leaf WHERE window = ? ORDER BY level, number"
        rows = connection.execute(query, (number,)).fetchall()
        try:
            sound = [is_sound(crc, self._definition, state), *(is_sound(each[3], number, *each[:3]) for each in rows)]
            if not all(sound):
                raise SnapshotError("the checksum of a row is wrong")
            self.slices.restore(state, [row[:3] for row in rows if row[0] != FINAL])
            self._finals = [_unpacked(start, leaf) for kind, start, leaf, _ in rows if kind == FINAL]
        except (SnapshotError, ValueError, struct.error) as error:
            log.warning("window %s begins anew: what is kept of it cannot be used (%s)", self.name, error)
            self.slices, self.begun_anew, self.is_damaged = Slices(self.asked[0].spec), True, True
            return None
        self.given = list(self._finals)
        return int(number)

    def _begun(self, connection: sqlite3.Connection, stream: int) -> int:
        from sluicegate_agent.state.windows import forget

        had = connection.execute("SELECT 1 FROM window WHERE stream = ? AND name = ?", (stream, self.name)).fetchone()
        self.begun_anew |= had is not None
        self.is_begun = True
        forget(connection, "stream = ? AND name = ?", (stream, self.name))
        insert = "INSERT INTO window (stream, name, definition, state, crc) VALUES (?, ?, ?, ?, ?)"
        state = self.slices.state()
        values = (stream, self.name, self._definition, state, checksum(self._definition, state))
        return int(connection.execute(insert, values).lastrowid or 0)

    @property
    def numbers(self) -> tuple[int, ...]:
        """Its row."""
        return (self.number,)

    # readings and time

    def insert_many(self, values: array[float], times: array[int]) -> int:
        """Fold readings in their order; none is refused."""
        self._take(self.slices.insert_many(values, times))
        self.changed = True
        return 0

    def advance(self, time: int) -> bool:
        """It is at least this late (µs); whether that led to results."""
        given = self.slices.advance(time)
        self._take(given)
        self.changed |= bool(given)
        return bool(given)

    def is_ahead_of(self, latest: int) -> bool:
        """Whether event time has gone beyond the latest (µs) that a reading may have: all that comes would be late."""
        return self.slices.now > latest

    def _take(self, given: list[SliceResult]) -> None:
        """Of one window the newest result waits; of too many windows the oldest goes."""
        newest = {each.start: each for each in (*self.given, *given)}
        self.given = sorted(newest.values(), key=lambda each: each.at)
        self._dropped += max(0, len(self.given) - WAITING)
        self.given = self.given[-WAITING:]
        self._finals += [each for each in given if each.stage == "final"]
        self._stale += [each.start for each in self._finals[:-KEPT]]
        self._finals = self._finals[-KEPT:]

    def squeeze(self, buckets: int) -> bool:
        """Its records are as few as they can be."""
        return False

    # answers

    def results(self, stream: Stream, doubts: Doubts | None) -> Iterator[Result]:
        """What waits, one result an aggregate, the newest first."""
        newest = stream.builder.next - 1 if stream.builder else 0
        for each in reversed(self.given):
            doubt = doubts.since(each.start) if doubts else None
            lacks = doubts is not None and doubts.lacks_since(self.asked[0], each.start - self._before)
            for name in self.asked[0].aggregates:
                value, low, high, exact = answer(name, each)
                told = plain(value), plain(low), plain(high), exact
                if doubt:
                    told = widened(name, told, self.asked[0], each.bucket.n, doubt)
                if lacks:
                    told = opened(name, told, self.asked[0])
                place = stream.name, self.name, name, newest, each.at
                size = each.bucket.n, 1, min(doubt.n, each.bucket.n) if doubt else 0
                yield EndedResult(
                    *place, *told, *size, start_us=each.start, end_us=each.end, stage=each.stage,
                    revision=each.revision, replaces=each.replaces,
                )  # fmt: skip

    def given_out(self) -> int:
        """What waited has been taken; how many results nobody will get."""
        self.given.clear()
        lost, self._dropped = self._dropped, 0
        return lost * len(self.aggregates)

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Its hops, oldest first: readings, first and last time, then what each aggregate is of it."""
        for of in self.slices.each():
            values = (plain(answer(name, of).value) for name in self.aggregates)
            yield (of.bucket.n, of.bucket.t_first, of.bucket.t_last, *values)

    @property
    def held(self) -> int:
        """How many hops it keeps."""
        return len(self.slices.slices)

    @property
    def nbytes(self) -> int:
        """Bytes of their records."""
        return self.held * PACKED

    # commits

    def belongs_to(self, stream: int) -> None:
        """Its stream goes on under another number."""
        self._stream = stream

    def save(self, connection: sqlite3.Connection) -> None:
        """Write what changed since the last commit, in the caller's transaction."""
        if not self.changed:
            return
        if self.is_new:
            make_row(connection, self.number, self._stream, self.name, self._definition)
        for kind, start, record in self.slices.changes():
            self._write(connection, kind, start, record)
        for start in self._stale:
            self._write(connection, FINAL, start, None)
        for each in self._finals:
            self._write(connection, FINAL, each.start, _packed(each))
        state = self.slices.state()
        values = (state, checksum(self._definition, state), self.number)
        connection.execute("UPDATE window SET state = ?, crc = ? WHERE id = ?", values)

    def _write(self, connection: sqlite3.Connection, kind: int, start: int, record: bytes | None) -> None:
        row = (self.number, kind, start)
        if record is None:
            connection.execute("DELETE FROM window_leaf WHERE window = ? AND level = ? AND number = ?", row)
        else:
            values = (*row, record, checksum(*row, record))
            connection.execute("INSERT OR REPLACE INTO window_leaf VALUES (?, ?, ?, ?, ?)", values)

    def saved(self) -> None:
        """The transaction is durable: nothing is waiting."""
        self.slices.saved()
        self._stale.clear()
        self.changed = self.is_new = False


def _packed(given: SliceResult) -> bytes:
    numbers = _GIVEN.pack(given.at, given.end, given.revision, given.first, given.last, given.center)
    return numbers + given.bucket.pack() + struct.pack(f"<{len(given.replaces)}q", *given.replaces)


def _unpacked(start: int, row: bytes) -> SliceResult:
    """A final result. Raises ValueError or struct.error."""
    at, end, revision, first, last, center = _GIVEN.unpack_from(row)
    ends = _GIVEN.size + PACKED
    replaces = struct.unpack(f"<{(len(row) - ends) // 8}q", row[ends:])
    bucket = Bucket.unpack(row[_GIVEN.size : ends])
    return SliceResult(at, start, end, "final", revision, bucket, first, last, center, replaces)
