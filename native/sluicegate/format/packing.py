"""Columns of integers and floats as few bytes as they need, exactly; the same bytes on every architecture.

The layouts are format.md, "Columns". Packing tries each layout that brings back every bit and keeps the one that
deflates best; `unpacking` reads them. The loops over a column are compiled (`_packing`).
"""

from __future__ import annotations

import base64
import math
import struct
import zlib
from array import array
from collections.abc import Iterable, Sequence

from sluicegate.format import _packing
from sluicegate.format.steps import shuffled
from sluicegate.format.unpacking import PackingError

PLAIN, DELTA, DELTA2 = 0, 1, 2
RAW, DECIMAL, DICTIONARY, CONSTANT, SINGLE = 0, 1, 2, 3, 4
_DOUBLE = struct.Struct("<d")
Ints = Sequence[int]
Floats = Sequence[float]


def number(value: int) -> bytes:
    """LEB128 of the zigzag of an int64."""
    rest = value << 1 if value >= 0 else (-value << 1) - 1
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def deflated(data: bytes) -> int:
    """How long the bytes are once deflated: what choices are made by."""
    return len(zlib.compress(data, 6))


def inflated(what: str, text: str, most: int) -> bytes:
    """The bytes of base64 of raw deflate, `most` at most. Raises PackingError for what is damaged or longer."""
    try:
        unpacker = zlib.decompressobj(-15)
        data = unpacker.decompress(base64.b64decode(text, validate=True), most + 1)
    except (ValueError, zlib.error) as error:
        raise PackingError(f"{what} is damaged: {error}") from error
    if len(data) > most:
        raise PackingError(f"{what} inflates to more than {most} bytes")
    if not unpacker.eof or unpacker.unused_data:
        raise PackingError(f"{what} is cut short or too long")
    return data


def _best(candidates: Iterable[bytes]) -> bytes:
    return min(candidates, key=lambda data: (deflated(data), len(data)))


def pack_ints(values: Ints) -> bytes:
    """A column of int64, not empty."""
    column = array("q", values)
    return _best(found for mode in range(min(len(column), DELTA2 + 1)) if (found := _layout(column, mode)))


def _layout(column: array[int], mode: int) -> bytes:
    """Layout and width, the starting numbers, base and scale, (rest − base) / scale in planes; empty if too wide."""
    found = _packing.residue(column, mode)
    if found is None:
        return b""
    start = (column[0], column[1] - column[0])[:mode] if mode else ()
    base, scale, width, planes = found
    return bytes([mode | width << 2]) + b"".join(map(number, (*start, base, scale))) + planes


def pack_floats(values: Floats) -> bytes:
    """A column of finite float64, not empty, bit for bit."""
    distinct = sorted(set(values))
    if 0.0 in values and any(math.copysign(1.0, x) < 0.0 for x in values if x == 0.0):
        return _raw(values)  # a set takes −0.0 for 0.0
    if len(distinct) == 1:
        return bytes([CONSTANT]) + _DOUBLE.pack(distinct[0])
    return _best(_layouts(values, distinct))


def _layouts(values: Floats, distinct: list[float]) -> Iterable[bytes]:
    yield _raw(values)
    if (digits := _packing.digits(array("d", distinct))) >= 0:
        yield _decimal(values, digits)
    if len(distinct) < len(values):
        rank = {x: i for i, x in enumerate(distinct)}
        table = _raw(distinct) if digits < 0 else _best((_raw(distinct), _decimal(distinct, digits)))
        yield bytes([DICTIONARY]) + number(len(distinct)) + table + pack_ints([rank[x] for x in values])


def _raw(values: Floats) -> bytes:
    return bytes([RAW]) + shuffled(array("d", values))


def _decimal(values: Floats, digits: int) -> bytes:
    return bytes([DECIMAL, digits]) + pack_ints(_packing.scaled(array("d", values), digits))


def pack_singles(values: Floats, *, up: bool) -> bytes:
    """A column of bounds, rounded outward to float32 (up or down); as float64 where one does not fit."""
    rounded = _packing.singles(array("d", values), up)
    if rounded is None:
        return pack_floats(values)
    return min(bytes([SINGLE]) + shuffled(rounded), pack_floats(values), key=deflated)
