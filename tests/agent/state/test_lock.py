"""Two agents never share a state directory, and a dead one never keeps it."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from durable_agent import configured

from sluicegate_agent import lock
from sluicegate_agent.lock import Lock, Locked
from sluicegate_agent.state import State


def test_a_second_agent_is_refused_with_the_first_ones_process_id(tmp_path: Path) -> None:
    """The message names directory, holder and remedy; after the first one closes, the next may have it."""
    with Lock(tmp_path):
        with pytest.raises(Locked, match=rf"{tmp_path}: process {os.getpid()} is already running") as refused:
            Lock(tmp_path)
        assert refused.value.exit_code == 4
        assert lock.holder(tmp_path) == os.getpid()
    assert lock.holder(tmp_path) is None
    Lock(tmp_path).close()


def test_a_state_that_could_not_open_lets_the_directory_go(tmp_path: Path) -> None:
    """A refused State holds nothing, and close() twice is harmless."""
    config = configured(tmp_path)
    state = State(config)
    with pytest.raises(Locked):
        State(config)
    state.close()
    state.close()
    State(config).close()


def test_death_frees_the_directory(tmp_path: Path) -> None:
    """The system takes the lock back from a process that was killed, so no stale lock ever stops a restart."""
    ready, told = os.pipe()
    child = os.fork()
    if child == 0:
        Lock(tmp_path)
        os.write(told, b"x")
        signal.pause()
    os.read(ready, 1)
    assert lock.holder(tmp_path) == child
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert lock.holder(tmp_path) is None
    Lock(tmp_path).close()
