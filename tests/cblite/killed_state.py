"""Kills an agent whose state is in Couchbase Lite at numbered steps, each time in a fork of this process.

python killed_state.py FOLDER SHARE [OFFSET]: every SHARE-th step. PYTHONPATH needs tests/agent.
This process itself never opens the library.
"""

from __future__ import annotations

import os
import random
import shutil
import sys
from pathlib import Path

import killing
from durable_agent import configured
from test_kill import check, fresh

from sluicegate_agent import faults


def on_couchbase_lite(folder: Path, *more: object, **tables: object) -> object:
    """The suites' configuration with the other store."""
    return configured(folder, *more, **{**tables, "state": {"store": "couchbase-lite"}})


def uninterrupted(folder: Path, made: killing.Work) -> tuple[str, list[str]]:
    """The answers of a run that nothing disturbs, and the names of all its steps; in a fork."""
    fresh(folder)
    child = os.fork()
    if child == 0:
        trace: list[str] = []
        killing.live(folder, made, 0, trace)
        (folder / "trace").write_text("\n".join(trace))
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    return (folder / "answers").read_text(), (folder / "trace").read_text().splitlines()


def main(folder: Path, share: int, offset: int = 0) -> None:
    """Kill at each chosen step, and again while it recovers; then everything must be there once."""
    killing.configured = on_couchbase_lite  # type: ignore[assignment]
    made = killing.work(60, seed=1)
    expected, trace = uninterrupted(folder / "whole", made)
    faults.disarm()
    assert "documents: before their commit" in trace
    assert "documents: committed" in trace
    rng, kills = random.Random(share + offset), 0
    for at in range(1 + offset, len(trace) + 1, share):
        fresh(folder / "killed")
        assert not killing.in_child(folder / "killed", made, at)
        if rng.random() < 0.5:
            killing.lose_pubacks(folder / "killed", 0, rng.randint(0, killing.RECEIVE_MAXIMUM // 2))
        killing.in_child(folder / "killed", made, rng.randint(1, 40))
        assert killing.in_child(folder / "killed", made)
        check(folder / "killed", made, expected, (at, trace[at - 1]))
        kills += 1
    shutil.rmtree(folder)
    print("killed at", kills, "steps")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), *(int(n) for n in sys.argv[3:]))
