"""A replay of which nothing was taken does not look like success."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from click.testing import CliRunner

from sluicegate_agent.commands.replay import replay
from sluicegate_agent.errors import InputRefused

CONFIG = """[device]
id = "board-1"
[state]
path = "state"
[[source]]
topic = "t"
time = "time"
streams = { x = "x" }
"""


def taken(folder: Path, *lines: str) -> BaseException | None:
    """What a replay of these payloads ends with."""
    (folder / "agent.toml").write_text(CONFIG)
    (folder / "readings.jsonl").write_text("\n".join(lines))
    command = [str(folder / "agent.toml"), "--jsonl", str(folder / "readings.jsonl")]
    return CliRunner().invoke(replay, command).exception


def test_all_refused_is_an_error_with_the_counts(tmp_path: Path) -> None:
    """Twenty of twenty: exit code 2, with the reasons and how many each."""
    error = taken(tmp_path, *['{"time": "soon", "x": 1}'] * 20)
    assert isinstance(error, InputRefused)
    assert error.exit_code == 2
    assert "none of its 20 messages was taken (refused." in str(error)


def test_some_refused_and_all_known_are_no_error(tmp_path: Path) -> None:
    """One good reading is enough; so is a file that was taken before."""
    good = '{"time": "2025-01-01T00:00:00Z", "x": 1}'
    assert taken(tmp_path, good, "nonsense") is None
    assert taken(tmp_path, good, "nonsense") is None
