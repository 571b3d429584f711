"""What a new user meets: each mistake gives one clear message and its exit code, never a traceback."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")

from sluicegate_agent.config import load
from sluicegate_agent.state import State
from sluicegate_demo.ports import free_port

CONFIGURATION = """
[device]
id = "d"
[state]
path = "state"
[[source]]
topic = "w"
time = "t"
time_format = "s"
sequence = "n"
streams = { temp = "temp" }
[[window]]
name = "mean_1h"
policy = { time = "1h" }
"""


def sluicegate(*arguments: object, seconds: float = 300) -> subprocess.CompletedProcess[str]:
    """The command line as a user calls it."""
    command = [sys.executable, "-m", "sluicegate", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)


def refused(code: int, *arguments: object) -> str:
    """What a command that must fail with `code` says on stderr; no traceback is among it."""
    done = sluicegate(*arguments)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert "bug" not in done.stderr
    return done.stderr


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A good configuration."""
    path = tmp_path / "agent.toml"
    path.write_text(CONFIGURATION)
    return path


def test_a_wrong_key(file: Path) -> None:
    """File, key, value and remedy; exit code 2; the same for every command."""
    file.write_text(CONFIGURATION.replace('topic = "w"', 'topic = "w"\ntopik = "w"'))
    for command in ("check", "plan", "run", "status"):
        said = refused(2, command, file)
        assert 'agent.toml: source[1].topik = "w": there is no such key; did you mean `topic`?' in said
    assert "no such file" in refused(2, "check", file.with_name("none.toml"))
    assert "give a configuration FILE" in refused(2, "check")


def test_encryption_turned_off_is_said(file: Path) -> None:
    """`check` reads the file only, and says where anyone could read along."""
    file.write_text(CONFIGURATION + '[mqtt]\nhost = "broker.example"\ntls = { enabled = false }\n')
    done = sluicegate("check", file)
    assert done.returncode == 0
    assert "broker broker.example:1883" in done.stdout
    assert "anyone between can read along" in done.stdout


def test_a_state_directory_that_cannot_be_written(file: Path) -> None:
    """A file in its place, and a place where nobody may make one: exit code 4, the key and the remedy."""
    (file.parent / "state").write_text("I am a file")
    said = refused(4, "run", file)
    assert "[state] path" in said
    assert "give a directory" in said
    file.write_text(CONFIGURATION.replace('"state"', '"/proc/sluicegate"'))
    assert "[state] path /proc/sluicegate" in refused(4, "run", file)


def test_a_state_that_another_agent_has(file: Path) -> None:
    """The second agent is refused and told who has it; `status` reads on beside it."""
    with State(load(file)):
        assert "already running an agent" in refused(4, "run", file)
        done = sluicegate("status", file)
        assert done.returncode == 0
        assert "d: running" in done.stdout


def test_a_state_of_a_newer_version(file: Path) -> None:
    """A newer store is not touched; the message says to update."""
    with State(load(file)):
        pass
    store = sqlite3.connect(file.parent / "state" / "state.db")
    store.execute("UPDATE meta SET value = 99 WHERE key = 'schema'")
    store.commit()
    store.close()
    for command in ("run", "status"):
        assert "schema version 99" in refused(4, command, file)


def test_status_before_the_first_run(file: Path) -> None:
    """There is nothing to show yet, and that is said."""
    assert "no agent has run here yet" in refused(4, "status", file)


def test_a_budget_that_is_too_small(file: Path) -> None:
    """`plan` shows it with exit code 1, `run` refuses with 4 and says what to change."""
    file.write_text(CONFIGURATION.replace('path = "state"', 'path = "state"\nmemory = "20MiB"'))
    done = sluicegate("plan", file)
    assert done.returncode == 1
    assert "does not fit" in done.stdout
    said = refused(4, "run", file)
    assert "state.memory = 20.0 MiB, but this configuration needs up to" in said
    assert not (file.parent / "state").exists()


def test_a_broker_that_is_not_there(file: Path) -> None:
    """`run` keeps trying and says where, why and when again; told to end, it ends well."""
    file.write_text(CONFIGURATION + f"[mqtt]\nport = {free_port()}\n")
    done = sluicegate("run", file, "--idle", "1")
    assert done.returncode == 0
    assert "nobody listens there" in done.stderr
    assert "trying again in" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("empty.csv", b"", "is empty; expected readings"),
        ("binary.csv", bytes(range(256)), "is this a CSV file?"),
        ("zero.csv", b"n,t,temp\n1,\x00,2\n", "has a zero byte"),
        ("other.csv", b"a,b\n1,2\n", "has no column `temp` (the source's streams.temp); it has: a, b"),
    ],
)
def test_readings_that_do_not_fit(file: Path, name: str, content: bytes, said: str) -> None:
    """A file that is no readings says what was expected; exit code 2."""
    (file.parent / name).write_bytes(content)
    assert said in refused(2, "replay", file, "--csv", file.parent / name)


def test_a_replay_that_is_asked_wrongly(file: Path) -> None:
    """A missing file, no file at all and a topic that no source has."""
    assert "cannot be read" in refused(2, "replay", file, "--csv", file.parent / "none.csv")
    assert "give one of" in refused(2, "replay", file)
    assert "no source has this topic" in refused(2, "replay", file, "--csv", file.parent / "none.csv", "--topic", "x")


def test_replay_shows_answers_and_counts(file: Path) -> None:
    """A file replayed twice counts once; text for people, JSON for programs."""
    rows = "".join(f"{i},{1700000000 + 60 * i},{i % 4}\n" for i in range(90))
    (file.parent / "r.csv").write_text("n,t,temp\n" + rows)
    done = sluicegate("replay", file, "--csv", file.parent / "r.csv")
    assert done.returncode == 0, done.stderr
    assert "mean_1h" in done.stdout
    assert "accepted" in done.stdout
    again = sluicegate("replay", file, "--csv", file.parent / "r.csv", "--json")
    assert json.loads(again.stdout) == {"lines": {"known": 90, "new": 0}, "counters": {}, "results": []}
    assert "90 lines were counted before" in again.stderr
    shown = sluicegate("status", file)
    assert "mean over 60.0 min in 64 buckets" in shown.stdout
    assert json.loads(sluicegate("status", file, "--json").stdout)["streams"]["temp"]["accepted"] == 90


def test_a_target_that_is_away_is_named(file: Path) -> None:
    """`--drain` into a folder that is not there: exit code 4, the folder, and that everything is kept."""
    file.write_text(CONFIGURATION + '[sync]\ntarget = "directory"\npath = "absent"\n')
    (file.parent / "r.csv").write_text("n,t,temp\n1,1700000000,1\n")
    from click.testing import CliRunner

    import sluicegate_agent.handover as handover
    from sluicegate_agent.commands.replay import replay

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(handover.hand_over, "__defaults__", (1.0,))
        done = CliRunner().invoke(replay, [str(file), "--csv", str(file.parent / "r.csv"), "--drain"])
    assert "all is kept and tried again" in done.stderr  # at once, and not when the time is over
    assert "absent: there is no such folder" in str(done.exception)
    assert "kept for the next start" in str(done.exception)
    assert getattr(done.exception, "exit_code", None) == 4


def test_plan_as_json_says_what_a_limit_needs(file: Path) -> None:
    """Totals are the sums of the lines; streams are listed by name; the data limit is below the resident total."""
    found = json.loads(sluicegate("plan", file, "--json").stdout)
    assert found["memory"] == sum(line["memory"] for line in found["lines"])
    assert found["disk"] == sum(line["disk"] for line in found["lines"])
    assert set(found["streams"]) == {"temp"}
    assert found["data_bytes"] < found["memory"]
    assert found["fits"]


def test_help_reads_like_a_manual() -> None:
    """Every command explains itself."""
    for command in ("run", "check", "plan", "status", "replay"):
        done = sluicegate(command, "--help")
        assert done.returncode == 0
        assert "configuration FILE" in done.stdout
