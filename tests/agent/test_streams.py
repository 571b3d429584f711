"""A stream's base buckets close where they should, lose nothing, and go on after a restart as if there was none."""

from __future__ import annotations

import random
import sqlite3
import tracemalloc
from array import array

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.format.bucket import LATE, ORDERED, Bucket, Builder, merge
from sluicegate_agent.carried import pack_readings, unpack_readings
from sluicegate_agent.identity import tally
from sluicegate_agent.streams import SINGLES_MOST, Stream

SPAN = 1000


def closed(stream: Stream) -> list[Bucket]:
    """What waits for the outbox."""
    return [Bucket.unpack(item.bucket) for item in stream.closed]


def test_a_bucket_closes_by_count_by_span_and_when_time_goes_back() -> None:
    """No reading of a bucket is `span` or more after its first, none is older than the one before."""
    stream = Stream(1, "s", 3, SPAN)
    for time in (0, 1, 2, 10, 10 + SPAN - 1, 10 + SPAN, 5, 6, 2000):
        stream.add(1.0, time, 0)
    stream.close()
    assert [(b.first, b.n, b.t_first, b.t_last) for b in closed(stream)] == [
        (0, 3, 0, 2),
        (3, 2, 10, 1009),
        (5, 1, 1010, 1010),
        (6, 2, 5, 6),
        (8, 1, 2000, 2000),
    ]
    assert [bool(b.flags & LATE) for b in closed(stream)] == [False, False, False, True, False]
    assert all(b.flags & ORDERED for b in closed(stream))
    assert stream.late == 2


def test_losses_enter_the_next_bucket_and_late_arrivals_take_them_out() -> None:
    """`gap` is what the source passed over since the stream's last reading; what came late takes one back."""
    stream = Stream(1, "s", 2, SPAN)
    late = tally.late(9, 10, 1)
    for time, missing in enumerate((7, 7, 10, 10, late, late)):
        stream.add(1.0, time, missing)
    assert [b.gap for b in closed(stream)] == [0, 3, -1], "what was missing before the first reading is not known"


def test_no_bucket_hides_a_loss_behind_what_came_late() -> None:
    """What takes back a loss of an earlier bucket has none beside a loss of its own; merged, the loss stays."""
    stream = Stream(1, "s", 30, 1 << 40)
    of_first, of_second = tally.late(1, 1, 1), tally.late(2, 3, 2)
    for time, missing in ((0, 0), (20, 1), (30, 1), (10, of_first), (50, 1), (60, 3), (70, 3), (55, of_second)):
        stream.add(1.0, time, missing)
    stream.close()
    found = closed(stream)
    assert [(b.n, b.gap) for b in found] == [(3, 1), (2, -1), (2, 2), (1, -1)]
    assert merge(found[1], found[2]).gap == merge(found[2], found[3]).gap == 2
    assert not merge(found[1], found[2]).flags & ORDERED, "which of its readings told of the loss is not known any more"
    assert merge(merge(found[0], found[1]), found[2]).gap == 3


def test_what_came_late_for_others_hides_no_loss() -> None:
    """A stream that is not in every message: what others lost and got since its last reading was lost for it, too."""
    stream = Stream(1, "s", 1, SPAN)
    stream.add(1.0, 10, 0)
    stream.add(1.0, 40, 1)  # number 2 was passed over, and 3, which came late, is of another stream
    stream.add(1.0, 50, 2)
    assert [b.gap for b in closed(stream)] == [0, 1, 1]


def test_a_late_message_takes_back_what_its_stream_was_told_alone() -> None:
    """One that came before its stream's next reading says what was passed over before it, and the next one the rest."""
    stream = Stream(1, "s", 1, SPAN)
    stream.add(1.0, 10, 0)
    stream.add(1.0, 30, tally.late(2, 4, 1))  # 2 … 5 were passed over: 3 came late, for the first time with a reading
    stream.add(1.0, 60, 4)
    stream.add(1.0, 40, tally.late(3, 4, 2))  # 4 was told by now
    stream.add(1.0, 70, 6)
    stream.add(1.0, 65, tally.late(None, 8, 3))  # when 6 was passed over is not known any more: 2 more are by now
    stream.add(1.0, 90, 8)
    assert [b.gap for b in closed(stream)] == [0, 1, 2, -1, 2, 2, 2]


@pytest.mark.parametrize("time", [35, 110])
def test_one_that_has_the_time_at_which_it_came_is_in_no_bucket_with_others(time: int) -> None:
    """Nobody could tell which of them came late, and which was the last in time before a loss."""
    stream = Stream(1, "s", 9, 1 << 40)
    for at, missing in ((10, 0), (30, 1), (100, 1)):
        stream.add(1.0, at, missing)
    stream.add(1.0, time, tally.late(1, 1, 1))
    stream.add(1.0, 120, 1)
    stream.close()
    assert [b.n for b in closed(stream)] == ([3, 2] if time == 35 else [3, 1, 1])


def test_single_readings_stay_while_they_are_few() -> None:
    """Up to SINGLES_MOST they wait beside their bucket; a larger bucket goes without."""
    small, large = Stream(1, "s", SINGLES_MOST, SPAN), Stream(2, "l", SINGLES_MOST + 1, SPAN)
    for i in range(SINGLES_MOST + 1):
        small.add(i / 2, i, 0)
        large.add(i / 2, i, 0)
    readings = small.closed[0].readings
    assert readings is not None
    assert unpack_readings(readings)[1].tolist() == [i / 2 for i in range(SINGLES_MOST)]
    assert large.closed[0].n == SINGLES_MOST + 1
    assert large.closed[0].readings is None
    for i in range(3):
        large.add(i, SINGLES_MOST + 1 + i, 0)
    large.close()
    assert large.closed[1].readings is not None, "the next bucket begins with its own"


@given(
    readings=st.lists(st.tuples(st.floats(-1e6, 1e6), st.integers(0, 5000), st.integers(0, 9)), max_size=60),
    restarts=st.sets(st.integers(0, 60)),
    flushes=st.sets(st.integers(0, 60)),
)
def test_a_restart_changes_no_bit(
    readings: list[tuple[float, int, int]], restarts: set[int], flushes: set[int]
) -> None:
    """Packed and restored anywhere, the buckets, ordinals and single readings are those of a stream that went on."""
    straight, restarted = Stream(1, "s", 5, SPAN), Stream(1, "s", 5, SPAN)
    for i, (value, time, missing) in enumerate(readings):
        for stream in (straight, restarted):
            stream.add(value, time, missing)
            if i in flushes:
                stream.close()
        if i in restarts:
            row, waiting = restarted.pack(), restarted.closed
            restarted = Stream(1, "s", 5, SPAN)
            restarted.restore(row)
            restarted.closed = waiting
    assert restarted.closed == straight.closed
    assert restarted.pack() == straight.pack()
    assert sum(item.n for item in straight.closed) + len(straight.times) == len(readings) == straight.accepted


class OneByOne(Stream):
    """A stream by its definition: each reading is folded by itself, as the page on buckets says."""

    __slots__ = ()

    def add(self, value: float, time: int, missing: int, doubt: int = 0) -> None:
        """Close before and after, fold, keep it beside the bucket."""
        if self.builder is None:
            self.builder, self.missing_seen = Builder(value), tally.lost(missing)
        first, last = self.builder.times
        if self.builder.n and (time < last or time - first >= self.span_us):
            self.close()
        gap = self._gap(missing)
        if self._parts(gap, missing, time):
            self.close()
        self.builder.add(value, time, gap, doubt)
        self.told += gap
        if self.builder.n == self.folded + len(self.times) + 1:
            if len(self.times) == SINGLES_MOST:
                self._fold()
            if self.folded or self.builder.n <= SINGLES_MOST:
                self.times = array("q", (*self.times, time))
                self.values = array("d", (*self.values, value))
        if self.builder.n >= self.readings:
            self.close()


@pytest.mark.parametrize("seed", range(120))
def test_readings_that_are_folded_together_make_the_bits_of_one_by_one(seed: int) -> None:
    """Whatever comes between: losses, doubt, a bucket that is closed, a restart, another source, other tags.

    What is told of the runs is all of the readings, in their order.
    """
    rng = random.Random(seed)
    size, span = rng.choice((1, 3, 5, 64, 65, 150)), rng.choice((50, 1000, 100_000))
    one, many = OneByOne(1, "s", size, span), Stream(1, "s", size, span)
    one.carries = many.carries = rng.choice(((), ("area", "distinct_count(8)")))
    told: list[tuple[float, int, int, int]] = []

    def tell(number: int, values: array[float], times: array[int], begin: int, missing: int, doubt: int) -> None:
        assert number == many.number
        told.extend((value, time, missing, doubt) for value, time in zip(values[begin:], times[begin:], strict=True))

    many.tell = tell
    time = lost = 0
    expected = []
    for step in range(rng.randrange(1, 80)):
        kind = rng.choice("rrrraaaackfosh")
        lost += rng.choice((0, 0, 0, 2))
        missing = tally.late(rng.choice((lost // 2, lost, None)), lost, step) if rng.random() < 0.2 else lost
        doubt = int(kind == "r" and rng.random() < 0.1)
        if kind in "ra":
            count = 1 if kind == "r" else rng.randrange(1, 200)
            times = [time := time + rng.choice((0, 1, 1, 7)) - (rng.random() < 0.02) * 30 for _ in range(count)]
            values = [rng.uniform(-9, 9) for _ in times]
            expected += [(value, at, missing, doubt) for value, at in zip(values, times, strict=True)]
            for value, at in zip(values, times, strict=True):
                one.add(value, at, missing, doubt)
            if kind == "r":
                many.take(values[0], times[0], missing, doubt)
            else:
                many.take_many(array("d", values), array("q", times), missing)
        elif kind == "c":
            one.close()
            many.close()
        elif kind == "k":
            row, waiting = many.pack(), many.closed
            many = Stream(many.number, "s", size, span)
            many.restore(row)
            many.closed, many.tell, many.carries = waiting, tell, one.carries
        elif kind == "f":
            for stream in (one, many):
                stream.fed_by(str(lost), lost, lambda _, lost=lost: lost)  # type: ignore[misc]
        elif kind == "o":
            assert many.accepted == one.accepted
        elif kind == "s":
            closed = [each.closed for each in (one, many)]
            one, many = (each.go_on_as(each.number + 1, {}) for each in (one, many))
            one.__class__ = OneByOne
            assert closed[0] == closed[1]
        else:
            many.handed()
    many.settle()
    assert told == expected
    assert many.closed == one.closed
    assert many.pack() == one.pack()


@pytest.mark.parametrize("damage", [b"", b"SGS1", b"XXXX" + bytes(60)])
def test_a_row_that_is_none_is_damage(damage: bytes) -> None:
    """The store is set aside for it, rather than counting from a wrong ordinal."""
    with pytest.raises(sqlite3.DatabaseError, match="malformed"):
        Stream(1, "s", 5, SPAN).restore(damage)


def test_readings_are_little_endian() -> None:
    """Times, then values, 8 bytes each, whatever the board."""
    stream = Stream(1, "s", 9, SPAN)
    stream.add(1.0, 258, 0)
    assert pack_readings(stream.times, stream.values) == bytes([2, 1]) + bytes(6) + bytes(6) + b"\xf0\x3f"


def test_a_silent_stream_takes_little() -> None:
    """Of ten thousand each byte counts: what a stream has nothing of is the same for all."""
    begun = Stream(1, "s", 64, 1000)
    begun.add(1.0, 1, 0)
    begun.close()
    begun.saved()
    row = begun.pack()
    tracemalloc.start()
    try:
        kept = [Stream(number, "s", 64, 1000) for number in range(200)]
        for stream in kept:
            stream.restore(row)
        held = tracemalloc.get_traced_memory()[0] / len(kept)
    finally:
        tracemalloc.stop()
    assert held < 800
    assert kept[0].pack() == row
    for stream in kept[:2]:
        stream.take(2.0, 2, 0)
    assert (kept[0].accepted, kept[2].accepted) == (2, 1)
