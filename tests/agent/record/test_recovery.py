"""A restart that plays the record back finds the state that an agent has which wrote its tables with each commit."""

from __future__ import annotations

import json
import random
import sqlite3
import time
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from durable_agent import (
    BARE,
    LISTED,
    LISTS,
    NOON,
    SECOND,
    SEQUENCED,
    TIMED,
    WITH_ENDS,
    configured,
    frames_of,
    sequenced,
)
from thorough import number

from sluicegate_agent import ticks
from sluicegate_agent.behind import packed_rows
from sluicegate_agent.config import WindowConfig
from sluicegate_agent.messages import Message
from sluicegate_agent.pipeline import Pipeline
from sluicegate_agent.record import file
from sluicegate_agent.record.frame import ADD, ADVANCE
from sluicegate_agent.record.recorder import Recorder
from sluicegate_agent.state import State, read_status, schema
from sluicegate_agent.state.slices import StoredSlices
from sluicegate_agent.state.windows import StoredWindow
from sluicegate_agent.streams import Stream

#: What a window that shares another's buckets knows of its edge depends on who asked it; what a hop has begun is in no
#: state (see StoredWindow), so after a restart it may begin elsewhere.
ALIKE = {"recent", "last9", "peak", "merged", "steps", "each_20s", "runs", "by_7"}
_COMPARED = "name NOT LIKE '%_short' AND name != 'hopping'"


class Clock:
    """One clock for all that asks for the time: µs since 1970, and seconds that are never set."""

    def __init__(self) -> None:
        self.now = NOON

    def wall(self) -> int:
        """As of now."""
        return self.now

    def ticking(self) -> float:
        """As of now."""
        return (self.now - NOON) / SECOND


class Board:
    """An agent's inner half; `recorded`: its commits append to the record. `singly`: readings are folded one by one."""

    def __init__(self, folder: Path, clock: Clock, *, recorded: bool, singly: bool = False, **tables: Any) -> None:
        folder.mkdir(parents=True)
        self.config = configured(folder, WITH_ENDS, [LISTS], **({"held": {"rows": 5}} | tables))
        self.clock, self.is_recorded, self.is_single = clock, recorded, singly
        self.folds = 0
        self.open()

    def open(self) -> None:
        """Begin a life."""
        self.state = State(self.config)
        recorder = Recorder(self.config, self.state) if self.is_recorded else None
        self.pipeline = Pipeline(self.config, self.state, self.clock.wall, recorder)
        for stream in self.state.streams.values() if self.is_single else ():
            stream.__class__ = Singly
        fold = self.pipeline.saving.fold

        def counted() -> None:
            self.folds += 1
            fold()

        self.pipeline.saving.fold = counted  # type: ignore[method-assign]

    def restart(self) -> None:
        """As after kill -9."""
        self.state.close()
        self.open()

    def latest(self, stream: str) -> int:
        """The time that the windows of a stream were told last."""
        windows = self.pipeline.windows[stream]
        return max(each.slices.now if isinstance(each, StoredSlices) else each.window.now or 0 for each in windows)

    def tell_time(self, stream: str, time_us: int) -> None:
        """What the windows were told last and changed nothing may be durable, or not: tell them again."""
        for window in self.pipeline.windows[stream]:
            window.advance(time_us)
            window.changed = True

    def tables(self) -> dict[str, Any]:
        """What the store says, without what two stores never have in common."""
        connection = self.state.store.connection
        read = {
            "stream": "SELECT id, name, row, retired FROM stream",
            "origin": "SELECT stream, name, center FROM origin",
            "window": f"SELECT * FROM window WHERE {_COMPARED}",  # noqa: S608  our own names
            "sequence": "SELECT * FROM sequence",
            "retained": "SELECT * FROM retained",
            "doubtful": "SELECT * FROM doubtful",
            "counter": "SELECT * FROM counter WHERE value != 0 AND name NOT LIKE 'record.%'",
            "dead_letter": "SELECT * FROM dead_letter ORDER BY number DESC LIMIT 10",
            "held": "SELECT * FROM held",
            "meta": "SELECT * FROM meta WHERE key = 'deliveries' OR key LIKE 'clock %'",
        }
        found: dict[str, Any] = {name: sorted(connection.execute(query)) for name, query in read.items()}
        for name, windows in self.pipeline.windows.items():
            number = self.state.streams[name].number
            found["leaves " + name] = [_leaves(connection, number, each.asked[0]) for each in windows]
        return found | {"identity": _entries(connection), "outbox": _buckets(connection)}


class Singly(Stream):
    """Folds each reading as it comes, by itself."""

    __slots__ = ()

    def take(self, value: float, time: int, missing: int, doubt: int = 0) -> None:
        """One, at once."""
        super().take(value, time, missing, doubt)
        self.settle()

    def take_many(self, values: array[float], times: array[int], missing: int) -> None:
        """Each, at once."""
        for value, at in zip(values, times, strict=True):
            self.take(value, at, missing)


def _buckets(connection: sqlite3.Connection) -> list[tuple[Any, ...]]:
    """The outbox's rows, in order; packed ones among them."""
    rows = [tuple(row) for row in connection.execute("SELECT stream, first, bucket, readings FROM outbox")]
    for _, stream, closed in packed_rows(connection):
        rows += [(stream, each.first, each.bucket, each.readings) for each in closed]
    return sorted(rows)


def _leaves(connection: sqlite3.Connection, stream: int, asked: WindowConfig) -> list[Any]:
    """What a restart makes of a window's rows: those of leaves that left go sooner or later."""
    query = "SELECT id FROM window WHERE stream = ? AND name = ?"
    if asked.sliced:
        (number,) = connection.execute(query, (stream, asked.name)).fetchone()
        return sorted(connection.execute("SELECT * FROM window_leaf WHERE window = ?", (number,)))
    return [repr(each) for each in StoredWindow(connection, stream, asked).window.buckets()]


def _entries(connection: sqlite3.Connection) -> dict[str, bytes]:
    """By source, what is known of it, the newest 4,096 entries: rows are cut otherwise by the record."""
    found: dict[str, bytes] = {}
    for source, entries in connection.execute("SELECT source, entries FROM identity ORDER BY source, last"):
        found[source] = found.get(source, b"") + entries
    return found


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """All that asks for the time asks this one."""
    made = Clock()
    monkeypatch.setattr(time, "monotonic", made.ticking)
    monkeypatch.setattr(ticks.Ticks.__init__, "__defaults__", (made.ticking,))
    return made


def messages(rng: random.Random, count: int) -> Iterator[tuple[str, Message | None]]:
    """What happens, and the message where one comes: three kinds of sources, repeats, reboots, rubbish, silence."""
    sent: list[tuple[str, bytes, bool]] = []
    kept: list[bytes] = []  # on their way: some come late
    said = boot = 0
    for step in range(count):
        kind = rng.choice("ssssttaabbbrcccqikx")
        now = NOON + step * SECOND
        if kind == "s":
            said, boot = said + rng.choice((1, 1, 1, 1, 3, -2)), boot + (rng.random() < 0.03)
            at = now - rng.choice((0, 0, 0, 30 * SECOND))
            fields = {"n": max(said, 0), "boot": boot, "t": at, "level": rng.randrange(99) / 10}
            fields["flow"] = rng.choice((rng.random(), None))  # what comes late without it gives it back what it lost
            kept.append(json.dumps(fields).encode())
            sent.append((SEQUENCED, kept.pop(-1 if len(kept) < 3 and rng.random() < 0.7 else 0), False))
        elif kind == "t":
            at = now - rng.choice((0, 0, 5 * SECOND))
            sent.append((TIMED, json.dumps({"t": at, "heat": rng.randrange(999) / 8}).encode(), False))
        elif kind == "a":
            at = now - rng.choice((0, 0, 500 * SECOND))
            many = range(rng.choice((1, 3, 20, 90)))
            items = [{"t": at + each * rng.randrange(SECOND), "x": rng.random(), "y": each / 8} for each in many]
            sent.append((LISTED, json.dumps(items).encode(), False))
        elif kind == "b":
            sent.append((BARE, str(rng.randrange(4) / 8).encode(), rng.random() < 0.1))
        elif kind == "r" and sent:
            sent.append(rng.choice(sent[-20:]))
        elif kind == "x":
            sent.append((SEQUENCED, b"rubbish", False))
        topic, payload, retain = sent[-1] if sent else ("", b"", False)
        comes = kind in "stabrx" and sent
        message = Message(topic, payload, step % 60000 + 1, 1, dup=kind == "r", retain=retain) if comes else None
        yield kind, message


def live(boards: list[Board], clock: Clock, rng: random.Random, count: int, killed: Callable[[], None]) -> None:
    """The same messages, times, commits and kills for all boards."""
    for step, (kind, message) in enumerate(messages(rng, count)):
        for board in boards if message else ():
            board.pipeline.accept(message)  # type: ignore[arg-type]
        clock.now += rng.choice((SECOND // 10, SECOND, SECOND, 3 * SECOND, 90 * SECOND if kind == "i" else SECOND))
        if kind == "q":
            present = rng.random() < 0.8
            for board in boards:
                board.pipeline.connected(session_present=present)
        due = [board.pipeline.due(clock.ticking()) for board in boards]
        if kind == "c" or any(due):
            acknowledged = [board.pipeline.commit() for board in boards]
            assert all(each == acknowledged[0] for each in acknowledged)
            for board in boards:
                board.pipeline.confirmed(board.pipeline.generation)
            told = [{each for each in board.pipeline.results() if each.window in ALIKE} for board in boards]
            assert told[0] == told[1]
        if kind == "k" and step % 2:
            for board in boards:
                board.restart()
            killed()


@pytest.mark.parametrize("seed", range(number(300, 3)))
def test_the_tables_after_a_restart_are_those_of_an_agent_that_wrote_them_each_time(
    seed: int, tmp_path: Path, clock: Clock
) -> None:
    """Streams, buckets, windows, what was seen, counts and letters: to the bit, at any cut after a commit.

    And as if each reading had been folded by itself, where the other one folds all of a batch together.
    """
    boards = [
        Board(tmp_path / name, clock, recorded=name == "recorded", singly=name == "whole")
        for name in ("whole", "recorded")
    ]

    def check() -> None:
        for stream in boards[0].pipeline.windows:
            latest = max(board.latest(stream) for board in boards)
            for board in boards:
                board.tell_time(stream, latest)
        for board in boards:
            board.pipeline.saving.fold()
        whole, recorded = (board.tables() for board in boards)
        for name, rows in whole.items():
            assert recorded[name] == rows, name

    live(boards, clock, random.Random(seed), number(200, 60), check)
    for board in boards:
        board.restart()
    check()
    assert boards[1].folds < boards[0].folds
    for board in boards:
        board.state.close()


@pytest.fixture
def board(tmp_path: Path, clock: Clock) -> Iterator[Board]:
    """One that has written its tables once and recorded twenty commits of a reading of two streams since."""
    made = Board(tmp_path / "board", clock, recorded=True)
    made.pipeline.accept(sequenced(0, 1))
    made.pipeline.commit()
    for n in range(1, 21):
        made.pipeline.accept(sequenced(n, n + 1))
        made.pipeline.commit()
    assert made.folds == 1
    yield made
    made.state.close()


def ordinals(board: Board, stream: str) -> list[tuple[int, int]]:
    """First ordinal and readings of each bucket that waits, closing the open one."""
    board.pipeline.flush()
    board.pipeline.saving.fold()
    number = board.state.streams[stream].number
    rows = _buckets(board.state.store.connection)
    return [(row[1], int.from_bytes(row[2][8:16], "little")) for row in rows if row[0] == number]


def frames(board: Board) -> tuple[Path, list[int]]:
    """The record's file, and where each of its frames begins."""
    path, fold = board.config.state.path / file.NAME, schema.fold(board.state.store.connection)
    assert fold is not None
    return path, [begin for begin, _ in frames_of(path, fold)]


def test_a_restart_counts_what_was_recorded_once(board: Board) -> None:
    """And again after a second restart, since the record begins anew."""
    for _ in range(2):
        board.restart()
        assert board.state.streams["level"].accepted == board.state.streams["flow"].accepted == 21
        assert board.state.counters["accepted"] == 42
    assert ordinals(board, "level") == [(at, 4) for at in range(0, 20, 4)] + [(20, 1)]


@pytest.mark.parametrize("handed", [False, True])
def test_a_damaged_frame_loses_itself_and_what_follows_and_nothing_counts_twice(board: Board, handed: bool) -> None:
    """What is lost is counted. Where its buckets had left the record before, they stay, and no ordinal comes again."""
    if handed:
        with board.state.transaction() as connection:
            board.state.outbox.behind.write(connection)
    path, places = frames(board)
    data = bytearray(path.read_bytes())
    data[places[6] + file.HEAD + 3] ^= 1
    path.write_bytes(data)
    board.restart()
    assert board.state.counters["record.damaged"] == 1
    assert board.state.counters["record.readings_lost"] == 2 * 13
    board.pipeline.accept(sequenced(30, 9))
    board.pipeline.commit()
    following = 0
    for first, n in ordinals(board, "level"):
        assert first >= following
        following = first + n
    assert following == (21 if handed else 8)


def test_a_record_that_is_gone_is_told(board: Board) -> None:
    """The agent goes on from what the tables hold."""
    board.state.close()
    (board.config.state.path / file.NAME).unlink()
    board.open()
    assert board.state.counters["record.damaged"] == 1
    assert board.state.streams["level"].accepted == 1
    board.restart()
    assert board.state.counters["record.damaged"] == 1


@pytest.mark.parametrize("handed", [False, True])
def test_a_store_that_is_salvaged_gets_what_was_recorded(board: Board, handed: bool) -> None:
    """Its rows are those of the last fold: the record goes on from there, and no bucket is there twice."""
    if handed:
        with board.state.transaction() as connection:
            board.state.outbox.behind.write(connection)
    board.state.store.condemn("for this test")
    board.restart()
    assert board.state.store.set_aside == 1
    assert board.state.streams["level"].accepted == 21
    assert board.state.counters["record.damaged"] == 0
    connection = board.state.store.connection
    ours = {number for (number,) in connection.execute("SELECT id FROM stream WHERE name = 'level'")}
    assert [first for number, first, *_ in _buckets(connection) if number in ours] == [0, 4, 8, 12, 16]


def test_a_last_frame_cut_short_was_never_acknowledged(board: Board) -> None:
    """Its message comes again, and counts."""
    path, places = frames(board)
    data = path.read_bytes()
    path.write_bytes(data[: places[-1] + 30])
    board.restart()
    assert board.state.counters["record.damaged"] == 0
    assert board.state.streams["level"].accepted == 20
    board.pipeline.accept(sequenced(20, 1))
    board.pipeline.commit()
    assert board.state.streams["level"].accepted == 21


def test_buckets_close_in_a_restart_as_they_did(board: Board, tmp_path: Path) -> None:
    """Whatever size the configuration asks for by then: what has left the record would overlap otherwise."""
    with board.state.transaction() as connection:
        board.state.outbox.behind.write(connection)
    board.state.close()
    board.config = configured(tmp_path / "board", WITH_ENDS, [LISTS], held={"rows": 5}, bucket={"readings": 7})
    board.open()
    assert ordinals(board, "level") == [(at, 4) for at in range(0, 20, 4)] + [(20, 1)]


def test_whoever_looks_sees_what_was_recorded(board: Board) -> None:
    """`status` beside a running agent, and the losses that `check` looks for: as of the last commit."""
    found = read_status(board.config.state.path)
    assert found["streams"]["level"]["accepted"] == 21
    assert (found["streams"]["level"]["buckets_waiting"], found["outbox"]["rows"]) == (5, 10)
    assert found["counters"]["accepted"] == 42


@pytest.mark.parametrize("after", [1, 2])
def test_whoever_looks_while_the_tables_are_written_sees_no_damage(
    board: Board, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    """The record begins anew over the frames that were read the first or the second time: they are not damaged."""
    real, folds = file.read, [after == 2, after == 1]

    def read(*asked: Any, **named: Any) -> file.Frames | None:
        found = real(*asked, **named)
        if folds and folds.pop():
            board.pipeline.saving.fold()
            board.pipeline.accept(sequenced(21, 5))
            board.pipeline.commit()
        return found

    monkeypatch.setattr(file, "read", read)
    found = read_status(board.config.state.path)
    assert found["streams"]["level"]["accepted"] == (21 if folds else 22)
    assert not found["counters"].get("record.damaged")


def test_a_disk_that_refuses_the_record_refuses_the_commit(board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is acknowledged; the next commit writes the tables with all of it, and counts it once."""

    def refuse(handle: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(file.os, "fdatasync", refuse)
        board.pipeline.accept(sequenced(21, 5))
        with pytest.raises(sqlite3.OperationalError, match="No space left"):
            board.pipeline.commit()
    assert board.pipeline.commit() == [5]
    assert board.folds == 2
    board.restart()
    assert board.state.counters["accepted"] == 44
    assert ordinals(board, "level")[-1] == (20, 2)


def test_after_a_fold_a_reading_says_what_time_its_windows_were_told(board: Board) -> None:
    """The fold wrote those alone that the time changed; once is enough, and a stream that was told none says none."""
    recorder = board.pipeline.recorder
    assert recorder is not None
    recorder.advanced(1, NOON, changed=True)
    board.pipeline.saving.fold()
    for stream in (1, 1, 2):
        recorder.took(stream, array("d", [1.0]), array("q", [NOON]), 0, 0, 0)
    assert [*recorder._steps.kinds] == [ADVANCE, ADD, ADD]
    assert [*recorder._steps.counts] == [0, 2, 1]
    board.pipeline.saving.fold()
