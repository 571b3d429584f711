"""What a page says of a fleet equals what the definitions say, whatever files the windows lie in; and it is bounded."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from sluicegate_cloud.errors import SourceError
from sluicegate_cloud.report import write_report
from sluicegate_cloud.report.fleet import BINS, CLASSES, ROWS, WIDEST, summarised
from sluicegate_cloud.report.page import page_data
from sluicegate_cloud.report.series import MAX_SERIES

HOUR = 3_600_000_000
NAMES = ("mean", "count")


def world(seed: int, devices: int, hours: int = 30) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Windows of random completeness and width, some of them spans or unknown, and a summary of the devices."""
    rng = random.Random(seed)
    rows, told = [], []
    for number in range(devices):
        name, streams = f"board-{number:05d}", rng.sample(["temp", "flow"], rng.choice([1, 2]))
        for stream in streams:
            begin = rng.randrange(hours // 2)
            for hour in range(begin, rng.randint(begin + 1, hours)):
                rows.append(_row(rng, name, stream, hour))
        share = rng.choice([1.0, 0.995, 0.5, None])
        told.append({"device": name, "readings": 10, "missing": number, "doubt": 0, "completeness": share})
    rows += [_row(rng, None, stream, hour) for stream in ("flow", "temp") for hour in range(hours)]
    streams_told = [{"device": one["device"], "stream": "temp", "last_us": 5_000_000} for one in told]
    counts = dict.fromkeys(("files", "bytes", "used", "used_bytes", "copy", "refused", "conflict", "overlap"), 1)
    summary = {"window_us": HOUR, "slide_us": HOUR, "documents": counts, "devices": told, "streams": streams_told}
    summary |= {"windows": {"rows": len(rows), "exact": dict.fromkeys(NAMES, 0.5)}, "problems": [], "alarms": []}
    return rows, summary | {"alarms_in_all": 0}


def _row(rng: random.Random, device: str | None, stream: str, hour: int) -> dict[str, Any]:
    width = rng.choice([0.0, rng.random()])
    row: dict[str, Any] = {"stream": stream, "device": device, "window_start": hour * HOUR}
    row |= {"window_end": (hour + 1) * HOUR, "count_high": rng.choice([0, 5]), "windows": rng.choice([1, 1, 1, 50])}
    row |= {"mean": 1.0, "mean_low": 1.0 - width, "mean_high": 1.0 + width, "mean_exact": width == 0}
    row |= {"count": 5, "count_low": 5, "count_high": row["count_high"], "count_exact": True}
    return row | {"completeness": rng.choice([None, 1.0, 0.99, 0.95, 0.2, 0.0]), "resolution_us": 1e6, "buckets": 1}


def stored(folder: Path, rows: list[dict[str, Any]], summary: dict[str, Any], files: int = 1) -> Path:
    """As `cloud merge` leaves it, the rows of a stream in so many files."""
    for stream in {row["stream"] for row in rows}:
        place = folder / "windows" / f"stream={stream}"
        place.mkdir(parents=True)
        mine = [{name: of for name, of in row.items() if name != "stream"} for row in rows if row["stream"] == stream]
        for number in range(files):
            some = pa.Table.from_pylist(mine[number::files])
            device = some.column_names.index("device")
            some = some.set_column(device, "device", some["device"].cast(pa.string()))
            pq.write_table(some, place / f"{number}.parquet", row_group_size=40)
    (folder / "summary.json").write_text(json.dumps(summary))
    return folder


@pytest.mark.parametrize("seed", range(8))
def test_the_fleet_is_what_the_definitions_say(tmp_path: Path, seed: int) -> None:
    """Heat, classes, which series there are, and widest intervals against a plain walk over all rows."""
    rows, summary = world(seed, 20)
    told = page_data(stored(tmp_path / "m", rows, summary, files=3))["fleet"]
    first = min(row["window_start"] for row in rows)
    step = told["bins"]["step"] * 1000
    worst: dict[tuple[str, int], float] = {}
    for row in rows:
        if row["device"] is not None and row["completeness"] is not None:
            key = row["device"], int((row["window_start"] - first) // step)
            worst[key] = min(worst.get(key, 1.0), row["completeness"])
    names = [one["device"] for one in summary["devices"]]
    assert told["devices"]["device"] == names
    assert sorted(at for at, _ in told["rows"]) == list(range(len(names)))
    for at, shown in told["rows"]:
        assert shown == [worst.get((names[at], i), -1) for i in range(BINS)]
    for i in range(BINS):
        here = [worst.get((name, i), -1.0) for name in names]
        edges = (2.0, *CLASSES)
        counted = [sum(low <= x < high for x in here) for low, high in zip(edges[1:], edges, strict=False)]
        assert [column[i] for column in told["classes"]] == [*counted, sum(x < 0 for x in here)]
    for stream in ("flow", "temp"):
        alone = (row for row in rows if row["stream"] == stream and row["device"] and row["windows"] == 1)
        widths = sorted((row["mean_high"] - row["mean_low"] for row in alone), reverse=True)
        found = [one for one in told["widest"] if (one["stream"], one["aggregate"]) == (stream, "mean")]
        assert [one["width"] for one in found] == pytest.approx([width for width in widths[:WIDEST] if width > 0])
        assert all(one["high"] - one["low"] == pytest.approx(one["width"], rel=1e-3) for one in found)
    series = zip(told["series"]["stream"], told["series"]["device"], strict=True)
    found_series = [(told["streams"][stream], None if device < 0 else names[device]) for stream, device in series]
    assert len(found_series) == len({*found_series})
    assert {*found_series} == {(row["stream"], row["device"]) for row in rows}


def test_what_cannot_all_be_drawn_is_the_least_complete_and_who_is_named(tmp_path: Path) -> None:
    """The page has every device's figures; of windows it draws at most MAX_SERIES series, the fleet's among them."""
    rows, summary = world(1, 400, hours=4)
    folder = stored(tmp_path / "m", rows, summary)
    told = page_data(folder, devices=("board-00399",))
    drawn = [one["device"] for one in told["series"]]
    assert len(told["series"]) <= MAX_SERIES
    assert drawn[:2] == [None, None]
    assert "board-00399" in drawn
    share = {one["device"]: one["completeness"] for one in summary["devices"]}
    least = [share[name] for name in {*drawn} - {None, "board-00399"}]
    assert all(one is None or one == 0.5 for one in least)
    assert len(told["fleet"]["devices"]["device"]) == 400
    assert len(told["fleet"]["rows"]) == ROWS
    shares = [told["fleet"]["devices"]["completeness"][at] for at, _ in told["fleet"]["rows"]]
    every = sorted(-1 if one is None else one for one in share.values())
    assert [-1 if one is None else one for one in shares] == every[:ROWS]
    with pytest.raises(SourceError, match="has no device 'nobody'"):
        write_report(folder, tmp_path / "r.html", devices=("nobody",))


def test_a_fleet_without_a_window_has_a_page(tmp_path: Path) -> None:
    """Nothing to draw is not an error."""
    rows, summary = world(1, 2)
    empty = pa.Table.from_pylist(rows).slice(0, 0)
    told = summarised(ds.dataset(empty), summary | {"devices": [], "streams": []})
    assert told["bins"] is None
    assert told["widest"] == []


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs a browser to run the page's script")
def test_the_page_of_many_devices_is_drawn(tmp_path: Path) -> None:
    """Both heat maps, and a table of devices that the page finds."""
    rows, summary = world(2, 400, hours=4)
    write_report(stored(tmp_path / "m", rows, summary), tmp_path / "r.html")
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    command = ["chromium", *options, "--dump-dom", (tmp_path / "r.html").as_uri()]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True).stdout
    assert shown.count("<rect") == (5 + ROWS) * BINS
    assert "25 of 400." in shown
    assert "The 60 least complete" in shown
