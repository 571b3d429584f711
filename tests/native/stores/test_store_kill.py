"""kill -9 at random instants: the store opens as the window was after some reading, not fewer than were flushed."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from file_stores import couchbase_lite
from killed_window import AGGREGATES, reading
from thorough import number

import sluicegate as sg
from sluicegate.stores import Plan, SQLite

CHILD = Path(__file__).parents[1] / "killed_window.py"


@pytest.mark.faults
@pytest.mark.parametrize("kind", ["SQLite", "CouchbaseLite"])
@pytest.mark.parametrize(("size", "shift"), [(900, 3), (4_000, 9)])
def test_killed_and_killed_again(tmp_path: Path, kind: str, size: int, shift: int) -> None:
    """Some lives of one window: after each kill it is, bit for bit, the window in memory after as many readings."""
    kept = SQLite if kind == "SQLite" else couchbase_lite()
    source, path, plain, before = random.Random(size), tmp_path / "w.db", None, 0
    for life in range(number(6, 3)):
        flushed = live(path, size, shift, life == 0, kind, source.uniform(0.05, 0.4))
        opened = sg.Window.open(kept(path, Plan(shift, 4)))
        assert opened.accepted >= max(flushed, before)
        if plain is None:
            plain = sg.Window(AGGREGATES, policy=sg.policies.count(size))
        plain.insert_many([reading(i) for i in range(plain.accepted, opened.accepted)], results=False)
        assert opened.query() == plain.query()
        assert [b.results for b in opened.buckets()] == [b.results for b in plain.buckets()]
        opened.verify()
        before = opened.accepted
        opened.close()
    assert before > 1_000, "the children hardly ran"


def live(path: Path, size: int, shift: int, begins: bool, kind: str, seconds: float) -> int:
    """One life, killed so long after it opened and flushed once; how many readings it had flushed."""
    command = [sys.executable, str(CHILD), str(path), str(size), str(shift), kind, *(["begin"] if begins else [])]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    flushed = int(child.stdout.readline().split()[1])
    flushed = max(flushed, int(child.stdout.readline().split()[1]))  # on a slow machine the time alone may be too short
    time.sleep(seconds)
    child.kill()
    for line in child.stdout.read().splitlines():
        if line.count(" ") == 1 and line.startswith("flushed"):
            flushed = max(flushed, int(line.split()[1]))
    child.wait()
    child.stdout.close()
    return flushed
