"""`sluicegate demo --csv` on real files: a clock set back, gaps of days, irregular spacing, NA; the same zeros."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from thorough import WHOLE, number

from sluicegate_demo import proof
from sluicegate_demo.agents import WINDOWS
from sluicegate_demo.edge import EdgeRun
from sluicegate_demo.job import LENGTH, SLIDE
from sluicegate_demo.readings import Feed, from_csv
from sluicegate_demo.truth import AGGREGATES, Streams

pytestmark = [pytest.mark.slow, pytest.mark.faults]

COLUMNS = {
    "machine_temperature.csv": ("timestamp", "value"),
    "ambient_temperature.csv": ("timestamp", "value"),
    "road_speed.csv": ("timestamp", "value"),
    "weather_3stations.csv": ("time_hour", "temp"),
}
#: The rows of each file that has many in which its oddities lie: the clock set back, gaps of days, NA.
ODD = {
    "machine_temperature.csv": slice(9_000, 11_000),
    "ambient_temperature.csv": slice(0, 2_200),
    "weather_3stations.csv": slice(5_500, 9_500),
}


def odd_part(path: Path, folder: Path) -> Path:
    """The file; in `make test` one with those of its rows in which its oddities lie."""
    if WHOLE or path.name not in ODD:
        return path
    header, *rows = path.read_text("utf-8").splitlines(keepends=True)
    part = folder / path.name
    part.write_text("".join([header, *rows[ODD[path.name]]]), "utf-8")
    return part


def edge_half(sluicegate: Any, path: Path, out: Path, *options: str) -> None:
    """Run `demo --csv … --edge-only` on a file."""
    time, value = COLUMNS[path.name]
    columns = ["--csv", path, "--time", time, "--value", value, *options]
    done = sluicegate("demo", "--edge-only", *columns, "--broker", "builtin", "--out", out)
    assert done.returncode == 0, done.stderr


def published(path: Path, time: str, value: str, **options: Any) -> list[Feed]:
    """A file's feeds as the demo publishes them: some rows held up on the way."""
    return [feed.held_up() for feed in from_csv(path, time, [value], **options)]


def kept_every_reading_once(out: Path, streams: Streams) -> None:
    """Each reading is in one bucket, and the agents' own windows hold the truth."""
    run = EdgeRun.load(out)
    found = proof.custody(out / "chunks", streams)
    assert (found.lost, found.double_counted, found.wrong, found.problems) == (0, 0, 0, [])
    answers = proof.agents(run.results, streams, WINDOWS)
    assert (answers.outside, answers.problems) == (0, [])
    assert answers.checked > 0
    assert sum(agent["kills"] for agent in run.agents) == 2


@pytest.mark.spark
@pytest.mark.timeout(1500)
def test_the_same_zeros(data: Callable[[str], Path], sluicegate: Any, tmp_path: Path) -> None:
    """Each file through its agent, then all in one merge: per file and as one fleet no window is outside its bounds."""
    feeds = []
    for name, (time, value) in COLUMNS.items():
        path, out = odd_part(data(name), tmp_path), tmp_path / f"out-{name}"
        edge_half(sluicegate, path, out)
        feeds += published(path, time, value)
        kept_every_reading_once(out, Streams(feeds[-1:]))
    pytest.importorskip("pyspark", reason="the edge half passed; the cloud half needs the extra `cloud`")
    from sluicegate_cloud import job
    from sluicegate_demo.merge import FOLDER, windows

    chunks = [str(tmp_path / f"out-{name}" / "chunks") for name in COLUMNS]
    job.merge(chunks, tmp_path / FOLDER, LENGTH, SLIDE, AGGREGATES)
    tally = proof.cloud(windows(tmp_path), Streams(feeds), LENGTH, SLIDE)
    assert (tally.outside, tally.missing, tally.problems) == (0, 0, [])
    assert tally.checked > number(20_000, 5_000)


def test_a_column_tells_devices_apart(data: Callable[[str], Path], sluicegate: Any, tmp_path: Path) -> None:
    """With `--device origin` the weather file is three devices, each with its own agent."""
    path = data("weather_3stations.csv")
    edge_half(sluicegate, path, tmp_path / "demo", "--device", "origin", "--rows", "800")
    feeds = published(path, "time_hour", "temp", device="origin", rows=800)
    assert len(feeds) == 3
    kept_every_reading_once(tmp_path / "demo", Streams(feeds))


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_hardly_any_readings(sluicegate: Any, tmp_path: Path, rows: int) -> None:
    """A file of one, two or three rows goes through the outage and both kills as well; so does a folder of odd name."""
    path = tmp_path / "few rows.csv"
    path.write_text("t,v\n" + "".join(f"2020-01-0{n + 1},{n}\n" for n in range(rows)))
    out = tmp_path / 'a "b" ü'
    done = sluicegate("demo", "--edge-only", "--csv", path, "--time", "t", "--value", "v", "--out", out)
    assert done.returncode == 0, done.stderr
    kept_every_reading_once(out, Streams(published(path, "t", "v")))
