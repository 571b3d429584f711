"""A disk that is full, really, and a log that a reader keeps from shrinking: said, bounded, and nothing is lost."""

from __future__ import annotations

import contextlib
import logging
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("paho.mqtt.client", reason="the agent's tests need the extra `agent`")
from brokers import mosquitto, until
from durable_agent import configured, sequenced
from test_agent import CONFIGURATION, SLUICEGATE, Publisher, Running, _leave_no_agent_behind  # noqa: F401

from sluicegate_agent import health
from sluicegate_agent.errors import EnvironmentRefused
from sluicegate_agent.pipeline import Pipeline
from sluicegate_agent.replay import Replay
from sluicegate_agent.state import State, read_status
from sluicegate_agent.state.store import WAL_LIMIT, WAL_MORE
from sluicegate_demo.ports import free_port


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of 3 MiB of its own."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=3m", "none", folder], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting a file system needs root")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def fill(folder: Path) -> Path:
    """Write until not a byte fits."""
    path = folder / "filler"
    with contextlib.suppress(OSError), path.open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)
    return path


@pytest.mark.parametrize("options", [(), ("--drain",)])
def test_a_full_disk_is_told_and_no_end_is_called_a_good_one(
    tmp_path: Path, small: Path, options: tuple[str, ...]
) -> None:
    """`status` says that the store refuses and why; SIGTERM ends with 4; with room again each reading counts once."""
    with mosquitto(tmp_path, free_port()) as port:
        text = CONFIGURATION.format(port=port).replace('path = "state"', f'path = "{small}/state"')
        (tmp_path / "agent.toml").write_text(text)
        (tmp_path / "chunks").mkdir()
        agent, publisher = Running(tmp_path, *options), Publisher(port)
        until(lambda: '"connected"' in (small / "state/agent.json").read_text(), told=agent.log)
        publisher.send(range(10))
        until(lambda: read_status(small / "state")["counters"].get("accepted") == 20)
        filler = fill(small)
        publisher.send(range(10, 3000), step=1)
        until(lambda: "ALARM: the store refuses" in shown(tmp_path), told=lambda: (shown(tmp_path), agent.log()))
        assert "full" in shown(tmp_path)
        assert "are free on the disk" in shown(tmp_path)
        assert agent.end(signal.SIGTERM) == 4
        assert "not acknowledged" in agent.log()
        filler.unlink()
        again = Running(tmp_path, "--drain")
        until(lambda: read_status(small / "state")["counters"].get("accepted") == 6000, told=again.log)
        publisher.close()
        assert again.end(signal.SIGTERM) == 0


def shown(folder: Path) -> str:
    """What `sluicegate status` prints."""
    command = [*SLUICEGATE, "status", str(folder / "agent.toml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def test_a_replay_onto_a_full_disk_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit code 4 with the reason, and no word of a bug."""
    config = configured(tmp_path)
    with State(config) as state:
        run = Replay(config, state, config.sources[0], tmp_path / "none")
        run.feed(sequenced(1, 0).payload)

        def full() -> list[int]:
            raise sqlite3.OperationalError("database or disk is full")

        monkeypatch.setattr(run.pipeline, "commit", full)
        with pytest.raises(EnvironmentRefused, match="disk is full") as refused:
            run.finish(drain=True)
    assert refused.value.exit_code == 4


def test_how_it_is_is_written_on_a_full_disk_too(small: Path) -> None:
    """The file is replaced while there is room and written over while there is none: never what was true before."""
    health.write(small, {"mqtt": "connected"})
    fill(small)
    health.write(small, {"mqtt": "away", "store": {"refuses": "database or disk is full"}})
    assert health.read(small) == {"mqtt": "away", "store": {"refuses": "database or disk is full"}}
    assert [path.name for path in small.glob("agent.json*")] == ["agent.json"]


def test_a_status_can_be_asked_of_a_full_disk(small: Path) -> None:
    """After the agent has ended there is no index of the log, and no room for one."""
    config = configured(small.parent, state={"path": str(small / "state")})
    with State(config) as state:
        pipeline = Pipeline(config, state)
        pipeline.accept(sequenced(1, 1))
        pipeline.commit()
    fill(small)
    assert read_status(config.state.path)["counters"]["accepted"] == 2


def test_a_reader_cannot_make_the_log_outgrow_its_budget(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Its name is told, commits are refused at the bound, nothing is lost, and all goes on once it has ended."""
    config = configured(tmp_path, mqtt={"receive_maximum": 1000})
    with State(config) as state:
        pipeline = Pipeline(config, state)
        reader = subprocess.Popen(
            ["python3", "-c", READER, str(state.store.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert reader.stdout is not None
        reader.stdout.readline()
        log, number, refused = tmp_path / "state/state.db-wal", 0, None
        with caplog.at_level(logging.WARNING):
            while refused is None:
                for _ in range(50):
                    pipeline.accept(sequenced(number, 1, boot="b"))
                    number += 1
                try:
                    pipeline.commit()
                except sqlite3.OperationalError as error:
                    refused = str(error)
        assert f"{reader.pid} (python" in refused
        assert f"{reader.pid} (python" in caplog.text
        assert log.stat().st_size < WAL_LIMIT + WAL_MORE + (1 << 20)
        assert state.status()["log_bytes"] == log.stat().st_size
        reader.communicate(b"\n")
        state.store._next_checkpoint = 0.0
        pipeline.commit()
        assert log.stat().st_size <= WAL_LIMIT
        assert state.streams["level"].accepted == number


READER = """
import sqlite3, sys
store = sqlite3.connect(sys.argv[1], isolation_level=None)
store.execute("BEGIN")
store.execute("SELECT count(*) FROM outbox").fetchone()
print("reading", flush=True)
sys.stdin.readline()
"""


def test_a_writer_that_holds_the_store_is_named(tmp_path: Path) -> None:
    """Intake stops for a second, not for ten."""
    config = configured(tmp_path)
    with State(config) as state:
        pipeline = Pipeline(config, state)
        pipeline.accept(sequenced(1, 1))
        other = sqlite3.connect(state.store.path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(sqlite3.OperationalError, match=r"locked: process .* is writing to .*state\.db"):
            pipeline.commit()
        other.execute("ROLLBACK")
        assert pipeline.commit() == [1]
        other.close()
