"""What a document says of losses and of what came late does not depend on how its buckets were merged."""

from __future__ import annotations

from sluicegate.format.bucket import Bucket, Builder, merge
from sluicegate.format.chunk import Chunk, columns, encode
from sluicegate.format.gaps import NEVER, WIDTH
from sluicegate.format.late import LATE_MOST, LATE_NAME, CameLate

SECOND = 1_000_000


def closed(*times: int) -> list[Bucket]:
    """A bucket of each time."""
    builder, found = Builder(1.0), []
    for time in times:
        builder.add(1.0, time * SECOND)
        found.append(builder.close())
    return found


def gaps_of(buckets: list[Bucket], late: list[bytes | None] | None = None) -> list[tuple[int, ...]]:
    """Rows of `gaps` of their document."""
    chunk = Chunk("d", "s", "1" * 16, 1.0, buckets, [None] * len(buckets), extras={LATE_NAME: late} if late else {})
    told = columns(encode(chunk))["gaps"]
    return [tuple(told[at : at + WIDTH]) for at in range(0, len(told), WIDTH)]


def test_a_document_that_begins_with_a_merged_late_bucket_does_not_say_that_the_clock_was_set_back() -> None:
    """Of a source without numbers: else what is missing before the document would count in every window."""
    first, second, third, fourth = closed(10, 5, 20, 30)
    [(_, _, recent, _, began_back, _)] = gaps_of([merge(first, second), third, fourth])
    assert (recent, began_back) == (30 * SECOND, 0)


def test_where_times_go_back_in_a_bucket_what_is_lost_after_it_may_be_as_old_as_its_oldest() -> None:
    """A number below all others came in it, and the next message tells of those that were passed over in between."""
    builder = Builder(1.0)
    for time in (20, 10):
        builder.add(1.0, time * SECOND)
    both = builder.close()
    builder.add(1.0, 30 * SECOND, 5)
    [_, lost] = gaps_of([both, builder.close()])
    assert lost == (2, 5, 10 * SECOND, 30 * SECOND, 30 * SECOND, NEVER)


def test_a_merged_bucket_says_by_its_extra_what_came_late() -> None:
    """And not by its gap: a loss in it is after the last reading that did not come late."""
    first, second, third, fourth = closed(10, 5, 20, 30)
    merged = merge(merge(second, third), fourth)._replace(gap=2)
    late = CameLate(20 * SECOND, 30 * SECOND, ((1, 5 * SECOND, 5 * SECOND),)).pack()
    [_, lost, came] = gaps_of([first, merged], [None, late])
    assert lost == (1, 2, 10 * SECOND, 20 * SECOND, 30 * SECOND, NEVER)
    assert came == (1, -1, NEVER, 5 * SECOND, 5 * SECOND, 0)


def test_what_came_late_and_is_no_reading_of_the_stream_has_no_time() -> None:
    """A bucket of one reading takes back three: that one has its own time, and nobody knows those of the others."""
    first, second, third = closed(10, 5, 20)
    [_, one, others] = gaps_of([first, second._replace(gap=-3), third])
    assert one == (1, -1, NEVER, 5 * SECOND, 5 * SECOND, 0)
    assert others == (1, -2, NEVER, NEVER, NEVER, NEVER)


def test_what_is_lost_after_a_late_bucket_is_after_the_newest_reading_before_it() -> None:
    """All of the bucket came late: it does not say how far the times had come."""
    first, second, third = closed(10, 5, 30)
    [_, _, lost] = gaps_of([first, second._replace(gap=-1), third._replace(gap=4)])
    assert lost == (2, 4, 10 * SECOND, 30 * SECOND, 30 * SECOND, NEVER)


def test_what_a_document_misses_in_all_is_what_its_rows_say() -> None:
    """Where buckets were merged their gaps are not: the losses stay, and what was taken back is beside them."""
    first, second, third, fourth = closed(10, 5, 20, 30)
    merged = merge(merge(second, third), fourth)._replace(gap=2)
    late = CameLate(20 * SECOND, 30 * SECOND, ((1, 5 * SECOND, 5 * SECOND),)).pack()
    for parts, missing in ([None, late], 1), ([None, None], 2):
        extras = {LATE_NAME: parts} if any(parts) else {}
        document = encode(Chunk("d", "s", "1" * 16, 1.0, [first, merged], [None, None], extras=extras))
        assert columns(document)["totals"]["gap"] == missing


def test_what_came_late_is_counted_whole_where_there_is_much() -> None:
    """Of more stretches than there is room for, those nearest in time are one."""
    found = CameLate(NEVER, NEVER)
    for at in range(3 * LATE_MOST):
        found = found.then(CameLate(NEVER, NEVER, ((1, at * at, at * at),)))
    assert sum(count for count, _, _ in found.rows) == 3 * LATE_MOST
    assert len(found.rows) == LATE_MOST
    assert CameLate.unpack(found.pack()) == found
