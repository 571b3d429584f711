"""The columns that columns-2 adds for buckets stored whole (format.md, "Payload"): squares, extremes, logarithms.

A column holds only what a bucket knows and what the other columns do not tell: nothing stands before an extreme that
comes first, and only the first reading before one that comes second. Standard library only.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator
from itertools import compress, repeat
from operator import le, sub
from typing import Any

from sluicegate.format.bucket import UNKNOWN, Bucket
from sluicegate.format.packing import pack_floats, pack_ints, pack_singles

NAMES = tuple(UNKNOWN)
_COUNTS = ("low_n", "high_n")
_SIDES = ("low_pre", "low_suf", "high_pre", "high_suf")
_BITS = {name: 1 << bit for bit, name in enumerate(("m2", *_COUNTS, *_SIDES, "log_total"))}
_LOGS = ("log_total", "log_pre_low", "log_pre_high")
Fields = dict[str, Any]  # one sequence a field, a bucket each


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
    names = "n", "low", "high", f"{extreme}_o_first", f"{extreme}_o_last"
    rows = zip(*(fields[each] for each in names), strict=True)
    return [n if low == high else o_last - o_first + 1 for n, low, high, o_first, o_last in rows]


def _open_counts(fields: Fields, name: str) -> list[bool]:
    """Where the places do not tell how often an extreme occurs."""
    constant = map(le, fields["high"], fields["low"])
    return [place > 2 and not same for place, same in zip(_places(fields, name), constant, strict=True)]


def _open_side(fields: Fields, name: str) -> list[bool]:
    """Where more than one reading stands before or after an extreme."""
    extreme, side = name.split("_")
    if side == "pre":
        return [
            o_first - first > 1 for o_first, first in zip(fields[f"{extreme}_o_first"], fields["first"], strict=True)
        ]
    ends = zip(fields["first"], fields["n"], fields[f"{extreme}_o_last"], strict=True)
    return [first + n - 1 - o_last > 1 for first, n, o_last in ends]
