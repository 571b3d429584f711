"""The extra "late": which readings of a bucket came late, in a document as what they are apart from their bucket."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sluicegate.format.packing import pack_ints
from sluicegate.format.unpacking import PackingError, Reader, unpack_ints

#: No such time.
NEVER = -(1 << 63)
LATE_NAME = "late"
#: Rows of CameLate at most: of more, those nearest in time are one.
LATE_MOST = 16


class CameLate(NamedTuple):
    """What a bucket says of its readings that came late, times in µs.

    `begin`, `recent`: of the first and the last of its readings that did not, NEVER: there is none. `rows`: how many
    came late and take back what was told as lost, between which two times, both included.
    """

    begin: int
    recent: int
    rows: tuple[tuple[int, int, int], ...] = ()

    def pack(self) -> bytes:
        """As a part of the extra "late"."""
        return struct.pack(
            f"<{2 + 3 * len(self.rows)}q", self.begin, self.recent, *[x for row in self.rows for x in row]
        )

    @classmethod
    def unpack(cls, part: bytes) -> CameLate:
        """What `pack` packed. Raises ValueError."""
        if len(part) % 24 != 16 or len(part) > 16 + 24 * LATE_MOST:
            raise ValueError(f"late: {len(part)} bytes are no times of what came late")
        begin, recent, *rest = struct.unpack(f"<{len(part) // 8}q", part)
        rows = tuple(zip(rest[::3], rest[1::3], rest[2::3], strict=True))
        if any(not (0 < count < 1 << 48 and first <= last) for count, first, last in rows):
            raise ValueError("late: it contradicts itself")
        return cls(begin, recent, rows)

    def then(self, later: CameLate) -> CameLate:
        """Of both, the second one's readings being later: no row lies on both sides of `begin` while another can."""
        begin = later.begin if self.begin == NEVER else self.begin
        rows = sorted(self.rows + later.rows, key=lambda row: row[1:])
        while len(rows) > LATE_MOST:
            at = min(range(len(rows) - 1), key=lambda i: _apart(rows[i], rows[i + 1], begin))
            (count, first, last), (more, _, until) = rows[at : at + 2]
            rows[at : at + 2] = [(count + more, first, max(last, until))]
        return CameLate(begin, self.recent if later.recent == NEVER else later.recent, tuple(rows))


def _apart(a: tuple[int, int, int], b: tuple[int, int, int], begin: int) -> tuple[bool, int]:
    return a[1] < begin <= b[2], max(a[2], b[2]) - a[1]


def pack_columns(parts: Sequence[bytes | None], placed: Sequence[tuple[int, int, int]]) -> bytes:
    """Of each bucket (its readings, first and last time) its part: format.md, "Extras"."""
    heads, begins, recents, counts, steps, lengths = columns = [array("q") for _ in range(6)]
    for part, (_, first, last) in zip(parts, placed, strict=True):
        late = None if part is None else CameLate.unpack(part)
        if late is None:
            heads.append(0)
            continue
        heads.append(1 + (len(late.rows) << 2 | (late.begin != NEVER) << 1 | (late.recent != NEVER)))
        begins.extend([late.begin - first] if late.begin != NEVER else [])
        recents.extend([last - late.recent] if late.recent != NEVER else [])
        before = first
        for count, since, until in late.rows:
            counts.append(count)
            steps.append(since - before)
            lengths.append(until - since)
            before = since
    return b"".join(pack_ints(column) for column in columns if column)


def unpack_columns(reader: Reader, placed: Sequence[tuple[int, int, int]]) -> list[bytes | None]:
    """What `pack_columns` packed. Raises ValueError, PackingError is one, for anything else."""
    heads = unpack_ints(reader, len(placed))
    if min(heads) < 0 or max(heads) > 4 * LATE_MOST + 4:
        raise PackingError("late: of another length than there is room for")
    said = [head - 1 for head in heads if head]
    rows = sum(each >> 2 for each in said)
    sizes = (sum(each >> 1 & 1 for each in said), sum(each & 1 for each in said), rows, rows, rows)
    begins, recents, counts, steps, lengths = (iter(unpack_ints(reader, size) if size else ()) for size in sizes)
    parts: list[bytes | None] = []
    for head, (_, first, last) in zip(heads, placed, strict=True):
        if not head:
            parts.append(None)
            continue
        begin = first + next(begins) if head - 1 & 2 else NEVER
        recent = last - next(recents) if head - 1 & 1 else NEVER
        taken = tuple(_rows(head - 1 >> 2, first, counts, steps, lengths))
        try:
            parts.append(CameLate(begin, recent, taken).pack())
        except struct.error as error:
            raise PackingError(f"late: a time that no int64 holds: {error}") from error
    return parts


def _rows(
    many: int, before: int, counts: Iterator[int], steps: Iterator[int], lengths: Iterator[int]
) -> Iterator[tuple[int, int, int]]:
    for _ in range(many):
        before += next(steps)
        yield next(counts), before, before + next(lengths)
