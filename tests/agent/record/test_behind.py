"""Buckets that wait behind the outbox's table: in order, once, and there after a transaction that failed."""

from __future__ import annotations

import contextlib
import math
import random
import sqlite3
import zlib
from array import array
from collections.abc import Iterator

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from hypothesis import given
from hypothesis import strategies as st

from sluicegate_agent.backlog.rows import one_of
from sluicegate_agent.behind import Behind, packed, packed_rows, unpacked
from sluicegate_agent.checksums import checksum
from sluicegate_agent.outbox import Outbox, spread
from sluicegate_agent.state import schema
from sluicegate_agent.streams import Closed, Stream

CLOSED = st.builds(
    Closed,
    st.integers(0, 2**62),
    st.integers(1, 2**32 - 1),
    st.binary(max_size=300),
    st.none() | st.binary(max_size=64),
    st.none() | st.floats(-1e9, 1e9),
)


@pytest.fixture
def store() -> Iterator[sqlite3.Connection]:
    """An empty store."""
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        schema.create(connection)
        yield connection


def buckets(count: int, first: int = 0) -> list[Closed]:
    """Of two readings each, from an ordinal on."""
    stream = Stream(1, "s", 2, 1 << 60)
    for i in range(2 * count + first):
        stream.add(i / 8, i * 1000, 0)
    return stream.closed[first // 2 :]


@given(closed=st.lists(CLOSED, max_size=8))
def test_packed_buckets_are_read_back(closed: list[Closed]) -> None:
    """Each as it was, with its single readings or without."""
    assert [each[:4] for each in unpacked(packed(closed))] == [each[:4] for each in closed]


@given(
    seed=st.integers(0, 1 << 30),
    first=st.floats(-1e6, 1e6),
    readings=st.integers(1, 60),
)
def test_buckets_of_a_stream_are_read_back_to_the_bit(seed: int, first: float, readings: int) -> None:
    """Late ones, those after a gap and in doubt, those of one reading; and merged ones among them."""
    rng, stream = random.Random(seed), Stream(1, "s", readings, 1000)
    time = missing = 0
    for _ in range(rng.randrange(1, 9)):
        times, values = array("q"), array("d")
        for _ in range(rng.randrange(1, 99)):
            time += rng.choice([1, 7, 7, 7, 900, -5])
            times.append(time)
            values.append(round(first + rng.random(), rng.choice([2, 17])))
        missing += rng.choice([0, 0, 3])
        stream.add_many(values, times, 0, missing, rng.choice([0, 0, 1]))
    stream.close()
    closed = stream.closed
    assert unpacked(packed(closed)) == closed
    assert packed(closed).startswith(b"SGR1")
    if len(closed) > 2:
        merged = one_of(closed[1:3], (), keeps=False)
        again = unpacked(packed([closed[0], merged, *closed[3:]]))
        assert [each[:4] for each in again] == [each[:4] for each in (closed[0], merged, *closed[3:])]


def test_packed_by_readings_they_are_small() -> None:
    """Ten thousand readings of two decimal places take less than two bytes each."""
    stream = Stream(1, "s", 16, 1 << 60)
    values = array("d", (round(20 + math.sin(i / 9), 2) for i in range(10_000)))
    stream.add_many(values, array("q", range(0, 10**10, 10**6)), 0, 0)
    assert len(packed(stream.closed)) < 20_000


@given(data=st.binary(max_size=200))
def test_no_bytes_but_packed_ones_are_taken(data: bytes) -> None:
    """Whatever stands behind the magic is read whole, or refused."""
    for each in (data, b"SGR1" + data, b"SGR1" + zlib.compress(data)):
        with contextlib.suppress(ValueError):
            assert [one[:4] for one in unpacked(packed(unpacked(each)))] == [one[:4] for one in unpacked(each)]


@pytest.mark.parametrize("damage", [lambda data: data[:-6], lambda data: b"x" + data, lambda data: b""])
def test_anything_else_is_refused(damage: object) -> None:
    """Cut short, in another form, or nothing at all."""
    with pytest.raises(ValueError, match="packed"):
        unpacked(damage(packed(buckets(3))))  # type: ignore[operator]


@pytest.mark.parametrize("shrunk", [5, 7, 9])
def test_sealed_in_their_order_from_table_row_and_memory(store: sqlite3.Connection, shrunk: int) -> None:
    """Some with rows, some packed, some in memory, packed there or not: the oldest first; what is left has a row."""
    outbox, all_of_them = Outbox(store, 100, 1 << 20), buckets(9)
    outbox.insert(store, 1, all_of_them[:2])
    outbox.take(1, all_of_them[2:5])
    outbox.behind.write(store)
    outbox.behind.settled()
    outbox.take(1, all_of_them[5:shrunk])
    outbox.behind.shrink()
    outbox.take(1, all_of_them[shrunk:])
    assert (outbox.rows, outbox.behind.holds(1)) == (9, True)
    found = outbox.oldest(store, 1, 6, 1 << 20)
    assert [bucket for bucket, _ in found] == [each.bucket for each in all_of_them[:6]]
    firsts = [first for (first,) in store.execute("SELECT first FROM outbox ORDER BY first")]
    end = 14 if shrunk == 7 else 18
    assert firsts == [0, 2, *range(12, end, 2)]
    assert store.execute("SELECT * FROM handed").fetchall() == [(1, end, checksum(1, end))]
    assert outbox.behind.holds(1) == (end < 18)
    outbox.behind.settled()
    outbox.behind.write(store)
    outbox.behind.settled()
    assert (outbox.behind.is_empty, outbox.behind.bytes) == (True, 0)


def test_packed_rows_that_need_not_be_looked_at_stay(store: sqlite3.Connection) -> None:
    """Where fewer are sealed than wait, in the table as in memory."""
    outbox, all_of_them = Outbox(store, 100, 1 << 20), buckets(12)
    for place in (0, 3):
        outbox.take(1, all_of_them[place : place + 3])
        outbox.behind.write(store)
        outbox.behind.settled()
    for place in (6, 9):
        outbox.take(1, all_of_them[place : place + 3])
        outbox.behind.shrink()
    assert len(outbox.oldest(store, 1, 2, 1 << 20)) == 2
    assert store.execute("SELECT first FROM outbox").fetchall() == [(4,)]
    assert store.execute("SELECT count(*) FROM packed").fetchone() == (1,)
    again = Outbox(store, 100, 1 << 20)
    assert [*again.lanes[1].firsts] == [4, 6, 8, 10], "what is in memory alone stands in the record"


def test_a_transaction_that_failed_leaves_all_as_it_was(store: sqlite3.Connection) -> None:
    """As often as it is tried: memory and index are those before it."""
    outbox, all_of_them = Outbox(store, 100, 1 << 20), buckets(6)
    outbox.take(1, all_of_them[:2])
    outbox.behind.shrink()
    outbox.take(1, all_of_them[2:3])
    held = outbox.behind.bytes
    for _ in range(2):
        store.execute("BEGIN")
        outbox.behind.write(store)
        outbox.insert(store, 1, all_of_them[3:])
        assert outbox.oldest(store, 1, 6, 1 << 20) == [(each.bucket, each.readings) for each in all_of_them]
        store.execute("ROLLBACK")
        outbox.reload(store)
        assert (outbox.rows, len(outbox.behind.waiting[1]), outbox.behind.bytes) == (3, 1, held)
        assert [*outbox.lanes[1].firsts] == [0, 2, 4]
    assert store.execute("SELECT * FROM packed").fetchall() == []


def test_new_rows_of_a_stream_that_has_packed_ones_follow_them(store: sqlite3.Connection) -> None:
    """After a restart too, and where rows are made of all of them."""
    outbox, all_of_them = Outbox(store, 100, 1 << 20), buckets(4)
    outbox.take(1, all_of_them[:2])
    outbox.behind.write(store)
    outbox.behind.settled()
    outbox.insert(store, 1, all_of_them[2:])
    assert store.execute("SELECT count(*) FROM outbox").fetchone() == (0,)
    again = Outbox(store, 100, 1 << 20)
    assert [*again.lanes[1].firsts] == [0, 2, 4, 6]
    spread(store)
    assert [first for (first,) in store.execute("SELECT first FROM outbox")] == [0, 2, 4, 6]
    assert [*packed_rows(store)] == []


@pytest.mark.parametrize("shrunk", [False, True])
@pytest.mark.parametrize("rows_most", [1, 3, 6, 11])
@pytest.mark.parametrize("bytes_most", [5000, 9000, 1 << 20])
@pytest.mark.parametrize(("stored", "packed"), [(0, 0), (0, 12), (5, 3), (5, 0), (12, 0)])
def test_made_coarser_wherever_they_are(
    store: sqlite3.Connection, rows_most: int, bytes_most: int, stored: int, packed: int, shrunk: bool
) -> None:
    """In the table, packed or in memory: the same buckets stay, and the index says so."""
    everything, expected = buckets(12), Outbox(store, rows_most, bytes_most)
    expected.insert(store, 1, everything)
    expected.squeeze(store)
    left = store.execute("SELECT first, bucket, readings FROM outbox").fetchall()
    store.execute("DELETE FROM outbox")
    outbox = Outbox(store, rows_most, bytes_most)
    outbox.insert(store, 1, everything[:stored])
    for each in everything[stored : stored + packed]:
        outbox.take(1, [each])
        outbox.behind.write(store)
        outbox.behind.settled()
    outbox.take(1, everything[stored + packed : 10])
    if shrunk:
        outbox.behind.shrink()
    outbox.take(1, everything[10:] if stored + packed < 12 else [])
    outbox.squeeze(store)
    assert (outbox.rows, outbox.bytes_held, outbox.merges) == (expected.rows, expected.bytes_held, expected.merges)
    assert outbox.singles_dropped == expected.singles_dropped
    outbox.behind.write(store)
    outbox.behind.settled()
    assert (outbox.behind.waiting, outbox.behind.bytes) == ({}, 0)
    lane, again = outbox.lanes[1], Outbox(store, rows_most, bytes_most)
    assert (again.lanes[1].firsts, again.lanes[1].singles) == (lane.firsts, lane.singles)
    spread(store)
    assert store.execute("SELECT first, bucket, readings FROM outbox ORDER BY first").fetchall() == left


def test_a_packed_row_that_is_damaged_is_told(store: sqlite3.Connection) -> None:
    """Its checksum knows which stream it is of."""
    behind = Behind()
    behind.pack(store, 1, buckets(2))
    store.execute("UPDATE packed SET stream = 2")
    with pytest.raises(sqlite3.DatabaseError, match="packed"):
        list(packed_rows(store))
