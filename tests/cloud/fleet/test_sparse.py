"""`cloud merge --out` promises the windows of all other devices, whatever one device sends: to the bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.dataset as ds
import pytest
from random_worlds import MINUTE, buckets_of
from thorough import WHOLE

from sluicegate.format.chunk import Chunk, encode
from sluicegate_cloud import grid, job
from sluicegate_cloud.errors import StrictError
from sluicegate_cloud.fleet.sparse import joined

#: A reading in every fifth of 196 frames has 197 windows of two minutes, 157 more than its 40 buckets.
BEYOND = 157
#: The name of a stream that takes more bytes as a folder's than any may have.
STARS = "*" * 90


@pytest.mark.parametrize(
    ("runs", "wanted"),
    [
        ([], []),
        ([(0, 4)], [(0, 4)]),
        ([(0, 4), (8, 9)], [(0, 9)]),
        ([(0, 4), (9, 9)], [(0, 4), (9, 9)]),
        ([(20, 21), (0, 30), (3, 5), (34, 40)], [(0, 40)]),
        ([(20, 21), (0, 2), (35, 40)], [(0, 2), (20, 21), (35, 40)]),
    ],
)
def test_runs_are_one_where_no_more_than_three_windows_are_between(runs: Any, wanted: Any) -> None:
    """In any order, also where one lies in another."""
    found = joined(*(np.array([run[end] for run in runs], np.int64) for end in (0, 1)), 3)
    assert [*zip(*(of.tolist() for of in found), strict=True)] == wanted


def write(folder: Path, device: str, step: int, count: int, stream: str = "s") -> None:
    """Its documents, of five buckets of one reading each."""
    run = [buckets_of([(step * MINUTE * at, 1.0 + at % 7)], 1)[0]._replace(first=at) for at in range(count)]
    for at in range(0, count, 5):
        (folder / device).mkdir(parents=True, exist_ok=True)
        chunk = Chunk(device, stream, "0" * 16, 1.0, run[at : at + 5], [None] * 5)
        (folder / device / f"{stream}-{at}.json").write_bytes(encode(chunk))


def merged(folder: Path, out: Path, *aggregates: str, **options: Any) -> tuple[list[Any], dict[str, Any]]:
    """Its rows and summary."""
    summary = job.merge([str(folder)], out, 2 * MINUTE, MINUTE, ("mean", "max", *aggregates), **options)
    rows = ds.dataset(out / "windows", partitioning="hive").to_table().to_pylist()
    return sorted(rows, key=lambda row: (row["stream"], row["device"] or "", row["window_start"])), summary


@pytest.mark.spark
@pytest.mark.parametrize("carried", [[], ["quantiles(16)"]] if WHOLE else [[]])
def test_one_device_of_too_many_windows_stops_nobody(
    carried: list[str], spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the window: at the limit it has its rows, beyond it all others have theirs, and it is refused by name."""
    for folder in (tmp_path / "all", tmp_path / "others"):
        write(folder, "dense", 1, 100)
        write(folder, "sparse", 1, 20, "other")
    write(tmp_path / "all", "sparse", 5, 40)
    write(tmp_path / "all", "named", 1, 5, STARS)
    monkeypatch.setattr(grid, "MAX_WINDOWS", BEYOND + 1)
    rows, summary = merged(tmp_path / "all", tmp_path / "in", *carried)
    assert sum((row["device"], row["stream"]) == ("sparse", "s") for row in rows) == 197
    assert (summary["alarms_in_all"], summary["documents"]["refused"]) == (1, 1)
    write(tmp_path / "others", "sparse", 5, 35)
    others, _ = merged(tmp_path / "others", tmp_path / "alone", *carried)
    monkeypatch.setattr(grid, "MAX_WINDOWS", BEYOND - 1)
    rows, summary = merged(tmp_path / "all", tmp_path / "out", *carried)
    assert rows == others
    assert (summary["documents"]["refused"], summary["documents"]["used"]) == (2, 31)
    assert [(alarm["kind"], alarm["device"], alarm["stream"]) for alarm in summary["alarms"]] == [
        ("set_aside", "named", STARS),
        ("set_aside", "sparse", "s"),
    ]
    assert [alarm["readings"] for alarm in summary["alarms"]] == [5, 5]
    reasons = {row["device"]: row["reason"] for row in summary["problems"]}
    assert "197 windows of 40 buckets" in reasons["sparse"]
    assert "no folder can have the name" in reasons["named"]
    known = {row["device"]: (row["readings"], row["missing"]) for row in summary["devices"]}
    assert known == {"dense": (100, 0), "sparse": (55, 5)}
    if not carried:
        with pytest.raises(StrictError, match="choose a longer slide"):
            merged(tmp_path / "all", tmp_path / "strict", strict=True)
