"""What the demo asks of its agents: a configuration that is right, fits its budgets, and shows the histograms."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from sluicegate_agent.config import build
from sluicegate_agent.config.questions import build_arguments
from sluicegate_agent.plan import plan
from sluicegate_demo.agents import WINDOWS, configuration
from sluicegate_demo.readings import Feed


@pytest.mark.parametrize("metrics", [1, 6, 40])
def test_it_fits_however_many_streams_a_file_has(metrics: int, tmp_path: Path) -> None:
    """One column or forty: 52 MiB of memory and the disk it states are enough."""
    feed = Feed("board", tuple(f"m{i}" for i in range(metrics)))
    config = build(tomllib.loads(configuration(feed, 1883, tmp_path, tmp_path / "chunks")), tmp_path / "agent.toml")
    assert plan(config).fits
    assert {window.name: window.policy.time for window in config.windows} == WINDOWS
    kinds = [{type(each).__name__ for each in build_arguments(window)["histograms"]} for window in config.windows]
    assert kinds == [{"SumLike", "Constrained"}, {"MaxLike", "Constrained"}]
    assert config.windows[1].policy.up_to == "max"
