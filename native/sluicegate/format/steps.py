"""Times and values of a frame as columns that deflate well: differences, and decimal numbers as integers; to the bit.

What `sluicegate.format.packing` does for documents by trying layouts would take a commit a microsecond a reading.
"""

from __future__ import annotations

import struct
import sys
from array import array

from sluicegate.format import _packing

#: Before a column of integers: the first, and the least difference of one from that before it.
_HEAD = struct.Struct("<qq")
#: In place of decimal places: values as they are. Decimal places at most.
_RAW, _PLACES = 255, 15


def shuffled(numbers: array[int] | array[float]) -> bytes:
    """All first bytes, then all second ones."""
    if sys.byteorder == "big":
        numbers = numbers[:]
        numbers.byteswap()
    data, width = numbers.tobytes(), numbers.itemsize
    return b"".join(data[byte::width] for byte in range(width))


def fill(numbers: array[int] | array[float], data: bytes) -> None:
    """Add what `shuffled` made bytes of."""
    width = numbers.itemsize
    count = len(data) // width
    plain = bytearray(len(data))
    for byte in range(width):
        plain[byte::width] = data[byte * count : (byte + 1) * count]
    numbers.frombytes(plain)
    if sys.byteorder == "big":
        numbers.byteswap()


def packed_times(times: array[int]) -> bytes:
    """Each number by its difference to the one before it; as they are where a difference is beyond 64 bits."""
    if not times:
        return b""
    return _by_steps(0, times) or bytes((_RAW,)) + shuffled(times)


def unpacked_times(data: bytes, count: int) -> tuple[array[int], int]:
    """So many, and how many bytes they took. Raises ValueError."""
    times = array("q")
    return (times, _fill_raw(times, data, count)) if _is_raw(data, count) else _integers(data, count)


def packed_values(values: array[float]) -> bytes:
    """Float64: as integers where all are a few decimal places, to the bit."""
    if not values:
        return b""
    places = _packing.digits(values)
    if places < 0:
        return bytes((_RAW,)) + shuffled(values)
    return _by_steps(places, _packing.scaled(values, places))


def unpacked_values(data: bytes, count: int) -> tuple[array[float], int]:
    """So many, and how many bytes they took. Raises ValueError."""
    values = array("d")
    if _is_raw(data, count):
        return values, _fill_raw(values, data, count)
    whole, size = _integers(data, count)
    if data[0] > _PLACES:
        raise ValueError(f"a column of {data[0]} decimal places")
    return _packing.divided(whole, data[0]), size


def _by_steps(places: int, numbers: array[int]) -> bytes:
    """Integers by their differences; nothing where one of these is beyond 64 bits."""
    steps = _packing.steps(numbers)
    if steps is None:
        return b""
    least, beyond = steps
    return bytes((places,)) + _HEAD.pack(numbers[0], least) + beyond


def _is_raw(data: bytes, count: int) -> bool:
    return not count or data[:1] == bytes((_RAW,))


def _fill_raw(numbers: array[int] | array[float], data: bytes, count: int) -> int:
    size = 1 + 8 * count if count else 0
    if len(data) < size:
        raise ValueError("a column is cut short")
    fill(numbers, data[1:size])
    return size


def _integers(data: bytes, count: int) -> tuple[array[int], int]:
    """A column of integers by their differences."""
    size = 1 + _HEAD.size + 8 * count
    if len(data) < size:
        raise ValueError("a column is cut short")
    numbers = _packing.sums(data[1 + _HEAD.size : size], count, *_HEAD.unpack_from(data, 1))
    if numbers is None:
        raise ValueError("a number beyond 64 bits")
    return numbers, size
