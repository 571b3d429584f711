"""Keeps which readings of a merged outbox row came late, beside the row: the bucket itself cannot say it.

A row that has only what came late says so by its flags, its gap and its times. Merged with others it needs the extra
"late". Where a clock was set back nothing tells which readings came late: such a row takes nothing back.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

from sluicegate.format.bucket import PACKED, Bucket
from sluicegate.format.late import LATE_NAME, CameLate
from sluicegate_agent import carried
from sluicegate_agent.identity.returned import of_row
from sluicegate_agent.streams import Closed

#: Of a packed bucket the byte with the sign of its gap, which is less than 0 where readings came late.
_SIGN = 8 * Bucket._fields.index("gap") + 7


def may_say_more(items: Iterable[Closed]) -> bool:
    """Whether any of these rows carries something, or takes back what was told: most do not."""
    said = 0
    for item in items:  # `any` takes twice as long
        said |= item.bucket[_SIGN] & 0x80 | (len(item.bucket) > PACKED)
    return bool(said)


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
