"""The whole cloud path promises the same rows whatever was sent again, reordered, late or damaged."""

from __future__ import annotations

import hashlib
import json
import math
import random
import re
import shutil
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from cloud_streams import Readings, Row, fold, older, violations

from sluicegate.format.bucket import Bucket
from sluicegate.format.chunk import Chunk, encode

pytestmark = pytest.mark.spark

SECOND, HOUR = 1_000_000, 3_600_000_000
WINDOW, SLIDE = 6 * HOUR, HOUR


def readings(seed: int, count: int = 3_000) -> list[tuple[int, float]]:
    """A device's readings, about one a minute, two days in all."""
    rng, now, out = random.Random(seed), 1_700_000_000 * SECOND, []
    for _ in range(count):
        now += rng.randrange(1, 120) * SECOND
        out.append((now, round(20 + 5 * rng.random(), 2)))
    return out


def write_chunks(
    folder: Path, device: str, held: list[tuple[int, float]], per_bucket: int = 25, old_until: int = 0
) -> list[Path]:
    """The device's chunk documents, twenty buckets each, as a directory target lays them out.

    Buckets before ordinal `old_until` are as a device before format 2 sent them.
    """
    center, paths = held[0][1], []
    rows = [fold(held[at : at + per_bucket], center, at) for at in range(0, len(held), per_bucket)]
    buckets = [Bucket(**(older(row) if row["first"] < old_until else row)) for row in rows]
    place = folder / device / "temp"
    place.mkdir(parents=True, exist_ok=True)
    for at in range(0, len(buckets), 20):
        run = buckets[at : at + 20]
        paths.append(place / f"{1:016x}-{run[0].first:016d}.json")
        paths[-1].write_bytes(encode(Chunk(device, "temp", f"{1:016x}", center, run, [None] * len(run))))
    return paths


def merge(*sources: Path, out: Path, **options: Any) -> dict[str, Any]:
    """The job with this suite's window."""
    from sluicegate_cloud import job

    return job.merge([str(source) for source in sources], out, WINDOW, SLIDE, **options)


def stored(out: Path) -> list[Row]:
    """The rows of OUT/windows, sorted."""
    table = ds.dataset(out / "windows", partitioning="hive").to_table()
    rows = table.select(sorted(table.column_names)).to_pylist()
    return sorted(rows, key=lambda row: (row["stream"], row["device"] or "", row["window_start"]))


def digest(out: Path) -> str:
    """A hash of all rows to the bit."""
    return hashlib.sha256(repr(stored(out)).encode()).hexdigest()


@pytest.fixture(scope="module")
def raw() -> dict[str, list[tuple[int, float]]]:
    """Three devices; one has a name that Spark's own listing would leave out, one that a path must encode."""
    return {"_attic": readings(1), "board-2": readings(2), "kitchen": readings(3)}


@pytest.fixture(scope="module")
def source(raw: dict[str, list[tuple[int, float]]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Their documents in one folder."""
    folder = tmp_path_factory.mktemp("chunks")
    for device, held in raw.items():
        write_chunks(folder, device, held)
    return folder


@pytest.fixture(scope="module")
def merged(spark: Any, source: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A first run: its folder and summary."""
    out = tmp_path_factory.mktemp("merged")
    return out, merge(source, out=out)


def test_every_window_holds_the_truth(
    merged: tuple[Path, dict[str, Any]], raw: dict[str, list[tuple[int, float]]]
) -> None:
    """Each stored row, device or fleet, against the raw readings."""
    truth: dict[str | None, Readings] = {device: Readings(held) for device, held in raw.items()}
    truth[None] = Readings([reading for held in raw.values() for reading in held])
    rows = stored(merged[0])
    assert len(rows) == merged[1]["windows"]["rows"] > 150
    for row in rows:
        assert violations(row, truth[row["device"]].window(row["window_start"], row["window_end"])) == []


def test_the_summary_counts_documents_readings_and_exactness(merged: tuple[Path, dict[str, Any]]) -> None:
    """Nothing missing, nothing refused; the file on disk is what was returned."""
    out, summary = merged
    assert json.loads((out / "summary.json").read_text()) == summary
    assert summary["documents"]["files"] == summary["documents"]["used"] == 18
    assert {device["device"]: device["readings"] for device in summary["devices"]} == {
        "_attic": 3_000,
        "board-2": 3_000,
        "kitchen": 3_000,
    }
    assert all(device["completeness"] == 1.0 for device in summary["devices"])
    assert summary["problems"] == []


def test_sent_again_and_reordered_gives_the_same_rows(
    merged: tuple[Path, dict[str, Any]], source: Path, tmp_path: Path
) -> None:
    """Copies under other names in another folder change no bit of the result, only the count of copies."""
    again = tmp_path / "again"
    files = sorted(source.rglob("*.json"))
    random.Random(4).shuffle(files)
    again.mkdir()
    for number, file in enumerate(files):
        shutil.copy(file, again / f"{number:03d}.json")
    (again / "000.json.partial").write_text("an agent was writing")
    (again / ".listing").write_text("left by a file manager")
    before = digest(merged[0])
    summary = merge(again, source, again / "*.json", out=tmp_path / "out")
    assert digest(tmp_path / "out") == before
    assert summary["documents"]["copy"] == 18
    assert summary["problems"] == []
    merge(source, out=tmp_path / "out")
    assert digest(tmp_path / "out") == before


def test_a_document_that_comes_late_corrects_the_rows(
    merged: tuple[Path, dict[str, Any]], source: Path, tmp_path: Path
) -> None:
    """Without it its readings are missing, in completeness and in no interval; with it a rerun gives the same rows."""
    part, out = tmp_path / "part", tmp_path / "out"
    shutil.copytree(source, part)
    late = sorted((part / "kitchen").rglob("*.json"))[2]
    late.rename(tmp_path / "late.json")
    summary = merge(part, out=out)
    kitchen = next(device for device in summary["devices"] if device["device"] == "kitchen")
    assert (kitchen["readings"], kitchen["missing"]) == (2_500, 500)
    assert kitchen["completeness"] == pytest.approx(2_500 / 3_000)
    gaps = [row for row in stored(out) if row["device"] == "kitchen" and row["completeness"] < 0.9]
    assert len(gaps) >= 10
    merge(part, tmp_path / "late.json", out=out)
    assert digest(out) == digest(merged[0])


def test_damaged_foreign_and_conflicting_files_are_reported_not_fatal(spark: Any, tmp_path: Path) -> None:
    """Each is named with a reason and counted; strict makes it an error; the conflict is settled alike in every run."""
    from sluicegate_cloud.errors import StrictError

    source = tmp_path / "source"
    first, *_ = write_chunks(source, "a", readings(7, 1_000))
    shorter = write_chunks(tmp_path / "other", "a", readings(70, 400))[0]
    shutil.copy(shorter, source / "conflict.json")
    shutil.copy(write_chunks(tmp_path / "cut", "a", readings(7, 400))[0], source / "shorter.json")
    (source / "foreign.json").write_text('{"a": 1}')
    (source / "notes.txt").write_text("hello")
    damaged = bytearray(first.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    (source / "damaged.json").write_bytes(damaged)
    summary = merge(source, out=tmp_path / "out")
    counts = {"refused": 3, "conflict": 1, "used": 2, "copy": 1}  # a copy: the same readings in a shorter document
    assert {name: summary["documents"][name] for name in counts} == counts
    assert (summary["devices"][0]["readings"], summary["devices"][0]["missing"]) == (1_000, 400)
    assert {Path(problem["path"]).name for problem in summary["problems"]} >= {
        "foreign.json",
        "notes.txt",
        "damaged.json",
    }
    with pytest.raises(StrictError, match="strict"):
        merge(source, out=tmp_path / "out", strict=True)


def test_a_document_that_overlaps_another_never_counts_twice(spark: Any, tmp_path: Path) -> None:
    """Ordinals claimed by two documents count once; what is left out is missing, and reported."""
    held = readings(8, 1_000)
    source = tmp_path / "source"
    write_chunks(source, "a", held)
    center = held[0][1]
    for name, run in (("same", held[250:300]), ("other", [(time + 1, value) for time, value in held[250:300]])):
        extra = [Bucket(**fold(run, center, 250))]
        (source / f"{name}.json").write_bytes(encode(Chunk("a", "temp", f"{1:016x}", center, extra, [None])))
    summary = merge(source, out=tmp_path / "out")
    assert (summary["devices"][0]["readings"], summary["devices"][0]["missing"]) == (1_000, 50)
    assert (summary["documents"]["overlap"], summary["documents"]["copy"]) == (1, 1)
    assert "count twice" in summary["problems"][0]["reason"]
    assert [alarm["readings"] for alarm in summary["alarms"]] == [50]


def test_a_document_that_goes_beyond_another_is_used_in_part(spark: Any, tmp_path: Path) -> None:
    """Its own ordinals count, those of the other do not; what it lost is told, and strict makes it an error."""
    from sluicegate_cloud.errors import StrictError

    held, source = readings(8, 500), tmp_path / "source"
    write_chunks(source, "a", held)
    run = [(time + 1, value) for time, value in readings(8, 600)[450:600]]
    beyond = [Bucket(**fold(run[at : at + 50], held[0][1], 450 + at)) for at in (0, 50, 100)]
    (source / "beyond.json").write_bytes(encode(Chunk("a", "temp", f"{1:016x}", held[0][1], beyond, [None] * 3)))
    summary = merge(source, out=tmp_path / "out")
    assert (summary["devices"][0]["readings"], summary["devices"][0]["missing"]) == (600, 50)
    assert (summary["documents"]["used"], summary["documents"]["partly"]) == (2, 1)
    assert "50 of its readings" in summary["problems"][0]["reason"]
    with pytest.raises(StrictError, match="50 of its readings"):
        merge(source, out=tmp_path / "out", strict=True)


def test_devices_of_both_formats_are_merged_with_certain_bounds(spark: Any, tmp_path: Path) -> None:
    """One device was updated halfway, one not yet, one is new: every aggregate's interval holds the truth, for all.

    What only format 2 tells is sharper where format 2 told it.
    """
    from sluicegate_cloud.frames import merge_frames
    from sluicegate_cloud.names import ALL
    from sluicegate_cloud.sources import read_buckets
    from sluicegate_cloud.windows import sliding_windows

    held = {f"board-{i}": readings(i, 1_500) for i in range(3)}
    for device, old_until in zip(held, (0, 750, 1_500), strict=True):
        write_chunks(tmp_path, device, held[device], old_until=old_until)
    formats = [json.loads(path.read_bytes())["format"] for path in tmp_path.rglob("*.json")]
    assert sorted(set(formats)) == [1, 2]
    frames = merge_frames(read_buckets(spark, str(tmp_path)), SLIDE)
    rows = [row.asDict() for row in sliding_windows(frames, 6, ALL).collect()]
    raw = {device: Readings(some) for device, some in held.items()}
    raw[None] = Readings([reading for some in held.values() for reading in some])
    for row in rows:
        told = {name: math.nan if value is None else value for name, value in row.items()}
        assert violations(told, raw[row["device"]].window(row["window_start"], row["window_end"])) == []
    width = {device: [] for device in raw}
    for row in rows:
        if row["count_low"] > 200:
            width[row["device"]].append(row["std_high"] - row["std_low"])
    assert max(width["board-0"]) < min(width["board-2"])


def test_only_foreign_files_are_an_error_that_names_one(spark: Any, tmp_path: Path) -> None:
    """A folder of something else is no empty success."""
    from sluicegate_cloud.errors import SourceError

    (tmp_path / "a.txt").write_text("hello")
    with pytest.raises(SourceError, match=r"none of the 1 files is a chunk document.*a\.txt"):
        merge(tmp_path, out=tmp_path / "out")


def test_the_examples_of_the_documentation_run(
    merged: tuple[Path, dict[str, Any]], source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The Python examples of both pages on the merge, as they stand, on real chunks."""
    pages = [Path(__file__).parents[2] / "docs" / name for name in ("how-to/merge-nightly.md", "reference/cloud.md")]
    text = "".join(page.read_text() for page in pages)
    examples = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(examples) == 2
    (tmp_path / "chunks").symlink_to(source)
    (tmp_path / "merged").symlink_to(merged[0])
    monkeypatch.chdir(tmp_path)
    for example in examples:
        exec(compile(example, "a page of docs", "exec"), {})  # noqa: S102 - the documentation's own text
