"""Bytes written to the card: measured of the process, forecast of a configuration, told in years of the card."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from durable_agent import configured

from sluicegate_agent.config import Config
from sluicegate_agent.config.load import build
from sluicegate_agent.record import wear

GB = 10**9


def board(folder: Path, streams: int = 100, **tables: Any) -> Config:
    """So many streams, each with a topic and sequence numbers of its own."""
    sources = [{"topic": f"plant/{n}", "streams": {f"s{n}": "v"}, "sequence": "n"} for n in range(streams)]
    return build({"device": {"id": "b"}, "state": {"path": "state"}, "source": sources} | tables, folder / "a.toml")


@pytest.mark.skipif(wear.written() is None, reason="the system does not say what a process writes")
def test_what_a_process_writes_is_counted(tmp_path: Path) -> None:
    """Whole pages, once they are on their way to a disk; in a file system in memory nothing is."""
    before = wear.written()
    file = os.open(tmp_path / "written", os.O_WRONLY | os.O_CREAT)
    os.write(file, bytes(1 << 20))
    os.fsync(file)
    os.close(file)
    after = wear.written()
    assert before is not None
    assert after is not None
    assert after - before == 0 or after - before >= 1 << 20


def test_measured_in_bytes_a_day_and_years(tmp_path: Path) -> None:
    """A day's worth in an hour; a card of 10 TB takes 24 GB a day for 1.1 years."""
    found = wear.measured(configured(tmp_path), GB, 3600.0)
    assert found is not None
    assert found.bytes_a_day == 24 * GB
    assert found.years == pytest.approx(10_000 / 24 / 365.25)
    assert str(found) == "24.00 GB a day, 1.1 years of the card (state.endurance)"
    assert wear.measured(configured(tmp_path), None, 3600.0) is None
    assert wear.measured(configured(tmp_path), GB, 0.0) is None


def test_the_forecast_is_near_what_was_measured(tmp_path: Path) -> None:
    """100 streams at a reading a second by bench/wear.py: 1.4 GB a day recorded, 88 where each commit writes all."""
    recorded, whole = board(tmp_path), board(tmp_path, commit={"fold": 0})
    assert 1.2 * GB < wear.forecast(recorded).bytes_a_day < 1.7 * GB
    assert 70 * GB < wear.forecast(whole).bytes_a_day < 110 * GB


def test_the_forecast_follows_the_configuration(tmp_path: Path) -> None:
    """Commits that come less often, and fewer streams, write less; a card that takes more lasts longer."""
    usual = wear.forecast(board(tmp_path))
    rare = wear.forecast(board(tmp_path, commit={"every": "10s"}, mqtt={"receive_maximum": 2000}))
    assert wear.forecast(board(tmp_path, 1)).bytes_a_day < rare.bytes_a_day < usual.bytes_a_day
    stronger = board(tmp_path, state={"path": "state", "endurance": "30000GB"})
    assert wear.forecast(stronger).years == pytest.approx(3 * usual.years)
