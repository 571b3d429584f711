"""`sluicegate demo --csv` on real files: a clock set back, gaps of days, irregular spacing, NA; the same zeros."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sluicegate_demo import proof
from sluicegate_demo.agents import WINDOWS
from sluicegate_demo.edge import EdgeRun
from sluicegate_demo.job import LENGTH, SLIDE
from sluicegate_demo.readings import from_csv
from sluicegate_demo.truth import Streams

pytestmark = [pytest.mark.slow, pytest.mark.faults]

FILES: dict[str, tuple[str, list[str], list[str]]] = {
    "machine_temperature.csv": ("timestamp", ["value"], []),
    "ambient_temperature.csv": ("timestamp", ["value"], []),
    "road_speed.csv": ("timestamp", ["value"], []),
    "weather_3stations.csv": ("time_hour", ["temp"], []),
    "weather_3stations.csv by station": ("time_hour", ["temp", "wind_gust"], ["--device", "origin"]),
}


@pytest.fixture(params=FILES)
def ran(request: pytest.FixtureRequest, data: Callable[[str], Path], sluicegate: Any, tmp_path: Path) -> Any:
    """The edge half on one file: (folder, streams)."""
    time, values, device = FILES[request.param]
    path = data(request.param.split()[0])
    columns = [word for value in values for word in ("--value", value)]
    options = ["--csv", path, "--time", time, *columns, *device, "--broker", "builtin", "--out", tmp_path / "demo"]
    done = sluicegate("demo", "--edge-only", *options)
    assert done.returncode == 0, done.stderr
    feeds = from_csv(path, time, values, device=device[1] if device else None)
    return tmp_path / "demo", Streams(feeds)


@pytest.mark.spark
def test_the_same_zeros(ran: Any) -> None:
    """Each reading is in one bucket, and the agent's and the cloud's windows hold the truth, whatever the times do."""
    out, streams = ran
    run = EdgeRun.load(out)
    found = proof.custody(run.target, streams)
    assert (found.lost, found.double_counted, found.wrong, found.problems) == (0, 0, 0, [])
    answers = proof.agents(run.results, streams, WINDOWS)
    assert (answers.outside, answers.problems) == (0, [])
    assert answers.checked > 0
    assert sum(agent["kills"] for agent in run.agents) == 2
    pytest.importorskip("pyspark", reason="the edge half passed; the cloud half needs the extra `cloud`")
    windows_hold_the_truth(out, streams)


def windows_hold_the_truth(out: Path, streams: Streams) -> None:
    """The cloud's half, in one Spark session for all files: no window outside, none missing."""
    from sluicegate_cloud import job
    from sluicegate_demo.merge import FOLDER, windows

    job.merge([str(out / "chunks")], out / FOLDER, LENGTH, SLIDE)
    tally = proof.cloud(windows(out), streams, LENGTH, SLIDE)
    assert (tally.outside, tally.missing, tally.problems) == (0, 0, [])
    assert tally.checked > 200
