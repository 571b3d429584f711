"""What a window must say of how it came about, from the definition, in fractions: completeness, buckets, resolution.

Readings that are missing: of a bucket that says so, somewhere in its time; of documents that did not come, spread
evenly over the time between the document before and the one after. A window of a span says the mean of the span's.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import Any

Row = Mapping[str, Any]
#: What float64 may get wrong of a share.
_ROUNDED = Fraction(1, 10**9)


@dataclass(frozen=True)
class Missing:
    """So many readings, known to exist between two times in µs, both included.

    `among`: of how many readings the bucket is that says so; 0: not known; None: spread evenly over the time.
    """

    low: int
    high: int
    readings: int
    among: int | None = None

    def within(self, start: int, end: int) -> tuple[Fraction, Fraction]:
        """Least and greatest number of them in [start, end)."""
        if start <= self.low and self.high < end:
            return Fraction(self.readings), Fraction(self.readings)
        if self.high < start or end <= self.low:
            return Fraction(0), Fraction(0)
        if self.among is not None:
            return Fraction(0), Fraction(self.readings)
        share = Fraction(max(min(self.high, end) - max(self.low, start), 0), self.high - self.low)
        return share * self.readings, share * self.readings


class Arrived:
    """The buckets of a device's stream, or of all devices', by their first and last times, and what is missing."""

    def __init__(self, times: Sequence[tuple[int, int]], missing: Iterable[Missing]) -> None:
        begun, over = sorted(times), sorted((last, first) for first, last in times)
        self._first, self._last = [first for first, _ in begun], [last for last, _ in over]
        self._begun = [0, *accumulate(last - first for first, last in begun)]
        self._over = [0, *accumulate(last - first for last, first in over)]
        self._missing = sorted(missing, key=lambda one: one.low)
        self._low = [one.low for one in self._missing]
        self._reach = [*accumulate((one.high for one in self._missing), max)]

    def wrong(self, row: Row, width_us: int) -> Iterator[str]:
        """What `row` says wrongly of the windows of so many µs that it stands for."""
        start, end = row["window_start"], row["window_end"]
        for at in {start, end - width_us}:  # the first and the last window of a span
            yield from self._buckets(row, at, at + width_us)
        value, count = row["completeness"], Fraction(row["count"])
        low, high = self._within(row, width_us)
        if value is None or math.isnan(value):
            if count or low > 0:
                yield f"completeness: null, of {count} readings and {float(low)} missing ones"
        elif count + high == 0:
            yield f"completeness: {value!r}, and nothing is known of the window"
        else:
            least = count / (count + high) if count else 0
            greatest = count / (count + low) if count else 0
            if not least - _ROUNDED <= Fraction(value) <= greatest + _ROUNDED:
                yield f"completeness: {value!r} outside [{float(least)!r}, {float(greatest)!r}]"

    def _within(self, row: Row, width_us: int) -> tuple[Fraction, Fraction]:
        """Least and greatest number missing in one of the row's windows."""
        start, end = row["window_start"], row["window_end"]
        some = self._missing[bisect_left(self._reach, start) : bisect_left(self._low, end)]
        of_buckets = [one for one in some if one.among is not None]
        told = [one.within(start, start + width_us) for one in of_buckets]
        if row["buckets"] == len(told) == 1 and of_buckets[0].among and told[0][1]:  # as many as it has readings there
            each = Fraction(of_buckets[0].readings, of_buckets[0].among)
            told = [(each * row["count_low"], each * row["count_high"])]
        mean = Fraction(width_us, end - start)
        told += [(mean * of, mean * of) for one in some if one.among is None for of in one.within(start, end)[:1]]
        return sum((low for low, _ in told), Fraction(0)), sum((high for _, high in told), Fraction(0))

    def _buckets(self, row: Row, start: int, end: int) -> Iterator[str]:
        """Those that have a time in common with the window."""
        begun, over = bisect_left(self._first, end), bisect_left(self._last, start)
        if row["buckets"] != begun - over:
            yield f"buckets: {row['buckets']}, it is {begun - over}"
        elif begun > over:
            mean = Fraction(self._begun[begun] - self._over[over], begun - over)
            if abs(Fraction(row["resolution_us"]) - mean) > mean * _ROUNDED:
                yield f"resolution_us: {row['resolution_us']!r}, it is {float(mean)!r}"
