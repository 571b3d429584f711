"""What cannot be judged yet waits: acknowledged, durable, bounded, and counted or refused once in the end."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from durable_agent import NOON, SECOND, SEQUENCED, TIMED, sequenced
from test_pipeline import Board

from sluicegate_agent.identity.clock import Guard
from sluicegate_agent.messages import Message
from sluicegate_agent.plan import plan

DAY = 86_400 * SECOND


@pytest.fixture
def board(tmp_path: Path) -> Iterator[Callable[..., Board]]:
    """Makes a board; closes it."""
    made: list[Board] = []

    def make(**tables: Any) -> Board:
        made.append(Board(tmp_path, **({"mqtt": {"receive_maximum": 1000}, "guard": {"future": "1d"}} | tables)))
        return made[-1]

    yield make
    for one in made:
        one.state.close()


def at(time: int, packet: int = 1, topic: str = TIMED) -> Message:
    """A message with a time, whose value follows from it."""
    return Message(topic, json.dumps({"t": time, "heat": time % 97 / 8}).encode(), packet, 1)


def look(one: Board) -> None:
    """As the agent does each second."""
    one.pipeline.silence.looks_at = float("-inf")
    one.pipeline.due(0.0)
    one.pipeline.commit()


@pytest.mark.parametrize("restarts", [False, True])
def test_a_board_three_days_behind_loses_nothing(board: Callable[..., Board], restarts: bool) -> None:
    """2,000 right readings wait, acknowledged; all count when the clock is set; sent again, none counts twice."""
    one = board()
    messages = [at(NOON + second * SECOND, second % 60_000 + 1) for second in range(2000)]
    one.now = NOON - 3 * DAY
    for start in range(0, 2000, 400):
        assert len(one.take(*messages[start : start + 400])) == 400
    assert one.accepted() == {}
    one.take(*messages[:300])
    assert one.state.counters["duplicates"] == 300
    if restarts:
        one.state.close()
        one.restart()
    one.now = NOON + 2000 * SECOND
    look(one)
    assert one.accepted() == {"heat": 2000}
    if restarts:
        one.restart()
    one.take(*messages[:700])
    assert one.accepted() == {"heat": 2000}
    assert one.state.counters["refused.future"] == 0
    assert sum(bucket.n for bucket in one.outbox("heat")) == 2000
    assert one.state.store.connection.execute("SELECT count(*) FROM held").fetchone() == (0,)


def test_a_clock_that_steps_back_and_forth(board: Callable[..., Board]) -> None:
    """Set three days back while it runs: what comes then waits until it is set right, and nothing is late or lost."""
    one = board()
    one.take(*(sequenced(number, number + 1) for number in range(10)))
    one.now -= 3 * DAY
    one.take(*(sequenced(number, number + 1) for number in range(10, 30)))
    assert one.accepted()["level"] == 10
    one.now += 3 * DAY
    one.take(*(sequenced(number, number + 1) for number in range(30, 40)))
    assert one.accepted()["level"] == 40
    assert one.state.streams["level"].late == 0
    assert sum(bucket.gap for bucket in one.outbox("level")) == 0


def test_the_oldest_timed_message_is_refused_and_is_new_when_it_comes_again(board: Callable[..., Board]) -> None:
    """Ten wait: of 15, five are refused with counter and dead letter, and known as seen no more."""
    one = board(held={"rows": 10})
    one.now = NOON - 3 * DAY
    one.take(*(at(NOON + second * SECOND) for second in range(15)))
    assert one.state.counters["refused.future"] == 5
    assert "guard.future" in one.letters()[0].reason
    one.restart()
    one.now = NOON
    one.take(*(at(NOON + second * SECOND) for second in range(15)))
    assert one.accepted() == {"heat": 15}


def test_the_oldest_numbered_message_is_refused_and_is_new_when_it_comes_again(board: Callable[..., Board]) -> None:
    """The same by number, also when it is refused after a restart; meanwhile it counts as missing."""
    one = board(held={"rows": 10})
    one.now = NOON - 3 * DAY
    one.take(*(sequenced(number, number + 1) for number in range(15)))
    assert one.state.counters["refused.future"] == 10, "each has two readings"
    one.restart()
    one.take(sequenced(15, 1), sequenced(16, 1))
    assert one.state.counters["refused.future"] == 14
    one.restart()
    one.now = NOON
    one.take(*(sequenced(number, number + 1) for number in range(17)))
    assert one.accepted() == {"level": 17, "flow": 17}
    assert sum(bucket.gap for bucket in one.outbox("level")) == 0


def test_no_more_bytes_wait_than_allowed_and_the_plan_counts_them(board: Callable[..., Board]) -> None:
    """`held.bytes` bounds the payloads, whatever their number; plan has a line of it."""
    one = board(held={"bytes": "1KiB"})
    one.now = NOON - 3 * DAY
    for second in range(60):
        one.take(at(NOON + second * SECOND))
        held = one.state.store.connection.execute("SELECT coalesce(sum(length(payload)), 0) FROM held").fetchone()[0]
        assert held <= 1024
    line = next(line for line in plan(one.config).lines if line.part == "messages that wait to be judged")
    assert line.memory > 1024 < line.disk


def test_of_a_message_only_the_readings_that_are_too_far_ahead_wait(board: Callable[..., Board]) -> None:
    """A list with one time that is ahead: the others count at once, it counts when the clock is set, none twice."""
    source = {"topic": "list", "format": "array", "time": "t", "time_format": "us", "streams": {"x": "v"}}
    one = board(source=[source])
    items = [{"t": NOON, "v": 1}, {"t": NOON + 2 * DAY, "v": 2}, {"t": NOON + SECOND, "v": 3}]
    message = Message("list", json.dumps(items).encode(), 1, 1)
    one.take(message)
    assert one.accepted() == {"x": 2}
    one.take(message)
    one.now += 2 * DAY
    look(one)
    assert one.accepted() == {"x": 3}
    assert one.state.status()["streams"]["x"]["late"] == 0


def test_a_beginning_that_waits_is_there_after_a_restart(board: Callable[..., Board]) -> None:
    """0 after 99: acknowledged and waiting; after kill -9 comes 1, and both count, logged and counted."""
    one = board()
    source = [{"topic": SEQUENCED, "sequence": "n", "streams": {"level": "level"}}]
    one.state.close()
    one = board(source=source)

    def numbered(number: int, level: float) -> Message:
        return Message(SEQUENCED, json.dumps({"n": number, "level": level}).encode(), 1, 1)

    one.take(*(numbered(number, number) for number in range(100)))
    assert one.take(numbered(0, 0.5)) == [1]
    assert one.accepted() == {"level": 100}
    one.restart()
    one.take(numbered(0, 0.5), numbered(1, 1.5), numbered(2, 2.5))
    assert one.accepted() == {"level": 103}
    assert one.state.counters["sequence_restarts"] == 1
    assert one.state.counters["duplicates"] == 1
    one.take(numbered(2**32, 9.0))
    one.restart()
    one.take(numbered(3, 3.5))
    assert one.state.counters["refused.sequence_jump"] == 1
    assert "no second message" in one.letters()[0].reason
    assert one.state.store.connection.execute("SELECT count(*) FROM held").fetchone() == (0,)


class Now:
    """A wall clock and a monotonic one that a test moves, and a kernel that says what it is told to."""

    def __init__(self) -> None:
        self.wall, self.mono, self.synchronised = NOON, 0.0, False

    def guard(self) -> Guard:
        """A guard of a day by these clocks."""
        return Guard(DAY, lambda: self.wall, lambda: self.mono, lambda: self.synchronised, sources=4)

    def passes(self, seconds: float) -> None:
        """Time goes on, on both."""
        self.wall += int(seconds * SECOND)
        self.mono += seconds


def test_most_sources_together_are_believed_and_one_alone_never() -> None:
    """Of four, one or two are ahead: nothing; three by about as much: the clock is behind by the least of them."""
    now = Now()
    guard = now.guard()
    assert guard.was_set(waiting=True), "at a start all is judged again"
    leads = {"a": 3 * DAY, "b": 3 * DAY + 9 * SECOND, "c": 0, "d": 0}
    for name, lead in leads.items():
        guard.heard(name, lead)
    assert not guard.was_set(waiting=True)
    assert guard.latest(NOON) == NOON + DAY
    guard.heard("c", 3 * DAY + SECOND)
    assert guard.was_set(waiting=True)
    assert guard.latest(NOON) == NOON + 3 * DAY + DAY


def test_an_insane_sensor_alone_drags_nothing() -> None:
    """One source, or one of two, or two that differ by years: the board's clock is what counts."""
    for leads in ({"a": 900 * DAY}, {"a": 900 * DAY, "b": 0}, {"a": 900 * DAY, "b": 3 * DAY}):
        now = Now()
        guard = Guard(DAY, lambda: now.wall, lambda: now.mono, lambda: False, sources=len(leads))  # noqa: B023
        guard.was_set(waiting=False)
        for name, lead in leads.items():
            guard.heard(name, lead)
        assert not guard.was_set(waiting=True)
        assert guard.latest(NOON) == NOON + DAY


def test_a_clock_that_the_kernel_calls_synchronised_is_not_overruled() -> None:
    """Not by all sources together; and when it becomes synchronised, what waits is judged again, once."""
    now = Now()
    guard = now.guard()
    guard.was_set(waiting=False)
    now.synchronised = True
    now.passes(60)
    assert guard.was_set(waiting=True)
    for name in ("a", "b", "c"):
        guard.heard(name, 3 * DAY)
    assert not guard.was_set(waiting=True)
    assert guard.latest(NOON) == NOON + DAY


def test_steps_are_told_from_time_that_passes() -> None:
    """A second of the monotonic clock, an hour without a look, a slew of NTP: none; a step both ways: one each."""
    now = Now()
    guard = now.guard()
    guard.was_set(waiting=False)
    for seconds in (1, 3600, 86_400):
        now.passes(seconds)
        now.wall += int(seconds * 500)  # 0.5 ms a second
        if seconds < 2000:
            assert not guard.was_set(waiting=False)
    guard.was_set(waiting=False)
    for step in (-3 * DAY, 3 * DAY):
        now.wall += step
        assert guard.was_set(waiting=False)
        assert not guard.was_set(waiting=False)


def test_more_epochs_than_are_kept_through_a_full_disk(board: Callable[..., Board]) -> None:
    """Commits fail for a while, the broker repeats what it has no PUBACK for, a kill at last: 18 epochs count 18."""
    one = board()
    messages = [sequenced(0, boot + 1, boot=str(boot)) for boot in range(18)]
    connection = one.state.store.connection
    connection.execute(f"PRAGMA max_page_count = {connection.execute('PRAGMA page_count').fetchone()[0]}")
    filler = [at(NOON + second * SECOND, 100 + second) for second in range(600)]
    for message in (*messages, *filler):
        one.pipeline.accept(message)
    for _ in range(3):
        with pytest.raises(sqlite3.OperationalError, match="full"):
            one.pipeline.commit()
        one.pipeline.connected(session_present=True)
        for message in messages:
            one.pipeline.accept(message)
    connection.execute("PRAGMA max_page_count = 1000000")
    one.pipeline.commit()
    one.restart()
    one.take(*messages)
    assert one.accepted()["level"] == 18
