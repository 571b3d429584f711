"""The columns that columns-2 adds for buckets stored whole (format.md, "Payload"): squares, extremes, logarithms.

A column holds only what a bucket knows and what the other columns do not tell: nothing stands before an extreme that
comes first, and only the first reading before one that comes second. Standard library only.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import compress, repeat
from operator import ge, gt, le, lt, sub
from typing import Any, NamedTuple

from sluicegate.format.bucket import LARGEST, UNKNOWN, Bucket
from sluicegate.format.packing import (
    PackingError,
    Reader,
    pack_floats,
    pack_ints,
    pack_singles,
    unpack_floats,
    unpack_ints,
)

NAMES = tuple(UNKNOWN)
_COUNTS = ("low_n", "high_n")
_SIDES = ("low_pre", "low_suf", "high_pre", "high_suf")
_BITS = {name: 1 << bit for bit, name in enumerate(("m2", *_COUNTS, *_SIDES, "log_total"))}
_LOGS = ("log_total", "log_pre_low", "log_pre_high")
Fields = dict[str, Any]  # one sequence a field, a bucket each


class Side(NamedTuple):
    """What stands before or after an extreme: how many readings a bucket, and the one beside the bucket's end."""

    room: list[int]
    beside: Sequence[float]
    none: float


def unknown(count: int) -> Fields:
    """The fields of `count` buckets of which nothing is known."""
    return {name: array("q" if name in _COUNTS else "d", [value]) * count for name, value in UNKNOWN.items()}


def knows(bucket: Bucket) -> bool:
    """Whether anything of it is known that format 1 cannot say."""
    counts = bucket.low_n >= 0 or bucket.high_n >= 0
    return counts or not all(math.isnan(getattr(bucket, name)) for name in ("m2", *_SIDES, "log_total"))


def single(values: array[float], center: float) -> tuple[array[Any], ...]:
    """The fields of single readings, in order; arrays may be shared between fields."""
    count = len(values)
    nothing, once, low = array("d", [0.0]) * count, array("q", [1]) * count, array("d", [math.inf]) * count
    high, base = array("d", [-math.inf]) * count, math.log(center) if center > 0.0 else 0.0
    if min(values, default=0.0) > 0.0:
        logs, ends = array("d", map(sub, map(math.log, values), repeat(base))), [low, high]
    else:
        logs = array("d", [math.log(x) - base if x > 0.0 else math.nan for x in values])
        ends = [array("d", [end if x > 0.0 else math.nan for x in values]) for end in (math.inf, -math.inf)]
    return nothing, once, once, low, low, high, high, logs, *ends


def pack_known(fields: Fields, always: bool) -> list[bytes]:
    """The columns of buckets stored whole; none where nothing is known of any, unless the payload always has them."""
    known = [0] * len(fields["n"])
    for name, bit in _BITS.items():
        known = [
            bits | (0 if x != x or (x == -1 and name in _COUNTS) else bit)
            for bits, x in zip(known, fields[name], strict=True)
        ]
    return [pack_ints(known), *_columns(fields, known)] if any(known) or always else []


def _columns(fields: Fields, known: list[int]) -> Iterator[bytes]:
    for name in _COUNTS:
        if column := list(compress(map(sub, fields[name], repeat(2)), _has(known, name, _open_counts(fields, name)))):
            yield pack_ints(column)
    if column := [x for name in _SIDES for x in compress(fields[name], _has(known, name, _open_side(fields, name)))]:
        yield pack_floats(column)
    for name, selected in (("m2", "m2"), *((name, "log_total") for name in _LOGS)):
        if column := list(compress(fields[name], _has(known, selected, repeat(True)))):
            up = {"log_pre_low": False, "log_pre_high": True}.get(name)
            yield pack_floats(column) if up is None else pack_singles(column, up=up)


def _has(known: Iterable[int], name: str, is_open: Iterable[bool]) -> list[bool]:
    """Which buckets have a number in the column of a field."""
    bit = _BITS[name]
    return [bits & bit != 0 and more for bits, more in zip(known, is_open, strict=False)]


def _places(fields: Fields, name: str) -> list[int]:
    """From the first occurrence to the last, or all where there is no other value."""
    extreme = name.removesuffix("_n")
    return [
        n if low == high else o_last - o_first + 1
        for n, low, high, o_first, o_last in zip(
            fields["n"],
            fields["low"],
            fields["high"],
            fields[f"{extreme}_o_first"],
            fields[f"{extreme}_o_last"],
            strict=True,
        )
    ]


def _open_counts(fields: Fields, name: str) -> list[bool]:
    """Where the places do not tell how often an extreme occurs."""
    return _not_told(fields, _places(fields, name))


def _not_told(fields: Fields, places: list[int]) -> list[bool]:
    constant = map(le, fields["high"], fields["low"])
    return [place > 2 and not same for place, same in zip(places, constant, strict=True)]


def _side(fields: Fields, name: str) -> Side:
    extreme, side = name.split("_")
    none = math.inf if extreme == "low" else -math.inf
    if side == "pre":
        return Side(list(map(sub, fields[f"{extreme}_o_first"], fields["first"])), fields["x_first"], none)
    last = [first + n - 1 for first, n in zip(fields["first"], fields["n"], strict=True)]
    return Side(list(map(sub, last, fields[f"{extreme}_o_last"])), fields["x_last"], none)


def _open_side(fields: Fields, name: str) -> list[bool]:
    return [room > 1 for room in _side(fields, name).room]


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
