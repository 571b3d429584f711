"""Silent streams: their event time goes on, their windows empty and say so; clocks that are set move nothing."""

from __future__ import annotations

from sluicegate_agent.ticks import MICROS, Ticks

START = 1_700_000_000 * MICROS


class Board:
    """Two clocks that go when they are told."""

    def __init__(self) -> None:
        self.us, self.seconds = START, 0.0

    def clock(self) -> int:
        """The one that can be set."""
        return self.us

    def ticking(self) -> float:
        """The one that cannot."""
        return self.seconds

    def passes(self, seconds: float) -> None:
        """Both go on."""
        self.us += int(seconds * MICROS)
        self.seconds += seconds


def begun(delay: float = 0.0) -> tuple[Board, Ticks]:
    """A stream that was heard once."""
    board = Board()
    ticks = Ticks(board.clock, board.ticking)
    ticks.heard([("s", START - int(delay * MICROS))])
    return board, ticks


def test_a_silent_streams_time_goes_on() -> None:
    """Not at once, and not for a stream that was never heard."""
    board, ticks = begun(delay=3)
    board.passes(0.5)
    assert ticks.now("s") is None
    board.passes(9.5)
    assert ticks.now("s") == START + 7 * MICROS
    assert ticks.now("other") is None


def test_the_usual_delay_is_waited_for() -> None:
    """One reading that came quickly does not make the next one late."""
    board, ticks = begun(delay=8)
    board.passes(10)
    ticks.heard([("s", board.us)])
    board.passes(5)
    assert ticks.now("s") == START + 10 * MICROS
    board.passes(5)
    assert ticks.now("s") == START + 13 * MICROS


def test_a_clock_that_is_set_moves_no_window() -> None:
    """Neither forwards nor back: what passed is told by a clock that is never set."""
    for step in (86_400, -86_400):
        board, ticks = begun()
        board.us += step * MICROS
        board.passes(10)
        assert ticks.now("s") == START + 10 * MICROS


def test_late_readings_say_nothing_of_the_delay() -> None:
    """A backlog of older readings neither wakes the stream nor slows its clock."""
    board, ticks = begun()
    board.passes(10)
    ticks.heard([("s", START - 7200 * MICROS)])
    assert ticks.now("s") == START + 10 * MICROS


def test_a_stream_that_fell_silent_before_a_start_goes_on() -> None:
    """By what has passed since the start; the first reading then tells the delay."""
    board = Board()
    ticks = Ticks(board.clock, board.ticking)
    ticks.resume("s", START - 3600 * MICROS)
    board.passes(10)
    assert ticks.now("s") == START - 3590 * MICROS
    ticks.heard([("s", START + 8 * MICROS)])
    board.passes(5)
    assert ticks.now("s") == START + 13 * MICROS
