"""The state's files are watched: deleted, moved or replaced under a running agent, they lose nothing acknowledged."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from stat import S_ISDIR

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from durable_agent import configured, sequenced

from sluicegate_agent import lock
from sluicegate_agent.config import Config
from sluicegate_agent.lock import Lock, Locked, StateGone
from sluicegate_agent.pipeline import Pipeline
from sluicegate_agent.state import State


def taken(config: Config, pipeline: Pipeline, numbers: range) -> list[int]:
    """Give messages, a commit each; the packet ids that may be acknowledged."""
    acknowledged = []
    for number in numbers:
        pipeline.accept(sequenced(number, number % 1000 + 1))
        acknowledged += pipeline.commit()
    return acknowledged


def delete_all(path: Path) -> None:
    """As `rm state/state.db*` does."""
    for name in ("state.db", "state.db-wal", "state.db-shm"):
        (path / name).unlink()


def delete_database(path: Path) -> None:
    """The log stays behind."""
    (path / "state.db").unlink()


def delete_log(path: Path) -> None:
    """The newest commits are in it alone."""
    (path / "state.db-wal").unlink()


def delete_folder(path: Path) -> None:
    """As `rm -r state` does."""
    shutil.rmtree(path)


@pytest.mark.parametrize("gone", [delete_all, delete_database, delete_log, delete_folder])
def test_what_was_acknowledged_outlives_its_file(tmp_path: Path, gone: object) -> None:
    """Nothing more is acknowledged, the end is loud, and the next start has every reading that was acknowledged."""
    config = configured(tmp_path)
    with State(config) as state:
        pipeline = Pipeline(config, state)
        acknowledged = taken(config, pipeline, range(200))
        assert callable(gone)
        gone(config.state.path)
        pipeline.accept(sequenced(200, 201))
        with pytest.raises(StateGone, match=r"start again") as refused:
            acknowledged += pipeline.commit()
        assert refused.value.exit_code == 4
    assert len(acknowledged) == 200
    with State(config) as state:
        assert state.streams["level"].accepted == 200
        assert state.store.set_aside == 0
        pipeline = Pipeline(config, state)
        taken(config, pipeline, range(190, 210))
        assert state.streams["level"].accepted == 210


def test_a_commit_whose_file_went_away_is_not_acknowledged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deleted between the transaction's begin and its end: it committed into nothing, and is redelivered as known."""
    config = configured(tmp_path)
    with State(config) as state:
        pipeline = Pipeline(config, state)
        taken(config, pipeline, range(50))
        commit = state.store._commit
        monkeypatch.setattr(state.store, "_commit", lambda c: (commit(c), delete_all(config.state.path)))
        pipeline.accept(sequenced(50, 51))
        with pytest.raises(StateGone):
            pipeline.commit()
    with State(config) as state:
        assert taken(config, Pipeline(config, state), range(50, 51)) == [51]
        assert (state.streams["level"].accepted, state.counters["duplicates"]) == (51, 1)


def test_what_replaced_the_file_is_left_alone(tmp_path: Path) -> None:
    """Another database in its place: what was acknowledged is kept beside it, and the message says where."""
    config = configured(tmp_path)
    with State(config) as state:
        pipeline = Pipeline(config, state)
        taken(config, pipeline, range(20))
        delete_all(config.state.path)
        (config.state.path / "state.db").write_bytes(b"another")
        pipeline.accept(sequenced(20, 21))
        with pytest.raises(StateGone, match=r"what it held is in .*rescued-.*\.db"):
            pipeline.commit()
    assert (config.state.path / "state.db").read_bytes() == b"another"
    (rescued,) = config.state.path.glob("rescued-*.db")
    rescued.rename(config.state.path / "state.db")
    with State(config) as state:
        assert state.streams["level"].accepted == 20


def test_a_state_that_was_moved_is_not_doubled(tmp_path: Path) -> None:
    """`mv state elsewhere` under the agent: nothing is copied, since all of it stands elsewhere."""
    config = configured(tmp_path)
    with State(config) as state:
        pipeline = Pipeline(config, state)
        taken(config, pipeline, range(20))
        config.state.path.rename(tmp_path / "elsewhere")
        pipeline.accept(sequenced(20, 21))
        with pytest.raises(StateGone, match="moved"):
            pipeline.commit()
    assert not config.state.path.exists()
    (tmp_path / "elsewhere").rename(config.state.path)
    with State(config) as state:
        assert state.streams["level"].accepted == 20


def test_an_idle_agent_notices_too(tmp_path: Path) -> None:
    """Without a message to commit, at the latest when it says how it is."""
    config = configured(tmp_path)
    with State(config) as state:
        Pipeline(config, state)
        state.check()
        delete_all(config.state.path)
        with pytest.raises(StateGone):
            state.check()


def test_without_the_file_lock_a_second_agent_is_refused_all_the_same(tmp_path: Path) -> None:
    """The directory itself is locked; the first agent notices and makes the file anew."""
    config = configured(tmp_path)
    with State(config) as state:
        pipeline = Pipeline(config, state)
        (config.state.path / "lock").unlink()
        with pytest.raises(Locked):
            State(config)
        assert lock.holder(config.state.path) is not None
        assert taken(config, pipeline, range(1)) == [1]
        assert (config.state.path / "lock").exists()
    assert lock.holder(config.state.path) is None


def test_an_agent_whose_lock_another_holds_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a file system locks no directories, a second agent can start over a deleted file: the first ends then."""
    taken = lock._taken
    monkeypatch.setattr(lock, "_taken", lambda file: S_ISDIR(os.fstat(file).st_mode) or taken(file))
    with Lock(tmp_path) as first:
        (tmp_path / "lock").unlink()
        with Lock(tmp_path), pytest.raises(StateGone, match="already running"):
            first.check()
