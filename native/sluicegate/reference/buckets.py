"""The readable twin of sluicegate.format.bucket: consecutive readings of one stream folded into a record of 256 bytes.

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
from dataclasses import astuple, dataclass
from typing import Any

from sluicegate.constants import LARGEST, LATE, ORDERED
from sluicegate.format.record import INT64, PACKED, WHOLE, Extreme, broken, comparable, greatest, least

_OLDEST_RECORD = struct.Struct("<4q3dd4qd4q2d2q")
_OLD_RECORD = struct.Struct(_OLDEST_RECORD.format + "d2q7d")
_RECORD = struct.Struct(_OLD_RECORD.format + "q")
_RECORDS = {record.size: record for record in (_RECORD, _OLD_RECORD, _OLDEST_RECORD)}
_STATE = struct.Struct("<4sdq?q")
_MAGIC = b"SGB3"
_OPEN = {_MAGIC: _RECORD.size, b"SGB2": _OLD_RECORD.size, b"SGB1": _OLDEST_RECORD.size}


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


def merge(a: Bucket, b: Bucket) -> Bucket:
    """The bucket of a's readings, then b's. Associative; counts and extremes are exact.

    Raises ValueError where b's first ordinal is not the one after a's last, OverflowError for gaps beyond ±2⁶¹ in all.
    """
    if b.first != a.first + a.n:
        raise ValueError(f"bucket at ordinal {b.first} does not follow: expected ordinal {a.first + a.n}")
    low, high = _merged(-1, least(a), least(b)), _merged(1, greatest(a), greatest(b))
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


def _merged(sign: int, a: Extreme, b: Extreme) -> Extreme:
    """The greater one (sign 1) or the less (−1), b's readings being the later ones."""
    if a.value == b.value:
        return a.joined(b)
    return a.followed(sign, b.value) if sign * a.value > sign * b.value else b.preceded(sign, a.value)


class Builder:
    """Folds readings into the open bucket; the caller decides when it closes.

    A reading older than the bucket's newest clears ORDERED. A bucket opened by a reading older than an earlier bucket's
    newest is LATE.
    """

    __slots__ = ("_open", "center", "newest", "next")

    def __init__(self, center: float, first: int = 0) -> None:
        """Start at ordinal `first`. Raises ValueError for a bad center (as a value) or a negative ordinal."""
        self.center = _accepted(center)
        if not 0 <= first < INT64:
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
    if not -WHOLE <= number <= WHOLE:
        raise OverflowError(f"{name} {number} is beyond ±2^61")
    return number


def _doubtful(doubt: int) -> int:
    if not 0 <= doubt <= 1:
        raise ValueError(f"doubt {doubt}: a reading is in doubt (1) or not (0)")
    return doubt
