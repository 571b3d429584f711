"""Columns of integers and floats as few bytes as they need, exactly; the same bytes on every architecture.

The layouts are format.md, "Columns". Packing tries each layout that brings back every bit and keeps the one that
deflates best. Unpacking runs in C loops (array, accumulate, map), allocates only after the stated length was checked
against the bytes at hand, and raises PackingError for anything that is not a column; what is usual `_columns` reads.
"""

from __future__ import annotations

import math
import os
import struct
import sys
import zlib
from array import array
from collections.abc import Iterable, Sequence
from itertools import accumulate, repeat
from operator import add, mul, sub, truediv

from sluicegate.format import _columns, _packing

#: Whether columns are read in compiled loops, where these can.
COMPILED = os.environ.get("SLUICEGATE_PURE") != "1"
PLAIN, DELTA, DELTA2 = 0, 1, 2
RAW, DECIMAL, DICTIONARY, CONSTANT, SINGLE = 0, 1, 2, 3, 4
_DIGITS = 15  # decimal places tried
_EXACT = 2**53  # integers a float64 holds exactly
_DOUBLE = struct.Struct("<d")
_FLOAT32 = struct.Struct("<f")
Ints = Sequence[int]
Floats = Sequence[float]


class PackingError(ValueError):
    """The bytes are no column: cut short, of an unknown layout, or with numbers that do not fit."""


class Reader:
    """Takes bytes off the front of a payload."""

    def __init__(self, data: bytes) -> None:
        """Start at the first byte."""
        self.data, self.at = data, 0

    def take(self, n: int) -> bytes:
        """The next n bytes. Raises PackingError where fewer are left."""
        taken = self.data[self.at : self.at + n]
        if len(taken) != n:
            raise PackingError(f"ends at byte {len(self.data)}, {n} more were expected at {self.at}")
        self.at += n
        return taken

    def byte(self) -> int:
        """The next byte."""
        return self.take(1)[0]

    def number(self) -> int:
        """The next integer: LEB128 of its zigzag, at most ten bytes."""
        value = 0
        for shift in range(0, 70, 7):
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value >> 1 ^ -(value & 1)
        raise PackingError("an integer of more than ten bytes")

    def finish(self) -> None:
        """Raises PackingError where bytes are left."""
        if self.at != len(self.data):
            raise PackingError(f"{len(self.data) - self.at} bytes too many at the end")


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


def _best(candidates: Iterable[bytes]) -> bytes:
    return min(candidates, key=lambda data: (deflated(data), len(data)))


# Planes: the lowest byte of every number, then the next one of every number …


def _little(numbers: array[int] | array[float]) -> array[int] | array[float]:
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def _split(raw: bytes, size: int, width: int) -> bytes:
    return b"".join(raw[i::size] for i in range(width))


def _joined(data: bytes, n: int, size: int, width: int) -> bytes:
    raw = bytearray(size * n)
    for i in range(width):
        raw[i::size] = data[i * n : i * n + n]
    return bytes(raw)


# Integers


def pack_ints(values: Ints) -> bytes:
    """A column of int64, not empty."""
    column = array("q", values)
    return _best(found for mode in range(min(len(column), DELTA2 + 1)) if (found := _layout(column, mode)))


def _layout(column: array[int], mode: int) -> bytes:
    """Layout and width, the starting numbers, base and scale, (rest − base) / scale in planes; empty if too wide."""
    start = (column[0], column[1] - column[0])[:mode] if mode else ()
    found = _packing.residue(column, mode) if COMPILED else None
    base, scale, width, planes = found or _residue(column, mode)
    if width > 8:
        return b""
    return bytes([mode | width << 2]) + b"".join(map(number, (*start, base, scale))) + planes


def _residue(column: array[int], mode: int) -> tuple[int, int, int, bytes]:
    """Base, scale and width of a column less `mode` times its neighbours, and its planes."""
    rest = list(column)
    for _ in range(mode):
        rest = list(map(sub, rest[1:], rest))
    base = min(rest)
    scale = math.gcd(*[x - base for x in rest]) or 1
    steps = [(x - base) // scale for x in rest]
    width = (max(steps).bit_length() + 7) // 8
    if width > 8 or not width:
        return base, scale, width, b""
    if width > 1 and (pad := _centering(steps, width)):
        base, steps = base - pad * scale, [step + pad for step in steps]
    return base, scale, width, _split(_little(array("Q", steps)).tobytes(), 8, width)


def _centering(steps: list[int], width: int) -> int:
    """What to add so that the middle number has 0x80 in every plane but the highest, which then hardly changes."""
    middle, below = sorted(steps)[len(steps) // 2], 256 ** (width - 1)
    pad = (0x8080808080808080 - middle) % below
    return pad if max(steps) + pad < 256**width else 0


def unpack_ints(reader: Reader, n: int) -> array[int]:
    """A column of n ≥ 1 int64."""
    if COMPILED and (found := _columns.unpack_ints(reader.data, reader.at, n)):
        column, reader.at = found
        return column
    try:
        return array("q", _unpack_ints(reader, n))
    except OverflowError:
        raise PackingError("an integer beyond 64 bits") from None


def _unpack_ints(reader: Reader, n: int) -> list[int]:
    """The same as a list, whose numbers may be beyond 64 bits."""
    mode, width = (head := reader.byte()) & 3, head >> 2
    if mode > DELTA2 or width > 8 or n <= mode:
        raise PackingError(f"integers of layout {mode}, width {width} and length {n}")
    start = [reader.number() for _ in range(mode)]
    base, scale = reader.number(), reader.number()
    rest = _steps(reader, n - mode, width, base, scale)
    for first in reversed(start):
        rest = accumulate(rest, initial=first)
    return list(rest)


def _steps(reader: Reader, n: int, width: int, base: int, scale: int) -> Iterable[int]:
    if width == 0:
        return repeat(base, n)
    data = reader.take(n * width)
    if width == 1:
        return map([base + scale * step for step in range(256)].__getitem__, data)
    steps: Iterable[int] = _little(array("Q", _joined(data, n, 8, width)))  # type: ignore[assignment]
    if scale != 1:
        steps = map(mul, steps, repeat(scale))
    return map(add, steps, repeat(base)) if base else steps


# Floats


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
    if (digits := _digits(distinct)) is not None:
        yield _decimal(values, digits)
    if len(distinct) < len(values):
        rank = {x: i for i, x in enumerate(distinct)}
        table = _raw(distinct) if digits is None else _best((_raw(distinct), _decimal(distinct, digits)))
        yield bytes([DICTIONARY]) + number(len(distinct)) + table + pack_ints([rank[x] for x in values])


def _raw(values: Floats) -> bytes:
    return bytes([RAW]) + _split(_little(array("d", values)).tobytes(), 8, 8)


def _decimal(values: Floats, digits: int) -> bytes:
    power = 10.0**digits
    scaled = _packing.scaled(array("d", values), digits) if COMPILED else [round(x * power) for x in values]
    return bytes([DECIMAL, digits]) + pack_ints(scaled)


def _digits(distinct: list[float]) -> int | None:
    """The decimal places that bring back every bit, or None."""
    if COMPILED:
        return None if (found := _packing.digits(array("d", distinct))) < 0 else found
    digits = max(_places(x) for x in distinct)
    power = 10.0**digits
    if digits > _DIGITS or max(map(abs, distinct)) * power >= _EXACT:
        return None
    return digits if all(round(x * power) / power == x for x in distinct) else None


def _places(x: float) -> int:
    """Decimal places of the shortest text that means x; more than _DIGITS where it is written with an exponent."""
    text = repr(x)
    if "e" in text or "n" in text:
        return _DIGITS + 1
    return 0 if text.endswith(".0") else len(text) - text.index(".") - 1


def pack_singles(values: Floats, *, up: bool) -> bytes:
    """A column of bounds, rounded outward to float32 (up or down); as float64 where one does not fit."""
    rounded = _packing.singles(array("d", values), up) if COMPILED else _singles(values, up=up)
    if rounded is None:
        return pack_floats(values)
    raw = _little(rounded).tobytes()
    return min(bytes([SINGLE]) + _split(raw, 4, 4), pack_floats(values), key=deflated)


def _singles(values: Floats, *, up: bool) -> array[float] | None:
    """Each outward; None where one does not fit."""
    rounded = array("f", [outward(x, up=up) for x in values])
    return rounded if all(map(math.isfinite, rounded)) else None


def outward(x: float, *, up: bool) -> float:
    """The nearest float32 not below (up) or not above x; ±inf where there is none."""
    try:
        near: float = _FLOAT32.unpack(_FLOAT32.pack(x))[0]
    except OverflowError:
        return math.copysign(math.inf, x)
    if near == x or (near > x) == up:
        return near
    return _next_single(near, up=up)


def _next_single(x: float, *, up: bool) -> float:
    """The float32 beside x."""
    if x == 0.0:
        return math.copysign(2.0**-149, 1.0 if up else -1.0)
    bits = int.from_bytes(_FLOAT32.pack(x), "little")
    bits += 1 if (x > 0.0) == up else -1
    beside: float = _FLOAT32.unpack(bits.to_bytes(4, "little"))[0]
    return beside


def unpack_floats(reader: Reader, n: int) -> array[float]:
    """A column of n ≥ 1 finite float64."""
    if COMPILED and (found := _columns.unpack_floats(reader.data, reader.at, n)):
        column, reader.at = found
        return column
    mode = reader.byte()
    if mode in (RAW, DECIMAL):
        return array("d", _unpack_table(reader, n, mode))
    if mode == CONSTANT:
        return _finite(array("d", _DOUBLE.unpack(reader.take(8)))) * n
    if mode == SINGLE:
        return array("d", _finite(_little(array("f", _joined(reader.take(4 * n), n, 4, 4)))))  # type: ignore[arg-type]
    if mode == DICTIONARY:
        return _unpack_dictionary(reader, n)
    raise PackingError(f"floats of layout {mode}")


def _unpack_table(reader: Reader, n: int, mode: int) -> Iterable[float]:
    """Floats of layout 0 or 1."""
    if mode == RAW:
        return _finite(_little(array("d", _joined(reader.take(8 * n), n, 8, 8))))  # type: ignore[arg-type]
    if (digits := reader.byte()) > _DIGITS:
        raise PackingError(f"{digits} decimal places, at most {_DIGITS} are known")
    return list(map(truediv, unpack_ints(reader, n), repeat(10.0**digits)))


def _unpack_dictionary(reader: Reader, n: int) -> array[float]:
    size = reader.number()
    if not 0 < size <= n or (mode := reader.byte()) not in (RAW, DECIMAL):
        raise PackingError(f"a dictionary of {size} for {n} numbers, or of an unknown layout")
    table = list(_unpack_table(reader, size, mode))
    ranks = _unpack_ints(reader, n)
    if min(ranks) < 0 or max(ranks) >= size:
        raise PackingError(f"a rank outside its dictionary of {size}")
    return array("d", list(map(table.__getitem__, ranks)))


def _finite(values: array[float]) -> array[float]:
    if not all(map(math.isfinite, values)):
        raise PackingError("a number that is not finite")
    return values
