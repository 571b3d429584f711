"""By definition: how great what is left of a cut bucket may be, how often an extreme occurs, how far two are apart.

A bucket keeps its extreme with its first and last place (by ordinal), how often it occurs, and the extremes before its
first and after its last occurrence: the least that decides most cuts. `sign` 1: maxima, −1: minima. All is exact, but
for the rounding of a difference, which is taken outward.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from error_algebra import Interval, Range

from sluicegate.bounds.intervals import difference


class Peak(NamedTuple):
    """A bucket's extreme: value, places, how often (0: not known), what precedes and follows it, the last reading."""

    value: float
    o_first: int
    o_last: int
    times: int
    before: float  # the extreme of what precedes the first occurrence; ∓inf where nothing does
    after: float
    last: float


class Known(NamedTuple):
    """An extreme of buckets wholly inside, and how often it occurs."""

    value: float
    times: int


def extreme_of_run(peak: Peak, start: Range, end: Range) -> float:
    """What no reading of a run exceeds: the run starts at an ordinal in `start` and ends before one in `end`."""
    if peak.o_last < start[0]:
        return peak.after
    return peak.before if peak.o_first >= end[1] else peak.value


def occurrences(inside: Known | None, peak: Peak, start: Range, end: int, sign: int) -> Range:
    """How often the extreme of a window occurs: of `inside` and the bucket's readings start … end − 1, at least one."""
    found = []
    if peak.o_last >= start[0]:
        found.append(_joined(inside, peak.value, _kept(peak, start), sign))
    if peak.o_last < start[1]:
        found.append(_without(inside, peak, end - max(start[0], peak.o_last + 1), sign))
    return min(low for low, _ in found), max(high for _, high in found)


def _kept(peak: Peak, start: Range) -> Range:
    """How many occurrences are inside where the last one is."""
    low = max(1, peak.times - max(0, min(start[1], peak.o_last) - peak.o_first))
    high = peak.times if start[0] <= peak.o_first else min(peak.times - 1, peak.o_last - start[0] + 1)
    return low, high


def _joined(inside: Known | None, value: float, times: Range, sign: int) -> Range:
    """The extreme of both, where the cut bucket's part has its own so often."""
    if inside is None or sign * value > sign * inside.value:
        return times
    if value < inside.value or value > inside.value:
        return inside.times, inside.times
    return inside.times + times[0], inside.times + times[1]


def _without(inside: Known | None, peak: Peak, most: int, sign: int) -> Range:
    """The same where every occurrence is outside: at most `most` readings follow, the last one is known."""
    if most == 1:
        return _joined(inside, peak.last, (1, 1), sign)
    if inside is None or sign * peak.last > sign * inside.value:
        return 1, most
    if sign * peak.after < sign * inside.value:
        return inside.times, inside.times
    if peak.after == inside.value:
        return inside.times + (peak.last == inside.value), inside.times + most
    return 1, inside.times + most


def range_interval(least: Interval, greatest: Interval) -> Interval:
    """The greatest less the least value."""
    maybe_empty = least.maybe_empty or greatest.maybe_empty
    if math.isnan(least.low):
        return Interval(math.nan, math.nan, math.nan, True, maybe_empty)
    low = max(0.0, difference(greatest.low, least.high)[0])
    high = difference(greatest.high, least.low)[1]
    value = min(max(greatest.value - least.value, low), high)
    return Interval(value, low, high, least.exact and greatest.exact, maybe_empty)
