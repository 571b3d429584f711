"""`sluicegate cloud` promises one clear line and an exit code for what a new user gets wrong, before Spark starts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest


def sluicegate(*arguments: str, **environment: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of the command line."""
    run = subprocess.run(
        [sys.executable, "-m", "sluicegate", "cloud", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
        env={**{name: of for name, of in os.environ.items() if name != "SLUICEGATE_DEBUG"}, **environment},
    )
    return run.returncode, run.stdout, run.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["{tmp}/not-there", "--out", "{tmp}/o"], 2, "is not there"),
        (["{tmp}/none-*.json", "--out", "{tmp}/o"], 2, "is not there"),
        (["{tmp}/empty", "--out", "{tmp}/o"], 2, "there are no files in"),
        (["{tmp}/some", "--out", "{tmp}/file/o"], 4, "choose a folder that you may write"),
        (["{tmp}/some", "--out", "{tmp}/file"], 4, "choose a folder that you may write"),
        (["{tmp}/some", "--out", "s3a://bucket/o"], 2, "expected a path; a table (--table) may also lie at s3://"),
        (["{tmp}/some", "--out", "{tmp}/o", "--by", "/1"], 2, "--by and --registry are of --table"),
        (["{tmp}/some", "--table", "{tmp}/t", "--by", "/0"], 2, "by '/0': expected, by comma, names of tags"),
        (["{tmp}/some", "--table", "gs://bucket/t"], 4, "a table cannot lie at gs://bucket/t: give a folder"),
        (["{tmp}/some"], 2, "--out"),
        (["--out", "{tmp}/o"], 2, "SOURCE"),
        (["{tmp}/some", "--out", "{tmp}/o", "--window", "a day"], 2, "expected a positive length such as 24h"),
        (["{tmp}/some", "--out", "{tmp}/o", "--window", "90min"], 2, "90min is not a whole number of --slide 1h"),
        (["{tmp}/some", "--out", "{tmp}/o", "--aggregates", "mean,mode"], 2, "'mode': choose from count, sum, mean"),
    ],
)
def test_what_is_wrong_is_said_without_a_traceback(tmp_path: Path, arguments: list[str], code: int, said: str) -> None:
    """Each mistake has its message and its exit code, at once."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "some").mkdir()
    (tmp_path / "some" / "a.json").write_text("{}")
    (tmp_path / "file").write_text("")
    got, _, stderr = sluicegate("merge", *(text.format(tmp=tmp_path) for text in arguments))
    assert got == code, stderr
    assert said in " ".join(stderr.split())
    assert "Traceback" not in stderr


def test_a_broken_java_home_ends_with_exit_code_3(tmp_path: Path) -> None:
    """It names JAVA_HOME and what to do."""
    (tmp_path / "a.json").write_text("{}")
    code, _, stderr = sluicegate("merge", str(tmp_path), "--out", str(tmp_path / "o"), JAVA_HOME="/nowhere")
    assert code == 3
    assert "JAVA_HOME is '/nowhere'" in stderr
    assert "Traceback" not in stderr


@pytest.mark.parametrize(
    ("content", "said"), [(None, "cloud merge --out"), ("{", "is no JSON"), ("[]", "no JSON object")]
)
def test_a_report_on_what_was_never_merged_says_so(tmp_path: Path, content: str | None, said: str) -> None:
    """A folder without a summary, and one with a broken one."""
    if content is not None:
        (tmp_path / "summary.json").write_text(content)
    code, _, stderr = sluicegate("report", str(tmp_path), "--out", str(tmp_path / "r.html"))
    assert code == 2
    assert said in stderr
    assert "Traceback" not in stderr


def test_help_needs_no_spark(tmp_path: Path) -> None:
    """Help is there at once, even where PySpark is not importable."""
    (tmp_path / "pyspark.py").write_text("raise ImportError('not here')")
    code, stdout, _ = sluicegate("merge", "--help", PYTHONPATH=str(tmp_path))
    assert code == 0
    assert "OUT/windows/stream=NAME" in stdout


@pytest.mark.spark
def test_merge_and_report_from_end_to_end(tmp_path: Path) -> None:
    """Two commands, as a user types them: a table, Parquet, a summary and a page that loads nothing."""
    from test_cloud_merge import readings, write_chunks

    write_chunks(tmp_path / "chunks", "<b>&board</b>", readings(1, 500))
    out, page = tmp_path / "out", tmp_path / "report.html"
    asked = ["--aggregates", "std,mean", "--master", "local[2]"]
    code, stdout, stderr = sluicegate("merge", str(tmp_path / "chunks"), "--out", str(out), *asked)
    assert code == 0, stderr
    assert list(pq.read_table(out / "windows").column_names) == [
        *("device", "window_start", "window_end"),
        *(f"{name}{end}" for name in ("count", "mean", "std") for end in ("", "_low", "_high", "_exact")),
        *("completeness", "resolution_us", "buckets", "devices_silent", "windows", "stream"),
    ]
    assert "100.00 %" in stdout
    assert "merging windows" in stderr
    summary = json.loads((out / "summary.json").read_text())
    assert summary["windows"]["rows"] > 50
    assert list(summary["windows"]["exact"]) == ["count", "mean", "std"]
    code, stdout, stderr = sluicegate("report", str(out), "--out", str(page))
    assert code == 0, stderr
    assert page.stat().st_size > 10_000
