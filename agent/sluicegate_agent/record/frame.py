"""One commit as the body of a frame: readings in the order in which streams took them, and what changed beside.

Numbers of one kind stand together, all first bytes, then all second bytes, so that deflating finds what repeats: about
ten bytes a reading.
"""

from __future__ import annotations

import sys
import zlib
from array import array
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

#: What a stream did: took a reading, took one in doubt, closed its bucket, had its windows told the time; and that all
#: windows were handed what had come: those whose ends come count such batches.
ADD, ADD_IN_DOUBT, CLOSE, ADVANCE, FEED = range(5)
#: Bytes of one body at most, so that a damaged length takes no memory.
LARGEST_BODY = 64 << 20
_LEVEL = 1


class Step(NamedTuple):
    """One thing that a stream did; `missing`: what its source's numbers say is lost so far."""

    stream: int
    kind: int
    time: int
    value: float
    missing: int


class Steps:
    """Steps of one commit, 29 bytes each."""

    def __init__(self) -> None:
        self.streams, self.kinds = array("I"), bytearray()
        self.times, self.values, self.missing = array("q"), array("d"), array("q")

    def __len__(self) -> int:
        return len(self.kinds)

    def add(self, stream: int, kind: int, time: int = 0, value: float = 0.0, missing: int = 0) -> None:
        """Note one."""
        self.streams.append(stream)
        self.kinds.append(kind)
        self.times.append(time)
        self.values.append(value)
        self.missing.append(missing)

    def __iter__(self) -> Iterator[Step]:
        columns = self.streams, self.kinds, self.times, self.values, self.missing
        return (Step(*row) for row in zip(*columns, strict=True))

    def pack(self) -> bytes:
        """As bytes, the same on every board."""
        columns = _shuffled(self.streams), _shuffled(self.times), _shuffled(self.values), _shuffled(self.missing)
        return bytes(self.kinds) + b"".join(columns)

    @classmethod
    def unpack(cls, data: bytes) -> Steps:
        """What `pack` packed. Raises ValueError for anything else."""
        count, left = divmod(len(data), 29)
        if left:
            raise ValueError("not steps")
        found, at = cls(), count
        found.kinds = bytearray(data[:count])
        for column in (found.streams, found.times, found.values, found.missing):
            size = count * column.itemsize
            _fill(column, data[at : at + size])
            at += size
        return found


class Body(msgspec.Struct, array_like=True):
    """What a frame says. `readings`, `span`: of the bucket as it was configured then, by which buckets closed."""

    readings: int
    span: int
    steps: bytes
    counters: dict[str, int]
    letters: list[tuple[int, int, str, str, int, bytes]]
    rows: bytes

    def pack(self) -> bytes:
        """Deflated."""
        return zlib.compress(_encode(self), _LEVEL)


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Body).decode


def unpack(body: bytes) -> Body:
    """What `Body.pack` packed. Raises ValueError for anything else."""
    try:
        return _decode(zlib.decompressobj().decompress(body, LARGEST_BODY))
    except (zlib.error, msgspec.MsgspecError) as error:
        raise ValueError(f"not the body of a frame: {error}") from error


def _shuffled(numbers: array[int] | array[float]) -> bytes:
    if sys.byteorder == "big":
        numbers = numbers[:]
        numbers.byteswap()
    data, width = numbers.tobytes(), numbers.itemsize
    return b"".join(data[byte::width] for byte in range(width))


def _fill(numbers: array[int] | array[float], data: bytes) -> None:
    width = numbers.itemsize
    count = len(data) // width
    plain = bytearray(len(data))
    for byte in range(width):
        plain[byte::width] = data[byte * count : (byte + 1) * count]
    numbers.frombytes(plain)
    if sys.byteorder == "big":
        numbers.byteswap()
