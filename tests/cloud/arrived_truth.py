"""What a window must say of how it came about, from the definition, in fractions: completeness, buckets, resolution.

Readings that are missing may all be in any window that has a part of the time in which they were: of a bucket that
says so, up to its last time; of documents that did not come, from the document before to the one after. How complete
a window is at least follows from them, and from the readings that are in it for certain.
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
    """So many readings, known to exist between two times in µs, both included; not `sure`: at some time or other."""

    low: int
    high: int
    readings: int
    sure: bool = True

    def within(self, start: int, end: int) -> tuple[int, int]:
        """Of how many a window [start, end) must say that they may be in it, and of how many it may."""
        told = self.sure and start <= self.high and self.low < end
        return self.readings if told else 0, self.readings


class Arrived:
    """The buckets of a device's stream, or of all devices', by their first and last times, and what is missing."""

    def __init__(self, times: Sequence[tuple[int, int]], missing: Iterable[Missing]) -> None:
        begun, over = sorted(times), sorted((last, first) for first, last in times)
        self._first, self._last = [first for first, _ in begun], [last for last, _ in over]
        self._begun = [0, *accumulate(last - first for first, last in begun)]
        self._over = [0, *accumulate(last - first for last, first in over)]
        self._missing = [*missing]

    def wrong(self, row: Row, width_us: int) -> Iterator[str]:
        """What `row` says wrongly of the windows of so many µs that it stands for."""
        start, end = row["window_start"], row["window_end"]
        for at in {start, end - width_us}:  # the first and the last window of a span
            yield from self._buckets(row, at, at + width_us)
        value, count, certain = row["completeness"], row["count"], row["count_low"]
        told = [one.within(start, end) for one in self._missing]
        low, high = (sum(each[i] for each in told) for i in (0, 1))
        if value is None or math.isnan(value):
            if count or low > 0:
                yield f"completeness: null, of {count} readings and {low} missing ones"
        elif count + high == 0:
            yield f"completeness: {value!r}, and nothing is known of the window"
        elif not _share(certain, high) - _ROUNDED <= Fraction(value) <= _share(certain, low) + _ROUNDED:
            yield f"completeness: {value!r} of {certain} readings and {low} … {high} missing ones"

    def _buckets(self, row: Row, start: int, end: int) -> Iterator[str]:
        """Those that have a time in common with the window."""
        begun, over = bisect_left(self._first, end), bisect_left(self._last, start)
        if row["buckets"] != begun - over:
            yield f"buckets: {row['buckets']}, it is {begun - over}"
        elif begun > over:
            mean = Fraction(self._begun[begun] - self._over[over], begun - over)
            if abs(Fraction(row["resolution_us"]) - mean) > mean * _ROUNDED:
                yield f"resolution_us: {row['resolution_us']!r}, it is {float(mean)!r}"


def _share(certain: int, missing: int) -> Fraction:
    return Fraction(certain, certain + missing) if missing else Fraction(1)
