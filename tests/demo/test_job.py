"""The verdict of the demo, without brokers, agents or Spark: it passes what is right and fails what is not."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sluicegate.format import chunk as chunks
from sluicegate.format.bucket import Builder
from sluicegate_demo import merge
from sluicegate_demo.edge import EdgeRun
from sluicegate_demo.job import LENGTH, SLIDE, CheckFailedError, Job, JobError, Source
from sluicegate_demo.truth import AGGREGATES, Streams

ROWS = "".join(f"2020-01-{1 + n // 24:02}T{n % 24:02}:00:00,{n % 7 - 2.5}\n" for n in range(100))


def documents(times: list[int], values: list[float], first: int = 0) -> Iterator[bytes]:
    """Chunks of one bucket of ten readings each, as an agent would sync them."""
    for begin in range(0, len(times), 10):
        builder = Builder(values[0], first + begin)
        for time, value in zip(times[begin : begin + 10], values[begin : begin + 10], strict=True):
            builder.add(value, time)
        bucket = builder.close()
        singles = array("q", times[begin : begin + 10]), array("d", values[begin : begin + 10])
        yield chunks.encode(chunks.Chunk("mine", "x", "0" * 16, values[0], [bucket], [singles], None))


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    """An edge run that went well, and a cloud that answers every window rightly."""
    path = tmp_path / "mine.csv"
    path.write_text("t,x\n" + ROWS)
    source = Source(str(path), "t", ("x",))
    streams = Streams(source.feeds())
    out = tmp_path / "out"
    (out / "chunks").mkdir(parents=True)
    for number, document in enumerate(documents(*streams.published["mine", "x"])):
        (out / "chunks" / f"{number:03}.json").write_bytes(document)
    (out / "source.json").write_text(json.dumps(vars(source)))
    agents = [{"device": "mine", "kills": 2, "peak_rss_mib": 30.0}]
    outbox = {"mine": {"outbox": {"rows": 0, "chunks_sealed": 0}}}
    EdgeRun("directory", [], agents, {"accepted": 100}, outbox, "none", 10_000, 100, 1.0).save(out)
    monkeypatch.setattr(merge, "merge", lambda *_: None)
    monkeypatch.setattr(merge, "report", lambda out, _: out / "report.html")
    monkeypatch.setattr(merge, "window_count", lambda _: 1)
    monkeypatch.setattr(merge, "windows", lambda _: right_windows(streams))
    return Job(out)


def right_windows(streams: Streams) -> Iterator[dict[str, Any]]:
    """The rows of a cloud that makes no mistake."""
    for (device, stream), starts in streams.occupied(LENGTH, SLIDE).items():
        for start in starts:
            truth = streams.between((device, stream), start, start + LENGTH)
            row: dict[str, Any] = {"device": device, "stream": stream}
            row |= {"window_start": start, "window_end": start + LENGTH}
            for name in AGGREGATES:
                value = getattr(truth, name)
                row |= {name: value, f"{name}_low": value, f"{name}_high": value, f"{name}_exact": True}
            yield row


def summary_of(job: Job) -> Any:
    """What the job wrote."""
    return json.loads((job.out / "summary.json").read_text())


def test_a_right_run_passes(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    """All zeros, everything exact, and the table says ok."""
    job.cloud(None)
    said = summary_of(job)
    assert said["readings"] == {"published": 100, "accepted": 100, "duplicates": 0, "lost": 0, "double_counted": 0}
    assert said["windows"]["checked"] == said["windows"]["exact"] == 2 * (100 + 23)
    assert said["windows"]["outside_bounds"] == 0
    assert "FAILED" not in capsys.readouterr().out


def test_a_lost_chunk_fails(job: Job) -> None:
    """Ten readings in no bucket: the run fails and counts them."""
    (job.out / "chunks" / "004.json").unlink()
    with pytest.raises(CheckFailedError, match="lost"):
        job.cloud(None)
    assert summary_of(job)["readings"]["lost"] == 10


def test_a_reading_in_two_buckets_fails(job: Job) -> None:
    """The same readings under another document: counted twice."""
    (job.out / "chunks" / "again.json").write_bytes((job.out / "chunks" / "002.json").read_bytes())
    with pytest.raises(CheckFailedError, match="counted twice"):
        job.cloud(None)
    assert summary_of(job)["readings"]["double_counted"] == 10


def test_a_bucket_that_says_what_is_not_so_fails(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    """One value changed on the way: counts are right, but the bucket is not what its rows give."""
    times, values = Streams(Source(str(job.out.parent / "mine.csv"), "t", ("x",)).feeds()).published["mine", "x"]
    wrong = list(documents(times, [*values[:55], 99.0, *values[56:]]))[5]
    (job.out / "chunks" / "005.json").write_bytes(wrong)
    with pytest.raises(CheckFailedError, match="misreport"):
        job.cloud(None)
    assert "bucket at 50, 10 readings: says" in capsys.readouterr().out


def test_a_full_outbox_and_a_large_agent_fail(job: Job) -> None:
    """What stayed behind, and memory over 48 MiB, are failures too."""
    run = EdgeRun.load(job.out)
    run.streams["mine"]["outbox"]["rows"] = 3
    run.agents[0]["peak_rss_mib"] = 48.1
    run.save(job.out)
    with pytest.raises(CheckFailedError, match="outboxes empty at the end, peak memory"):
        job.cloud(None)


def test_other_readings_than_the_edge_half_had_are_refused(job: Job) -> None:
    """`--cloud-only --csv other.csv` would compare apples with pears."""
    with pytest.raises(JobError, match="had other readings"):
        job.cloud(Source("other.csv", "t", ("x",)))
    (job.out / "edge.json").unlink()
    with pytest.raises(JobError, match="no edge run is here"):
        job.cloud(None)
