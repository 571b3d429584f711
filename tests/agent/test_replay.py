"""A replay promises: each line of a file counts once, however often it is replayed and wherever it is interrupted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from click.testing import CliRunner

from sluicegate_agent.commands.replay import replay
from sluicegate_agent.config import load
from sluicegate_agent.faults import VARIABLE
from sluicegate_agent.plan import plan
from sluicegate_agent.state import read_status

CONFIGURATION = """
[device]
id = "d"
[state]
path = "state"
[identity]
horizon = 64
[mqtt]
receive_maximum = 64
[commit]
every = "10ms"
[[source]]
topic = "w"
time = "t"
time_format = "s"
streams = { temp = "temp" }
[[source]]
topic = "bare"
format = "number"
streams = { door = "" }
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With a configuration of a timed source and a bare one."""
    (tmp_path / "agent.toml").write_text(CONFIGURATION)
    return tmp_path


def run(folder: Path, *options: str, topic: str = "w", name: str = "r.csv") -> dict[str, Any]:
    """What a replay says as JSON."""
    kind = "--csv" if name.endswith("csv") else "--jsonl"
    arguments = [str(folder / "agent.toml"), kind, str(folder / name), "--topic", topic, "--json", *options]
    done = CliRunner().invoke(replay, arguments, catch_exceptions=False)
    assert done.exit_code == 0
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def accepted(folder: Path, stream: str = "temp") -> int:
    """Readings of the stream as of the last commit."""
    return int(read_status(folder / "state")["streams"][stream]["accepted"])


def write(folder: Path, rows: range, *, head: bool = True) -> None:
    """Rows a minute apart, each twice: two lines that say the same are two readings."""
    with (folder / "r.csv").open("w" if head else "a") as file:
        file.write("t,temp\n" if head else "")
        file.writelines(f"{1_700_000_000 + 60 * (i // 2)},{i // 2 % 4}\n" for i in rows)


def test_the_second_time_counts_nothing_and_what_was_added_is_new(folder: Path) -> None:
    """Also beyond the horizon, under another name, and for a source without time or number."""
    write(folder, range(500))
    assert run(folder)["lines"] == {"known": 0, "new": 500}
    assert run(folder)["lines"] == {"known": 500, "new": 0}
    (folder / "r.csv").rename(folder / "other.csv")
    assert run(folder, name="other.csv")["lines"] == {"known": 500, "new": 0}
    (folder / "other.csv").rename(folder / "r.csv")
    write(folder, range(500, 600), head=False)
    assert run(folder)["lines"] == {"known": 500, "new": 100}
    assert accepted(folder) == 600
    (folder / "r.jsonl").write_text("1\n1\n\n2")
    for known in (0, 3):
        assert run(folder, topic="bare", name="r.jsonl")["lines"] == {"known": known, "new": 3 - known}
    (folder / "r.jsonl").write_text("1\n1\n\n2\n\n")
    assert run(folder, topic="bare", name="r.jsonl")["lines"] == {"known": 3, "new": 0}
    (folder / "r.jsonl").write_text("1\n1\n\n2\n\n7\n")
    assert run(folder, topic="bare", name="r.jsonl")["lines"] == {"known": 3, "new": 1}
    assert accepted(folder, "door") == 4


def test_again_counts_it_again(folder: Path) -> None:
    """Deliberately; the readings of a source that knows its messages by their content stay known for the horizon."""
    (folder / "r.jsonl").write_text("1\n1\n2\n")
    for times in (1, 2, 3):
        assert run(folder, "--again", topic="bare", name="r.jsonl")["lines"] == {"known": 0, "new": 3}
        assert accepted(folder, "door") == 3 * times
    assert run(folder, topic="bare", name="r.jsonl")["lines"] == {"known": 3, "new": 0}


def test_another_file_is_another_file(folder: Path) -> None:
    """One changed byte before the end of what was counted makes it another; nothing of it is known."""
    (folder / "r.jsonl").write_text("1\n1\n2\n")
    run(folder, topic="bare", name="r.jsonl")
    (folder / "r.jsonl").write_text("1\n3\n2\n")
    assert run(folder, topic="bare", name="r.jsonl")["lines"] == {"known": 0, "new": 3}


def start(folder: Path, fault: str = "") -> subprocess.Popen[bytes]:
    """A replay in a process of its own; with `fault` it dies at that step.

    It hears Ctrl-C even where the tests run in a shell's background, which has its processes ignore it.
    """
    arguments = ["replay", folder / "agent.toml", "--csv", folder / "r.csv", "--topic", "w"]
    environment = os.environ | ({VARIABLE: fault} if fault else {})
    command = [sys.executable, "-m", "sluicegate", *map(str, arguments)]
    return subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip


def interrupt_after(process: subprocess.Popen[bytes], is_reached: Callable[[], bool]) -> None:
    """Ctrl-C once it is so; the process runs 20 ms at a time, so that it does not end while we look."""
    deadline = time.monotonic() + 120
    while not is_reached():
        assert time.monotonic() < deadline
        process.send_signal(signal.SIGCONT)
        time.sleep(0.02)
        process.send_signal(signal.SIGSTOP)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGCONT)
    process.wait(120)


#: Enough for a second of work.
ROWS = 80_000


@pytest.mark.faults
def test_killed_and_interrupted_it_goes_on_where_it_was(folder: Path) -> None:
    """Before a commit, after one, by Ctrl-C in the middle: at the end exactly the lines of the file."""
    write(folder, range(ROWS))
    for fault in ("3@transaction: before commit", "9@transaction: after commit"):
        died = start(folder, fault)
        assert died.wait(120) == -signal.SIGKILL
    before = accepted(folder)
    interrupted = start(folder)
    interrupt_after(interrupted, lambda: accepted(folder) > before)
    assert interrupted.returncode == 130
    assert before < accepted(folder) < ROWS
    assert start(folder).wait(300) == 0
    assert accepted(folder) == ROWS


def test_the_files_that_are_known_are_bounded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest one that was read to its end is forgotten first, and counted; its rows are in the plan."""
    from sluicegate_agent import replayed
    from sluicegate_agent.state import State

    monkeypatch.setattr(replayed, "FILES_KEPT", 3)
    config = load(folder / "agent.toml")
    with State(config) as state:
        for number in range(6):
            file = folder / f"{number}.jsonl"
            file.write_text(f"{number}\n")
            one = replayed.Replayed(state, "w", file)
            one.passed(b"%d\n" % number)
            one.counted()
            with state.transaction() as connection:
                one.save(connection, done=number != 1)
        kept = state.store.connection.execute("SELECT id, done FROM replay ORDER BY id").fetchall()
        assert kept == [(2, 0), (5, 1), (6, 1)]
        assert state.counters["replays_forgotten"] == 3
    part = next(line for line in plan(config).lines if line.part == "files that were replayed")
    assert part.disk > 0
