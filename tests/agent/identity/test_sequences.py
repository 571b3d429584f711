"""A source's numbers begin again, wrap, jump and come again: each message counts once, and the next one or two decide.

The oracle of the model is what the sensor really published: a message is counted if and only if it was published, once.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_stores import empty

from sluicegate.format.bucket import Bucket
from sluicegate_agent.identity import EPOCHS_KEPT, Allowance, Sequences, Verdict
from sluicegate_agent.identity.sequences import JUMP_WAIT, RESTART_WAIT
from sluicegate_agent.streams import Stream

SECOND = 1_000_000


@dataclass
class Counted:
    """What was counted, by content: how often, and with how much doubt; what was refused; what waits."""

    times: dict[int, int] = field(default_factory=dict)
    doubt: int = 0
    refused: list[str] = field(default_factory=list)
    held: dict[int, int] = field(default_factory=dict)

    @property
    def accepted(self) -> int:
        """Messages counted."""
        return sum(self.times.values())

    def count(self, content: int, doubt: int) -> None:
        """One message was counted."""
        self.times[content] = self.times.get(content, 0) + 1
        self.doubt += doubt


class Source:
    """A source's numbers on a store, with what they decided."""

    def __init__(self, store: sqlite3.Connection, horizon: int = 4096, allowance: Allowance | None = None) -> None:
        self.store, self.horizon, self.allowance = store, horizon, allowance
        self.counted = Counted()
        self.next = 1
        self.commits = 0
        self.begin()

    def begin(self) -> None:
        """As after kill -9: what waits is told again from its rows, here from the test's own list."""
        self.sequences = Sequences(self.store, "s", self.horizon, self.allowance, in_flight=100)

    def take(
        self, number: int, content: int, time: int | None = None, epoch: int | None = None, *, dup: bool = False
    ) -> Verdict:
        """One message, and what it decides."""
        found = self.sequences.check(number, epoch, content, time, dup=dup)
        self.settle(found.released)
        if found.verdict is Verdict.NEW:
            self.counted.count(content, found.doubt)
        elif found.verdict is Verdict.WAITS:
            self.sequences.waits(self.next)
            self.counted.held[self.next] = content
            self.next += 1
        elif found.verdict is not Verdict.DUPLICATE:
            self.counted.refused.append(found.verdict.value)
        return found.verdict

    def settle(self, released: object) -> None:
        """Count or refuse what waited."""
        for number, verdict, doubt in released:  # type: ignore[attr-defined]
            content = self.counted.held.pop(number)
            if verdict is Verdict.NEW:
                self.counted.count(content, doubt)
            else:
                self.counted.refused.append(verdict.value)

    def commit(self) -> None:
        """Make it durable."""
        self.sequences.save(self.store)
        self.sequences.saved()
        self.commits += 1
        self.sequences.committed(self.commits)


@pytest.fixture
def source() -> Iterator[Source]:
    """A source on an empty store in memory."""
    store = empty()
    yield Source(store)
    store.close()


def test_more_epochs_than_are_kept_in_one_batch_that_comes_again(source: Source) -> None:
    """18 epochs, none acknowledged, all sent again, also after a restart: 18 were counted, not 36."""
    for boot in range(18):
        source.take(0, 2 + boot, epoch=boot)
    source.commit()
    assert [source.take(0, 2 + boot, epoch=boot) for boot in range(18)] == [Verdict.DUPLICATE] * 18
    source.begin()
    assert [source.take(0, 2 + boot, epoch=boot) for boot in range(18)] == [Verdict.DUPLICATE] * 18
    assert source.counted.accepted == 18


def test_epochs_are_forgotten_once_the_broker_knows(source: Source) -> None:
    """Confirmed ones beyond the newest few go, and those that are not stay; a deep sleeper's row stays small."""
    for boot in range(50):
        source.take(7, 2 + boot, epoch=boot)
    source.commit()
    assert source.store.execute("SELECT count(*), max(length(row)) < 200 FROM sequence").fetchone() == (50, 1)
    source.take(7, 100, epoch=50)
    source.sequences.confirmed(1)
    source.commit()
    kept = source.store.execute("SELECT count(*) FROM sequence").fetchone()[0]
    assert kept == EPOCHS_KEPT
    assert source.take(7, 100, epoch=50) is Verdict.DUPLICATE


def test_epochs_on_their_way_have_a_hard_bound() -> None:
    """Whatever a broker never confirms: beyond the allowance the oldest goes, and is counted."""
    store = empty()
    source = Source(store, allowance=Allowance(30))
    for boot in range(100):
        source.take(0, 2 + boot, epoch=boot)
    source.commit()
    assert store.execute("SELECT count(*) FROM sequence").fetchone()[0] == EPOCHS_KEPT + 30
    assert source.sequences.told() == {"epochs_forgotten_early": 100 - EPOCHS_KEPT - 30}
    store.close()


@pytest.mark.parametrize("timed", [False, True])
def test_a_sensor_that_begins_again_without_an_epoch(source: Source, timed: bool) -> None:
    """3,000, a reboot, 2,500 fresh ones: all count, from the second message on at once; the old ones stay known."""
    log = [(number, 10 + number, number * SECOND) for number in range(3000)]
    fresh = [(number, 10_000 + number, (4000 + number) * SECOND) for number in range(2500)]
    for position, (number, content, time) in enumerate(log + fresh):
        source.take(number, content, time if timed else None)
        assert len(source.counted.held) <= 1
        if position % 500 == 499:
            source.commit()
            source.begin()
    assert source.counted.accepted == 5500
    assert source.counted.doubt == 0
    assert source.sequences.missing == 0
    for number, content, time in log[-500:] + fresh[-500:]:
        assert source.take(number, content, time if timed else None) is Verdict.DUPLICATE


@pytest.mark.parametrize("width", [8, 16, 32])
def test_a_counter_that_wraps(source: Source, width: int) -> None:
    """3,000 after the wrap count at once, nothing is missing, and the wrap is counted once."""
    for number in range((1 << width) - 200, (1 << width) + 3000):
        assert source.take(number % (1 << width), 2 + number % 2**31, number * SECOND) is Verdict.NEW
        if number % 500 == 0:
            source.commit()
            source.begin()
    assert source.sequences.missing == 0
    assert source.counted.accepted == 3200


def a_lossy_wrap(source: Source, width: int, lost: int, *, timed: bool) -> int:
    """Messages about the first wrap, of which so many were lost at it; how many came."""
    before = 100 if width == 8 else 500
    came = [*range(-before - lost // 2, -(lost // 2)), *range(lost - lost // 2, lost + 100)]
    for number in came:
        source.take(number % (1 << width), 1000 + number, number * SECOND if timed else None)
    return len(came)


@pytest.mark.parametrize("timed", [False, True])
@pytest.mark.parametrize(("width", "lost"), [(8, 8), (16, 200), (32, 200), (32, 900)])
def test_what_is_lost_at_the_first_wrap_is_missing(source: Source, width: int, lost: int, *, timed: bool) -> None:
    """No sensor begins again just there by chance: all that came counts, and the rest is told."""
    came = a_lossy_wrap(source, width, lost, timed=timed)
    assert source.sequences.missing == lost
    assert (source.counted.accepted, source.counted.doubt, source.counted.refused) == (came, 0, [])
    assert source.sequences.restarts == 0


@pytest.mark.parametrize(("width", "lost", "timed"), [(8, 40, True), (16, 900, True), (16, 900, False)])
def test_what_may_be_lost_at_a_first_wrap_is_told(source: Source, width: int, lost: int, *, timed: bool) -> None:
    """A beginning or a wrap, nobody knows: a counter says how many may be missing beside `missing`."""
    came = a_lossy_wrap(source, width, lost, timed=timed)
    assert (source.counted.accepted, source.counted.doubt, source.counted.refused) == (came, 0, [])
    assert source.sequences.missing + source.sequences.told()["maybe_missing"] == lost


def test_old_numbers_sent_again_near_a_wrap_are_no_wrap(source: Source) -> None:
    """A broker restored from a backup, just below 2^16: never silently twice."""
    for number in range(65_400):
        source.take(number, 2 + number)
    for number in range(100, 120):
        source.take(number, 2 + number)
    for number in range(65_400, 65_500):
        source.take(number, 2 + number)
    assert source.counted.accepted - source.counted.doubt <= 65_500 <= source.counted.accepted


@pytest.mark.parametrize("lost", [150, 200, 250])
def test_more_than_half_a_lap_that_comes_again_is_in_doubt(source: Source, lost: int) -> None:
    """A counter of 8 bits without times, and more on their way than half of it: the count is within what is said."""
    for number in range(1000):
        source.take(number % 256, 2 + number)
    for number in range(1000 - lost, 1000):
        source.take(number % 256, 2 + number, dup=True)
    for number in range(1000, 1500):
        source.take(number % 256, 2 + number)
    refused = len(source.counted.refused)
    assert source.counted.accepted - source.counted.doubt <= 1500 - refused <= source.counted.accepted
    assert refused == 0
    assert source.counted.doubt <= lost


def test_one_bad_number_waits_and_the_source_goes_on(source: Source) -> None:
    """2^32 − 1 after 9: refused with its reason when 10 comes; nothing is missing."""
    for number in (*range(10), 2**32 - 1, *range(10, 20)):
        source.take(number, 2 + number % 2**31)
    assert source.counted.refused == ["sequence_jump"]
    assert source.counted.accepted == 20
    assert source.sequences.missing == 0


@pytest.mark.parametrize("timed", [False, True])
@pytest.mark.parametrize("wrong", [80, 500, 4000])
def test_one_bad_number_within_the_horizon_costs_no_reading(source: Source, wrong: int, timed: bool) -> None:
    """It is believed at once, and corrected when the run comes up to it: all that was published counts once."""
    numbers = [*range(10), wrong, *range(11, wrong + 50)]
    for content, number in enumerate(numbers, 2):
        source.take(number, content, content * SECOND if timed else None)
    assert source.counted.refused == []
    assert source.counted.times == dict.fromkeys(range(2, 2 + len(numbers)), 1)
    for content, number in list(enumerate(numbers, 2))[-40:]:
        assert source.take(number, content, content * SECOND if timed else None) is Verdict.DUPLICATE
    if not timed:
        assert source.sequences.missing == wrong - 10, "those between came late, and the one it should have had never"


def test_a_late_one_of_before_a_clock_was_set_back_counts(source: Source) -> None:
    """Number 49 comes after 51, of the time at which the clock of a sensor was set back by 3 s: it is not refused.

    Its time is later than the newest number's, as that of a sensor which began again; and 52 says that none did.
    """
    log = [(number, 10 + number, (number if number < 50 else number - 3) * SECOND) for number in range(60)]
    for number, content, time in (*log[:49], *log[50:52], log[49], *log[52:]):
        source.take(number, content, time)
    assert source.counted.times == {content: 1 for _, content, _ in log}
    assert (source.counted.refused, source.sequences.missing, source.sequences.restarts) == ([], 1, 0)
    assert source.take(49, 59, 49 * SECOND) is Verdict.DUPLICATE


@pytest.mark.parametrize("lost", [60, 61, 75])
def test_what_waited_and_was_late_hides_no_loss_after_it(source: Source, lost: int) -> None:
    """Of 49, which came late, nothing is missing; of the number that is lost later a stream is told one."""
    log = [(number, 10 + number, (number if number < 50 else number - 3) * SECOND) for number in range(80)]
    order = [*log[:49], *log[50:52], log[49], *log[52:lost], *log[lost + 1 :]]
    stream, waits = Stream(1, "s", 4, 3600 * SECOND), list[tuple[int, int, int]]()
    for each in order:
        found = source.sequences.check(each[0], None, each[1], each[2])
        ready = [waits.pop() for released in found.released if released.verdict is Verdict.NEW]
        if found.verdict is Verdict.NEW:
            ready.append(each)
        elif found.verdict is Verdict.WAITS:
            source.sequences.waits(1)
            waits.append(each)
        for number, _, time in ready:
            stream.add(1.0, time, source.sequences.tally(number))
    stream.close()
    told = [Bucket.unpack(closed.bucket) for closed in stream.closed]
    assert sum(bucket.n for bucket in told) == 79
    assert sum(bucket.gap for bucket in told if bucket.t_last >= (lost - 3) * SECOND) >= 1
    assert sum(bucket.gap for bucket in told) == 1


def test_more_late_ones_than_may_wait_count(source: Source) -> None:
    """Every hundredth of a backlog comes late, of before the clock was set back by an hour: each counts."""
    late = [*range(100, 700, 100)]
    for number in (*range(100), *(n for n in range(100, 800) if n not in late), *late):
        source.take(number, 10 + number, (number if number < 790 else number - 3600) * SECOND)
    source.settle(source.sequences.due(source.sequences.heard_at + RESTART_WAIT + 60))
    assert source.counted.times == {10 + number: 1 for number in range(800)}
    assert source.counted.refused == []


@pytest.mark.parametrize(("begins", "waits", "comes", "before", "between"), [(1, 40, 42, 36, 1), (100, 2, 5, 0, 2)])
def test_what_waited_tells_of_no_loss_after_it(begins: int, waits: int, comes: int, before: int, between: int) -> None:
    """Of a jump and of a beginning: what was passed over between the two that decide is told by the second one."""
    sequences = Sequences(empty(), "s", 9)
    for number in range(begins, begins + 3):
        sequences.check(number, None, 2 + number, number)
    assert sequences.check(waits, None, 2 + waits, 200).verdict is Verdict.WAITS
    sequences.waits(1)
    assert [each.number for each in sequences.check(comes, None, 2 + comes, 201).released] == [1]
    assert [sequences.tally(waits), sequences.tally(comes)] == [before, before + between]


def test_a_jump_that_a_second_message_confirms(source: Source) -> None:
    """A long outage: both count, and what lies between is missing."""
    for number in (*range(10), 100_000, 100_001, 100_002):
        source.take(number, 2 + number)
    assert source.counted.accepted == 13
    assert source.sequences.missing == 99_990


def test_the_newest_before_a_backlog_is_early_and_not_wrong(source: Source) -> None:
    """A sensor that sends its newest first and then what it kept: all count when the numbers have come there."""
    for number in (*range(10), 9000, *range(10, 9000), *range(9001, 9100)):
        source.take(number, 2 + number)
    assert source.counted.accepted == 9100
    assert source.sequences.missing == 1, "9000 was passed over, and came"


def test_a_bad_number_at_the_very_start(source: Source) -> None:
    """2^62 first: the small ones after it are a beginning, from the second on."""
    for number in (2**62, *range(50)):
        source.take(number, 2 + number % 2**31)
    assert source.counted.accepted == 51
    assert source.counted.doubt == 0


def test_a_log_that_is_sent_again_stays_a_repeat(source: Source) -> None:
    """10,000 without a time, then the same again: known by its first numbers, so nothing counts or is in doubt."""
    for number in (*range(10_000), *range(10_000)):
        source.take(number, 2 + number)
    assert source.counted.accepted == 10_000
    assert set(source.counted.refused) == {"beyond_horizon"}


def test_where_nothing_decides_it_counts_with_doubt(source: Source) -> None:
    """Numbers between what is known and without a time: a repeat or a sensor's other run; both are told."""
    for number in range(20_000):
        source.take(number, 2 + number)
    for number in range(5000, 5100):
        source.take(number, 50_000 + number)
    assert source.counted.accepted == 20_100
    assert source.counted.doubt == 100


def test_a_message_twice_with_another_wrapping_counts_once(source: Source) -> None:
    """Two gateways hear each message and add their own: the next number refuses what looked like a beginning."""
    for number in range(100):
        source.take(number, 2 + number)
        source.take(number, 1000 + number)
    assert source.counted.accepted == 100
    assert set(source.counted.refused) == {"sequence_conflict"}


def test_what_waits_alone_is_decided_by_age(source: Source) -> None:
    """A sensor that reboots and speaks once an hour counts after a while, in doubt without a time; a jump does not."""
    for number in range(10):
        source.take(number, 2 + number)
    source.take(0, 100)
    source.take(50_000, 101)
    assert len(source.counted.held) == 2
    now = source.sequences._waiting[0].since
    source.settle(source.sequences.due(now + RESTART_WAIT - 1))
    assert len(source.counted.held) == 2
    source.settle(source.sequences.due(now + RESTART_WAIT + 5))
    assert source.counted.times[100] == 1
    assert source.counted.doubt == 1
    source.settle(source.sequences.due(now + JUMP_WAIT + 5))
    assert source.counted.refused == ["sequence_jump"]
    source.take(1, 102)
    assert source.counted.accepted == 12


def published_by_a_sensor(rng: random.Random, width: int) -> tuple[list[tuple[int, int, int]], set[int]]:
    """(number, content, time) of a sensor that reboots, wraps and loses some; the places of its reboots."""
    modulus = 1 << width if width else 1 << 62
    published, number, since_boot, reboots = [], rng.choice((0, 1, 200, 65_400)) % modulus, 0, set()
    for place in range(700):
        if width != 8 and since_boot > 100 and rng.random() < 0.01:
            number, since_boot = 0, 0
            reboots.add(place)
        elif rng.random() < 0.03 and since_boot > 3:
            number += rng.randrange(1, 3)
        published.append((number % modulus, 2 + place, place * SECOND))
        number, since_boot = number + 1, since_boot + 1
    for last in range(3):  # so that nothing waits in the end
        published.append(((number + last) % modulus, 702 + last, (700 + last) * SECOND))
    return published, reboots


def sent_on(rng: random.Random, count: int, reboots: set[int]) -> list[int]:
    """In which order their places come: some late by up to 12, never over a reboot, some again up to 40 later."""
    at: list[tuple[float, int]] = []
    for place in range(count):
        late = rng.randrange(1, 12) + 0.5 if rng.random() < 0.1 else 0
        if place > count - 20 or any(place - 8 < reboot < place + 20 for reboot in reboots):
            late = 0
        at.append((place + late, place))
        if rng.random() < 0.15 and place < count - 3:
            at.append((place + late + rng.randrange(1, 40), place))
    return [place for _, place in sorted(at)]


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 10**9), width=st.sampled_from([0, 8, 16]), timed=st.booleans())
def test_whatever_a_sensor_does_each_message_counts_once(seed: int, width: int, timed: bool) -> None:
    """Reboots, wraps, losses, repeats and lateness within limits: as many as were published, no doubt, none twice.

    Whatever waits is decided within the next messages, over restarts of the agent too.
    """
    rng = random.Random(seed)
    published, reboots = published_by_a_sensor(rng, width)
    store = empty()
    source = Source(store)
    for position, place in enumerate(sent_on(rng, len(published), reboots)):
        number, content, time = published[place]
        source.take(number, content, time if timed else None)
        assert len(source.counted.held) <= 2
        if position % 97 == 96 and not source.counted.held:
            source.commit()
            source.begin()
    counted = source.counted
    assert max(counted.times.values()) == 1, "twice"
    assert counted.refused == []
    assert counted.times.keys() == {content for _, content, _ in published}
    assert counted.doubt == 0
    store.close()
