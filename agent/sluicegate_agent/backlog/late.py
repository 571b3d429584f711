"""What rows that are merged know of readings that came late: it stays beside the row, for its bucket cannot say it.

A row that has only what came late says so by its flags, its gap and its times. Merged with others it needs the extra
"late". Where a clock was set back nothing tells which readings came late: such a row takes nothing back.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from sluicegate.constants import LATE, ORDERED
from sluicegate.format.bucket import PACKED, Bucket
from sluicegate.format.gaps import LATE_NAME, NEVER, CameLate
from sluicegate_agent import carried
from sluicegate_agent.streams import Closed, unpack_readings


def came_late(items: Sequence[Closed]) -> tuple[CameLate | None, bool]:
    """What rows, neighbours in their order, say together, None: nothing; and whether what they take back counts.

    Raises sqlite3.DatabaseError for rows that are none.
    """
    try:
        buckets = [Bucket.unpack(item.bucket[:PACKED]) for item in items]
        told = [carried.parted(item.bucket)[1].get(LATE_NAME) for item in items]
        if not any(told) and not any(bucket.gap < 0 for bucket in buckets):
            return None, True
        found: CameLate | None = None
        for item, bucket, part in zip(items, buckets, told, strict=True):
            late = CameLate.unpack(part) if part else of_row(bucket, item.readings)
            if late is None:
                return None, False
            found = late if found is None else found.then(late)
    except ValueError as error:
        raise sqlite3.DatabaseError(f"a row of the table outbox is malformed: {error}") from error
    return found, True


def of_row(bucket: Bucket, readings: bytes | None) -> CameLate | None:
    """The same of a row that was never merged; None where nobody knows it.

    What came late comes first in it. What has not its own time has that at which it came, and takes nothing back.
    """
    if bucket.gap >= 0:
        return None if bucket.flags & LATE else CameLate(bucket.t_first, bucket.t_last)
    if not bucket.flags & LATE:
        return CameLate(NEVER, NEVER)
    if not bucket.flags & ORDERED:
        return None
    some = min(bucket.n, -bucket.gap)
    recent = bucket.t_last if some < bucket.n else NEVER
    if readings is None:
        return CameLate(min(recent, bucket.t_first), recent, ((some, bucket.t_first, bucket.t_last),))
    times, _ = unpack_readings(readings)
    found = CameLate(times[some] if some < bucket.n else NEVER, recent)
    for time in times[:some]:
        found = found.then(CameLate(NEVER, NEVER, ((1, time, time),)))
    return found
