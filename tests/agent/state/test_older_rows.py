"""Outbox rows of 248 bytes, from before buckets had doubt, are read, merged with new ones and sent."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from durable_agent import configured, timed
from target_suite.memory import MemoryTarget

from sluicegate.format import chunk as chunks
from sluicegate_agent.pipeline import Pipeline
from sluicegate_agent.state import State, StoreDamaged, read_status
from sluicegate_agent.state.status import look_for_damage
from sluicegate_agent.state.store import DATABASE
from sluicegate_agent.sync import Sync

# As the program of version 3 left it in an outage: 18 rows, some merged, a sealed chunk, an open bucket.
OUTAGE = Path(__file__).parents[2] / "cases/agent_stores/version-3-outage.sql"


@pytest.mark.parametrize("frozen", sorted(OUTAGE.parent.glob("version-[89]*.sql")), ids=lambda path: path.stem)
def test_a_store_of_before_is_shown_as_it_is(frozen: Path, tmp_path: Path) -> None:
    """`status` and `doctor` look at one that no newer agent has opened yet, and leave it as it is."""
    store = sqlite3.connect(tmp_path / DATABASE)
    store.executescript(frozen.read_text())
    version = store.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone()[0]
    store.close()
    found = read_status(tmp_path)
    assert found["schema"] == version
    assert found["counters"]["accepted"] > 0
    assert look_for_damage(tmp_path) == {}


DAMAGES = [
    ("version-2", "UPDATE meta SET key = 'incarnatioN' WHERE key = 'incarnation'"),
    ("version-2", "DELETE FROM outbox WHERE first = (SELECT max(first) FROM outbox)"),
    ("version-8", "UPDATE tagged SET tags = substr(tags, 2)"),
    ("version-8", "UPDATE tagged SET tags = replace(tags, ':', ';')"),
    ("version-8", "UPDATE meta SET value = replace(value, ':', ';') WHERE key = 'deliveries'"),
]


@pytest.mark.parametrize(("version", "damage"), DAMAGES)
def test_a_damaged_store_of_before_is_opened(version: str, damage: str, tmp_path: Path) -> None:
    """What can be read of it goes on, with this version's tables; after the second start at the latest."""
    config = configured(tmp_path, window=[])
    config.state.path.mkdir()
    store = sqlite3.connect(config.state.path / DATABASE)
    store.executescript((OUTAGE.parent / f"{version}.sql").read_text())
    store.execute(damage)
    store.commit()
    store.close()
    if damage.startswith("DELETE"):  # no start sees that: another damage has it salvaged
        (config.state.path / "damaged").write_text("for the test")
    for _ in range(2):
        with contextlib.suppress(StoreDamaged), State(config) as state:
            Pipeline(config, state)
    with State(config) as state:
        pipeline = Pipeline(config, state)
        pipeline.accept(timed(500, 1, value=1.0))
        assert pipeline.commit() == [1]


def test_an_outage_that_an_older_program_began_ends_with_every_reading(tmp_path: Path) -> None:
    """The old rows stay as they are until they are merged; each reading is sent once, and none is in doubt."""
    config, target = configured(tmp_path, window=[], outbox={"rows": 18}), MemoryTarget()
    config.state.path.mkdir()
    frozen = sqlite3.connect(config.state.path / DATABASE)
    frozen.executescript(OUTAGE.read_text())
    assert {row[0] for row in frozen.execute("SELECT length(bucket) FROM outbox")} == {248}
    frozen.close()
    with State(config) as state:
        pipeline, sync = Pipeline(config, state), Sync(config, state, target)
        for minute in range(120, 180):
            pipeline.accept(timed(minute, minute % 30 + 1, value=minute / 8))
            pipeline.commit()
        assert {row[0] for row in state.store.connection.execute("SELECT length(bucket) FROM outbox")} == {256, 248}
        pipeline.flush()
        pipeline.commit()
        while not sync.is_done():
            sync.step(0.0, flush=True)
        assert state.counters["duplicates"] == 21
    arrived = [chunks.decode(target.documents[name]) for name in sorted(target.documents)]
    buckets = [bucket for chunk in arrived for bucket in chunk.buckets]
    assert [a.first + a.n for a in buckets] == [*(b.first for b in buckets[1:]), 180]
    assert sum(b.total for b in buckets) == sum(range(180)) / 8
    assert sum(b.doubt for b in buckets) == 0
