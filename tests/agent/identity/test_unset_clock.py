"""A board without a clock chip: what has no time of its own waits until the clock is set, and is placed by it then."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from durable_agent import NOON, SECOND, bare, configured, timed

from sluicegate.format.bucket import Bucket
from sluicegate_agent import pipeline as module
from sluicegate_agent.identity import waiting
from sluicegate_agent.identity.clock import Guard
from sluicegate_agent.pipeline import Pipeline
from sluicegate_agent.state import State, read_status

HOUR = 3600 * SECOND


class Board:
    """An agent's inner half on a board whose clock is `wrong` µs behind until a test sets it."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, wrong: int = 5 * HOUR, **tables: object) -> None:
        self.config = configured(folder, guard={"future": "1d", "clock_chip": False}, bucket={"readings": 1}, **tables)
        self.true, self.wrong, self.synchronised = NOON, wrong, False
        self.boot, self.began, self.looked = "first", NOON - 60 * SECOND, 1.0
        clocks = {"monotonic": self.seconds, "synchronised": lambda: self.synchronised}
        monkeypatch.setattr(module, "Guard", partial(Guard, **clocks))
        monkeypatch.setattr(waiting, "boot", lambda: (self.boot, self.true - self.began))
        self.start()

    def start(self) -> None:
        """The agent starts."""
        self.state = State(self.config)
        self.pipeline = Pipeline(self.config, self.state, clock=lambda: self.true - self.wrong)

    def restart(self) -> None:
        """As after kill -9."""
        self.state.close()
        self.start()

    def reboot(self) -> None:
        """The power goes and comes back half an hour later; the clock stood still meanwhile."""
        self.boot, self.wrong = "second", self.wrong + HOUR // 2
        self.passes(1800)
        self.began = self.true - 20 * SECOND
        self.restart()

    def seconds(self) -> float:
        """The monotonic clock."""
        return (self.true - self.began) / 1e6

    def passes(self, seconds: float) -> None:
        """Time goes on."""
        self.true += int(seconds * SECOND)

    def take(self, value: float) -> None:
        """A bare reading comes; then ten seconds pass."""
        self.looked += 1
        self.pipeline.accept(bare(value, int(self.looked)))
        self.pipeline.commit()
        self.passes(10)

    def tick(self) -> None:
        """Look for what has changed, and commit."""
        self.looked += 10.0
        self.pipeline.due(self.looked)
        self.pipeline.commit()

    def times(self) -> list[int]:
        """When the bare readings were, in the order in which they were counted: a bucket each."""
        self.pipeline.flush()
        self.pipeline.commit()
        number = self.state.streams["door"].number
        query = "SELECT bucket FROM outbox WHERE stream = ? ORDER BY first"
        found = [Bucket.unpack(row) for (row,) in self.state.store.connection.execute(query, (number,))]
        assert all(bucket.n == 1 for bucket in found)
        return [bucket.t_first for bucket in found]

    def counted(self, *names: str) -> dict[str, int]:
        """Some counters, without those that are 0."""
        names = names or ("accepted", "held", "placed", "placed.unset_clock", "placed.earlier_boot")
        return {name: count for name in names if (count := self.state.counters[name])}


Make = Callable[..., Board]


@pytest.fixture
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """How to make one."""
    return partial(Board, tmp_path, monkeypatch)


def stepped(one: Board) -> None:
    """NTP steps the clock; the kernel has said nothing yet."""
    one.wrong = 0


def synchronised(one: Board) -> None:
    """The clock is right all along; the kernel says so now."""
    one.synchronised = True


@pytest.mark.parametrize(("wrong", "is_set"), [(5 * HOUR, stepped), (-5 * HOUR, stepped), (0, synchronised)])
def test_readings_are_placed_when_the_clock_is_set(board: Make, wrong: int, is_set: Callable[[Board], None]) -> None:
    """Until then they wait, durable and acknowledged; then each has the time when it came, and those after it too."""
    one = board(wrong=wrong)
    for value in (1.0, 2.0, 3.0):
        one.take(value)
    one.tick()
    assert one.counted() == {"held": 3}
    assert one.pipeline.answers("door", "recent") == []
    is_set(one)
    one.passes(10)  # the kernel is asked that often
    one.tick()
    one.take(4.0)
    assert one.times() == [NOON + seconds * SECOND for seconds in (0, 10, 20, 40)]
    assert one.counted() == {"accepted": 4, "held": 3, "placed": 3}
    assert [each.value for each in one.pipeline.answers("door", "recent")] == [2.5, 4.0, 10.0]


def test_a_message_after_the_step_finds_the_others_placed(board: Make) -> None:
    """It comes before anything looked at the clock: those that wait are counted before it, none is late."""
    one = board()
    one.take(1.0)
    one.take(2.0)
    one.wrong = 0
    one.take(3.0)
    assert one.times() == [NOON, NOON + 10 * SECOND, NOON + 20 * SECOND]


def test_a_kill_while_they_wait(board: Make) -> None:
    """They are known when they come again, and are placed by the start after the clock is set."""
    one = board()
    one.take(1.0)
    one.restart()
    one.tick()
    assert one.counted() == {"held": 1}
    one.synchronised, one.wrong = True, 0
    one.restart()
    one.tick()
    assert one.times() == [NOON]
    assert one.counted() == {"accepted": 1, "held": 1, "placed": 1}
    one.restart()
    one.tick()
    assert one.times() == [NOON]


def test_a_reboot_while_they_wait(board: Make) -> None:
    """Only the old clock knows when they came: they get its time, and the counter says so."""
    one = board()
    one.take(1.0)
    one.reboot()
    one.take(2.0)
    one.wrong, now = 0, one.true - 10 * SECOND
    one.tick()
    assert one.times() == [NOON - 5 * HOUR, now]
    assert one.counted() == {"accepted": 2, "held": 2, "placed": 1, "placed.earlier_boot": 1}


def test_a_reboot_where_the_old_clock_began_in_1970(board: Make) -> None:
    """Its time says nothing: they came before this boot, and get its beginning."""
    one = board(wrong=NOON - 60 * SECOND)
    one.take(1.0)
    one.reboot()
    one.synchronised, one.wrong = True, 0
    one.restart()
    one.tick()
    assert one.times() == [one.began]


def test_a_clock_that_nobody_sets(board: Make) -> None:
    """After `guard.clock_wait` it is taken as it is; a start then waits again."""
    one = board(wrong=5 * HOUR)
    one.take(1.0)
    one.passes(600)
    one.tick()
    one.take(2.0)
    assert one.times() == [NOON - 5 * HOUR, NOON - 5 * HOUR + 610 * SECOND]
    assert one.counted() == {"accepted": 2, "held": 1, "placed": 1}


def test_more_than_may_wait(board: Make) -> None:
    """The oldest are counted by the clock as it is, none is refused."""
    one = board(held={"rows": 3})
    for n in range(5):
        one.take(float(n))
    assert one.counted() == {"accepted": 2, "held": 5, "placed.unset_clock": 2}
    one.wrong = 0
    one.tick()
    wrong, right = [NOON - 5 * HOUR + n * 10 * SECOND for n in (0, 1)], [NOON + n * 10 * SECOND for n in (2, 3, 4)]
    assert one.times() == wrong + right
    assert one.state.counters["refused.future"] == 0


def test_readings_with_a_time_do_not_wait(board: Make) -> None:
    """Theirs is not the board's."""
    one = board(wrong=0)
    one.pipeline.accept(timed(0, 1))
    one.pipeline.commit()
    assert one.counted() == {"accepted": 1}


def test_a_board_with_a_clock_chip_waits_for_nothing(board: Make) -> None:
    """As it is unless the configuration says otherwise."""
    one = board()
    one.state.close()
    one.config = configured(one.config.state.path.parent / "other", guard={"future": "1d"})
    one.start()
    one.take(1.0)
    assert one.counted() == {"accepted": 1}


def test_status_says_what_waits_for_the_clock(board: Make) -> None:
    """Beside what waits for a second message."""
    one = board()
    one.take(1.0)
    found = read_status(one.config.state.path)["held"]
    assert (found["for_clock"], found["for_second_message"]) == (1, 0)


def test_a_board_that_is_held_up_while_it_places_keeps_their_order(
    board: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a minute goes by between looks at its two clocks: no reading is placed before an earlier one."""
    one = board()
    for n in range(6):
        one.take(float(n))
    one.wrong, looks = 0, [0]

    def boot() -> tuple[str, int]:
        since = one.true - one.began
        looks[0] += 1
        one.passes(30 * (looks[0] % 2))
        return one.boot, since

    monkeypatch.setattr(waiting, "boot", boot)
    one.tick()
    assert one.times() == [NOON + n * 10 * SECOND for n in range(6)]
    assert one.counted()["placed"] == 6
