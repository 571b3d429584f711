"""The bucket record: its fields, its packed forms and what must hold of it; the compiled builder and its twin share it.

What a bucket does not know is part of it (docs/reference/format.md): the least and greatest sum of a proper,
non-empty prefix, where its extremes lie and what stands before and after them. All of it is a monoid, so it survives
any merge tree: on the device, on disk or in Spark. P⁻ and P⁺ are the errors of the papers' sum-like histogram, kept as
one monoid.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

from sluicegate.constants import LARGEST, LATE, ORDERED
from sluicegate.format._soundness import is_sound

INT64 = 2**63
WHOLE = 2**61  # times and gaps: their sums and differences fit an int64
_OLDEST_RECORD = struct.Struct("<4q3dd4qd4q2d2q")
_OLD_RECORD = struct.Struct(_OLDEST_RECORD.format + "d2q7d")
_RECORD = struct.Struct(_OLD_RECORD.format + "q")
_RECORDS = {record.size: record for record in (_RECORD, _OLD_RECORD, _OLDEST_RECORD)}
_STATE = struct.Struct("<4sdq?q")
_MAGIC = b"SGB3"
_OPEN = {_MAGIC: _RECORD.size, b"SGB2": _OLD_RECORD.size, b"SGB1": _OLDEST_RECORD.size}
PACKED = _RECORD.size


class Bucket(NamedTuple):
    """Readings first … first + n − 1 of a stream; the fields, units and order of docs/reference/format.md.

    Records of 168 bytes end before `m2`: what they lack is not known (NaN, −1), and merging keeps it so. Those of 248
    end before `doubt`: none of their readings is in doubt.
    """

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
    m2: float = math.nan
    low_n: int = -1
    high_n: int = -1
    low_pre: float = math.nan
    low_suf: float = math.nan
    high_pre: float = math.nan
    high_suf: float = math.nan
    log_total: float = math.nan
    log_pre_low: float = math.nan
    log_pre_high: float = math.nan
    doubt: int = 0

    @classmethod
    def single(
        cls, value: float, time: int, center: float, first: int, gap: int = 0, flags: int = ORDERED, doubt: int = 0
    ) -> Bucket:
        """The bucket of one reading.

        Raises ValueError for NaN, infinities, |value| > LARGEST and a doubt other than 0 and 1, OverflowError for a
        time or gap beyond ±2⁶¹.
        """
        value = check_reading(value, time, gap, doubt)
        place = (time, time, first, first)
        sums = (value - center, math.inf, -math.inf)
        sides, logs = (math.inf, math.inf, -math.inf, -math.inf), _single_logs(value, center)
        known: tuple[Any, ...] = (value, value, gap, flags, 0.0, 1, 1, *sides, *logs, doubt)
        return cls(first, 1, time, time, *sums, value, *place, value, *place, *known)

    @classmethod
    def unpack(cls, data: bytes) -> Bucket:
        """The bucket of 256 packed bytes, or of 248 or 168 older ones, verified.

        Raises ValueError for another length or a broken invariant.
        """
        record = _RECORDS.get(len(data))
        if record is None:
            raise ValueError(f"a packed bucket has {PACKED} bytes, older ones 248 or 168; these are {len(data)}")
        bucket = cls(*record.unpack(data))
        if not is_sound(data):
            bucket.verify()
        return bucket

    def pack(self) -> bytes:
        """All fields in order, 8 bytes each, little-endian."""
        return _RECORD.pack(*self)

    def verify(self) -> None:
        """Raise ValueError naming the first invariant that does not hold."""
        for reason in broken(self):
            raise ValueError(f"bucket at ordinal {self.first} of {self.n} readings: {reason}")

    def __eq__(self, other: object) -> bool:
        """Field by field; what is not known equals what is not known."""
        return isinstance(other, Bucket) and _comparable(self) == _comparable(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(_comparable(self))


FIELDS = Bucket._fields
#: The fields that records of 168 bytes lack, as they are where nothing is known of them.
UNKNOWN = {name: value for name, value in Bucket._field_defaults.items() if name != "doubt"}


def _comparable(bucket: Bucket) -> tuple[float | None, ...]:
    return tuple(None if x != x else x for x in bucket)


def _single_logs(value: float, center: float) -> tuple[float, float, float]:
    """Of one reading: ln x − ln center (center > 0) or ln x; no geometric mean where x ≤ 0."""
    if value <= 0.0:
        return math.nan, math.nan, math.nan
    return math.log(value) - (math.log(center) if center > 0.0 else 0.0), math.inf, -math.inf


def check_value(value: float) -> float:
    """A value that may be folded. Raises ValueError for NaN, infinities and |value| > LARGEST."""
    value = float(value)
    if not abs(value) <= LARGEST:
        raise ValueError(
            f"value {value!r}: expected a finite number of magnitude at most 2^960; refuse it before it is folded"
        )
    return value


def check_whole(number: int, name: str) -> int:
    """A time or a gap. Raises OverflowError beyond ±2⁶¹."""
    if not -WHOLE <= number <= WHOLE:
        raise OverflowError(f"{name} {number} is beyond ±2^61")
    return number


def check_reading(value: float, time: int, gap: int, doubt: int) -> float:
    """The value of a reading that may be folded. Raises ValueError or OverflowError as `Bucket.single`."""
    value = check_value(value)
    check_whole(time, "time")
    check_whole(gap, "gap")
    if not 0 <= doubt <= 1:
        raise ValueError(f"doubt {doubt}: a reading is in doubt (1) or not (0)")
    return value


class BuilderState(NamedTuple):
    """All that a builder is restored from; `newest`: the greatest time seen, None before the first reading."""

    center: float
    following: int
    newest: int | None
    bucket: Bucket | None

    def pack(self) -> bytes:
        """Little-endian: 29 bytes, and 256 more while a bucket is open."""
        head = _STATE.pack(_MAGIC, self.center, self.following, self.newest is not None, self.newest or 0)
        return head if self.bucket is None else head + self.bucket.pack()

    @classmethod
    def unpack(cls, state: bytes) -> BuilderState:
        """What `pack` gave, now or with an older record. Raises ValueError for other bytes."""
        size = _OPEN.get(state[:4], -1)
        if size < 0 or len(state) not in (_STATE.size, _STATE.size + size):
            raise ValueError(f"not a builder's state of this version: {len(state)} bytes beginning {state[:4]!r}")
        _, center, following, seen, newest = _STATE.unpack_from(state)
        bucket = Bucket.unpack(state[_STATE.size :]) if len(state) > _STATE.size else None
        if bucket and (bucket.first + bucket.n != following or not seen or bucket.t_last > newest):
            raise ValueError(f"builder's state is damaged: its bucket does not end before ordinal {following}")
        return cls(center, following, newest if seen else None, bucket)


class Extreme(NamedTuple):
    """A minimum or maximum, the earliest and latest time and ordinal at which it occurs, and how often.

    `pre` and `suf`: the extreme of what stands before its first and after its last occurrence.
    """

    value: float
    t_first: int
    t_last: int
    o_first: int
    o_last: int
    often: int
    pre: float
    suf: float


def least(b: Bucket) -> Extreme:
    """The bucket's minimum."""
    places = b.low_t_first, b.low_t_last, b.low_o_first, b.low_o_last
    return Extreme(b.low, *places, b.low_n, b.low_pre, b.low_suf)


def greatest(b: Bucket) -> Extreme:
    """The bucket's maximum."""
    places = b.high_t_first, b.high_t_last, b.high_o_first, b.high_o_last
    return Extreme(b.high, *places, b.high_n, b.high_pre, b.high_suf)


def broken(b: Bucket) -> Iterator[str]:
    """Every invariant of a bucket that does not hold, in words."""
    last = b.first + b.n - 1
    if b.n < 1 or b.first < 0 or last >= INT64 - 1:
        yield "n must be at least 1 and the ordinals within 0 … 2⁶³ − 2"
    if not -WHOLE <= b.t_first <= b.t_last <= WHOLE:
        yield f"t_first {b.t_first} is after t_last {b.t_last}, or one is beyond ±2⁶¹"
    if not 0 <= b.doubt <= b.n:
        yield f"doubt {b.doubt} is outside 0 … n: so many of the readings may be repeats"
    if abs(b.gap) > WHOLE:
        yield f"gap {b.gap} is beyond ±2⁶¹"
    if not (-LARGEST <= b.low <= b.x_first <= b.high <= LARGEST and b.low <= b.x_last <= b.high):
        yield f"values are not within low {b.low!r} … high {b.high!r}"
    if b.flags & ~(ORDERED | LATE):
        yield f"flags {b.flags} has unknown bits"
    yield from _broken_sums(b)
    yield from _broken_squares_and_logs(b)
    for sign, name, extreme in ((-1, "low", least(b)), (1, "high", greatest(b))):
        yield from (f"{name}: {text}" for text in _broken_extreme(b, extreme, last))
        yield from (f"{name}: {text}" for text in _broken_sides(b, sign, extreme, last))


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


def _broken_squares_and_logs(b: Bucket) -> Iterator[str]:
    """What is not known is NaN; a bucket of one has no proper prefix and no spread."""
    if not math.isnan(b.m2) and not (b.m2 == 0.0 if b.n == 1 else 0.0 <= b.m2 < math.inf):
        yield f"m2 {b.m2!r} is no sum of squares"
    logs = b.log_pre_low, b.log_pre_high
    if math.isnan(b.log_total):
        if not all(map(math.isnan, logs)):
            yield "log_pre_low and log_pre_high without a log_total"
    elif b.low <= 0.0 or not math.isfinite(b.log_total):
        yield f"log_total {b.log_total!r}, the least value being {b.low!r}"
    elif logs != (math.inf, -math.inf) if b.n == 1 else not -math.inf < logs[0] <= logs[1] < math.inf:
        yield f"prefix sums of logarithms {logs[0]!r} … {logs[1]!r} are no interval"


def _broken_sides(b: Bucket, sign: int, e: Extreme, last: int) -> Iterator[str]:
    """An extreme's count, and what stands before and after it; −1 and NaN are not known."""
    places = e.o_last - e.o_first + 1
    if e.often != -1 and not (min(2, places) <= e.often <= places and (b.low < b.high or e.often == b.n)):
        yield f"{e.often} occurrences between ordinals {e.o_first} and {e.o_last}"
    other = b.high if sign < 0 else b.low
    for name, value, readings, beside in (
        ("before", e.pre, e.o_first - b.first, b.x_first),
        ("after", e.suf, last - e.o_last, b.x_last),
    ):
        if math.isnan(value):
            continue
        if readings == 0 or math.isinf(value):
            if readings or value != -sign * math.inf:
                yield f"{value!r} {name} it, where {readings} readings stand"
        elif not sign * beside <= sign * value < sign * e.value or sign * value < sign * other:
            yield f"{value!r} {name} it is beyond the bucket's values"
        elif readings == 1 and value != beside:
            yield f"{value!r} {name} it, where only {beside!r} stands"
