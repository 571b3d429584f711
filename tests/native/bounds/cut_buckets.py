"""What buckets that a window's edges cut add to it, by time or by ordinal, by `error_algebra`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import add
from typing import Any

from error_algebra import NOTHING, Ends, Inside, Interval, Part, Range, part_of, subset

from sluicegate.format.bucket import ORDERED, Bucket

#: How the fields of two parts add to one window's: counts and sums add up, extremes are the extremes of both.
_POOLED: dict[str, Callable[[Any, Any], Any]] = dict.fromkeys(Part._fields, add) | {
    "low": min, "high": max, "min_high": min, "max_low": max, "magnitude": max,
}  # fmt: skip


def pool(a: Part, b: Part) -> Part:
    """What two parts add to one window."""
    return Part(*(how(x, y) for how, x, y in zip(_POOLED.values(), a, b, strict=True)))


def whole(bucket: Bucket, center: float) -> Part:
    """A bucket that lies wholly inside."""
    n, s, low, high = bucket.n, bucket.total, bucket.low, bucket.high
    raw = s + n * center
    magnitude = max(abs(low), abs(high))
    return Part(n, n, n, s, s, s, raw, raw, n, s, n, s, low, high, low, high, n, magnitude)


def run(bucket: Bucket, center: float, start: Range, end: Range, share: float | None = None) -> Part:
    """A contiguous run of the bucket's readings, from an ordinal in `start` up to before one in `end` (both inclusive).

    Edges lie in first … first + n; the run's end is not before its start. `share` of the readings is the best guess;
    without one it is the middle.
    """
    counts = max(0, end[0] - start[1]), end[1] - start[0]
    if counts[1] <= 0:
        return NOTHING
    if counts[0] == bucket.n:
        return whole(bucket, center)
    heads, tails = _prefix_sums(bucket, *start), _prefix_sums(bucket, *end)
    sums = tails[0] - heads[1], tails[1] - heads[0]
    known = _known_ends(bucket, start[1], end[0], start[0], end[1])
    low = any(start[1] <= ordinal < end[0] for ordinal in (bucket.low_o_first, bucket.low_o_last))
    high = any(start[1] <= ordinal < end[0] for ordinal in (bucket.high_o_first, bucket.high_o_last))
    return part_of(bucket, center, counts, sums, known, (low, high), share)


def _prefix_sums(bucket: Bucket, low: int, high: int) -> tuple[float, float]:
    """The least and greatest sum of what precedes an ordinal in low … high."""
    sums = []
    if low == bucket.first:
        sums.append((0.0, 0.0))
    if high == bucket.first + bucket.n:
        sums.append((bucket.total, bucket.total))
    if max(low, bucket.first + 1) <= min(high, bucket.first + bucket.n - 1):
        sums.append((bucket.pre_low, bucket.pre_high))
    return min(s[0] for s in sums), max(s[1] for s in sums)


def _known_ends(b: Bucket, start_high: int, end_low: int, start_low: int, end_high: int) -> Ends:
    """The values of the first and last reading where they are certainly inside, and where they certainly are not."""
    ends = {b.first: b.x_first, b.first + b.n - 1: b.x_last}
    inside = [x for ordinal, x in ends.items() if start_high <= ordinal < end_low]
    return inside, [x for ordinal, x in ends.items() if ordinal < start_low or ordinal >= end_high]


def cut_by_ordinal(bucket: Bucket, center: float, begin: int, end: int) -> Part:
    """The readings of ordinals begin … end − 1; exact to the count, for ordered and unordered buckets."""
    first, after = bucket.first, bucket.first + bucket.n
    begin, end = min(max(begin, first), after), min(max(end, first), after)
    return run(bucket, center, (begin, begin), (max(begin, end),) * 2)


def suffix(bucket: Bucket, center: float, count: int) -> Part:
    """The bucket's newest `count` readings."""
    return cut_by_ordinal(bucket, center, bucket.first + bucket.n - count, bucket.first + bucket.n)


def prefix(bucket: Bucket, center: float, count: int) -> Part:
    """The bucket's oldest `count` readings."""
    return cut_by_ordinal(bucket, center, bucket.first, bucket.first + count)


def cut_by_time(bucket: Bucket, center: float, begin: int | None, end: int | None) -> Part:
    """The readings with begin ≤ time < end (None: no edge there); a subset where the bucket is not ordered."""
    cut_low, cut_high = begin is not None and bucket.t_first < begin, end is not None and bucket.t_last >= end
    if (begin is not None and bucket.t_last < begin) or (end is not None and bucket.t_first >= end):
        return NOTHING
    if not (cut_low or cut_high):
        return whole(bucket, center)
    if not bucket.flags & ORDERED:
        return _subset(bucket, center, begin, end)
    start, after = _edge(bucket, begin, cut_low, 0), _edge(bucket, end, cut_high, bucket.n)
    return run(bucket, center, start, after, _share(bucket, begin, end))


def _edge(bucket: Bucket, time: int | None, cuts: bool, uncut: int) -> Range:
    """Between which ordinals the first reading with t ≥ time lies, narrowed by the extremes' places."""
    first, last = bucket.first, bucket.first + bucket.n - 1
    if time is None or not cuts:
        return first + uncut, first + uncut
    low, high = first + 1, last
    for t, ordinal in _places(bucket):
        low, high = (max(low, ordinal + 1), high) if t < time else (low, min(high, ordinal))
    return low, high


def _places(bucket: Bucket) -> Iterator[tuple[int, int]]:
    yield bucket.low_t_first, bucket.low_o_first
    yield bucket.low_t_last, bucket.low_o_last
    yield bucket.high_t_first, bucket.high_o_first
    yield bucket.high_t_last, bucket.high_o_last


def _subset(bucket: Bucket, center: float, begin: int | None, end: int | None) -> Part:
    """Of an unordered bucket: any subset, but for its earliest and latest reading and its extremes' own times."""
    in_low, in_high = (_within(t, begin, end) for t in (bucket.t_first, bucket.t_last))
    out = (not in_low) + (not in_high)
    counts = int(in_low or in_high), bucket.n - out
    if counts[1] <= 0:
        return NOTHING
    low = any(_within(t, begin, end) for t in (bucket.low_t_first, bucket.low_t_last))
    high = any(_within(t, begin, end) for t in (bucket.high_t_first, bucket.high_t_last))
    counts = max(counts[0], low + high if bucket.low < bucket.high else int(low or high)), counts[1]
    return subset(bucket, center, counts, _share(bucket, begin, end), (low, high))


def _within(time: int, begin: int | None, end: int | None) -> bool:
    return (begin is None or time >= begin) and (end is None or time < end)


def _share(bucket: Bucket, begin: int | None, end: int | None) -> float:
    """The share of a bucket's time that [begin, end) covers."""
    low = bucket.t_first if begin is None else max(begin, bucket.t_first)
    high = bucket.t_last if end is None else min(end, bucket.t_last)
    return (high - low) / max(1, bucket.t_last - bucket.t_first)


def count_interval(inside: Inside, part: Part = NOTHING) -> Interval:
    """How many readings the window holds."""
    low, high = inside.n + part.count_low, inside.n + part.count_high
    return Interval(min(max(round(inside.n + part.count_mid), low), high), low, high, low == high, low == 0)
