"""`sluicegate self-test` passes on this machine, and finds an answer that is wrong and a reading that is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from click.testing import CliRunner

import sluicegate as sg
from sluicegate_agent.commands.self_test import self_test
from sluicegate_agent.selftest import kills, windows


@pytest.mark.slow
@pytest.mark.faults
def test_it_passes_and_leaves_nothing(tmp_path: Path) -> None:
    """Every engine, intervals, four kills on the disk that was named, and a chunk there and back."""
    done = CliRunner().invoke(self_test, ["--seconds", "0", "--at", str(tmp_path)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert f"killed {len(kills.FAULTS)} times on this disk: {kills.READINGS:,} readings" in done.output
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("check", [windows.exact, windows.bounded])
def test_a_wrong_answer_ends_it(check: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """The window's answer is compared with its readings, not with itself."""
    monkeypatch.setitem(windows._ASKED, "max", sg.min())
    with pytest.raises(windows.DifferenceError, match="max"):
        check(0)  # type: ignore[operator]
    done = CliRunner().invoke(self_test, ["--seconds", "0"])
    assert done.exit_code == 1
    assert "sluicegate doctor" in done.output


def test_a_missing_reading_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One chunk less, or one that was altered, is told."""
    monkeypatch.setattr(kills, "FAULTS", ())
    found = kills.killed(tmp_path, 1_200)
    assert (found.readings, found.kills) == (1_200, 0)
    assert found.chunks > 1
    first, *_ = sorted((tmp_path / "out").rglob("*.json"))
    first.unlink()
    with pytest.raises(windows.DifferenceError, match="are in"):
        kills._read(tmp_path / "out", 1_200, 0)


def test_kills_that_do_not_hit_show_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A replay that ends before its kill is no proof, and is told."""
    monkeypatch.setattr(kills, "FAULTS", ("1000000",))
    with pytest.raises(windows.DifferenceError, match="only 0 of 1 kills"):
        kills.killed(tmp_path, 100)
