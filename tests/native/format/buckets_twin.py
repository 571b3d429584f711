"""The readable twin of sluicegate.format._bucket: readings folded into the open bucket, and two buckets merged.

Squared deviations are merged after Chan, Golub and LeVeque (1979).
"""

from __future__ import annotations

import math
import struct
from array import array
from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

from sluicegate.constants import LATE, ORDERED
from sluicegate.format.record import PACKED, Bucket, BuilderState, check_value, check_whole


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


def _gap(a: Bucket, b: Bucket) -> int:
    """What came late takes back a loss of another place; beside one of this place it is left out."""
    check_whole(a.gap + b.gap, "gap")
    return max(a.gap, 0) + max(b.gap, 0) if max(a.gap, b.gap) > 0 else a.gap + b.gap


def merge(a: Bucket, b: Bucket) -> Bucket:
    """The bucket of a's readings, then b's. Associative; counts and extremes are exact.

    Raises ValueError where b's first ordinal is not the one after a's last, OverflowError for gaps beyond ±2⁶¹ in all.
    """
    if b.first != a.first + a.n:
        raise ValueError(f"bucket at ordinal {b.first} does not follow: expected ordinal {a.first + a.n}")
    low, high = _merged(-1, least(a), least(b)), _merged(1, greatest(a), greatest(b))
    is_torn = min(a.gap, b.gap) < 0 < max(a.gap, b.gap)
    ordered = a.flags & b.flags & ORDERED if b.t_first >= a.t_last and not is_torn else 0
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
        _gap(a, b),
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


def merge_packed(records: Sequence[bytes]) -> bytes:
    """The packed bucket of packed neighbours, at least one, in their order. Raises what `merge` raises."""
    return reduce(merge, map(Bucket.unpack, records)).pack()


def unfold(
    buckets: Sequence[tuple[int, int, bytes, bytes | None]], center: float
) -> tuple[tuple[array[int], ...], array[int], array[float]] | None:
    """What buckets hold that folding their readings around `center` again brings back to the bit; None for others."""
    columns, times, values = tuple(array("q") for _ in range(5)), array("q"), array("d")
    for first, n, packed, singles in buckets:
        if singles is None or len(packed) != PACKED or not 0 < len(singles) == 16 * n:
            return None
        like = Bucket.unpack(packed)
        times.extend(struct.unpack(f"<{n}q", singles[: 8 * n]))
        values.extend(struct.unpack(f"<{n}d", singles[8 * n :]))
        for column, number in zip(columns, (first, n, like.gap, like.doubt, like.flags), strict=True):
            column.append(number)
        try:
            again = refold(center, tuple(column[-1:] for column in columns), times[-n:], values[-n:])
        except (ValueError, OverflowError):
            return None
        if again[0][2] != packed:
            return None
    return columns, times, values


def refold(
    center: float, columns: tuple[array[int], ...], times: array[int], values: array[float]
) -> list[tuple[int, int, bytes, bytes, float]]:
    """The buckets of which `unfold` told, each with `center` behind it.

    Raises ValueError, OverflowError where these are none.
    """
    found, at = list[tuple[int, int, bytes, bytes, float]](), 0
    for first, n, gap, doubt, flags in zip(*columns, strict=True):
        if not 0 < n <= len(times) - at:
            raise ValueError(f"a bucket of {n} readings, where {len(times) - at} are left")
        builder, part = Builder(center), slice(at, at + n)
        builder.next = first
        for place, (value, time) in enumerate(zip(values[part], times[part], strict=True)):
            builder.add(value, time, gap if place == 0 else 0)
        bucket = builder.close()._replace(flags=flags, doubt=doubt)
        singles = struct.pack(f"<{n}q", *times[part]) + struct.pack(f"<{n}d", *values[part])
        found.append((first, n, bucket.pack(), singles, center))
        at += n
    if at != len(times):
        raise ValueError(f"{len(times) - at} readings are of no bucket")
    return found


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


def _merged(sign: int, a: Extreme, b: Extreme) -> Extreme:
    """The greater one (sign 1) or the less (−1), b's readings being the later ones."""
    if a.value == b.value:
        return _joined(a, b)
    if sign * a.value > sign * b.value:
        return a._replace(suf=b.value) if sign * b.value > sign * a.suf else a
    return b._replace(pre=a.value) if sign * a.value > sign * b.pre else b


def _joined(a: Extreme, b: Extreme) -> Extreme:
    """Both places of one value, b's readings being the later ones."""
    t_first, t_last = min(a.t_first, b.t_first), max(a.t_last, b.t_last)
    often = -1 if a.often < 0 or b.often < 0 else a.often + b.often
    return Extreme(a.value, t_first, t_last, a.o_first, b.o_last, often, a.pre, b.suf)


class Builder:
    """Folds readings into the open bucket; the caller decides when it closes.

    A reading older than the bucket's newest clears ORDERED. A bucket opened by a reading older than an earlier bucket's
    newest is LATE. `bucket`: the open one, or None; `newest`: the greatest time seen, µs, or None.
    """

    __slots__ = ("bucket", "center", "newest", "next")

    def __init__(self, center: float, first: int = 0) -> None:
        """Start at ordinal `first`. Raises ValueError for a bad center (as a value) or a negative ordinal."""
        self.center = check_value(center)
        if not 0 <= first < 2**63:
            raise ValueError(f"first ordinal {first} is outside 0 … 2⁶³ − 1")
        self.next = first
        self.newest: int | None = None
        self.bucket: Bucket | None = None

    @property
    def n(self) -> int:
        """The open bucket's readings, 0 where there is none."""
        return self.bucket.n if self.bucket else 0

    @property
    def times(self) -> tuple[int, int]:
        """The open bucket's first and last time, µs; 0, 0 where there is none."""
        return (self.bucket.t_first, self.bucket.t_last) if self.bucket else (0, 0)

    def add(self, value: float, time: int, gap: int = 0, doubt: int = 0) -> None:
        """Fold one reading of `time` µs, before which `gap` were lost, in doubt (1) where it may be a repeat.

        Raises as Bucket.single, changing nothing.
        """
        late = LATE if self.bucket is None and self.newest is not None and time < self.newest else 0
        single = Bucket.single(value, time, self.center, self.next, gap, ORDERED | late, doubt)
        self.bucket = single if self.bucket is None else merge(self.bucket, single)
        self.newest = time if self.newest is None else max(self.newest, time)
        self.next += 1

    def add_run(
        self,
        values: array[float],
        times: array[int],
        begin: int,
        gap: int,
        doubt: int,
        readings: int,
        span: int,
    ) -> int:
        """`add` the readings from `begin` on until the bucket has `readings`, or the next one would not fit.

        One does not fit in an open bucket that is older than its newest, or `span` µs after its first or more. `gap`
        were lost before the first. Returns where it stopped: close the bucket there, unless that is the end.
        """
        if values.typecode != "d" or times.typecode != "q" or len(times) != len(values) or not 0 <= begin <= len(times):
            raise ValueError("expected as many times (q) as values (d), and a place among them")
        for place in range(begin, len(values)):
            first, last = self.times
            if self.n and (times[place] < last or times[place] - first >= span):
                return place
            self.add(values[place], times[place], gap if place == begin else 0, doubt)
            if self.n >= readings:
                return place + 1
        return len(values)

    def add_buckets(
        self,
        values: array[float],
        times: array[int],
        begin: int,
        gap: int,
        doubt: int,
        readings: int,
        span: int,
    ) -> tuple[int, list[tuple[int, int, int, bytes, bytes]]]:
        """Where none is open: the buckets that `add_run` would begin and fill among the readings from `begin` on.

        Returns where the rest begins, which fills none, and of each bucket first ordinal, readings, flags, packed bytes
        and packed readings: all times, then all values, little-endian.
        """
        if self.bucket is not None:
            raise ValueError("a bucket is open: close it before whole ones begin")
        found: list[tuple[int, int, int, bytes, bytes]] = []
        while True:
            before = Builder.restore(self.state())
            end = self.add_run(values, times, begin, gap, doubt, readings, span)
            if self.n < readings and end == len(values):  # it may go on: nothing of it was taken
                self.next, self.newest, self.bucket = before.next, before.newest, before.bucket
                return begin, found
            single = struct.pack(f"<{end - begin}q", *times[begin:end]) + struct.pack(
                f"<{end - begin}d", *values[begin:end]
            )
            found.append((*self.close_packed(), single))
            begin, gap = end, 0

    def close(self) -> Bucket:
        """The open bucket, which is open no more. Raises ValueError where there is none."""
        if self.bucket is None:
            raise ValueError("no bucket is open: add a reading before closing")
        closed, self.bucket = self.bucket, None
        return closed

    def close_packed(self) -> tuple[int, int, int, bytes]:
        """Like `close`, as first ordinal, readings, flags and packed bytes."""
        closed = self.close()
        return closed.first, closed.n, closed.flags, closed.pack()

    def state(self) -> bytes:
        """Everything `restore` needs, little-endian: 29 bytes, and 256 more while a bucket is open."""
        return BuilderState(self.center, self.next, self.newest, self.bucket).pack()

    @classmethod
    def restore(cls, state: bytes) -> Builder:
        """The builder that `state()` was taken of, now or with an older record. Raises ValueError for other bytes."""
        saved = BuilderState.unpack(state)
        builder = cls(saved.center, saved.following)
        builder.newest, builder.bucket = saved.newest, saved.bucket
        return builder
