"""Chunks reach the target once each, whatever it does; while it is away the budget holds and nothing is lost."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from durable_agent import NOON, configured, sequenced, timed
from msgspec.structs import replace
from target_suite.memory import MemoryTarget

from sluicegate.format import chunk as chunks
from sluicegate_agent import refused
from sluicegate_agent.outbox import REJECTED_KEPT
from sluicegate_agent.pipeline import Pipeline
from sluicegate_agent.state import State, read_status
from sluicegate_agent.status import gather, show
from sluicegate_agent.sync import Sync
from sluicegate_agent.sync.apart import Apart
from sluicegate_agent.sync.link import FIRST_DELAY, LONGEST_DELAY, Link
from sluicegate_agent.sync.sealing import DOCUMENTS_MOST
from sluicegate_agent.sync.sync import target_of


class Sender:
    """A pipeline and a sync over a target in memory; `packets` counts messages."""

    def __init__(self, folder: Path, **tables: Any) -> None:
        self.config = configured(folder, **tables)
        self.target = MemoryTarget()
        self.packets = 0
        self.clock = 0.0
        self.open()

    def open(self) -> None:
        """Start, or start again."""
        self.state = State(self.config)
        self.pipeline = Pipeline(self.config, self.state, clock=lambda: NOON)
        self.sync = Sync(self.config, self.state, self.target)

    def restart(self) -> None:
        """As after kill -9."""
        self.state.close()
        self.open()

    def feed(self, readings: int) -> None:
        """So many readings of one stream, with a commit at the end."""
        for _ in range(readings):
            self.packets += 1
            self.pipeline.accept(timed(self.packets, self.packets % 65535 + 1, value=self.packets / 8))
            if self.pipeline.pending >= 20:
                self.pipeline.commit()
        self.pipeline.commit()

    def step(self, seconds: float = 1000.0, *, flush: bool = False) -> None:
        """A step after so many seconds."""
        self.clock += seconds
        self.sync.step(self.clock, flush=flush)

    def drain(self) -> None:
        """Hand everything on."""
        self.pipeline.flush()
        self.pipeline.commit()
        while not self.sync.is_done():
            self.step(flush=True)

    def arrived(self) -> list[chunks.Chunk]:
        """What the target has, by first ordinal."""
        return [chunks.decode(self.target.documents[name]) for name in sorted(self.target.documents)]

    def check(self, readings: int) -> None:
        """Each of so many readings is in one bucket."""
        following, total = 0, 0.0
        for chunk in self.arrived():
            for bucket in chunk.buckets:
                assert bucket.first == following
                following += bucket.n
                total += bucket.total + bucket.n * chunk.center
        assert following == readings
        assert total == sum(range(1, readings + 1)) / 8


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


def test_full_chunks_go_at_once_and_short_ones_when_they_are_old(sender: Callable[..., Sender]) -> None:
    """At `chunk_buckets` a chunk is sealed; fewer wait for `chunk_age`."""
    one = sender(outbox={"chunk_age": "1h"})
    one.feed(4 * 8)
    one.step()
    assert [len(chunk.buckets) for chunk in one.arrived()] == [8]
    one.feed(4 * 3)
    one.step()
    assert len(one.arrived()) == 1
    one.step(3700)
    assert [len(chunk.buckets) for chunk in one.arrived()] == [8, 3]
    assert one.sync.is_done()


def test_a_chunk_carries_readings_and_health(sender: Callable[..., Sender]) -> None:
    """On a healthy link the single readings arrive, with the agent's own counters beside them."""
    one = sender()
    one.feed(32)
    one.step()
    chunk = one.arrived()[0]
    singles = [readings for readings in chunk.readings if readings is not None]
    assert [value for _, values in singles for value in values] == [n / 8 for n in range(1, 33)]
    assert chunk.health is not None
    assert chunk.health["counters"]["accepted"] == 32
    assert chunk.health["peak_rss_bytes"] > 0


@pytest.mark.parametrize("restarts", [False, True])
def test_a_lost_answer_sends_the_same_bytes_again(sender: Callable[..., Sender], restarts: bool) -> None:
    """The target had taken them: the second time is success, also from another process, and nothing is there twice."""
    one = sender()
    one.feed(100)
    one.target.lost_answers = 2
    one.step()
    first = dict(one.target.documents)
    assert first
    assert one.state.outbox.sealed > 0
    one.feed(50)
    if restarts:
        one.restart()
    one.drain()
    assert first.items() <= one.target.documents.items()
    one.check(150)
    assert one.state.counters["sync.rejected"] == 0


def test_a_long_outage_never_exceeds_the_budget_and_loses_nothing(sender: Callable[..., Sender]) -> None:
    """Measured after each commit: rows, bytes and the file; afterwards every reading is there, only coarser."""
    one = sender(outbox={"rows": 60, "bytes": "24KiB", "chunk_buckets": 8}, window=[])
    one.feed(100)
    one.step()
    one.target.away = True
    on_disk = []
    for _ in range(400):
        one.feed(20)
        one.step()
        outbox = one.state.outbox
        rows, length = one.state.store.connection.execute(
            "SELECT count(*), total(length(bucket) + coalesce(length(readings), 0)) FROM outbox"
        ).fetchone()
        documents = one.state.store.connection.execute("SELECT total(length(document)) FROM chunk").fetchone()[0]
        assert rows <= 60
        assert length + documents <= outbox.bytes_held <= 24 * 1024
        assert outbox.sealed <= DOCUMENTS_MOST
        on_disk.append(one.state.store.path.stat().st_size)
    assert max(on_disk[250:]) <= on_disk[250] + 2 * 4096, "with the horizon of identities full, the file stops growing"
    one.target.away = False
    one.drain()
    one.check(100 + 400 * 20)
    assert one.state.counters["outbox.merges"] > 1000
    assert one.state.counters["outbox.single_readings"] > 1000


def test_a_tiny_budget_still_moves(sender: Callable[..., Sender]) -> None:
    """The least budget there is, under load and with a target that comes and goes: kept, and everything arrives."""
    one = sender(outbox={"rows": 4, "bytes": 4096, "chunk_buckets": 2}, window=[])
    for turn in range(200):
        one.feed(30)
        one.target.away = turn % 7 < 4
        one.step()
        assert one.state.outbox.bytes_held <= 4096
        assert one.state.outbox.rows <= 4
    one.target.away = False
    one.drain()
    one.check(200 * 30)


def test_a_smaller_budget_is_reached_at_the_next_start(sender: Callable[..., Sender], tmp_path: Path) -> None:
    """The setting was lowered: the store is squeezed into it before anything else happens."""
    one = sender(outbox={"rows": 1000})
    one.target.away = True
    one.feed(4 * 900)
    one.state.close()
    one.config = configured(tmp_path, outbox={"rows": 20})
    one.open()
    assert one.state.outbox.rows <= 20
    one.target.away = False
    one.drain()
    one.check(3600)


def test_other_bytes_at_the_target_raise_an_alarm(sender: Callable[..., Sender]) -> None:
    """The rejected chunk is counted, kept for a person to look at, and the others go on."""
    one = sender()
    one.feed(32)
    name = f"board-1::heat::{one.state.incarnation}::{0:016d}"
    one.target.documents[name] = b"something else"
    one.feed(32)
    one.drain()
    assert one.state.counters["sync.rejected"] == 1
    found = one.state.status()["outbox"]
    assert (found["chunks_sealed"], found["chunks_rejected"]) == (0, 1)
    assert one.target.documents[name] == b"something else"
    assert len(one.target.documents) == 2


def test_more_alarms_than_are_kept_lose_nothing(sender: Callable[..., Sender], tmp_path: Path) -> None:
    """Another agent has used these ids before: a few documents are set aside, then all waits for a person, whole."""
    one = sender()
    name = f"board-1::heat::{one.state.incarnation}::"
    for first in range(0, 32 * 12, 32):
        one.target.documents[f"{name}{first:016d}"] = b"something else"
    one.feed(32 * 20)
    for _ in range(30):
        one.step()
    assert one.state.counters["sync.rejected"] == one.state.outbox.rejected == REJECTED_KEPT
    assert one.state.counters["sync.readings_dropped"] == 0
    assert "wait for a person" in one.sync.link.error
    assert len(one.state.status()["outbox"]["refused"]) == REJECTED_KEPT
    one.state.close()
    taken = refused.take(one.config, tmp_path / "taken")
    assert {reason for _, reason in taken} == {"other bytes are there under this id"}
    one.open()
    assert one.state.outbox.rejected == 0
    one.drain()
    one.state.close()
    taken += refused.take(one.config, tmp_path / "taken")
    one.open()
    arrived = [chunks.decode(data) for data in one.target.documents.values() if data != b"something else"]
    kept = [chunks.decode(path.read_bytes()) for path, _ in taken]
    buckets = sorted((bucket.first, bucket.n) for chunk in [*arrived, *kept] for bucket in chunk.buckets)
    assert sum(n for _, n in buckets) == 32 * 20
    assert all(a[0] + a[1] == b[0] for a, b in pairwise(buckets))


def test_the_alarm_is_on_the_page_of_the_status(sender: Callable[..., Sender]) -> None:
    """Which document, and why."""
    one = sender()
    one.feed(32)
    name = f"board-1::heat::{one.state.incarnation}::{0:016d}"
    one.target.documents[name] = b"something else"
    one.drain()
    page = show(gather(one.config))
    assert "ALARM: 1 documents were refused" in page
    assert f"{name}: other bytes" in page


def test_back_off_doubles_and_obeys_the_target() -> None:
    """1, 2, 4 … 300 seconds, a little more by chance; or what the target asks for; from the start after success."""
    link = Link("memory")
    waits = []
    for failure in range(12):
        link.failed(0.0, "away", 0.0)
        waits.append(link.retry_at)
        assert FIRST_DELAY * 2**failure > LONGEST_DELAY or FIRST_DELAY * 2**failure <= waits[-1]
    assert max(waits) <= LONGEST_DELAY * 1.25
    link.failed(0.0, "busy", 4000.0)
    assert link.retry_at == 4000.0
    link.succeeded(5000.0)
    assert link.is_due(5000.0)
    link.failed(5000.0, "away", 0.0)
    assert link.retry_at <= 5000 + 1.25 * FIRST_DELAY


def test_a_target_that_is_away_is_left_in_peace(sender: Callable[..., Sender]) -> None:
    """Between tries there are none, however often the agent turns."""
    one = sender()
    one.feed(64)
    one.target.away = True
    for _ in range(100):
        one.step(0.01)
    assert one.target.puts == 1
    link = read_status(one.config.state.path)["link"]
    assert (link["state"], link["error"]) == ("down", "away")
    one.target.away = False
    one.step(2.0)
    assert read_status(one.config.state.path)["link"]["state"] == "up"


def test_a_step_is_bounded(sender: Callable[..., Sender], monkeypatch: pytest.MonkeyPatch) -> None:
    """A large backlog and a slow target: one step ends soon after its time, the next ones do the rest."""
    monkeypatch.setattr("sluicegate_agent.sync.sealing.DOCUMENTS_MOST", 64)
    one, now = sender(), [0.0]
    one.feed(4 * 8 * 80)
    put = one.target.put

    def slow(documents: Any) -> Any:
        now[0] += 0.3
        return put(documents)

    monkeypatch.setattr(one.target, "put", slow)
    monkeypatch.setattr("sluicegate_agent.sync.sync.time", SimpleNamespace(monotonic=lambda: now[0]))
    one.step()
    assert now[0] < 0.5
    assert 0 < len(one.target.documents) < 80
    for _ in range(20):
        one.step()
    assert len(one.target.documents) == 80


def test_streams_have_documents_of_their_own(sender: Callable[..., Sender]) -> None:
    """Each stream and incarnation has its own ids and its own center."""
    one = sender()
    for number in range(12):
        one.pipeline.accept(sequenced(number, number + 1))
    one.drain()
    found = {chunk.stream: chunk for chunk in one.arrived()}
    assert set(found) == {"level", "flow"}
    assert all(name.startswith("board-1::") and one.state.incarnation in name for name in one.target.documents)
    assert sum(bucket.n for bucket in found["flow"].buckets) == 12


def test_the_configuration_names_the_target(tmp_path: Path) -> None:
    """A directory, written by a process of its own, or none: without a target the outbox only grows coarser."""
    assert isinstance(target_of(configured(tmp_path)), Apart)
    config = configured(tmp_path)
    config = replace(config, sync=replace(config.sync, target="none", path=None))
    assert target_of(config) is None


def test_rows_of_a_commit_that_failed_are_not_sealed(sender: Callable[..., Sender]) -> None:
    """The disk was full when a stream's first bucket was written, and has room when it is time to seal."""
    one = sender()
    one.feed(2)
    one.pipeline.flush()
    one.state.store.connection.execute(
        "CREATE TRIGGER full BEFORE INSERT ON stream BEGIN SELECT RAISE(ABORT, 'full'); END"
    )
    with pytest.raises(sqlite3.Error, match="full"):
        one.pipeline.commit()
    one.state.store.connection.execute("DROP TRIGGER full")
    assert one.sync.sealer.due(one.clock, flush=True), "the index is ahead of the table here, or this tests nothing"
    one.step(flush=True)
    assert not one.arrived()
    one.drain()
    one.check(2)
