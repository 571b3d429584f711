"""The columns inside a chunk's `data`: which fields, in which order, as what offsets (format.md, "Payload").

A bucket is either stored whole, or as its single readings; what columns-2 adds to the former is `columns_2`.
columns-3 adds how many of a bucket's readings may be repeats.
Ordinals are contiguous and therefore not stored; times and ordinals of extremes are offsets, so that most columns are
small numbers. P⁻ and P⁺ are bounds, rounded outward to float32. Standard library only.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, compress, groupby
from operator import gt, sub
from typing import Any

from sluicegate.format import _packing, columns_2
from sluicegate.format.bucket import FIELDS, LARGEST, LATE, ORDERED, Bucket
from sluicegate.format.packing import deflated, pack_floats, pack_ints, pack_singles
from sluicegate.format.unpacking import PackingError, Reader, unpack_floats, unpack_ints, unpack_whole

MAX_ROWS = 2**18  # buckets and single readings together
_FRAMING = 16  # bytes at most that zlib, and a deflated block, put around a column of any length
AS_READINGS = 4  # the bit beside ORDERED and LATE
Readings = tuple["array[int]", "array[float]"]  # times µs, values
Rows = dict[str, "array[int] | array[float]"]
_TYPES = dict.fromkeys(FIELDS, "q")
_FLOATS = ("total", "pre_low", "pre_high", "low", "high", "x_first", "x_last")
_TYPES |= {name: "d" for name in (*_FLOATS, *columns_2.NAMES) if not name.endswith("_n")}
# Each integer field of a bucket stored whole is the offset from another one.
_OFFSETS = {
    "t_last": "t_first",
    "low_t_first": "t_first",
    "low_t_last": "low_t_first",
    "low_o_first": "first",
    "low_o_last": "low_o_first",
    "high_t_first": "t_first",
    "high_t_last": "high_t_first",
    "high_o_first": "first",
    "high_o_last": "high_o_first",
}


@dataclass(slots=True)
class Body:
    """The columns of a payload: kinds, n, gap and doubt a bucket, the single readings, and the buckets stored whole."""

    first: int
    kinds: array[int]
    n: array[int]
    gap: array[int]
    doubt: array[int]
    times: array[int]
    values: array[float]
    whole: Rows

    def totals(self) -> tuple[int, int, int, int, int, int]:
        """What the header says of them: first, readings, buckets, t_first, t_last, gap."""
        begins: Any = self.times, self.whole.get("t_first", ())
        ends: Any = self.times, self.whole.get("t_last", ())
        t_first = min(_packing.extent(of)[0] for of in begins if of)
        t_last = max(_packing.extent(of)[1] for of in ends if of)
        readings, missing = (_packing.extent(of)[2] for of in (self.n, self.gap))
        return self.first, readings, len(self.n), t_first, t_last, missing

    def in_doubt(self) -> int:
        """How many readings may be repeats."""
        return _packing.extent(self.doubt)[2]

    def runs(self) -> Iterator[tuple[bool, range]]:
        """Neighbouring buckets stored alike: whether as readings, and their indices."""
        at, alike = 0, {kind & AS_READINGS for kind in set(self.kinds)}
        if len(alike) == 1:
            yield bool(alike.pop()), range(len(self.kinds))
            return
        for as_readings, kinds in groupby(kind & AS_READINGS for kind in self.kinds):
            following = at + sum(1 for _ in kinds)
            yield bool(as_readings), range(at, following)
            at = following

    def placed_whole(self) -> Iterator[tuple[int, int, int, int]]:
        """Of each bucket stored whole: its first ordinal, readings, first and last time."""
        columns: Any = [self.whole.get(name, ()) for name in ("first", "n", "t_first", "t_last")]
        return zip(*columns, strict=True)

    def placed(self) -> Iterator[tuple[int, int, int, int]]:
        """The same of every bucket."""
        whole, first, at = self.placed_whole(), self.first, 0
        if not self.times:
            yield from whole
            return
        for kind, n in zip(self.kinds, self.n, strict=True):
            if kind & AS_READINGS:
                times = self.times[at : at + n]
                yield first, n, min(times), max(times)
                at += n
            else:
                yield next(whole)
            first += n


def pack_body(buckets: Sequence[Bucket], readings: Sequence[Readings | None]) -> list[bytes]:
    """The columns of buckets, those with readings stored as readings. One of n = 1 must have them.

    Of the readings of a bucket either none or all may be in doubt.
    """
    kinds = [b.flags | (AS_READINGS if r else 0) for b, r in zip(buckets, readings, strict=True)]
    out = [pack_ints(kinds), pack_ints([b.n for b in buckets]), pack_ints([b.gap for b in buckets])]
    in_doubt = any(b.doubt for b in buckets)
    if in_doubt:
        out.append(pack_ints([b.doubt for b in buckets]))
    singles = [r for r in readings if r]
    if singles:
        out.append(pack_ints([time for times, _ in singles for time in times]))
        out.append(pack_floats([value for _, values in singles for value in values]))
    whole = [b for b, r in zip(buckets, readings, strict=True) if not r]
    return out + (_pack_whole(whole, in_doubt) if whole else [])


def least_whole(buckets: Sequence[Bucket]) -> int:
    """Bytes that buckets take whole and deflated, at least: of two columns that say nothing of each other."""
    columns = [b.total for b in buckets if b.n > 1], [b.m2 for b in buckets if b.n > 1 and b.m2 == b.m2]
    return sum([deflated(pack_floats(column)) - _FRAMING for column in columns if column])


def _pack_whole(buckets: list[Bucket], always: bool) -> list[bytes]:
    fields: dict[str, list[Any]] = dict(zip(FIELDS, map(list, zip(*buckets, strict=True)), strict=True))
    out = [pack_ints(fields["t_first"])]
    out += [pack_ints(list(map(sub, fields[name], fields[base]))) for name, base in _OFFSETS.items()]
    for name in _FLOATS:
        up = {"pre_low": False, "pre_high": True}.get(name)
        out.append(pack_floats(fields[name]) if up is None else pack_singles(fields[name], up=up))
    return out + columns_2.pack_known(fields, always)


def codec_of(buckets: Sequence[Bucket], readings: Sequence[Readings | None]) -> int:
    """Which columns `pack_body` makes: 3 with doubt, 2 where a bucket stored whole knows what 1 cannot say."""
    if any(b.doubt for b in buckets):
        return 3
    whole = (b for b, r in zip(buckets, readings, strict=True) if not r)
    return 2 if any(columns_2.knows(b) for b in whole) else 1


def unpack_body(payload: bytes, buckets: int, first: int, codec: int) -> Body:
    """The columns of a payload of `buckets` buckets from ordinal `first`. Raises PackingError for anything else."""
    reader = Reader(payload)
    kinds, n, gap = (unpack_ints(reader, buckets) for _ in range(3))
    least, greatest, _ = _packing.extent(kinds)
    if least < 0 or greatest >= 2 * AS_READINGS or _packing.extent(n)[0] < 1:
        raise PackingError("a bucket of unknown kind or without readings")
    doubt = unpack_ints(reader, buckets) if codec > 2 else array("q", bytes(8 * buckets))
    if codec > 2:
        _check_doubt(kinds, n, doubt)
    as_readings = [kind & AS_READINGS for kind in kinds] if greatest >= AS_READINGS else []
    singles = sum(compress(n, as_readings))
    count = as_readings.count(0) if as_readings else buckets
    if singles + count > MAX_ROWS:
        raise PackingError(f"{singles + count} rows, at most {MAX_ROWS} are taken")
    times = unpack_ints(reader, singles) if singles else array("q")
    values = unpack_floats(reader, singles) if singles else array("d")
    body = Body(first, kinds, n, gap, doubt, times, values, {})
    if count:
        body.whole = _whole(reader, body, count, codec)
    reader.finish()
    _check_range(times, values)
    return body


def _check_doubt(kinds: array[int], n: array[int], doubt: array[int]) -> None:
    """Raises PackingError for more doubt than readings, or where it does not say which of the single ones it means."""
    if min(doubt) < 0 or any(map(gt, doubt, n)):
        raise PackingError("more readings in doubt than there are")
    if any(doubt) and any(kind & AS_READINGS and 0 < d < most for kind, d, most in zip(kinds, doubt, n, strict=True)):
        raise PackingError("single readings of which only some are in doubt")


def _check_range(times: array[int], values: array[float]) -> None:
    """Raises PackingError for values and times that no reading may have."""
    if not times:
        return
    if max(values) > LARGEST or min(values) < -LARGEST:
        raise PackingError("a value beyond ±2^960")
    least, greatest, _ = _packing.extent(times)
    if greatest > 2**61 or least < -(2**61):
        raise PackingError("a time beyond ±2^61 µs")


def _whole(reader: Reader, body: Body, count: int, codec: int) -> Rows:
    """The fields of the buckets stored whole, absolute again."""
    marks: Rows = {"first": _packing.begins(body.first, body.n), "n": body.n, "gap": body.gap}
    marks |= {"flags": body.kinds, "doubt": body.doubt}
    whole = [not kind & AS_READINGS for kind in body.kinds] if count < len(body.kinds) else []
    fields: Rows = {name: array("q", compress(of, whole)) for name, of in marks.items()} if whole else marks
    return fields | unpack_whole(reader, fields["first"], fields["n"], codec)


def rows(body: Body, center: float) -> Rows:
    """One array a field of Bucket; a single reading is a row of n = 1. Arrays may be shared between fields."""
    if len(body.whole.get("n", ())) == len(body.n):
        return {name: body.whole[name] for name in FIELDS}
    out: Rows = {name: array(_TYPES[name]) for name in FIELDS}
    ordinals = list(accumulate(body.n, initial=body.first))
    single = stored = 0
    for as_readings, run in body.runs():
        if as_readings:
            count = ordinals[run.stop] - ordinals[run.start]
            piece = _single_rows(body, run, ordinals[run.start], slice(single, single + count), center)
            single += count
        else:
            piece = {name: column[stored : stored + len(run)] for name, column in body.whole.items()}
            stored += len(run)
        for name in FIELDS:
            out[name] += piece[name]  # type: ignore[operator]
    return out


def _single_rows(body: Body, run: range, first: int, at: slice, center: float) -> Rows:
    times, values = body.times[at], body.values[at]
    count = len(times)
    ordinals = array("q", range(first, first + count))
    sums = array("d", [x - center for x in values])
    bounds = array("d", [math.inf]) * count, array("d", [-math.inf]) * count
    places = times, times, ordinals, ordinals
    columns = (ordinals, array("q", [1]) * count, times, times, sums, *bounds, values, *places, values, *places)
    gap, flags, doubt = _single_marks(body, run, count)
    fields: tuple[Any, ...] = (*columns, values, values, gap, flags, *columns_2.single(values, center), doubt)
    return dict(zip(FIELDS, fields, strict=True))


def _single_marks(body: Body, run: range, count: int) -> tuple[array[int], array[int], array[int]]:
    """Of a run's single readings: a bucket's gap is on its first, LATE and doubt are on all of them."""
    gap, flags, doubt = array("q", [0]) * count, array("q", [ORDERED]) * count, array("q", [0]) * count
    here = slice(run.start, run.stop)
    if any(body.gap[here]) or any(body.doubt[here]) or any(body.kinds[i] & LATE for i in run):
        at = 0
        for i in run:
            n = body.n[i]
            gap[at] = body.gap[i]
            if body.kinds[i] & LATE:
                flags[at : at + n] = array("q", [ORDERED | LATE]) * n
            if body.doubt[i]:
                doubt[at : at + n] = array("q", [1]) * n
            at += n
    return gap, flags, doubt
