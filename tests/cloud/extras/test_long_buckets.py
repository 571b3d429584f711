"""A bucket over years of short windows stops no merge: only where it may have a reading nothing is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from random_worlds import DAY, MINUTE, buckets_of

pytest.importorskip("pyspark", reason="the cloud's tests need the extra `cloud`")

from sluicegate.format.bucket import Bucket
from sluicegate.format.chunk import Chunk, encode
from sluicegate_cloud.extras import long
from sluicegate_cloud.extras.long import is_long, touches
from sluicegate_cloud.grid import Grid

NOW = 20_000 * DAY
EARLY = 100 * DAY


def test_what_is_long_is_so_by_the_windows_that_it_touches() -> None:
    """Both its ends count, and the windows that begin before it."""
    grid = Grid(10, 3, 0)
    most = (long.MOST_WINDOWS - 3) * 10
    assert not is_long(9, most + 9, grid)
    assert is_long(9, most + 10, grid)


def test_a_long_bucket_touches_the_windows_of_its_device_and_of_all() -> None:
    """Its times are both inside; a window's end is not."""
    some: dict[str | None, list[tuple[int, int]]] = {"a": [(100, 200), (400, 500)], None: [(100, 200), (400, 700)]}
    assert [touches(some, device, 50, 101) for device in ("a", "b", None)] == [True, False, True]
    assert [touches(some, "a", *window) for window in ((50, 100), (200, 300), (201, 300))] == [False, True, False]
    assert [touches(some, None, *window) for window in ((300, 400), (300, 401), (700, 900), (701, 900))] == [
        False,
        True,
        True,
        False,
    ]


def more_long_buckets() -> list[Bucket]:
    """Two, each over 100 days, before all others' readings: 10,000 empty windows follow each end, and all are read."""
    begins = [-at * 100 * DAY for at in (2, 1)]
    return buckets_of([(time, 1.0) for begin in begins for time in (begin, begin + 100 * DAY - 1)], 2)


def rows_of(*times: tuple[str, int, int]) -> pa.RecordBatch:
    """Buckets of a device's stream."""
    names = ("device", "t_first", "t_last")
    return pa.RecordBatch.from_pylist(
        [dict(zip(names, one, strict=True)) | {"stream": "s", "buckets": 1} for one in times]
    )


def test_long_buckets_of_a_device_are_few_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that overlap are one; of more than may be the last covers all the others, and each bucket is counted."""
    monkeypatch.setattr(long, "MOST", 2)
    batches = [rows_of(("a", 0, 10), ("a", 10, 12), ("a", 14, 20)), rows_of(("a", 30, 31), ("a", 40, 50), ("b", 1, 2))]
    found = [row for batch in long.stretches(batches) for row in batch.to_pylist()]
    assert [(row["device"], row["t_first"], row["t_last"], row["buckets"]) for row in found] == [
        ("a", 0, 12, 2),
        ("a", 14, 50, 3),
        ("b", 1, 2, 1),
    ]


@pytest.mark.spark
def test_one_clock_does_not_stop_the_merge(spark: Any, tmp_path: Path) -> None:
    """Two boards beside one whose bucket begins in 1970: they have their answers, all together where it ends not.

    Another has several such buckets.
    """
    from sluicegate_cloud import job
    from sluicegate_cloud.sinks import read_windows

    sent = tmp_path / "sent"
    sent.mkdir()
    steady = [(NOW + at * MINUTE // 2, float(at % 5)) for at in range(40)]
    of = {
        "a": [buckets_of(steady, 1), buckets_of([(EARLY, 1.0), (EARLY + 1, 2.0)], 1)],
        "b": [buckets_of(steady, 1)],
        "off": [buckets_of([(EARLY, 7.0), (NOW, 9.0)], 2)],
        "hostile": [more_long_buckets()],
    }
    for device, incarnations in of.items():
        for number, buckets in enumerate(incarnations):
            chunk = Chunk(device, "s", f"{number:016x}", 1.0, buckets, [None] * len(buckets))
            (sent / f"{device}-{number}.json").write_bytes(encode(chunk))
    summary = job.merge([str(sent)], tmp_path / "out", MINUTE, MINUTE, ("max", "top_k(2)", "first"))
    assert summary["extras"]["too_long"] == 1 + 2
    assert any("over 100,000 windows each" in line for line in job.table(summary))
    rows = read_windows(tmp_path / "out").to_pylist()
    told = {
        (row["device"], row["window_start"]): (row["top_k"], row["first"]) for row in rows if row["max"] is not None
    }
    assert {str(told[device, NOW + 5 * MINUTE]) for device in ("a", "b")} == {"([1.0, 0.0], 0.0)"}
    assert told[None, NOW + 5 * MINUTE] == ([1.0, 1.0], 0.0)
    assert {told[device, NOW] for device in ("off", None)} == {(None, None)}
    assert told["a", EARLY] == ([2.0, 1.0], 1.0)
    assert told[None, EARLY] == (None, None)
