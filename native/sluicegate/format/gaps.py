"""Between which readings the ones were taken that a chunk says are missing, and when those that came late after all."""

from __future__ import annotations

from array import array
from bisect import bisect_right, insort
from collections.abc import Iterator
from itertools import islice

from sluicegate.constants import LATE, ORDERED
from sluicegate.format.payload import AS_READINGS, Body

#: No such time.
NEVER = -(1 << 63)
#: Numbers of a row of `gaps`: ordinal, gap, since, first, last, until.
WIDTH = 6


def gaps(content: Body) -> array[int]:
    """Rows of WIDTH numbers, by ordinal, of all that buckets say is missing (gap > 0), or came late (gap < 0).

    First a row of gap 0 where times go back in or before any bucket, so that the first one need not be the oldest.

    What is missing before the last reading of a bucket: `first` and `last` are its times, `since` the last time of any
    bucket before it that is not newer. Where there is none, and it is LATE, `until` is the oldest time before it. What
    came late: it has a time between `first` and `last`; a reading alone where the document says which.
    """
    out = array("q")
    if any(kind & LATE or not kind & ORDERED for kind in {*content.kinds}):
        out.extend((content.first, 0, NEVER, NEVER, NEVER, NEVER))
    if not any(content.gap):
        return out
    ends, at, oldest = list[int](), 0, None
    for kind, gap, (ordinal, n, first, last) in zip(content.kinds, content.gap, content.placed(), strict=True):
        single = content.times[at : at + n] if kind & AS_READINGS else None
        at += n if single is not None else 0
        if gap > 0:
            before = bisect_right(ends, first)
            since = ends[before - 1] if before else NEVER
            until = oldest if kind & LATE and not before and oldest is not None else NEVER
            out.extend((ordinal, gap, since, first, last, until))
        elif gap < 0:
            for row in _late(kind, gap, (ordinal, n, first, last), single):
                out.extend(row)
        insort(ends, last)
        oldest = first if oldest is None else min(oldest, first)
    return out


def _late(
    kind: int, gap: int, bucket: tuple[int, int, int, int], single: array[int] | None
) -> Iterator[tuple[int, int, int, int, int, int]]:
    """In a bucket that is ordered those that come late come first: it closes when time goes back."""
    ordinal, n, first, last = bucket
    some = min(n, -gap)
    if single is not None and kind & ORDERED:
        for place, time in enumerate(islice(single, some)):
            yield ordinal + place, -1, NEVER, time, time, NEVER
    else:
        yield ordinal, -some, NEVER, first, first if some == 1 and kind & ORDERED else last, NEVER
    if gap + some:  # of messages that the stream has no reading of
        yield ordinal, gap + some, NEVER, NEVER, NEVER, NEVER
