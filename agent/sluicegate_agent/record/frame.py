"""Encodes one commit as the body of a frame: readings in the order of each stream, and what else changed.

Readings that a stream took together are one step. Numbers of one kind stand together, all first bytes, then all second
bytes, so that deflating finds what repeats: two to ten bytes a reading (`sluicegate.format.steps`).
"""

from __future__ import annotations

import struct
import zlib
from array import array
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from sluicegate.format.pairs import PairColumn
from sluicegate.format.steps import fill, packed_times, packed_values, shuffled, unpacked_times, unpacked_values

#: What a stream did: took readings (none: a message came late without one of it), took some in doubt, closed its
#: bucket, had its windows told the time; that all windows were handed what had come: those whose ends come count such
#: batches; the second values of the next readings.
ADD, ADD_IN_DOUBT, CLOSE, ADVANCE, FEED, SECONDS = range(6)
#: Bytes of one body at most, so that a damaged length takes no memory.
LARGEST_BODY = 64 << 20
#: Steps and readings. Its first byte is no kind of step; of frames of one reading a step, the first byte is one.
_HEAD = struct.Struct("<4sII")
_MAGIC, _WHOLE = b"\xd2SG3", b"\xd2SG2"  # _WHOLE: of a Sluicegate that wrote times and values as they are
#: Bytes of such a step: kind, stream, time, value, missing.
_OLD = 29
Columns = tuple["array[int] | array[float]", ...]


class Step(NamedTuple):
    """What a stream did, with readings where it took some.

    `number`: what its message says of losses (`tally`); of ADVANCE the time that its windows were told. SECONDS has
    second values and no times (0).
    """

    stream: int
    kind: int
    number: int
    values: array[float]
    times: array[int]


class Steps:
    """Steps of one commit: 17 bytes each, and 16 a reading."""

    def __init__(self) -> None:
        self.streams, self.kinds, self.counts = array("I"), bytearray(), array("I")
        self.numbers, self.times, self.values = array("q"), array("q"), array("d")

    def __len__(self) -> int:
        return len(self.kinds)

    @property
    def readings(self) -> int:
        """How many readings they hold; a second value counts as one."""
        return len(self.times)

    def add(self, stream: int, kind: int, number: int = 0, readings: int = 0) -> None:
        """Note one; its readings stand elsewhere."""
        self.streams.append(stream)
        self.kinds.append(kind)
        self.counts.append(readings)
        self.numbers.append(number)

    def run(self, stream: int, kind: int, number: int, values: array[float], times: array[int]) -> None:
        """Note one with readings; what goes on with the step before is of that."""
        if isinstance(values, PairColumn):
            self.add(stream, SECONDS, readings=len(times))
            self._fill(values.seconds, array("q", bytes(8 * len(times))))
        streams = self.streams
        if streams and streams[-1] == stream and self.kinds[-1] == kind and self.numbers[-1] == number:
            self.counts[-1] += len(times)
        else:
            self.add(stream, kind, number, len(times))
        self._fill(values, times)

    def _fill(self, values: array[float], times: array[int]) -> None:
        self.values += values
        self.times += times

    def __iter__(self) -> Iterator[Step]:
        """Each, readings of two values as one step."""
        begin, seconds = 0, None
        for stream, kind, count, number in zip(self.streams, self.kinds, self.counts, self.numbers, strict=True):
            end = begin + count
            values, times = self.values[begin:end], self.times[begin:end]
            begin = end
            if kind != SECONDS:
                yield Step(stream, kind, number, values if seconds is None else PairColumn(values, seconds), times)
            seconds = values if kind == SECONDS else None

    def pack(self) -> bytes:
        """As bytes, the same on every board."""
        columns: Columns = (self.streams, self.counts, self.numbers)
        data = _HEAD.pack(_MAGIC, len(self), self.readings) + bytes(self.kinds) + b"".join(map(shuffled, columns))
        data += packed_times(self.times) + packed_values(self.values)
        # Who knows one reading a step only counts bytes: it must not take these for such.
        return data + bytes(len(data) % _OLD == 0)

    @classmethod
    def unpack(cls, data: bytes) -> Steps:
        """What `pack` packed, now or with one reading a step. Raises ValueError for anything else."""
        if data[:1] != _MAGIC[:1]:
            return _older(data)
        found = cls()
        if len(data) < _HEAD.size or data[:4] not in (_MAGIC, _WHOLE):
            raise ValueError("not steps")
        _, steps, readings = _HEAD.unpack_from(data)
        at = _HEAD.size + steps
        found.kinds = bytearray(data[_HEAD.size : at])
        columns: Columns = (found.streams, found.counts, found.numbers)
        for column in columns:
            size = steps * column.itemsize
            fill(column, data[at : at + size])
            at += size
        at += found._read(data[at:], readings, is_whole=data[:4] == _WHOLE)
        if not 0 <= len(data) - at <= 1 or len(found.numbers) != steps:
            raise ValueError("not steps")
        if sum(found.counts) != readings or max(found.kinds, default=ADD) > SECONDS or not found._has_firsts():
            raise ValueError("not steps")
        return found

    def _read(self, data: bytes, readings: int, *, is_whole: bool) -> int:
        """Times and values at the front of `data`; how many bytes they are. Raises ValueError."""
        if is_whole:
            fill(self.times, data[: 8 * readings])
            fill(self.values, data[8 * readings : 16 * readings])
            return 16 * readings
        self.times, size = unpacked_times(data, readings)
        self.values, more = unpacked_values(data[size:], readings)
        return size + more

    def _has_firsts(self) -> bool:
        """Whether second values come right before as many readings of the same stream."""
        following = [slice(at, at + 2) for at, kind in enumerate(self.kinds) if kind == SECONDS]
        return all(
            bytes(self.kinds[two][1:]) in (b"\0", b"\1") and len({*self.streams[two]}) == len({*self.counts[two]}) == 1
            for two in following
        )


def _older(data: bytes) -> Steps:
    """Of a Sluicegate that noted each reading for itself."""
    count, left = divmod(len(data), _OLD)
    if left:
        raise ValueError("not steps")
    columns = array("I"), array("q"), array("d"), array("q")
    found, at = Steps(), count
    for column in columns:
        size = count * column.itemsize
        fill(column, data[at : at + size])
        at += size
    for kind, stream, time, value, missing in zip(data[:count], *columns, strict=True):
        if kind <= ADD_IN_DOUBT:
            found.run(stream, kind, missing, array("d", (value,)), array("q", (time,)))
        else:
            found.add(stream, kind, time)
    return found


class Body(msgspec.Struct, array_like=True):
    """What a frame says. `readings`, `span`: of the bucket as it was configured then, by which buckets closed."""

    readings: int
    span: int
    steps: bytes
    counters: dict[str, int]
    letters: list[tuple[int, int, str, str, int, bytes]]
    rows: bytes

    def pack(self, level: int = 1) -> bytes:
        """Deflated."""
        return zlib.compress(_encode(self), level)


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Body).decode


def unpack(body: bytes) -> Body:
    """What `Body.pack` packed. Raises ValueError for anything else."""
    try:
        return _decode(zlib.decompressobj().decompress(body, LARGEST_BODY))
    except (zlib.error, msgspec.MsgspecError) as error:
        raise ValueError(f"not the body of a frame: {error}") from error
