"""Sync within a budget: no byte beyond it, nothing lost, what waits coarser when it runs short, and that is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from durable_agent import NOON, configured, sequenced, timed
from target_suite.memory import MemoryTarget

from sluicegate.format import chunk as chunks
from sluicegate_agent.pipeline import Pipeline
from sluicegate_agent.state import State
from sluicegate_agent.status import gather, show
from sluicegate_agent.sync import Sync


class Sender:
    """A pipeline and a sync over a target in memory, with a clock for the budget's day."""

    def __init__(self, folder: Path, **tables: Any) -> None:
        self.config = configured(folder, **tables)
        self.target = MemoryTarget()
        self.packets = 0
        self.clock, self.day = 0.0, NOON / 1e6
        self.open()

    def open(self) -> None:
        """Start, or start again."""
        self.state = State(self.config)
        self.pipeline = Pipeline(self.config, self.state, clock=lambda: NOON)
        self.sync = Sync(self.config, self.state, self.target)
        if self.sync.keeping:
            self.sync.keeping.account._clock = lambda: self.day

    def feed(self, readings: int) -> None:
        """So many readings of one stream."""
        for _ in range(readings):
            self.packets += 1
            self.pipeline.accept(timed(self.packets, self.packets % 65535 + 1, value=(self.packets * 7919 % 1000) / 8))
            if self.pipeline.pending >= 20:
                self.pipeline.commit()
        self.pipeline.commit()

    def step(self, seconds: float = 600.0) -> None:
        """A step after so many seconds, of both clocks."""
        self.clock += seconds
        self.day += seconds
        self.sync.step(self.clock)

    @property
    def sent(self) -> int:
        """Bytes of documents that the target has."""
        return sum(map(len, self.target.documents.values()))

    def readings(self) -> int:
        """Readings at the target, each once: buckets follow one another."""
        following = 0
        for chunk in sorted(
            (chunks.decode(d) for d in self.target.documents.values()), key=lambda c: c.buckets[0].first
        ):
            for bucket in chunk.buckets:
                assert bucket.first == following
                following += bucket.n
        return following


@pytest.fixture
def sender(tmp_path: Path) -> Iterator[Callable[..., Sender]]:
    """Makes a sender; closes it."""
    made: list[Sender] = []

    def make(**tables: Any) -> Sender:
        made.append(Sender(tmp_path, **tables))
        return made[-1]

    yield make
    for one in made:
        one.state.close()


def test_no_day_carries_more_than_its_budget(sender: Callable[..., Sender]) -> None:
    """Fed far more than fits: each day stays within, buckets grow coarser, counts stay whole, status says so."""
    one = sender(sync={"budget": {"bytes": "64KiB"}})
    before = 0
    for _ in range(3):
        for _ in range(24):
            one.feed(400)
            one.step(3600)
        assert one.sent - before <= 2 * 65536  # noon to noon are two halves of days
        assert one.sync.keeping is not None
        assert one.sync.keeping.account.used <= 65536
        before = one.sent
    assert one.state.counters["outbox.merges"] > 0
    spent = gather(one.config)["budget"]
    assert spent["short_since_us"] is not None
    assert "its budget runs short since" in show(gather(one.config))
    one.pipeline.flush()
    one.pipeline.commit()
    for _ in range(4000):
        if one.sync.is_done():
            break
        one.clock += 3600
        one.day += 3600
        one.sync.step(one.clock, flush=True)
    assert one.readings() == one.packets == 3 * 24 * 400


def test_a_budget_that_suffices_changes_nothing(sender: Callable[..., Sender]) -> None:
    """All single readings arrive, and nobody is alarmed."""
    one = sender(sync={"budget": {"bytes": "10MB", "rate": "1MB"}})
    one.feed(320)
    for _ in range(5):
        one.step()
    assert one.readings() == 320
    assert one.state.counters["outbox.merges"] == 0
    assert gather(one.config)["budget"]["short_since_us"] is None
    assert "budget" not in show(gather(one.config))


def test_what_was_spent_is_known_after_a_kill(sender: Callable[..., Sender]) -> None:
    """It is charged before it is sent: a process that dies meanwhile has not sent more than its account says."""
    one = sender(sync={"budget": {"bytes": "64KiB"}})
    one.feed(320)
    one.step()
    assert one.sync.keeping is not None
    used = one.sync.keeping.account.used
    assert used >= one.sent > 0
    one.state.close()
    one.open()
    assert one.sync.keeping.account.used == used


def test_quiet_hours_send_nothing(sender: Callable[..., Sender]) -> None:
    """What waits goes afterwards."""
    one = sender(sync={"budget": {"quiet": ["00:00-23:59"]}})
    one.feed(320)
    one.step()
    assert one.sent == 0
    assert one.sync.keeping is not None
    one.sync.keeping.account.is_quiet = lambda: False  # type: ignore[method-assign]
    one.step()
    assert one.readings() == 320


def test_some_streams_go_first(sender: Callable[..., Sender]) -> None:
    """Where there is room for one document, it is theirs."""
    one = sender(sync={"budget": {"first": ["flow"]}})
    for n in range(1, 101):
        one.pipeline.accept(sequenced(n, n))
        if one.pipeline.pending >= 20:
            one.pipeline.commit()
    one.pipeline.commit()
    due = one.sync.sealer.due(0.0, flush=True)
    assert due[0].name == "flow"
    assert {stream.name for stream in due} == {"flow", "level"}
