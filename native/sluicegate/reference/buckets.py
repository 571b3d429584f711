"""The readable twin of sluicegate.buckets: consecutive readings of one stream folded into one record of 168 bytes.

What a bucket does not know is part of it (docs/architecture.md, "Bucket"): the least and greatest sum of a proper,
non-empty prefix and where its extremes lie. All of it is a monoid, so it survives any merge tree: on the device, on
disk or in Spark. P⁻ and P⁺ are the errors of the papers' sum-like histogram, kept as one monoid.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from dataclasses import astuple, dataclass, fields
from typing import NamedTuple

ORDERED = 1
LATE = 2
LARGEST = 2.0**960
"""Greatest magnitude of a value: 2⁶² such differences still add up to a finite float64."""

_RECORD = struct.Struct("<4q3dd4qd4q2d2q")
_STATE = struct.Struct("<4sdq?q")
_MAGIC = b"SGB1"
_INT64 = 2**63
_WHOLE = 2**61  # times and gaps: their sums and differences fit an int64
PACKED = _RECORD.size


class Extreme(NamedTuple):
    """A minimum or maximum and the earliest and latest time and ordinal at which it occurs."""

    value: float
    t_first: int
    t_last: int
    o_first: int
    o_last: int

    def joined(self, other: Extreme) -> Extreme:
        """Both places of one value, `other`'s readings being the later ones."""
        t_first, t_last = min(self.t_first, other.t_first), max(self.t_last, other.t_last)
        return Extreme(self.value, t_first, t_last, self.o_first, other.o_last)


@dataclass(frozen=True, slots=True)
class Bucket:
    """Readings first … first + n − 1 of a stream; the fields, units and order of docs/architecture.md."""

    first: int
    n: int
    t_first: int
    t_last: int
    total: float
    pre_low: float
    pre_high: float
    low: float
    low_t_first: int
    low_t_last: int
    low_o_first: int
    low_o_last: int
    high: float
    high_t_first: int
    high_t_last: int
    high_o_first: int
    high_o_last: int
    x_first: float
    x_last: float
    gap: int
    flags: int

    @classmethod
    def single(cls, value: float, time: int, center: float, first: int, gap: int = 0, flags: int = ORDERED) -> Bucket:
        """The bucket of one reading.

        Raises ValueError for NaN, infinities and |value| > LARGEST, OverflowError for a time or gap beyond ±2⁶¹.
        """
        value = _accepted(value)
        place = (_whole(time, "time"), time, first, first)
        sums = (value - center, math.inf, -math.inf)
        return cls(first, 1, time, time, *sums, value, *place, value, *place, value, value, _whole(gap, "gap"), flags)

    @classmethod
    def unpack(cls, data: bytes) -> Bucket:
        """The bucket of 168 packed bytes, verified. Raises ValueError for another length or a broken invariant."""
        if len(data) != PACKED:
            raise ValueError(f"a packed bucket has {PACKED} bytes, these are {len(data)}")
        bucket = cls(*_RECORD.unpack(data))
        bucket.verify()
        return bucket

    def pack(self) -> bytes:
        """All fields in order, 8 bytes each, little-endian."""
        return _RECORD.pack(*astuple(self))

    def verify(self) -> None:
        """Raise ValueError naming the first invariant that does not hold."""
        for reason in broken(self):
            raise ValueError(f"bucket at ordinal {self.first} of {self.n} readings: {reason}")


FIELDS = tuple(field.name for field in fields(Bucket))


def merge(a: Bucket, b: Bucket) -> Bucket:
    """The bucket of a's readings, then b's. Associative; counts and extremes are exact.

    Raises ValueError where b's first ordinal is not the one after a's last, OverflowError for gaps beyond ±2⁶¹ in all.
    """
    if b.first != a.first + a.n:
        raise ValueError(f"bucket at ordinal {b.first} does not follow: expected ordinal {a.first + a.n}")
    low, high = _merged(_least(a), _least(b), a.low < b.low), _merged(_greatest(a), _greatest(b), a.high > b.high)
    ordered = a.flags & b.flags & ORDERED if b.t_first >= a.t_last else 0
    return Bucket(
        a.first,
        a.n + b.n,
        min(a.t_first, b.t_first),
        max(a.t_last, b.t_last),
        a.total + b.total,
        min(a.pre_low, a.total, a.total + b.pre_low),
        max(a.pre_high, a.total, a.total + b.pre_high),
        *low,
        *high,
        a.x_first,
        b.x_last,
        _whole(a.gap + b.gap, "gap"),
        ordered | (a.flags | b.flags) & LATE,
    )


def _least(b: Bucket) -> Extreme:
    return Extreme(b.low, b.low_t_first, b.low_t_last, b.low_o_first, b.low_o_last)


def _greatest(b: Bucket) -> Extreme:
    return Extreme(b.high, b.high_t_first, b.high_t_last, b.high_o_first, b.high_o_last)


def _merged(a: Extreme, b: Extreme, a_wins: bool) -> Extreme:
    if a.value == b.value:
        return a.joined(b)
    return a if a_wins else b


class Builder:
    """Folds readings into the open bucket; the caller decides when it closes.

    A reading older than the bucket's newest clears ORDERED. A bucket opened by a reading older than an earlier bucket's
    newest is LATE.
    """

    __slots__ = ("_open", "center", "newest", "next")

    def __init__(self, center: float, first: int = 0) -> None:
        """Start at ordinal `first`. Raises ValueError for a bad center (as a value) or a negative ordinal."""
        self.center = _accepted(center)
        if not 0 <= first < _INT64:
            raise ValueError(f"first ordinal {first} is outside 0 … 2⁶³ − 1")
        self.next = first
        self.newest: int | None = None
        self._open: Bucket | None = None

    @property
    def bucket(self) -> Bucket | None:
        """The open bucket, or None."""
        return self._open

    def add(self, value: float, time: int, gap: int = 0) -> None:
        """Fold one reading of `time` µs, before which `gap` were lost. Raises as Bucket.single, changing nothing."""
        late = LATE if self._open is None and self.newest is not None and time < self.newest else 0
        single = Bucket.single(value, time, self.center, self.next, gap, ORDERED | late)
        self._open = single if self._open is None else merge(self._open, single)
        self.newest = time if self.newest is None else max(self.newest, time)
        self.next += 1

    def close(self) -> Bucket:
        """The open bucket, which is open no more. Raises ValueError where there is none."""
        if self._open is None:
            raise ValueError("no bucket is open: add a reading before closing")
        closed, self._open = self._open, None
        return closed

    def state(self) -> bytes:
        """Everything `restore` needs, little-endian: 29 bytes, and 168 more while a bucket is open."""
        head = _STATE.pack(_MAGIC, self.center, self.next, self.newest is not None, self.newest or 0)
        return head + (self._open.pack() if self._open else b"")

    @classmethod
    def restore(cls, state: bytes) -> Builder:
        """The builder that `state()` was taken of. Raises ValueError for bytes that are damaged or not a builder's."""
        if len(state) not in (_STATE.size, _STATE.size + PACKED) or state[:4] != _MAGIC:
            raise ValueError(f"not a builder's state of this version: {len(state)} bytes beginning {state[:4]!r}")
        _, center, following, seen, newest = _STATE.unpack_from(state)
        builder = cls(center, following)
        builder.newest = newest if seen else None
        if len(state) > _STATE.size:
            builder._open = _continued(builder, Bucket.unpack(state[_STATE.size :]))
        return builder


def _continued(builder: Builder, bucket: Bucket) -> Bucket:
    if bucket.first + bucket.n != builder.next or builder.newest is None or bucket.t_last > builder.newest:
        raise ValueError(f"builder's state is damaged: its bucket does not end before ordinal {builder.next}")
    return bucket


def _accepted(value: float) -> float:
    value = float(value)
    if not abs(value) <= LARGEST:
        raise ValueError(
            f"value {value!r}: expected a finite number of magnitude at most 2^960; refuse it before it is folded"
        )
    return value


def _whole(number: int, name: str) -> int:
    if not -_WHOLE <= number <= _WHOLE:
        raise OverflowError(f"{name} {number} is beyond ±2^61")
    return number


def broken(b: Bucket) -> Iterator[str]:
    """Every invariant of a bucket that does not hold, in words; for the compiled bucket too."""
    last = b.first + b.n - 1
    if b.n < 1 or b.first < 0 or last >= _INT64 - 1:
        yield "n must be at least 1 and the ordinals within 0 … 2⁶³ − 2"
    if not -_WHOLE <= b.t_first <= b.t_last <= _WHOLE:
        yield f"t_first {b.t_first} is after t_last {b.t_last}, or one is beyond ±2⁶¹"
    if abs(b.gap) > _WHOLE:
        yield f"gap {b.gap} is beyond ±2⁶¹"
    if not (-LARGEST <= b.low <= b.x_first <= b.high <= LARGEST and b.low <= b.x_last <= b.high):
        yield f"values are not within low {b.low!r} … high {b.high!r}"
    if b.flags & ~(ORDERED | LATE):
        yield f"flags {b.flags} has unknown bits"
    yield from _broken_sums(b)
    for name, extreme in (("low", _least(b)), ("high", _greatest(b))):
        yield from (f"{name}: {text}" for text in _broken_extreme(b, extreme, last))


def _broken_sums(b: Bucket) -> Iterator[str]:
    if not math.isfinite(b.total):
        yield f"total {b.total!r} is not finite"
    if b.n == 1:
        if (b.pre_low, b.pre_high) != (math.inf, -math.inf):
            yield "one reading has no proper prefix: pre_low must be +inf, pre_high −inf"
        if b.t_first != b.t_last or b.low != b.high or not b.flags & ORDERED:
            yield "one reading has one time and one value, and is in order"
    elif not -math.inf < b.pre_low <= b.pre_high < math.inf:
        yield f"prefix sums {b.pre_low!r} … {b.pre_high!r} are no finite interval"


def _broken_extreme(b: Bucket, e: Extreme, last: int) -> Iterator[str]:
    if not b.first <= e.o_first <= e.o_last <= last or not b.t_first <= e.t_first <= e.t_last <= b.t_last:
        yield "its ordinals or times are outside the bucket"
    if (e.o_first == b.first) != (b.x_first == e.value) or (e.o_last == last) != (b.x_last == e.value):
        yield "its ordinals disagree with the first or last value"
    if e.o_first == e.o_last and e.t_first != e.t_last:
        yield "one occurrence has two times"
