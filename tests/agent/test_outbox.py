"""The outbox keeps its budget by losing detail, never a reading, and never touches what may have been sent."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from math import fsum

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from hypothesis import given
from hypothesis import strategies as st
from memory_stores import empty

from sluicegate.format.bucket import Bucket
from sluicegate_agent.backlog.rows import ROW_COST, unpacked
from sluicegate_agent.carried import unpack_readings
from sluicegate_agent.identity import tally
from sluicegate_agent.outbox import REJECTED_KEPT, Outbox, Sealed
from sluicegate_agent.streams import Closed, Stream


@pytest.fixture
def store() -> Iterator[sqlite3.Connection]:
    """An empty store in memory."""
    connection = empty()
    yield connection
    connection.close()


def closed(count: int, size: int = 4, seed: int = 1, late: int = 0) -> list[Closed]:
    """Buckets of `size` readings (or of 1 to −size at random) whose values are eighths, so that sums are exact.

    Where `late` is 2 or more, of so many buckets one came late, and takes back what the one before told of.
    """
    rng, lost = random.Random(seed), 0
    stream = Stream(1, "s", 1 << 30, 1 << 60)
    for at in range(count):
        is_late = late and at % late == late - 1
        lost += bool(late) and at % late == late - 2
        for _ in range(size if size > 0 else rng.randint(1, -size)):
            said = tally.late(lost, lost, at) if is_late else lost
            stream.add(rng.randrange(-800, 800) / 8, (stream.accepted - 50 * is_late) * 10, said)
        stream.close()
    return stream.closed


def rows(store: sqlite3.Connection, stream: int = 1) -> list[tuple[Bucket, bytes | None]]:
    """A stream's rows, oldest first."""
    found = store.execute("SELECT bucket, readings FROM outbox WHERE stream = ? ORDER BY first", (stream,))
    return [(unpacked(bucket), readings) for bucket, readings in found]


def held(store: sqlite3.Connection) -> int:
    """Bytes the tables hold."""
    query = "SELECT total(length(bucket) + coalesce(length(readings), 0) + 16) FROM outbox"
    documents = store.execute("SELECT total(length(document)) FROM chunk").fetchone()[0]
    return int(store.execute(query).fetchone()[0] + documents)


def check_whole(store: sqlite3.Connection, expected: list[Closed]) -> None:
    """Every reading is in exactly one row: contiguous ordinals, the same count, sum and extremes, no broken bucket."""
    found, originals = [bucket for bucket, _ in rows(store)], [Bucket.unpack(item.bucket) for item in expected]
    following = originals[0].first
    for bucket in found:
        bucket.verify()
        assert bucket.first == following
        following += bucket.n
    assert following == originals[-1].first + originals[-1].n
    assert fsum(b.total for b in found) == fsum(b.total for b in originals)
    assert min(b.low for b in found) == min(b.low for b in originals)
    assert max(b.high for b in found) == max(b.high for b in originals)
    for bucket, readings in rows(store):
        if readings is not None:
            times, values = unpack_readings(readings)
            assert (len(times), min(times), values[-1]) == (bucket.n, bucket.t_first, bucket.x_last)


@given(
    batches=st.lists(st.integers(1, 12), min_size=1, max_size=30),
    rows_most=st.integers(1, 40),
    bytes_most=st.integers(3000, 20_000),
    size=st.sampled_from([1, 4, -9, -80]),
    late=st.sampled_from([0, 2, 5]),
)
def test_the_budget_is_kept_after_each_commit_and_nothing_is_lost(
    batches: list[int], rows_most: int, bytes_most: int, size: int, late: int
) -> None:
    """Whatever comes, rows and bytes stay within, also measured in the tables; the index is what a fresh load reads."""
    store = empty()
    outbox = Outbox(store, rows_most, bytes_most)
    everything = closed(sum(batches), size, late=late)
    at = 0
    for batch in batches:
        outbox.insert(store, 1, everything[at : at + batch])
        outbox.squeeze(store)
        at += batch
        assert outbox.rows <= rows_most
        assert held(store) <= outbox.bytes_held <= bytes_most
    check_whole(store, everything)
    again = Outbox(store, rows_most, bytes_most)
    assert (again.rows, again.bytes_held) == (outbox.rows, outbox.bytes_held)
    lane, fresh = outbox.lanes[1], again.lanes[1]
    assert (lane.firsts, lane.classes, lane.singles) == (fresh.firsts, fresh.classes, fresh.singles)
    store.close()


def test_a_long_outage_stays_even(store: sqlite3.Connection) -> None:
    """Ten thousand buckets in a hundred rows: no row is more than four times as coarse as the usual one."""
    outbox = Outbox(store, 100, 1 << 20)
    for item in closed(10_000, 2):
        outbox.insert(store, 1, [item])
        outbox.squeeze(store)
    sizes = sorted(bucket.n for bucket, _ in rows(store))
    assert len(sizes) == 100
    assert sizes[-1] <= 4 * sizes[len(sizes) // 2]
    assert sum(sizes) == 20_000


def test_the_stream_with_most_rows_gives_way(store: sqlite3.Connection) -> None:
    """A slow stream keeps its detail beside a fast one."""
    outbox = Outbox(store, 50, 1 << 20)
    outbox.insert(store, 2, closed(20, 4, seed=2))
    for item in closed(2000, 4):
        outbox.insert(store, 1, [item])
        outbox.squeeze(store)
    assert [bucket.n for bucket, _ in rows(store, 2)] == [4] * 20
    assert len(rows(store)) == 30


def test_single_readings_go_before_buckets_merge(store: sqlite3.Connection) -> None:
    """Bytes short, rows not: all buckets stay, the oldest lose their single readings."""
    everything = closed(20, 8)
    outbox = Outbox(store, 100, 20 * (ROW_COST + 12) + 10 * 8 * 22)
    outbox.insert(store, 1, everything)
    outbox.squeeze(store)
    kept = [readings is not None for _, readings in rows(store)]
    assert len(kept) == 20
    assert outbox.merges == 0
    assert kept == sorted(kept)
    assert 0 < sum(kept) < 20
    assert outbox.singles_dropped == 8 * (20 - sum(kept))


def test_merged_rows_keep_their_readings_while_they_are_few(store: sqlite3.Connection) -> None:
    """Rows short, bytes not: two buckets of four become one of eight, and not a reading's detail is lost."""
    everything = closed(20, 4)
    outbox = Outbox(store, 10, 1 << 20)
    outbox.insert(store, 1, everything)
    outbox.squeeze(store)
    assert len(rows(store)) == 10
    assert all(readings is not None for _, readings in rows(store))
    check_whole(store, everything)


def test_work_is_bounded(store: sqlite3.Connection) -> None:
    """Coming into a smaller budget takes as many steps as asked for at a time, and ends there."""
    Outbox(store, 1000, 1 << 20).insert(store, 1, closed(500))
    outbox = Outbox(store, 10, 1 << 20)
    taken = [outbox.squeeze(store, 200) for _ in range(4)]
    assert taken == [200, 200, 90, 0]


def seal(store: sqlite3.Connection, outbox: Outbox, number: int, count: int) -> None:
    """Seal the oldest rows under a document that stands for them."""
    first = rows(store)[0][0].first
    readings = sum(bucket.n for bucket, _ in rows(store)[:count])
    outbox.seal(store, 1, count, Sealed(number, f"d::s::i::{number}", readings, b"x" * 500), first)


def test_what_is_sealed_never_changes(store: sqlite3.Connection) -> None:
    """However hard the rest is squeezed, sealed documents stay byte for byte and count against the budget."""
    outbox = Outbox(store, 20, 8000)
    everything = closed(20)
    outbox.insert(store, 1, everything[:10])
    seal(store, outbox, 1, 3)
    outbox.insert(store, 1, everything[10:])
    outbox.rows_most = 2
    outbox.squeeze(store)
    assert [chunk.document for chunk in outbox.waiting(store, 9)] == [b"x" * 500]
    assert outbox.sealed_bytes == 500
    check_whole(store, everything[3:])


def test_a_full_house_of_sealed_chunks_leaves_a_row_a_stream(store: sqlite3.Connection) -> None:
    """When nothing can be merged any more the squeeze ends instead of searching for ever."""
    outbox = Outbox(store, 20, 1000)
    outbox.insert(store, 1, closed(6))
    seal(store, outbox, 1, 3)
    seal(store, outbox, 2, 1)
    outbox.squeeze(store)
    assert len(rows(store)) == 1
    assert outbox.squeeze(store) == 0


def test_refused_chunks_are_kept_up_to_a_number(store: sqlite3.Connection) -> None:
    """The newest stay for a person to look at; the readings of older ones are counted as dropped."""
    outbox = Outbox(store, 100, 1 << 20)
    outbox.insert(store, 1, closed(40, 4))
    dropped = 0
    for number in range(1, REJECTED_KEPT + 4):
        seal(store, outbox, number, 2)
        dropped += outbox.reject(store, {f"d::s::i::{number}": "other bytes"})
    assert dropped == 3 * 8
    found = store.execute("SELECT number, reason FROM chunk ORDER BY number").fetchall()
    assert found == [(number, "other bytes") for number in range(4, REJECTED_KEPT + 4)]
    assert (outbox.sealed, outbox.rejected) == (0, REJECTED_KEPT)
    assert outbox.waiting(store, 9) == []


def test_a_refused_chunk_stays_when_all_others_are_acknowledged(store: sqlite3.Connection) -> None:
    """All that waited is gone at once, and what was set aside is no part of it."""
    outbox = Outbox(store, 100, 1 << 20)
    outbox.insert(store, 1, closed(8, 4))
    for number in (1, 2, 3):
        seal(store, outbox, number, 2)
    outbox.reject(store, {"d::s::i::1": "other bytes"})
    outbox.acknowledge(store, [f"d::s::i::{number}" for number in (2, 3)])
    assert store.execute("SELECT number, reason FROM chunk").fetchall() == [(1, "other bytes")]
    assert (outbox.sealed, outbox.rejected) == (0, 1)
