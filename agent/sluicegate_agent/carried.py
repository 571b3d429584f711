"""Computes what a bucket carries for the cloud beside its record (slopes, sketches), for windows with `cloud = true`.

Single readings say all of it, so only a bucket that has lost them carries anything. Behind the record of 256 bytes its
row has a section: a magic, how many, then name and bytes of each (`sluicegate.format.extras`, which is not imported
where no window asks for any).
"""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Iterable
from typing import TYPE_CHECKING

from sluicegate.format.bucket import PACKED

if TYPE_CHECKING:
    from sluicegate.format.extras import Extra

_HEAD = struct.Struct("<4sH")
_MAGIC = b"SGX1"
_ENTRY = struct.Struct("<BI")
Parts = dict[str, bytes]


def most(names: Iterable[str]) -> int:
    """Bytes of a section, at most; 0 where nothing is asked for."""
    each = [_ENTRY.size + len(name) + _kind(name).most for name in names]
    return _HEAD.size + sum(each) if each else 0


def _kind(name: str) -> Extra:
    from sluicegate.format.extras import extra

    found = extra(name)
    if found is None:
        raise ValueError(f"{name!r} is none that this Sluicegate keeps")
    return found


def is_known(name: str) -> bool:
    """Whether this Sluicegate can merge and send what has this name."""
    from sluicegate.format.extras import extra

    return extra(name) is not None


def fold(names: Iterable[str], values: array[float], times: array[int]) -> Parts:
    """Of readings in order, at least one: all that their values say."""
    return {name: kind.fold(values, times) for name in names if (kind := _kind(name)).of_readings}


def merged(a: Parts, b: Parts) -> Parts:
    """Of two neighbours what both have."""
    return {name: _kind(name).combine(a[name], b[name]) for name in a if name in b and is_known(name)}


def joined(record: bytes, parts: Parts) -> bytes:
    """A record with its section; the record alone where there are no parts."""
    if not parts:
        return record
    entries = (_ENTRY.pack(len(name), len(part)) + name.encode() + part for name, part in sorted(parts.items()))
    return record + _HEAD.pack(_MAGIC, len(parts)) + b"".join(entries)


def parted(row: bytes) -> tuple[bytes, Parts]:
    """The record and the parts of a row. Raises ValueError for a section that is none."""
    if len(row) <= PACKED:
        return row, {}
    return row[:PACKED], section(row[PACKED:])


def section(data: bytes) -> Parts:
    """The parts of a section alone. Raises ValueError."""
    try:
        magic, count = _HEAD.unpack_from(data)
        at, found = _HEAD.size, Parts()
        for _ in range(count):
            name, part = _ENTRY.unpack_from(data, at)
            at += _ENTRY.size
            found[data[at : at + name].decode()] = data[at + name : at + name + part]
            at += name + part
    except (struct.error, UnicodeDecodeError) as error:
        raise ValueError(f"what a bucket carries is malformed: {error}") from error
    if magic != _MAGIC or at != len(data):
        raise ValueError("what a bucket carries is malformed: of another length than it says")
    return found


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
