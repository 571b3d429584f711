"""Spark's own metrics say what a session's merges did; progress is told as lines of JSON where a machine reads it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from table_worlds import table_of
from test_devices import HOUR, document

from sluicegate_cloud import metrics, progress
from sluicegate_cloud.table import job


def shown(spark: Any) -> dict[str, int]:
    """What Spark's sinks are given."""
    system = spark.sparkContext._jvm.org.apache.spark.SparkEnv.get().metricsSystem()
    gauges = system.getSourcesByName("AccumulatorSource").apply(0).metricRegistry().getGauges()
    return {name: gauges[spelled].getValue() for name, spelled in metrics.NAMES.items()}


@pytest.mark.spark
def test_runs_on_a_table_are_counted(spark: Any, tmp_path: Path) -> None:
    """Two runs: documents, one of them known and one that is none, rows; the newest version and when it was made."""
    metrics.tell(spark, runs=0)
    before = shown(spark)
    definition = job.definition_of(HOUR, HOUR, ("mean",), shards=1)
    found = [document("press", 0), document("press", 20), b"{"]
    for some in (found[:1], found):
        rows = spark.createDataFrame(table_of(some).to_pandas(), spark_schema())
        version = job.take(spark, rows, tmp_path / "table", definition)
    now = shown(spark)
    grown = {name: now[name] - before[name] for name in metrics.COUNTED}
    assert {name: grown[name] for name in ("runs", "documents", "copies", "refused")} == {
        "runs": 2, "documents": 4, "copies": 1, "refused": 1
    }  # fmt: skip
    assert grown["windows"] == version.told["rows"] + 1
    assert grown["milliseconds"] > 0
    assert now["version"] == 2
    assert now["made_ms"] > 1_700_000_000_000


def spark_schema() -> str:
    """Of rows of documents."""
    from sluicegate_cloud.documents import DOCUMENTS

    return DOCUMENTS


def test_progress_as_json(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """A step that ends, and one that fails: each line has its time, event, step and seconds."""
    monkeypatch.setenv("SLUICEGATE_LOG", "json")
    with progress.step("reading"):
        pass
    with pytest.raises(ValueError, match="no"), progress.step("writing"):
        raise ValueError("no")
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    assert [(line["event"], line["step"]) for line in lines] == [
        ("begun", "reading"), ("done", "reading"), ("begun", "writing"), ("failed", "writing")
    ]  # fmt: skip
    assert lines[-1]["error"] == "ValueError"
    assert all(line["seconds"] >= 0 and line["time"].endswith("+00:00") for line in lines)
