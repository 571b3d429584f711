"""The demo as a user runs it, on a part of the readings: every zero is zero, and the summary has its shape."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from sluicegate_demo import proof
from sluicegate_demo.agents import WINDOWS
from sluicegate_demo.edge import EdgeRun
from sluicegate_demo.job import Source
from sluicegate_demo.truth import Streams

COUNT = {"type": "integer", "minimum": 0}


def shape(**members: Any) -> dict[str, Any]:
    """A JSON object with exactly these members."""
    return {"type": "object", "properties": members, "required": list(members), "additionalProperties": False}


AGENT = shape(device={"type": "string"}, kills=COUNT, peak_rss_mib={"type": "number"})
SUMMARY = shape(
    readings=shape(**dict.fromkeys(("published", "accepted", "duplicates", "lost", "double_counted"), COUNT)),
    windows=shape(
        **dict.fromkeys(("checked", "outside_bounds", "exact"), COUNT), max_relative_error={"type": "number"}
    ),
    agents={"type": "array", "items": AGENT},
    bytes=shape(**dict.fromkeys(("mqtt_payload", "raw_columns_deflated", "synced"), COUNT)),
    seconds={"type": "number"},
)


@pytest.mark.slow
@pytest.mark.faults
@pytest.mark.parametrize("broker", ["builtin", "auto"])
def test_edge_half_keeps_every_reading_once(sluicegate: Any, tmp_path: Path, broker: str) -> None:
    """An outage, two kills and repeats: every reading in exactly one bucket, every answer of an agent in its bounds."""
    ran = sluicegate("demo", "--edge-only", "--rows", 1500, "--broker", broker, "--out", tmp_path / "demo")
    assert ran.returncode == 0, ran.stderr
    run, streams = EdgeRun.load(tmp_path / "demo"), Streams(Source(rows=1500).feeds())
    found = proof.custody(tmp_path / "demo" / "chunks", streams)
    assert (found.lost, found.double_counted, found.wrong, found.problems) == (0, 0, 0, [])
    assert found.merged == found.published == streams.readings
    answers = proof.agents(run.results, streams, WINDOWS)
    assert answers.outside == 0, answers.problems
    assert answers.checked > 100
    assert [agent["kills"] for agent in run.agents] == [0, 2, 0]
    assert all(0 < agent["peak_rss_mib"] <= 48 for agent in run.agents)
    assert run.counters["duplicates"] >= 100
    assert "mean of 24 hours" in ran.stdout


@pytest.mark.slow
@pytest.mark.faults
@pytest.mark.spark
def test_whole_path_in_two_halves(sluicegate: Any, tmp_path: Path) -> None:
    """`--edge-only`, then `--cloud-only`, as `make demo` does: checks pass, report and summary are there."""
    pytest.importorskip("pyspark", reason="needs the extra `cloud`")
    out = tmp_path / "demo"
    edge = sluicegate("demo", "--edge-only", "--rows", 400, "--broker", "builtin", "--out", out)
    assert edge.returncode == 0, edge.stderr
    cloud = sluicegate("demo", "--cloud-only", "--out", out)
    assert cloud.returncode == 0, cloud.stdout + cloud.stderr
    summary = json.loads((out / "summary.json").read_text())
    jsonschema.validate(summary, SUMMARY)
    assert (summary["readings"]["lost"], summary["readings"]["double_counted"]) == (0, 0)
    assert summary["windows"]["outside_bounds"] == 0
    assert summary["windows"]["checked"] > 5_000
    assert (out / "report.html").stat().st_size > 1_000
    assert "FAILED" not in cloud.stdout


@pytest.mark.faults
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_interrupted_demo_leaves_no_process(tmp_path: Path, number: signal.Signals) -> None:
    """Told to end in the middle, the demo ends its agents and its broker, and says so without a traceback."""
    command = [sys.executable, "-m", "sluicegate", "demo", "--edge-only", "--out", str(tmp_path / "demo")]
    told: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    # Where the tests run in the background of a shell, it has them ignore an interrupt, and their children too.
    with subprocess.Popen(command, preexec_fn=lambda: signal.signal(number, signal.SIG_DFL), **told) as demo:
        assert demo.stdout is not None
        while "one agent a station" not in (line := demo.stdout.readline()):
            assert line, "the demo ended early"
        time.sleep(0.7)
        demo.send_signal(number)
        rest = demo.stdout.read()
    assert demo.returncode in (130, 143)
    assert "Traceback" not in rest
    processes = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert str(tmp_path) not in processes
