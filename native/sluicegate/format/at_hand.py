"""Which buckets of a chunk can be stored as their single readings: those that folding the readings makes again."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence
from itertools import pairwise

from sluicegate.format.bucket import FIELDS, LATE, ORDERED, UNKNOWN, Bucket, Builder, unfold
from sluicegate.format.payload import Readings

_LOGARITHM = 2048.0  # no ln x − ln center is greater


def usable(
    buckets: Sequence[Bucket], readings: Sequence[Readings | None], center: float, pairs: Sequence[bytes | None] | None
) -> list[Readings | None]:
    """Of each bucket the single readings, if they are at hand and say all of it, and none or all of them are in doubt.

    `pairs`: what buckets carry of readings with two values, which single ones do not say.
    """
    if pairs is None and (found := _all_usable(buckets, readings, center)) is not None:
        return found
    carried = pairs or [None] * len(buckets)
    return [
        _usable(bucket, singles, center) if bucket.n == 1 or pair is None else None
        for bucket, singles, pair in zip(buckets, readings, carried, strict=True)
    ]


def _all_usable(
    buckets: Sequence[Bucket], readings: Sequence[Readings | None], center: float
) -> list[Readings | None] | None:
    """The same in one compiled pass, where all have single readings in the order of time that say them to the bit."""
    singles = [each for each in readings if each is not None]
    if len(singles) < len(buckets) or any(len(times) != len(values) for times, values in singles):
        return None
    if sys.byteorder == "big" or not all(b.flags & ORDERED and b.doubt in (0, b.n) for b in buckets):
        return None
    rows = [(b.first, b.n, b.pack(), b"".join(each)) for b, each in zip(buckets, singles, strict=True)]
    found = unfold(rows, center)
    return [*singles] if found is not None and all(a <= b for a, b in pairwise(found[1])) else None


def _usable(bucket: Bucket, readings: Readings | None, center: float) -> Readings | None:
    if bucket.n == 1:
        return array("q", [bucket.t_first]), array("d", [bucket.x_first])
    if readings is None or not len(readings[0]) == len(readings[1]) == bucket.n or bucket.doubt not in (0, bucket.n):
        return None
    again = folded(readings, center, bucket.first, bucket.gap, bucket.flags, bucket.doubt)
    return readings if _alike(again, bucket, center) else None


def folded(readings: Readings, center: float, first: int, gap: int, flags: int, doubt: int) -> Bucket:
    """The bucket of the readings, all or none of them in doubt, LATE where the flags say so."""
    (times, values), builder, each = readings, Builder(center, first), 1 if doubt else 0
    taken = builder.add_run(values, times, 0, gap, each, len(times), 1 << 62)
    for time, value in zip(times[taken:], values[taken:], strict=True):  # what is older than the one before
        builder.add(value, time, 0, each)
    closed = builder.close()
    return closed._replace(flags=closed.flags | flags & LATE)


def _alike(again: Bucket, bucket: Bucket, center: float) -> bool:
    """Equal in all that the bucket knows, but for sums that were added in another order."""
    if tuple.__eq__(again, bucket):
        return True
    reach = max(abs(again.low), abs(again.high), abs(center))
    step = 4.0 * again.n * again.n * sys.float_info.epsilon
    slack = dict.fromkeys(("total", "pre_low", "pre_high"), step * reach) | {"m2": 4.0 * step * reach * reach}
    slack |= dict.fromkeys(("log_total", "log_pre_low", "log_pre_high"), step * _LOGARITHM)
    for name, mine, its in zip(FIELDS, again, bucket, strict=True):
        known = name not in UNKNOWN or not (its != its or (its == -1 and name.endswith("_n")))
        if known and mine != its and not abs(mine - its) <= slack.get(name, 0.0):
            return False
    return True
