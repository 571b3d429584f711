"""The bucket record: its fields, its packed forms and what must hold of it; the compiled builder and its twin share it.

What a bucket does not know is part of it (docs/reference/format.md): the least and greatest sum of a proper,
non-empty prefix, where its extremes lie and what stands before and after them. All of it is a monoid, so it survives
any merge tree: on the device, on disk or in Spark. P⁻ and P⁺ are the errors of the papers' sum-like histogram, kept as
one monoid.
"""

from __future__ import annotations

import math
import struct
from typing import Any, NamedTuple

from sluicegate.constants import LARGEST, ORDERED
from sluicegate.format._soundness import is_sound

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
        bucket._check(data if record is _RECORD else bucket.pack())
        return bucket

    def pack(self) -> bytes:
        """All fields in order, 8 bytes each, little-endian."""
        return _RECORD.pack(*self)

    def verify(self) -> None:
        """Raise ValueError where an invariant does not hold (docs/reference/format.md)."""
        try:
            packed = self.pack()
        except struct.error as error:
            raise ValueError(f"bucket at ordinal {self.first} of {self.n} readings: {error}") from None
        self._check(packed)

    def _check(self, packed: bytes) -> None:
        if not is_sound(packed):
            said = "its fields contradict each other: it is damaged, or breaks a rule of docs/reference/format.md"
            raise ValueError(f"bucket at ordinal {self.first} of {self.n} readings: {said}")

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
