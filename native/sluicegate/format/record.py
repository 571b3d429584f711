"""The bucket record, for the compiled bucket and its twin: its fields, what is not known, and what must hold of it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from sluicegate.constants import LARGEST, LATE, ORDERED

if TYPE_CHECKING:
    from sluicegate.format._bucket import Bucket as Compiled
    from sluicegate.reference.buckets import Bucket as Twin

    Bucket: TypeAlias = Compiled | Twin

INT64 = 2**63
WHOLE = 2**61  # times and gaps: their sums and differences fit an int64
FIELDS = (
    "first",
    "n",
    "t_first",
    "t_last",
    "total",
    "pre_low",
    "pre_high",
    "low",
    "low_t_first",
    "low_t_last",
    "low_o_first",
    "low_o_last",
    "high",
    "high_t_first",
    "high_t_last",
    "high_o_first",
    "high_o_last",
    "x_first",
    "x_last",
    "gap",
    "flags",
    "m2",
    "low_n",
    "high_n",
    "low_pre",
    "low_suf",
    "high_pre",
    "high_suf",
    "log_total",
    "log_pre_low",
    "log_pre_high",
    "doubt",
)
PACKED = 8 * len(FIELDS)
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


def least(b: Bucket) -> Extreme:
    """The bucket's minimum."""
    places = b.low_t_first, b.low_t_last, b.low_o_first, b.low_o_last
    return Extreme(b.low, *places, b.low_n, b.low_pre, b.low_suf)


def greatest(b: Bucket) -> Extreme:
    """The bucket's maximum."""
    places = b.high_t_first, b.high_t_last, b.high_o_first, b.high_o_last
    return Extreme(b.high, *places, b.high_n, b.high_pre, b.high_suf)


def comparable(fields: tuple[float, ...]) -> tuple[float | None, ...]:
    """A record's fields, None for NaN: what is not known is alike."""
    return tuple(None if x != x else x for x in fields)


def broken(b: Bucket) -> Iterator[str]:
    """Every invariant of a bucket that does not hold, in words; for the compiled bucket too."""
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
