"""Bytes written to the card: measured of the process, forecast of a configuration, told in years of the card."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from durable_agent import configured

from sluicegate_agent import pipeline
from sluicegate_agent.config import Config
from sluicegate_agent.config.load import build
from sluicegate_agent.record import wear
from sluicegate_agent.record.limits import limits
from sluicegate_agent.sync import sealing

GB = 10**9
ROOT = Path(__file__).parents[3]


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
    assert wear.measured(configured(tmp_path), GB, 3599.0) is None


def test_the_forecast_is_near_what_was_measured(tmp_path: Path) -> None:
    """By bench/wear.py (bench/results/wear.json): never less. Windows of a short run lose no bucket yet."""
    runs = json.loads((ROOT / "bench/results/wear.json").read_text())["runs"]
    assert {len(run["set"]) > 0 for run in runs} == {True, False}
    for run in runs:
        tables: dict[str, Any] = {}
        for each in run["set"]:
            name, _, value = each.partition("=")
            table, _, key = name.partition(".")
            tables.setdefault(table, {})[key] = json.loads(value)
        told = wear.forecast(board(tmp_path, run["streams"], **tables)).bytes_a_day / GB
        assert run["gb_a_day"] <= told < (1.5 if run["minutes"] > 60 else 1.75) * run["gb_a_day"], run


def test_it_knows_what_others_decide() -> None:
    """When documents are sealed ahead of time, and when a commit is due."""
    assert (wear.CROWDED, wear.COMMITTED_MOST) == (sealing.CROWDED, pipeline.READINGS_MOST)


def test_a_profile_spares_the_card(tmp_path: Path) -> None:
    """It says what the file leaves out, and nothing that the file says."""
    spared = board(tmp_path, commit={"profile": "low-wear", "every": "5s"})
    assert (spared.commit.every, spared.commit.fold) == (5_000_000, 86_400_000_000)
    assert spared.mqtt.receive_maximum == 8192
    low = wear.forecast(board(tmp_path, commit={"profile": "low-wear"})).bytes_a_day
    assert low < wear.forecast(board(tmp_path)).bytes_a_day / 2
    assert limits(spared).readings > limits(board(tmp_path)).readings


def test_the_forecast_follows_the_configuration(tmp_path: Path) -> None:
    """Commits that come less often, and fewer streams, write less; a card that takes more lasts longer."""
    usual = wear.forecast(board(tmp_path))
    rare = wear.forecast(board(tmp_path, commit={"every": "10s"}, mqtt={"receive_maximum": 2000}))
    assert max(wear.forecast(board(tmp_path, 1)).bytes_a_day, rare.bytes_a_day) < usual.bytes_a_day
    stronger = board(tmp_path, state={"path": "state", "endurance": "30000GB"})
    assert wear.forecast(stronger).years == pytest.approx(3 * usual.years)
