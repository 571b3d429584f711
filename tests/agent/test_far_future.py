"""A time that cannot be moves no window for good: it waits, or is forgotten when the clock is set."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from durable_agent import NOON, SECOND, bare, configured, timed

from sluicegate_agent import pipeline as module
from sluicegate_agent.identity.clock import CLOCK_NEVER_SET, Guard
from sluicegate_agent.pipeline import Pipeline
from sluicegate_agent.state import State

DAY = 86_400 * SECOND
YEARS = 4 * 365


class Board:
    """An agent's inner half whose clock is set by hand; windows of five minutes and a maximum of a minute beside it."""

    def __init__(self, folder: Path, now: int, *, clock_chip: bool = True) -> None:
        self.config = configured(folder, guard={"future": "1d", "clock_chip": clock_chip})
        self.now, self.looked = now, 1.0
        self.state = State(self.config)
        self.pipeline = Pipeline(self.config, self.state, clock=lambda: self.now)

    def restart(self) -> None:
        """As after kill -9."""
        self.state.close()
        self.state = State(self.config)
        self.pipeline = Pipeline(self.config, self.state, clock=lambda: self.now)

    def tick(self) -> None:
        """A second later by the clock that is never set."""
        self.looked += 10.0
        self.pipeline.due(self.looked)
        self.pipeline.commit()

    def sums(self, stream: str) -> dict[str, float | None]:
        """The answers to `sum` and `max`."""
        names = ("recent", "peak", "steps_short")
        found = [each for name in names for each in self.pipeline.answers(stream, name)]
        return {f"{each.window} {each.aggregate}": each.value for each in found if each.aggregate != "mean"}


@pytest.fixture
def board(tmp_path: Path) -> Iterator[Board]:
    """One whose clock was set."""
    one = Board(tmp_path, NOON)
    yield one
    one.state.close()


def test_a_sensor_far_ahead_moves_no_window(board: Board) -> None:
    """Its reading waits; the others' windows go on as if it had not come."""
    board.pipeline.accept(timed(0, 1, 2.0))
    board.pipeline.accept(timed(3 * 24 * 60, 2, 100.0))
    board.pipeline.accept(timed(1, 3, 3.0))
    board.pipeline.commit()
    board.tick()
    assert board.sums("heat") == {"recent max": 3.0, "recent sum": 5.0, "peak max": 3.0, "steps_short max": 3.0}
    assert board.state.counters["held"] == 1
    assert board.state.counters["windows.begun_anew"] == 0


@pytest.mark.parametrize("restarted", [False, True])
def test_windows_begin_anew_where_the_clock_was_years_ahead(board: Board, restarted: bool) -> None:
    """Readings had its time; after it was set back they would all be late for four years, and are not."""
    board.now = NOON + YEARS * DAY
    board.pipeline.accept(bare(50.0, 1))
    board.pipeline.commit()
    board.now = NOON
    board.pipeline.accept(bare(2.0, 2))
    board.pipeline.commit()
    board.tick()
    assert board.state.counters["windows.begun_anew"] == 7
    if restarted:
        board.restart()
    board.now += SECOND
    for value in (3.0, 4.0):
        board.pipeline.accept(bare(value, 3 + int(value)))
    board.pipeline.commit()
    board.tick()
    assert board.sums("door") == {"recent max": 4.0, "recent sum": 7.0, "peak max": 4.0, "steps_short max": 4.0}
    (first, *_) = board.pipeline.answers("door", "last9")
    assert (first.value, board.state.counters["windows.begun_anew"]) == (2.0, 7)
    assert all(each.time_us <= board.now for each in board.pipeline.answers("door", "recent"))
    assert not any(each.exact for name in ("recent", "peak") for each in board.pipeline.answers("door", name))
    assert board.state.streams["door"].accepted == 4


@pytest.mark.parametrize("has_chip", [True, False])
def test_a_clock_that_is_not_set_yet_throws_no_history_away(
    tmp_path: Path, has_chip: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A board without a clock chip starts a month behind: its windows wait for the clock. One with a chip means it."""
    seconds = [100.0]
    clocks = {"monotonic": lambda: seconds[0], "synchronised": lambda: False}
    monkeypatch.setattr(module, "Guard", partial(Guard, **clocks))
    board = Board(tmp_path, NOON, clock_chip=has_chip)
    for minute in range(5):
        board.pipeline.accept(timed(minute, 1 + minute, 2.0))
    board.pipeline.commit()
    before = board.sums("heat")
    board.now = NOON - 30 * DAY
    seconds[0] = 7.0
    board.restart()
    board.tick()
    assert board.state.counters["windows.begun_anew"] == (7 if has_chip else 0)
    board.now = NOON + 5 * 60 * SECOND  # it is set
    board.tick()
    if not has_chip:
        assert (board.sums("heat"), board.state.counters["windows.begun_anew"]) == (before, 0)
    board.state.close()


def test_a_clock_set_back_by_less_than_the_guard_begins_nothing_anew(board: Board) -> None:
    """What comes is late until the time is there again: at most for `guard.future`."""
    board.now = NOON + DAY
    board.pipeline.accept(bare(50.0, 1))
    board.now = NOON
    board.pipeline.accept(bare(2.0, 2))
    board.pipeline.commit()
    board.tick()
    assert board.sums("door")["recent sum"] == 50.0
    assert board.state.counters["windows.begun_anew"] == 0


def test_a_board_whose_clock_was_never_set(tmp_path: Path) -> None:
    """Readings keep the time that it gave them; when it is set the windows go on at the present."""
    board = Board(tmp_path, 60 * SECOND)
    assert board.now < CLOCK_NEVER_SET
    for value in (1.0, 2.0):
        board.pipeline.accept(bare(value, int(value)))
        board.now += SECOND
    board.pipeline.commit()
    assert board.sums("door")["recent sum"] == 3.0
    board.now = NOON
    board.pipeline.accept(bare(8.0, 8))
    board.pipeline.commit()
    board.tick()
    assert board.sums("door")["recent sum"] == 8.0
    assert board.state.streams["door"].accepted == 3
    assert board.state.counters["windows.begun_anew"] == 0
    board.state.close()


#: By the calendar and by the clock of a place: 365 days, so that an edge lies a year from its reading.
BY_CALENDAR = [
    {"name": "year", "kind": "hopping", "evict": {"time": "365d", "hop": "1d"}, "aligned": "day",
     "timezone": "Europe/Vienna", "aggregate": "count"},
    {"name": "clock", "kind": "tumbling", "evict": {"time": "1h"}, "aligned": "clock", "timezone": "Asia/Kolkata",
     "aggregate": "count"},
]  # fmt: skip


@pytest.mark.parametrize(
    ("said", "taken"), [(-62_135_596_800, 0), (-30_610_224_000, 1), (221_845_391_999, 1), (253_402_300_799, 0)]
)
def test_no_time_at_the_ends_of_the_calendar_ends_the_agent(tmp_path: Path, said: int, taken: int) -> None:
    """The first and last second of the calendar are refused, of the years 1000 to 8999 taken; what follows counts."""
    config = configured(tmp_path, BY_CALENDAR)
    with State(config) as state:
        pipeline = Pipeline(config, state, clock=lambda: NOON)
        for number, minute in enumerate(((said * SECOND - NOON) / (60 * SECOND), 0.0), 1):
            pipeline.accept(timed(minute, number))
            pipeline.commit()
        counters = state.counters.as_dict()
    assert (counters["accepted"], counters.get("refused.unreadable", 0)) == (1 + taken, 1 - taken)
