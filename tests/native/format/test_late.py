"""The extra "late" comes back from a document as it was, in few bytes, and no other bytes are taken for it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.format.late import LATE_MOST, NEVER, CameLate, pack_columns, unpack_columns
from sluicegate.format.unpacking import Reader

HOUR = 3_600_000_000
TIMES = st.integers(-(1 << 61), 1 << 61)
ROWS = st.tuples(st.integers(1, 1 << 40), TIMES, TIMES).map(lambda row: (row[0], min(row[1:]), max(row[1:])))
LATE = st.builds(
    CameLate, TIMES | st.just(NEVER), TIMES | st.just(NEVER), st.lists(ROWS, max_size=LATE_MOST).map(tuple)
).map(CameLate.pack)
BUCKETS = st.lists(st.tuples(st.none() | LATE, st.tuples(st.just(1), TIMES, TIMES)), min_size=1, max_size=5)


@given(BUCKETS)
def test_what_a_document_says_comes_back(buckets: list[tuple[bytes | None, tuple[int, int, int]]]) -> None:
    """Whatever the times are, before and after the bucket's, and where there are none."""
    parts, placed = [part for part, _ in buckets], [where for _, where in buckets]
    reader = Reader(pack_columns(parts, placed))
    assert unpack_columns(reader, placed) == parts
    reader.finish()


@given(st.binary(max_size=80), st.lists(st.tuples(st.just(1), TIMES, TIMES), min_size=1, max_size=3))
def test_other_bytes_are_refused_or_are_times(data: bytes, placed: list[tuple[int, int, int]]) -> None:
    """Nothing but a ValueError, and of what is taken no more than there is room for."""
    try:
        parts = unpack_columns(Reader(data), placed)
    except ValueError:
        return
    assert [len(part) <= 16 + 24 * LATE_MOST for part in parts if part is not None] == [True] * sum(
        part is not None for part in parts
    )


def test_a_time_that_no_int64_holds_is_refused() -> None:
    """The bucket's time and what it is apart from it are more together."""
    packed = pack_columns([CameLate(1 << 60, NEVER).pack()], [(1, -(1 << 61), 0)])
    assert unpack_columns(Reader(packed), [(1, -(1 << 61), 0)]) == [CameLate(1 << 60, NEVER).pack()]
    with pytest.raises(ValueError, match="no int64 holds"):
        unpack_columns(Reader(packed), [(1, (1 << 63) - 1, 0)])


def test_hours_take_a_byte_or_two() -> None:
    """Of 100 buckets of six hours each, of which a reading came late: as slots of 8 bytes they would take 5,600."""
    placed = [(6, at * 6 * HOUR, (at * 6 + 5) * HOUR) for at in range(100)]
    parts: list[bytes | None] = [
        CameLate(first + HOUR, last, ((1, first + at % 5 * HOUR, first + at % 5 * HOUR),)).pack()
        for at, (_, first, last) in enumerate(placed)
    ]
    assert len(pack_columns(parts, placed)) < 250
