"""What waits for a target that takes documents is never made coarser: it is sealed in time, and inputs wait."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from click.testing import CliRunner
from target_suite.memory import MemoryTarget
from thorough import WHOLE, number

from sluicegate.format import chunk as chunks
from sluicegate_agent.commands.replay import replay
from sluicegate_agent.config.load import build
from sluicegate_agent.messages import Message
from sluicegate_agent.pipeline import Pipeline
from sluicegate_agent.record.recorder import Recorder
from sluicegate_agent.state import State
from sluicegate_agent.sync import Sync
from sluicegate_agent.sync.backpressure import LONGEST, Backpressure
from sluicegate_agent.sync.contract import Document, Outcome
from sluicegate_agent.sync.directory import DirectoryTarget

NOON = 1_750_000_000_000_000


class SlowTarget:
    """Another target that has nothing to say the first `delay` times that it is asked."""

    def __init__(self, target: Any, delay: int) -> None:
        self.target, self.delay, self._asked = target, delay, 0
        self._documents: Sequence[Document] = ()

    def put(self, documents: Sequence[Document]) -> Outcome:
        """As the targets of the network, which answer later."""
        if not self._asked:
            self._documents = documents
        self._asked += 1
        if self._asked <= self.delay and self._documents:
            return Outcome(pending=True)
        self._asked = 0
        outcome: Outcome = self.target.put(self._documents)
        return outcome

    def close(self) -> None:
        """Nothing is held open."""


class Board:
    """Many streams of one message a second, at defaults but for `tables`, on a simulated clock."""

    def __init__(self, folder: Path, target: Any, streams: int = 100, **tables: Any) -> None:
        names = {f"s{n}": f"v.{n}" for n in range(streams)}
        source = {"topic": "plant", "streams": names, "sequence": "n", "time": "t", "time_format": "us"}
        raw = {"device": {"id": "board"}, "state": {"path": "state"}, "guard": {"future": 0}, "source": [source]}
        self.config = build(raw | tables, folder / "agent.toml")
        self.state = State(self.config)
        self.pipeline = Pipeline(self.config, self.state, lambda: NOON, Recorder(self.config, self.state))
        self.sync = Sync(self.config, self.state, target)
        self.second, self.streams = 0, streams

    def take(self) -> None:
        """A second of readings, committed."""
        self.second += 1
        said = {
            "n": self.second,
            "t": NOON + self.second * 1_000_000,
            "v": [self.second + n for n in range(self.streams)],
        }
        self.pipeline.accept(Message("plant", json.dumps(said).encode(), self.second % 65535 + 1, 1))
        self.pipeline.commit()

    @property
    def coarser(self) -> int:
        """Single readings that were given up, and merges."""
        counters = self.state.counters
        return counters["outbox.merges"] + counters["outbox.single_readings"]

    def drain(self) -> None:
        """Hand all on."""
        self.pipeline.flush()
        self.pipeline.commit()
        while not self.sync.is_done():
            self.sync.step(float(self.second), flush=True)


@pytest.mark.slow
@pytest.mark.parametrize("target", [*["directory"] * WHOLE, "slow"])
def test_a_hundred_streams_at_defaults_stay_as_fine_as_they_came(tmp_path: Path, target: str) -> None:
    """In half an hour they bring more than the outbox holds; all arrives in single readings, none is merged."""
    memory = MemoryTarget()
    (tmp_path / "chunks").mkdir()
    board = Board(tmp_path, DirectoryTarget(tmp_path / "chunks") if target == "directory" else SlowTarget(memory, 90))
    for _ in range(2200):
        board.take()
        board.sync.step(float(board.second))
        assert board.state.outbox.fullness < 1
    board.drain()
    assert board.coarser == 0
    found = [path.read_bytes() for path in (tmp_path / "chunks").rglob("*.json")] or [*memory.documents.values()]
    got = [chunks.decode(each) for each in found]
    assert sum(bucket.n for chunk in got for bucket in chunk.buckets) == 2200 * 100
    assert all(readings is not None for chunk in got for readings in chunk.readings)
    board.state.close()


def test_offline_it_grows_coarser_in_the_same_disk(tmp_path: Path) -> None:
    """The target is away: nothing waits for it, the budget is kept, and only detail is lost."""
    memory = MemoryTarget()
    memory.away = True
    board = Board(tmp_path, memory, streams=20, outbox={"bytes": "256KiB"})
    pressure = Backpressure(board.sync)
    board.sync.step(0.0, flush=True)
    for _ in range(1500):
        board.take()
        board.sync.step(float(board.second))
        assert board.state.outbox.bytes_held <= 256 * 1024
        assert board.sync.link.state != "down" or not pressure.holds(float(board.second))
    assert board.coarser > 0
    memory.away = False
    board.second += 1000
    board.drain()
    got = [chunks.decode(each) for each in memory.documents.values()]
    assert sum(bucket.n for chunk in got for bucket in chunk.buckets) == 1500 * 20
    board.state.close()


def test_a_brokers_messages_wait_for_a_while_and_no_longer(tmp_path: Path) -> None:
    """A target that never answers holds them for LONGEST seconds; a wait after the outbox was relieved is a new one."""
    slow = SlowTarget(MemoryTarget(), 1 << 30)
    board = Board(tmp_path, slow, streams=20, outbox={"bytes": "256KiB"})
    pressure, file = Backpressure(board.sync), Backpressure(board.sync, float("inf"))
    while not pressure.holds(0.0):
        board.take()
        board.sync.step(0.0)
    assert pressure.holds(LONGEST)
    assert not pressure.holds(LONGEST + 1)
    assert not pressure.holds(LONGEST + 2)
    assert file.holds(0.0)
    assert file.holds(1e6)
    assert board.state.counters["inputs.waited_in_vain"] == 1
    slow.delay = 0
    while board.sync.sealer.used > 0.5:
        board.sync.step(1.0)
    assert not pressure.holds(LONGEST + 3)
    while not pressure.holds(100.0):
        board.take()
    assert pressure.holds(100.0 + LONGEST)
    assert board.coarser == 0
    board.state.close()


CONFIGURATION = """
[device]
id = "d"
[state]
path = "state"
[[source]]
topic = "w"
time = "t"
time_format = "s"
streams = { temp = "temp" }
[outbox]
bytes = "5MiB"
[sync]
target = "directory"
path = "chunks"
"""


@pytest.mark.slow
def test_a_long_file_is_replayed_without_losing_detail(tmp_path: Path) -> None:
    """More readings than the outbox holds: documents are sealed and written in time."""
    readings, outbox = number(200_000, 40_000), number(5, 1)
    (tmp_path / "agent.toml").write_text(CONFIGURATION.replace("5MiB", f"{outbox}MiB"))
    (tmp_path / "chunks").mkdir()
    with (tmp_path / "r.csv").open("w") as file:
        file.write("t,temp\n")
        file.writelines(f"{1_700_000_000 + i},{i % 977 / 8}\n" for i in range(readings))
    arguments = [str(tmp_path / "agent.toml"), "--csv", str(tmp_path / "r.csv"), "--json", "--drain"]
    done = CliRunner().invoke(replay, arguments, catch_exceptions=False)
    assert done.exit_code == 0
    counters = json.loads(done.stdout)["counters"]
    assert counters.get("outbox.merges", 0) == counters.get("outbox.single_readings", 0) == 0
    got = [chunks.decode(path.read_bytes()) for path in (tmp_path / "chunks").rglob("*.json")]
    assert sum(bucket.n for chunk in got for bucket in chunk.buckets) == readings
