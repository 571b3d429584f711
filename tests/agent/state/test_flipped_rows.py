"""Whatever bit of the state's rows is flipped: answers are true or say that they are in doubt; nothing counts twice."""

from __future__ import annotations

import random
import sqlite3
from pathlib import Path

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from durable_agent import NOON, configured
from flipped import Board, columns, flip, placed
from thorough import number

from sluicegate_agent.errors import EnvironmentRefused
from sluicegate_agent.identity.unsure import Unsure, lose_memory
from sluicegate_agent.messages import Message
from sluicegate_agent.pipeline import Pipeline
from sluicegate_agent.state import State
from sluicegate_agent.state import state as state_module
from sluicegate_agent.state.schema import create

VERSION_8 = Path(__file__).parents[2] / "cases/agent_stores/version-8.sql"


@pytest.fixture
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Board:
    """One for each test."""
    return placed(tmp_path, monkeypatch)


def test_each_flipped_bit_is_harmless_or_told(board: Board) -> None:
    """A bit of each column of each table, of more rows at night; a version that is newer may be refused."""
    rng = random.Random(17)
    assert board.faults() == []
    board.restore()
    found, wrong = columns(board.path), list[str]()
    assert {table for table, _ in found} >= {"stream", "origin", "tagged", "chunk", "identity", "retained", "packed"}
    assert {table for table, _ in found} >= {"counter", "departed", "replay", "dead_letter"}
    for (table, column), rows in found.items():
        for _ in range(number(40, 1)):
            board.restore()
            what = flip(board.path, table, column, *rng.choice(rows), rng)
            try:
                wrong += [f"{what}: {fault}" for fault in board.faults()[:1]]
            except EnvironmentRefused as error:
                if "schema version" not in str(error):
                    wrong.append(f"{what}: {error}")
    assert not wrong


@pytest.mark.parametrize("table", ["identity", "sequence"])
def test_what_comes_again_after_a_loss_of_memory_is_in_doubt(table: str, board: Board) -> None:
    """The newest rows of what was seen: the broker sends again what they knew."""
    rng = random.Random(3)
    for row, names in columns(board.path)[table, "source"][-4:]:
        for column in {"identity": ["source", "entries", "last"], "sequence": ["source", "row"]}[table]:
            board.restore()
            what = flip(board.path, table, column, row, names, rng)
            assert not board.faults(), what


def test_a_loss_of_memory_ends() -> None:
    """After as many messages as may be repeats; those with times only as far as they are not later than the loss."""
    with sqlite3.connect(":memory:", isolation_level=None) as store:
        create(store)
        assert Unsure(store, 2, 2).doubt(None) == 0
        lose_memory(store, 10)
        unsure = Unsure(store, 2, 3)
        assert unsure.after(0) == 11
        assert [unsure.doubt(time) for time in (None, 10, 11, 9, None, None)] == [1, 1, 0, 1, 1, 0]
        unsure.save(store)
        unsure = Unsure(store, 2, 3)
        assert [unsure.doubt(time) for time in (None, 10, 10)] == [0, 1, 0]
        assert unsure.after(0) == 0


def test_numbers_after_a_loss_of_memory_are_in_doubt(tmp_path: Path) -> None:
    """Those that a broker may have on their way, however many are taken together; the next one is new."""
    door = {"topic": "door", "format": "number", "streams": {"door": ""}}
    config = configured(tmp_path, window=[], source=[door])
    with State(config) as state:
        with state.transaction() as connection:
            lose_memory(connection, NOON, left=3)
        pipeline = Pipeline(config, state, lambda: NOON + 1)
        messages = [Message("door", b"20.5", packet_id, 1) for packet_id in range(1, 6)]
        taken = 0
        while taken < len(messages):
            taken += pipeline.accept_all(messages[taken:])
        assert (state.counters["accepted"], state.counters["undecidable"]) == (5, 3)


def test_a_store_of_before_checksums_opens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Version 8: names, tags, documents and what was retained are read as they are; a damage of it can be salvaged."""
    monkeypatch.setattr(state_module, "home", lambda _: {"inode": "1"})
    door = {"topic": "door", "format": "number", "streams": {"door": ""}}
    plant = {
        "topic": "plant/{key}", "streams": {"p": "v"}, "time": "t", "time_format": "us", "sequence": "n",
        "tags": {"line": "{payload.line}"}, "keys": {"most": 1, "evict": "oldest"},
    }  # fmt: skip
    config = configured(tmp_path, window=[], source=[door, plant], outbox={"chunk_buckets": 2})
    config.state.path.mkdir()
    frozen = sqlite3.connect(config.state.path / "state.db")
    frozen.executescript(VERSION_8.read_text())
    frozen.close()
    for damaged in (False, True):
        with State(config) as state:
            assert state.streams["p/b"].tags == {"line": "north"}
            assert state.outbox.sealed == 3
            assert not any(name.startswith("rows.lost") for name in state.counters.as_dict())
            pipeline = Pipeline(config, state)
            pipeline.accept(Message("door", b"20.5", 9, 1, retain=True))
            pipeline.commit()
            assert state.counters["duplicates"] == 1 + damaged
            state.store.condemn("for the test")
