"""One stream's way into the outbox: readings become base buckets, closed by count, by span, or when time goes back.

A base bucket keeps its single readings beside it while they are few; losses that the source's sequence numbers tell of
enter the bucket as `gap`.
"""

from __future__ import annotations

import sqlite3
import struct
import sys
from array import array
from typing import NamedTuple

from sluicegate.buckets import LATE, Builder

SINGLES_MOST = 64
_ROW = struct.Struct("<4sqqqII")
_MAGIC = b"SGS1"
_GAP_MOST = 1 << 60


class Closed(NamedTuple):
    """A closed base bucket on its way into the outbox, with its single readings where they are still at hand."""

    first: int
    n: int
    bucket: bytes
    readings: bytes | None


class Stream:
    """The open bucket, cursors and counters of one stream: one small row."""

    def __init__(self, number: int, name: str, readings: int, span_us: int) -> None:
        self.number, self.name = number, name
        self.readings, self.span_us = readings, span_us
        self.builder: Builder | None = None
        self.missing_seen = 0
        self.late = 0
        self.buckets = 0
        self.times, self.values = array("q"), array("d")
        self.closed: list[Closed] = []
        self.changed = True

    @property
    def accepted(self) -> int:
        """Readings accepted in this incarnation: the next ordinal."""
        return self.builder.next if self.builder else 0

    def add(self, value: float, time: int, missing: int) -> None:
        """Fold one finite reading; `missing` is what the source's sequence numbers say is lost so far."""
        if self.builder is None:
            self.builder = Builder(value)
            self.missing_seen = missing
        self._close_before(time)
        gap = max(-_GAP_MOST, min(_GAP_MOST, missing - self.missing_seen))
        self.builder.add(value, time, gap)
        self.missing_seen = missing
        self._keep(value, time)
        self.changed = True
        bucket = self.builder.bucket
        if bucket is not None and bucket.n >= self.readings:
            self.close()

    def _close_before(self, time: int) -> None:
        bucket = self.builder.bucket if self.builder else None
        if bucket is not None and (time < bucket.t_last or time - bucket.t_first >= self.span_us):
            self.close()

    def _keep(self, value: float, time: int) -> None:
        """Beyond SINGLES_MOST the bucket alone stays; the empty arrays say so until it closes."""
        bucket = self.builder.bucket if self.builder else None
        if bucket is None or bucket.n != len(self.times) + 1:
            return
        if bucket.n > SINGLES_MOST:
            self.times, self.values = array("q"), array("d")
            return
        self.times.append(time)
        self.values.append(value)

    def close(self) -> None:
        """Close the open bucket, if there is one: it waits for the commit."""
        if self.builder is None or self.builder.bucket is None:
            return
        bucket = self.builder.close()
        readings = pack_readings(self.times, self.values) if len(self.times) == bucket.n else None
        self.closed.append(Closed(bucket.first, bucket.n, bucket.pack(), readings))
        self.late += bucket.n if bucket.flags & LATE else 0
        self.buckets += 1
        self.times, self.values = array("q"), array("d")
        self.changed = True

    def saved(self) -> None:
        """The transaction is durable: nothing is waiting."""
        self.closed.clear()
        self.changed = False

    def pack(self) -> bytes:
        """The stream's row: counters, the builder with its open bucket, the readings of the open bucket."""
        builder = self.builder.state() if self.builder else b""
        head = (_MAGIC, self.missing_seen, self.late, self.buckets, len(builder), len(self.times))
        return _ROW.pack(*head) + builder + pack_readings(self.times, self.values)

    def restore(self, row: bytes) -> None:
        """Continue where `pack` left off. Raises sqlite3.DatabaseError for a row that is none."""
        try:
            magic, self.missing_seen, self.late, self.buckets, length, singles = _ROW.unpack_from(row)
            if magic != _MAGIC or len(row) != _ROW.size + length + 16 * singles:
                raise ValueError("wrong length")
            self.builder = Builder.restore(row[_ROW.size : _ROW.size + length]) if length else None
            self.times, self.values = unpack_readings(row[_ROW.size + length :])
        except (ValueError, struct.error) as error:
            raise sqlite3.DatabaseError(f"the row of stream {self.name} is malformed: {error}") from error
        self.changed = False


def pack_readings(times: array[int], values: array[float]) -> bytes:
    """All times, then all values, 8 bytes each, little-endian."""
    return _little(times) + _little(values)


def unpack_readings(data: bytes) -> tuple[array[int], array[float]]:
    """What `pack_readings` packed. Raises ValueError for a length that no readings have."""
    if len(data) % 16:
        raise ValueError(f"{len(data)} bytes are no whole number of readings")
    times, values = array("q"), array("d")
    times.frombytes(data[: len(data) // 2])
    values.frombytes(data[len(data) // 2 :])
    if sys.byteorder == "big":
        times.byteswap()
        values.byteswap()
    return times, values


def _little(numbers: array[int] | array[float]) -> bytes:
    if sys.byteorder == "big":
        numbers = numbers[:]
        numbers.byteswap()
    return numbers.tobytes()
