"""By definition: how the columns of a payload are read (format.md); `sluicegate.format.unpacking` has the same bits."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, compress, pairwise, repeat
from operator import ge, gt, le, lt, sub
from typing import Any, NamedTuple

from sluicegate.format.bucket import LARGEST, UNKNOWN
from sluicegate.format.columns_2 import _BITS, _COUNTS, _LOGS, _SIDES, _has, _places
from sluicegate.format.packing import CONSTANT, DECIMAL, DELTA2, DICTIONARY, RAW, SINGLE
from sluicegate.format.payload import _FLOATS, _OFFSETS
from sluicegate.format.unpacking import PackingError

Fields = dict[str, Any]  # one sequence a field, a bucket each
_DIGITS = 15


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


def wrapped(x: int) -> int:
    """As 64-bit integers hold it."""
    return (x + 2**63) % 2**64 - 2**63


def joined(data: bytes, n: int, size: int, width: int) -> bytes:
    """Planes as numbers of `size` bytes."""
    raw = bytearray(size * n)
    for i in range(width):
        raw[i::size] = data[i * n : i * n + n]
    return bytes(raw)


def unpack_ints(reader: Reader, n: int) -> array[int]:
    """A column of n int64."""
    mode, width = (head := reader.byte()) & 3, head >> 2
    if mode > DELTA2 or width > 8 or n <= mode:
        raise PackingError(f"integers of layout {mode}, width {width} and length {n}")
    start = [reader.number() for _ in range(mode)]
    base, scale = reader.number(), reader.number()
    planes = array("Q", joined(reader.take((n - mode) * width), n - mode, 8, width))
    rest: Iterable[int] = [base + scale * step for step in planes]
    for first in reversed(start):
        rest = accumulate(rest, initial=first)
    return array("q", map(wrapped, rest))


def unpack_floats(reader: Reader, n: int) -> array[float]:
    """A column of n finite float64."""
    mode = reader.byte()
    if mode in (RAW, DECIMAL):
        return table(reader, n, mode)
    if mode == CONSTANT:
        return finite(array("d", reader.take(8))) * n
    if mode == SINGLE:
        return array("d", finite(array("f", joined(reader.take(4 * n), n, 4, 4))))
    if mode == DICTIONARY:
        return dictionary(reader, n)
    raise PackingError(f"floats of layout {mode}")


def table(reader: Reader, n: int, mode: int) -> array[float]:
    """Floats of layout 0 or 1."""
    if mode == RAW:
        return finite(array("d", joined(reader.take(8 * n), n, 8, 8)))
    if (digits := reader.byte()) > _DIGITS:
        raise PackingError(f"{digits} decimal places, at most {_DIGITS} are known")
    return array("d", [x / 10.0**digits for x in unpack_ints(reader, n)])


def dictionary(reader: Reader, n: int) -> array[float]:
    """Ranks in a table."""
    size = wrapped(reader.number())
    if not 0 < size <= n or (mode := reader.byte()) not in (RAW, DECIMAL):
        raise PackingError(f"a dictionary of {size} for {n} numbers, or of an unknown layout")
    numbers, ranks = table(reader, size, mode), unpack_ints(reader, n)
    if min(ranks) < 0 or max(ranks) >= size:
        raise PackingError(f"a rank outside its dictionary of {size}")
    return array("d", [numbers[rank] for rank in ranks])


def finite(values: array[float]) -> array[float]:
    """The numbers themselves."""
    if not all(map(math.isfinite, values)):
        raise PackingError("a number that is not finite")
    return values


def unpack_whole(reader: Reader, first: array[int], n: array[int], codec: int) -> Fields:
    """The fields of buckets stored whole. Raises PackingError where they contradict each other."""
    fields: Fields = {"first": first, "n": n, "t_first": unpack_ints(reader, len(n))}
    for name, base in _OFFSETS.items():
        offsets = unpack_ints(reader, len(n))
        fields[name] = array("q", [wrapped(a + b) for a, b in zip(fields[base], offsets, strict=True)])
    for name in _FLOATS:
        fields[name] = unpack_floats(reader, len(n))
    check_whole(fields)
    fields |= unpack_known(reader, fields) if codec > 1 else unknown(len(n))
    return {name: column for name, column in fields.items() if name not in ("first", "n")}


def check_whole(fields: Fields) -> None:
    """Raises PackingError where times, ordinals or values are not in their order, or out of range."""
    last = [first + n - 1 for first, n in zip(fields["first"], fields["n"], strict=True)]
    chains: list[list[Sequence[float]]] = [[fields["pre_low"], fields["pre_high"]]]
    for name in ("low", "high"):
        chains.append([fields["t_first"], fields[f"{name}_t_first"], fields[f"{name}_t_last"], fields["t_last"]])
        chains.append([fields["first"], fields[f"{name}_o_first"], fields[f"{name}_o_last"], last])
    chains += [[fields["low"], fields[name], fields["high"]] for name in ("x_first", "x_last")]
    if min(fields["n"]) < 2 or not all(all(map(le, a, b)) for columns in chains for a, b in pairwise(columns)):
        raise PackingError("a bucket whose fields contradict each other")
    if max(fields["high"]) > LARGEST or min(fields["low"]) < -LARGEST:
        raise PackingError("a value beyond ±2^960")
    if max(fields["t_last"]) > 2**61 or min(fields["t_first"]) < -(2**61):
        raise PackingError("a time beyond ±2^61 µs")


class Side(NamedTuple):
    """What stands before or after an extreme: how many readings a bucket, and the one beside the bucket's end."""

    room: list[int]
    beside: Sequence[float]
    none: float


def unknown(count: int) -> Fields:
    """The fields of `count` buckets of which nothing is known."""
    return {name: array("q" if name in _COUNTS else "d", [value]) * count for name, value in UNKNOWN.items()}


def _side(fields: Fields, name: str) -> Side:
    extreme, side = name.split("_")
    none = math.inf if extreme == "low" else -math.inf
    if side == "pre":
        return Side(list(map(sub, fields[f"{extreme}_o_first"], fields["first"])), fields["x_first"], none)
    last = [first + n - 1 for first, n in zip(fields["first"], fields["n"], strict=True)]
    return Side(list(map(sub, last, fields[f"{extreme}_o_last"])), fields["x_last"], none)


def _not_told(fields: Fields, places: list[int]) -> list[bool]:
    constant = map(le, fields["high"], fields["low"])
    return [place > 2 and not same for place, same in zip(places, constant, strict=True)]


def unpack_known(reader: Reader, fields: Fields) -> Fields:
    """The fields again, of buckets whose other fields are `fields`. Raises PackingError for what contradicts those."""
    count = len(fields["n"])
    known = unpack_ints(reader, count)
    if min(known) < 0 or max(known) >= 2 * _BITS["log_total"]:
        raise PackingError("a bucket that knows what is not known to exist")
    out = unknown(count)
    for name in _COUNTS:
        _fill_counts(reader, fields, known, name, out)
    _fill_sides(reader, fields, known, out)
    _spread(out["m2"], _has(known, "m2", repeat(True)), _floats(reader))
    for name in _LOGS:
        _spread(out[name], _has(known, "log_total", repeat(True)), _floats(reader))
    _check(fields, out)
    return out


def _floats(reader: Reader) -> Callable[[int], array[float]]:
    return lambda count: unpack_floats(reader, count)


def _spread(out: array[Any], selected: list[bool], take: Callable[[int], Iterable[Any]]) -> None:
    """Put what is taken off the payload where it belongs; an empty column is not there."""
    if all(selected):  # the usual case, at once
        out[:] = array(out.typecode, take(len(out)))
        return
    at = list(compress(range(len(out)), selected))
    for i, x in zip(at, take(len(at)) if at else (), strict=True):
        out[i] = x


def _fill_counts(reader: Reader, fields: Fields, known: array[int], name: str, out: Fields) -> None:
    places, bit = _places(fields, name), _BITS[name]
    out[name] = array("q", [n if bits & bit else -1 for bits, n in zip(known, places, strict=True)])
    selected = _has(known, name, _not_told(fields, places))
    _spread(out[name], selected, lambda count: [x + 2 for x in unpack_ints(reader, count)])
    if any(is_open and not 2 <= n <= most for is_open, n, most in zip(selected, out[name], places, strict=True)):
        raise PackingError("an extreme that occurs more often than there is room")


def _fill_sides(reader: Reader, fields: Fields, known: array[int], out: Fields) -> None:
    """All four sides are one column, low_pre of every bucket first."""
    sides = {name: _side(fields, name) for name in _SIDES}
    total = sum(sum(_has(known, name, [room > 1 for room in side.room])) for name, side in sides.items())
    column = iter(unpack_floats(reader, total) if total else ())
    for name, (rooms, beside, none) in sides.items():
        bit = _BITS[name]
        told = (
            (next(column) if room > 1 else x if room else none) if bits & bit else math.nan
            for bits, room, x in zip(known, rooms, beside, strict=True)
        )
        out[name] = array("d", told)


def _check(fields: Fields, out: Fields) -> None:
    """Raises PackingError where what was read contradicts the other fields."""
    for name, sign in zip(_SIDES, (1, 1, -1, -1), strict=True):
        beyond = fields["low"] if sign > 0 else fields["high"]
        across = fields["high"] if sign > 0 else fields["low"]
        there = [x if -LARGEST <= x <= LARGEST else math.nan for x in out[name]]
        out_of_place, too_far = (le, gt) if sign > 0 else (ge, lt)
        if any(map(out_of_place, there, beyond)) or any(map(too_far, there, across)):
            raise PackingError("a value beside an extreme is beyond the bucket's")
    logs = [low for low, x in zip(fields["low"], out["log_total"], strict=True) if x == x]
    if any(map(lt, out["m2"], repeat(0.0))) or any(map(le, logs, repeat(0.0))):
        raise PackingError("squares or logarithms that cannot be")
    if any(map(lt, out["log_pre_high"], out["log_pre_low"])):
        raise PackingError("prefix sums of logarithms that cross")
