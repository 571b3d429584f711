"""The readable twin of sluicegate.buckets: consecutive readings of one stream folded into one record of 256 bytes.

What a bucket does not know is part of it (docs/architecture.md, "Bucket"): the least and greatest sum of a proper,
non-empty prefix, where its extremes lie and what stands before and after them. All of it is a monoid, so it survives
any merge tree: on the device, on disk or in Spark. P⁻ and P⁺ are the errors of the papers' sum-like histogram, kept as
one monoid; m2 is merged after Chan, Golub and LeVeque (1979). Records of 168 bytes, which end before m2, are still
read: what they lack is not known (NaN, −1), and merging keeps it so. So are those of 248, which end before doubt: of
those no reading is in doubt.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from dataclasses import astuple, dataclass, fields
from typing import Any, NamedTuple

ORDERED = 1
LATE = 2
LARGEST = 2.0**960
"""Greatest magnitude of a value: 2⁶² such differences still add up to a finite float64."""

_OLDEST_RECORD = struct.Struct("<4q3dd4qd4q2d2q")
_OLD_RECORD = struct.Struct(_OLDEST_RECORD.format + "d2q7d")
_RECORD = struct.Struct(_OLD_RECORD.format + "q")
_RECORDS = {record.size: record for record in (_RECORD, _OLD_RECORD, _OLDEST_RECORD)}
_STATE = struct.Struct("<4sdq?q")
_MAGIC = b"SGB3"
_OPEN = {_MAGIC: _RECORD.size, b"SGB2": _OLD_RECORD.size, b"SGB1": _OLDEST_RECORD.size}
_INT64 = 2**63
_WHOLE = 2**61  # times and gaps: their sums and differences fit an int64
PACKED = _RECORD.size
#: The fields that records of 168 bytes lack, as they are where nothing is known of them.
UNKNOWN = {
    "m2": math.nan,
    "low_n": -1,
    "high_n": -1,
    "low_pre": math.nan,
    "low_suf": math.nan,
    "high_pre": math.nan,
    "high_suf": math.nan,
    "log_total": math.nan,
    "log_pre_low": math.nan,
    "log_pre_high": math.nan,
}


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

    def joined(self, other: Extreme) -> Extreme:
        """Both places of one value, `other`'s readings being the later ones."""
        t_first, t_last = min(self.t_first, other.t_first), max(self.t_last, other.t_last)
        often = -1 if self.often < 0 or other.often < 0 else self.often + other.often
        return Extreme(self.value, t_first, t_last, self.o_first, other.o_last, often, self.pre, other.suf)

    def followed(self, sign: int, other: float) -> Extreme:
        """Where lesser readings (sign 1), or greater ones (−1), of extreme `other` follow."""
        return self._replace(suf=other) if sign * other > sign * self.suf else self

    def preceded(self, sign: int, other: float) -> Extreme:
        """Where lesser readings (sign 1), or greater ones (−1), of extreme `other` stand before."""
        return self._replace(pre=other) if sign * other > sign * self.pre else self


@dataclass(frozen=True, slots=True, eq=False)
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
        value = _accepted(value)
        place = (_whole(time, "time"), time, first, first)
        sums = (value - center, math.inf, -math.inf)
        ends = (value, value, _whole(gap, "gap"), flags)
        sides, logs = (math.inf, math.inf, -math.inf, -math.inf), _single_logs(value, center)
        known: tuple[Any, ...] = (*ends, 0.0, 1, 1, *sides, *logs, _doubtful(doubt))
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
        bucket.verify()
        return bucket

    def pack(self) -> bytes:
        """All fields in order, 8 bytes each, little-endian."""
        return _RECORD.pack(*astuple(self))

    def verify(self) -> None:
        """Raise ValueError naming the first invariant that does not hold."""
        for reason in broken(self):
            raise ValueError(f"bucket at ordinal {self.first} of {self.n} readings: {reason}")

    def __eq__(self, other: object) -> bool:
        """Field by field; what is not known equals what is not known."""
        return isinstance(other, Bucket) and comparable(astuple(self)) == comparable(astuple(other))

    def __hash__(self) -> int:
        return hash(comparable(astuple(self)))


FIELDS = tuple(field.name for field in fields(Bucket))


def merge(a: Bucket, b: Bucket) -> Bucket:
    """The bucket of a's readings, then b's. Associative; counts and extremes are exact.

    Raises ValueError where b's first ordinal is not the one after a's last, OverflowError for gaps beyond ±2⁶¹ in all.
    """
    if b.first != a.first + a.n:
        raise ValueError(f"bucket at ordinal {b.first} does not follow: expected ordinal {a.first + a.n}")
    low, high = _merged(-1, _least(a), _least(b)), _merged(1, _greatest(a), _greatest(b))
    ordered = a.flags & b.flags & ORDERED if b.t_first >= a.t_last else 0
    return Bucket(
        a.first,
        a.n + b.n,
        min(a.t_first, b.t_first),
        max(a.t_last, b.t_last),
        a.total + b.total,
        min(a.pre_low, a.total, a.total + b.pre_low),
        max(a.pre_high, a.total, a.total + b.pre_high),
        *_place(low),
        *_place(high),
        a.x_first,
        b.x_last,
        _whole(a.gap + b.gap, "gap"),
        ordered | (a.flags | b.flags) & LATE,
        _merged_squares(a, b),
        low.often,
        high.often,
        low.pre,
        low.suf,
        high.pre,
        high.suf,
        *_merged_logs(a, b),
        a.doubt + b.doubt,
    )


def _place(e: Extreme) -> tuple[float, int, int, int, int]:
    return e.value, e.t_first, e.t_last, e.o_first, e.o_last


def _merged_squares(a: Bucket, b: Bucket) -> float:
    """Σ (x − mean)² of both; NaN where one is not known or the squares are beyond float64."""
    n, m = float(a.n), float(b.n)
    apart = b.total / m - a.total / n
    squares = a.m2 + b.m2 + apart * apart * (n * (m / (n + m)))
    return squares if squares < math.inf else math.nan


def _merged_logs(a: Bucket, b: Bucket) -> tuple[float, float, float]:
    """As total, pre_low and pre_high, of the logarithms."""
    total = a.log_total + b.log_total
    if math.isnan(total):
        return math.nan, math.nan, math.nan
    low = min(a.log_pre_low, a.log_total, a.log_total + b.log_pre_low)
    return total, low, max(a.log_pre_high, a.log_total, a.log_total + b.log_pre_high)


def _single_logs(value: float, center: float) -> tuple[float, float, float]:
    """Of one reading: ln x − ln center (center > 0) or ln x; no geometric mean where x ≤ 0."""
    if value <= 0.0:
        return math.nan, math.nan, math.nan
    return math.log(value) - (math.log(center) if center > 0.0 else 0.0), math.inf, -math.inf


def _least(b: Bucket) -> Extreme:
    places = b.low_t_first, b.low_t_last, b.low_o_first, b.low_o_last
    return Extreme(b.low, *places, b.low_n, b.low_pre, b.low_suf)


def _greatest(b: Bucket) -> Extreme:
    places = b.high_t_first, b.high_t_last, b.high_o_first, b.high_o_last
    return Extreme(b.high, *places, b.high_n, b.high_pre, b.high_suf)


def _merged(sign: int, a: Extreme, b: Extreme) -> Extreme:
    """The greater one (sign 1) or the less (−1), b's readings being the later ones."""
    if a.value == b.value:
        return a.joined(b)
    return a.followed(sign, b.value) if sign * a.value > sign * b.value else b.preceded(sign, a.value)


def comparable(fields: tuple[float, ...]) -> tuple[float | None, ...]:
    """A record's fields, None for NaN: what is not known is alike."""
    return tuple(None if x != x else x for x in fields)


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

    def add(self, value: float, time: int, gap: int = 0, doubt: int = 0) -> None:
        """Fold one reading of `time` µs, before which `gap` were lost, in doubt (1) where it may be a repeat.

        Raises as Bucket.single, changing nothing.
        """
        late = LATE if self._open is None and self.newest is not None and time < self.newest else 0
        single = Bucket.single(value, time, self.center, self.next, gap, ORDERED | late, doubt)
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
        """Everything `restore` needs, little-endian: 29 bytes, and 256 more while a bucket is open."""
        head = _STATE.pack(_MAGIC, self.center, self.next, self.newest is not None, self.newest or 0)
        return head + (self._open.pack() if self._open else b"")

    @classmethod
    def restore(cls, state: bytes) -> Builder:
        """The builder that `state()` was taken of, now or with an older record. Raises ValueError for other bytes."""
        size = _OPEN.get(state[:4], -1)
        if size < 0 or len(state) not in (_STATE.size, _STATE.size + size):
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


def _doubtful(doubt: int) -> int:
    if not 0 <= doubt <= 1:
        raise ValueError(f"doubt {doubt}: a reading is in doubt (1) or not (0)")
    return doubt


def broken(b: Bucket) -> Iterator[str]:
    """Every invariant of a bucket that does not hold, in words; for the compiled bucket too."""
    last = b.first + b.n - 1
    if b.n < 1 or b.first < 0 or last >= _INT64 - 1:
        yield "n must be at least 1 and the ordinals within 0 … 2⁶³ − 2"
    if not -_WHOLE <= b.t_first <= b.t_last <= _WHOLE:
        yield f"t_first {b.t_first} is after t_last {b.t_last}, or one is beyond ±2⁶¹"
    if not 0 <= b.doubt <= b.n:
        yield f"doubt {b.doubt} is outside 0 … n: so many of the readings may be repeats"
    if abs(b.gap) > _WHOLE:
        yield f"gap {b.gap} is beyond ±2⁶¹"
    if not (-LARGEST <= b.low <= b.x_first <= b.high <= LARGEST and b.low <= b.x_last <= b.high):
        yield f"values are not within low {b.low!r} … high {b.high!r}"
    if b.flags & ~(ORDERED | LATE):
        yield f"flags {b.flags} has unknown bits"
    yield from _broken_sums(b)
    yield from _broken_squares_and_logs(b)
    for sign, name, extreme in ((-1, "low", _least(b)), (1, "high", _greatest(b))):
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
