"""How many readings of a stream came late, and how late, by day: between two numbers, as buckets tell it.

A reading is late if an earlier one of its incarnation that came is newer, or its device says so. A bucket says between
which times its readings lie, and whether these go back inside. Documents are read some at a time. Needs no Spark.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sluicegate.constants import LATE, ORDERED
from sluicegate_cloud.documents import fields_of
from sluicegate_cloud.grid import Ints
from sluicegate_cloud.lines.placing import OWNED_BY
from sluicegate_cloud.schema import BUCKET_FIELDS, RETIRED
from sluicegate_cloud.table import aside as asides
from sluicegate_cloud.table.settled.rows import Settled, load
from sluicegate_cloud.table.units import Kept, Ledger, packed_in_runs
from sluicegate_cloud.table.versions import DAY_US, Store, Version

#: `day`: days since 1970 UTC in which buckets begin; `readings`: of these; of them `late_low` to `late_high` came late;
#: `late_by_low_us`: how late the latest one came at least, and at most (null: the newer one did not come).
LATE_ROWS = pa.schema(
    [("device", pa.string()), ("stream", pa.string())]
    + [(name, pa.int64()) for name in ("day", "readings", "late_low", "late_high", "late_by_low_us", "late_by_high_us")]
)
_N, _FIRST, _LAST, _FLAGS = ([*BUCKET_FIELDS].index(name) for name in ("n", "t_first", "t_last", "flags"))
#: Before all times, and of what is late by nobody knows how much.
_NEVER, _UNKNOWN = -(1 << 62), 1 << 62


class _Late(NamedTuple):
    """Of some buckets: their days, readings, how many of these were late, and by how much."""

    day: Ints
    readings: Ints
    low: Ints
    high: Ints
    by_low: Ints
    by_high: Ints


def late(store: Store, version: Version) -> Iterator[pa.Table]:
    """A row for each stream of a device and day on which some may have come late; a table a shard."""
    for name in version.shards.values():
        yield part(store, name)


def part(store: Store, name: str) -> pa.Table:
    """The rows of the shard of this index."""
    index, rows = store.read_json(name), dict[tuple[str, str, int], list[int]]()
    if not index["ledger"]:
        return LATE_ROWS.empty_table()
    ledger = Ledger(asides.without(Settled(store).whole(load(store, index["ledger"])), asides.of_index(index)))
    for device, stream, found in _by_document(Kept(store, index["documents"], {}), ledger):
        for day in np.unique(found.day).tolist():
            mine, told = found.day == day, rows.setdefault((device, stream, day), [0] * 5)
            sums = (found.readings, found.low, found.high)
            told[:3] = [before + int(of[mine].sum()) for before, of in zip(told, sums, strict=False)]
            told[3:] = [max(before, int(of[mine].max())) for before, of in zip(told[3:], found[4:], strict=True)]
    some = [(*of, *told[:4], None if told[4] == _UNKNOWN else told[4]) for of, told in sorted(rows.items()) if told[2]]
    return pa.Table.from_pylist([dict(zip(LATE_ROWS.names, row, strict=True)) for row in some], LATE_ROWS)


def _by_document(kept: Kept, ledger: Ledger) -> Iterator[tuple[str, str, _Late]]:
    """Device, stream, and what is late of each document in use: the ledger is in the order of each line's ordinals."""
    lines, newest = ledger.table.select(OWNED_BY), dict[tuple[str, ...], int]()

    def line(row: int) -> tuple[str, ...]:
        return tuple(lines.slice(row, 1).to_pylist()[0].values())

    for row in np.flatnonzero(np.asarray(pc.equal(ledger.table["fate"], RETIRED).combine_chunks())).tolist():
        newest[line(row)] = max(newest.get(line(row), _NEVER), int(ledger.of["t_last"][row]))  # a line's beginning
    for some in packed_in_runs(kept, ledger, np.flatnonzero(ledger.used)):
        for row, packed in sorted(some.items()):
            of = line(row)
            told = fields_of(packed, int(ledger.of["buckets"][row]))[[_N, _FIRST, _LAST, _FLAGS]]
            before = newest.get(of, _NEVER)
            yield of[0], of[1], _late(told, before)
            newest[of] = max(before, int(told[2].max()))


def _late(buckets: Ints, before: int) -> _Late:
    """What is late of buckets (n, first and last time, flags), where a reading at `before` was the newest."""
    n, first, last, flags = buckets
    newest = np.maximum.accumulate(np.concatenate(([before], last)))[:-1]
    ordered, told = (flags & ORDERED) > 0, (flags & LATE) > 0
    all_late, some = last < newest, first < newest
    low = np.where(all_late, n, (some | told).astype(np.int64))  # the reading at `first` came when `newest` was there
    high = np.where(all_late | told & ~some, n, np.where(some | ~ordered, n - 1, 0))  # that at `last` was not late
    by_low = np.where(some, newest - first, 0)
    by_high = np.where(ordered, by_low, np.maximum(newest, last) - first)  # inside of it times go back
    return _Late(first // DAY_US, n, low, high, by_low, np.where(told & ~some, _UNKNOWN, by_high))
