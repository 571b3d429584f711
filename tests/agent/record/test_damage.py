"""A damaged record loses readings and says so: no answer that may lack one is called exact, or has a bound too many."""

from __future__ import annotations

import contextlib
import json
import os
import random
import sqlite3
from collections.abc import Callable, Iterator
from math import fsum
from pathlib import Path

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from durable_agent import NOON, SECOND, configured, frames_of, in_sectors
from target_suite.memory import MemoryTarget

from sluicegate.format import chunk as chunks
from sluicegate_agent.doubts import LOSSES, Doubts, unpack
from sluicegate_agent.messages import EndedResult, Message, Result
from sluicegate_agent.pipeline import Pipeline
from sluicegate_agent.record import file, recovery
from sluicegate_agent.record.recorder import Recorder
from sluicegate_agent.state import State, schema
from sluicegate_agent.status import gather, show
from sluicegate_agent.sync import Sync

ASKED = ["count", "sum", "mean", "max", "min"]
TRUTHS: dict[str, Callable[[list[float]], float]] = {
    "count": len, "sum": fsum, "mean": lambda values: fsum(values) / len(values), "max": max, "min": min,
}  # fmt: skip
WINDOWS = [
    {"name": "time", "policy": {"time": "10s"}, "aggregate": ASKED, "buckets": 64},
    {"name": "count", "policy": {"count": 8}, "aggregate": ASKED, "buckets": 0},
    {"name": "ended", "kind": "tumbling", "evict": {"time": "5s"}, "aggregate": ASKED, "lateness": "0s"},
    {
        "name": "asked", "kind": "sliding", "evict": {"count": 6}, "trigger": {"count": 3}, "aggregate": ASKED,
        "buckets": 0,
    },
]  # fmt: skip
SOURCES = [
    {"topic": "timed", "streams": {"heat": "v"}, "time": "t", "time_format": "us"},
    {"topic": "numbered", "streams": {"level": "v"}, "time": "t", "time_format": "us", "sequence": "n"},
]
#: Of a frame: where each of its parts is; the body's begin, middle and end.
PLACES = {"magic": 0, "fold": 5, "number": 13, "length": 17, "crc": 22}


class Board:
    """Two streams of a reading a second, a commit each; `said` is what was acknowledged, in order."""

    def __init__(self, folder: Path) -> None:
        self.config = configured(folder, window=WINDOWS, source=SOURCES)
        self.said: list[float] = []
        self.rng = random.Random(3)
        self.open()

    def open(self) -> None:
        """Begin a life."""
        self.state = State(self.config)
        self.pipeline = Pipeline(self.config, self.state, lambda: self.now, Recorder(self.config, self.state))

    @property
    def now(self) -> int:
        """The time of the newest reading."""
        return NOON + len(self.said) * SECOND

    def take(self, count: int) -> None:
        """So many readings of each stream."""
        for _ in range(count):
            self.said.append(self.rng.randrange(-80, 80) / 8)
            for source in ("timed", "numbered"):
                payload = {"t": self.now, "v": self.said[-1], "n": len(self.said)}
                self.pipeline.accept(Message(source, json.dumps(payload).encode(), len(self.said), 1))
            self.pipeline.commit()

    @property
    def path(self) -> Path:
        """The record's file."""
        return self.config.state.path / file.NAME

    def damage(self, frame: int, part: str) -> None:
        """Turn a bit over in one frame, and start again."""
        fold = schema.fold(self.state.store.connection)
        assert fold is not None
        begin, size = frames_of(self.path, fold)[frame]
        body = {"first": file.HEAD, "middle": (file.HEAD + size) // 2, "last": size - 1}
        data = bytearray(self.path.read_bytes())
        data[begin + in_sectors(PLACES[part] if part in PLACES else body[part])] ^= 4
        self.state.close()
        self.path.write_bytes(data)
        self.open()

    def answers(self) -> Iterator[tuple[Result, float]]:
        """Each answer, and what is true of all that was acknowledged."""
        held = {"time": self.said[-10:], "count": self.said[-8:]}
        for stream in ("heat", "level"):
            for window, values in held.items():
                for each in self.pipeline.answers(stream, window):
                    yield each, TRUTHS[each.aggregate](values)


def holds(answer: Result, truth: float) -> bool:
    """Whether the truth lies in the interval."""
    low, high = answer.low, answer.high
    assert isinstance(low, int | float | None)
    assert isinstance(high, int | float | None)
    return (low is None or low <= truth + 1e-9) and (high is None or truth - 1e-9 <= high)


def assert_honest(board: Board) -> None:
    """With each reading more every interval holds the truth, until the loss is in none of them."""
    for _ in range(12):
        board.take(1)
        for each, truth in board.answers():
            assert holds(each, truth), each
            assert not each.exact or each.value == pytest.approx(truth), each
    board.take(10)
    assert all(each.exact and holds(each, truth) for each, truth in board.answers())


@pytest.fixture
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Board]:
    """One whose tables hold the first reading and whose record has twenty."""
    made = Board(tmp_path)
    monkeypatch.setattr(recovery, "now_us", lambda: made.now)
    made.take(21)
    yield made
    made.state.close()


@pytest.mark.parametrize("frame", [0, 7, -2, -1])
@pytest.mark.parametrize("part", [*PLACES, "first", "middle", "last"])
def test_answers_that_may_lack_a_reading_say_so(board: Board, frame: int, part: str) -> None:
    """Whatever bit of a frame, the last one too: each interval holds the truth, until the loss is no longer in it."""
    assert all(each.exact and holds(each, truth) for each, truth in board.answers())
    board.damage(frame, part)
    assert board.state.counters["record.damaged"] == 1
    assert_honest(board)


@pytest.mark.parametrize("frame", [0, 7, -1])
def test_windows_that_say_when_they_answer_say_so_too(board: Board, frame: int) -> None:
    """Of those with ends each that began before the loss was found; of those by count until it is out of them."""
    board.damage(frame, "middle")
    board.pipeline.results()
    seen: list[tuple[Result, list[float]]] = []
    for _ in range(24):
        board.take(1)
        for each in board.pipeline.results():
            if isinstance(each, EndedResult):
                begin, end = (each.start_us - NOON) // SECOND, (each.end_us - NOON) // SECOND
                seen.append((each, board.said[max(begin - 1, 0) : end - 1]))
            elif each.window == "asked":
                seen.append((each, board.said[-6:]))
    assert {each.window for each, _ in seen} == {"ended", "asked"}
    for each, values in seen:
        assert holds(each, TRUTHS[each.aggregate](values)), each
        assert not each.exact or each.value == pytest.approx(TRUTHS[each.aggregate](values)), each
    assert {(each.window, each.exact) for each, _ in seen} == {
        (w, e) for w in ("ended", "asked") for e in (True, False)
    }


def test_the_loss_is_remembered_and_told(board: Board) -> None:
    """After further restarts too; by `status` as well."""
    board.damage(7, "middle")
    for _ in range(2):
        board.state.close()
        board.open()
        board.take(1)
        assert not any(each.exact for each, _ in board.answers())
        assert board.state.counters["record.damaged"] == 1
    board.state.close()
    told = show(gather(board.config))
    assert "readings that were acknowledged are lost, 24 that could be told" in told
    assert "tumbling windows: time 5s" in told
    board.open()


def test_the_cloud_hears_of_a_gap(board: Board) -> None:
    """Without numbers at least what can still be told, with numbers exactly what is missing."""
    board.damage(7, "middle")
    board.take(1)
    board.pipeline.flush()
    board.pipeline.saving.fold()
    target, gaps = MemoryTarget(), {"heat": 0, "level": 0}
    sync = Sync(board.config, board.state, target)
    while not sync.is_done():
        sync.step(0.0, flush=True)
    for each in map(chunks.decode, target.documents.values()):
        gaps[each.stream] += sum(bucket.gap for bucket in each.buckets)
    assert gaps == {"heat": 13, "level": 13}


def test_a_record_that_is_gone_puts_all_in_doubt(board: Board) -> None:
    """Nobody knows what stood in it."""
    board.state.close()
    board.path.unlink()
    board.open()
    board.take(1)
    assert not any(each.exact for each, _ in board.answers())
    assert all(holds(each, truth) for each, truth in board.answers())


@pytest.mark.parametrize("change", [*(f"value = value ^ {1 << bit}" for bit in range(0, 63, 7)), "key = 'recorc'"])
def test_tables_that_do_not_tell_their_record_put_all_in_doubt(board: Board, change: str) -> None:
    """A bit of the number that says which frames follow, or of its name: the frames are there, but whose are they?"""
    board.state.close()
    with contextlib.closing(sqlite3.connect(board.state.store.path)) as store:
        store.execute(f"UPDATE meta SET {flipped(change)} WHERE key = 'record'")  # noqa: S608
        store.commit()
    board.open()
    assert board.state.counters["record.damaged"] == 1
    board.take(1)
    assert not any(each.exact for each, _ in board.answers())
    assert all(holds(each, truth) for each, truth in board.answers())


def flipped(change: str) -> str:
    """SQLite has no ^."""
    name, _, bit = change.partition(" ^ ")
    return f"value = (value | {bit}) - (value & {bit})" if bit else name


@pytest.mark.parametrize("left", [0, 20])
def test_a_last_frame_that_was_cut_short_was_never_acknowledged(board: Board, left: int) -> None:
    """As a power cut leaves it: nothing is said of it."""
    fold = schema.fold(board.state.store.connection)
    assert fold is not None
    begin, _ = frames_of(board.path, fold)[-1]
    board.state.close()
    os.truncate(board.path, begin + left)
    board.open()
    assert board.state.counters["record.damaged"] == 0
    board.said.pop()
    board.take(1)
    assert all(each.exact and holds(each, truth) for each, truth in board.answers())


def test_losses_are_bounded_and_read_back() -> None:
    """The oldest two are told of together."""
    doubts = Doubts()
    doubts.add(1, 10, 2.0)
    for at in range(LOSSES + 3):
        doubts.lose(at, 100 - at)
    assert len(doubts.losses) == LOSSES
    assert doubts.losses[0] == (3, 100, frozenset())
    doubts.lose(50, 60, ["one", "two"])
    assert unpack(doubts.pack()) == (1, doubts.blocks, doubts.losses)


def flip_rows(path: Path) -> None:
    """A bit in the state of each window."""
    with contextlib.closing(sqlite3.connect(path)) as store:
        for number, state in store.execute("SELECT id, state FROM window").fetchall():
            store.execute("UPDATE window SET state = ? WHERE id = ?", (state[:-1] + bytes([state[-1] ^ 1]), number))
        store.commit()


def garble(path: Path) -> None:
    """A definition that is no text any more: SQLite's own message cannot be read then."""
    path.write_bytes(path.read_bytes().replace(b"CREATE TABLE held", b"CREATE TABLE h\xe5ld"))


def misspell(path: Path) -> None:
    """A definition of which a column has another name."""
    path.write_bytes(path.read_bytes().replace(b"retired INTEGER", b"retireb INTEGER"))


def lose_a_page(path: Path) -> None:
    """The first page is gone: nobody knows which rows of windows were still theirs."""
    path.write_bytes(bytes(4096) + path.read_bytes()[4096:])


@pytest.mark.parametrize("damage", [flip_rows, garble, misspell, lose_a_page])
def test_windows_of_a_damaged_store_say_so(board: Board, damage: Callable[[Path], None]) -> None:
    """It goes on, and no answer is called exact, or has a bound too many, until what is lost would have left it."""
    board.pipeline.saving.fold()
    store = board.state.store.path
    board.state.close()
    before = store.read_bytes()
    damage(store)
    assert store.read_bytes() != before
    board.open()
    assert_honest(board)
