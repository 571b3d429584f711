"""After an outage what is new has its share of the link, beside the backlog, and every reading is there once."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from durable_agent import NOON, SECOND, configured
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.format import chunk as chunks
from sluicegate_agent.config.errors import ConfigError
from sluicegate_agent.messages import Message
from sluicegate_agent.pipeline import Pipeline
from sluicegate_agent.record.recorder import Recorder
from sluicegate_agent.state import State
from sluicegate_agent.streams import Stream
from sluicegate_agent.sync import Document, Outcome, Sync, sealing
from sluicegate_agent.sync.fresh import Fresh, Shares

BACKLOG, MORE = 400, 400


class Slow:
    """A target that is away, or takes what it is given one turn later."""

    def __init__(self) -> None:
        self.is_away = True
        self.documents: dict[str, chunks.Chunk] = {}
        self._waiting: list[Document] = []

    def put(self, documents: Sequence[Document]) -> Outcome:
        """Refuse, or answer for what came before."""
        if self.is_away:
            return Outcome(retry_after=0.0, error="away")
        if documents:
            self._waiting = [*documents]
            return Outcome(pending=True)
        taken, self._waiting = self._waiting, []
        self.documents |= {each.id: chunks.decode(each.data) for each in taken}
        return Outcome(accepted=[each.id for each in taken])

    def close(self) -> None:
        """Nothing is held open."""


class Board:
    """An agent's inner half with one stream, and a target that is slower than its backlog is long."""

    def __init__(self, folder: Path, fresh: str) -> None:
        sync = {"target": "directory", "path": str(folder / "out"), "budget": {"fresh": fresh}}
        outbox = {"chunk_buckets": 4, "chunk_age": "1s"}
        self.config = configured(folder, sync=sync, outbox=outbox, bucket={"readings": 4})
        self.target, self.count, self.now = Slow(), 0, 0.0
        self.parted = BACKLOG
        self.open()

    def open(self) -> None:
        """Begin a life."""
        self.state = State(self.config)
        self.pipeline = Pipeline(self.config, self.state, lambda: NOON, Recorder(self.config, self.state))
        self.sync = Sync(self.config, self.state, self.target)
        self.fresh = Fresh(self.pipeline, self.sync)

    def take(self, count: int) -> None:
        """So many readings, and a commit."""
        for _ in range(count):
            payload = {"t": NOON + self.count * SECOND, "heat": self.count % 7}
            self.pipeline.accept(Message("plant/timed", json.dumps(payload).encode(), 1, 1))
            self.count += 1
        self.pipeline.commit()

    def step(self, *, flush: bool = False) -> None:
        """A turn of the agent, some seconds later."""
        self.now += 400.0
        self.sync.step(self.now, flush=flush)
        before = self.state.counters["sync.parted"]
        self.fresh.look()
        if self.state.counters["sync.parted"] > before:
            self.parted = self.count
        self.pipeline.commit()

    def restart(self) -> None:
        """As after kill -9."""
        self.state.close()
        self.open()

    @property
    def order(self) -> list[int]:
        """First ordinals of the documents, as they came."""
        return [each.buckets[0].first for each in self.target.documents.values()]


@pytest.fixture
def board(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Board]:
    """One that was away for BACKLOG readings; four documents are sealed at a time, as for a slow link."""
    monkeypatch.setattr(sealing, "DOCUMENTS_MOST", 4)
    made = Board(tmp_path, request.param)
    for _ in range(BACKLOG // 20):
        made.take(20)
        made.step()
    made.target.is_away = False
    yield made
    made.state.close()


@pytest.mark.parametrize("board", ["0%", "50%", "100%"], indirect=True)
@pytest.mark.parametrize("restarts", [False, True])
def test_what_is_new_goes_beside_the_backlog(board: Board, restarts: bool) -> None:
    """By its share; none means the oldest first. After all of it there is no hole, and nothing is there twice."""
    for turn in range(MORE // 8):
        board.take(8)
        board.step()
        if restarts and turn % 7 == 3:
            board.restart()
    share, order = board.config.sync.budget.fresh, board.order
    old, new = ([first for first in order if (first < board.parted) == is_old] for is_old in (True, False))
    assert (old, new) == (sorted(old), sorted(new))
    assert bool(share) == (order.index(new[0]) < order.index(old[-1]))
    board.pipeline.flush()
    board.pipeline.commit()
    for _ in range(400):
        if board.sync.is_done():
            break
        board.step(flush=True)
    ends = sorted(
        (each.first, each.first + each.n) for chunk in board.target.documents.values() for each in chunk.buckets
    )
    assert [begin for begin, _ in ends] == [0, *(end for _, end in ends[:-1])]
    assert ends[-1][1] == board.count == BACKLOG + MORE
    assert board.state.streams["heat"].accepted == board.count
    window = board.config.windows_of("heat")[0].name
    assert {each.ordinal for each in board.pipeline.answers("heat", window)} == {board.count - 1}


@pytest.mark.parametrize("board", ["50%"], indirect=True)
def test_a_stream_is_parted_once_for_an_outage(board: Board) -> None:
    """And the lane that it leaves behind goes when it is empty."""
    for _ in range(60):
        board.take(2)
        board.step()
    assert board.state.counters["sync.parted"] == 1
    assert not board.state.outbox.lanes.get(board.state.retired[0].number)
    board.restart()
    assert board.state.retired == []


@given(
    share=st.sampled_from([0.1, 0.25, 0.5, 0.9]),
    costs=st.lists(st.integers(1, 1000), min_size=40, max_size=80),
)
def test_each_kind_has_its_share(share: float, costs: list[int]) -> None:
    """Within one document of it, at any time while both wait."""
    old, new = Stream(1, "a", 4, 4), Stream(2, "a", 4, 4)
    old.is_retired = True
    shares, spent = Shares(share), {True: 0, False: 0}
    for cost in costs:
        turn = next(shares.in_turn([old, new]))
        shares.sealed(turn, cost)
        spent[turn.is_retired] += cost
        assert abs(spent[False] - share * sum(spent.values())) <= 1000


@pytest.mark.parametrize("share", ["101%", -0.5])
def test_a_share_is_a_part(tmp_path: Path, share: Any) -> None:
    """Others are refused by name."""
    with pytest.raises(ConfigError, match=r"sync\.budget\.fresh"):
        configured(tmp_path, sync={"target": "directory", "path": "out", "budget": {"fresh": share}})
