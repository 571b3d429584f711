"""Every reading that waits is in exactly one exported bucket, sealed or not, whatever the form."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from durable_agent import NOON, configured, timed
from target_suite.memory import MemoryTarget

from sluicegate_agent.config import Config
from sluicegate_agent.diagnosis.export import rows_of, write, write_parquet
from sluicegate_agent.pipeline import Pipeline
from sluicegate_agent.state import State
from sluicegate_agent.sync import Sync


@pytest.fixture
def filled(tmp_path: Path) -> Config:
    """A state with 200 readings of one stream, of which some buckets are sealed and not sent."""
    config = configured(tmp_path)
    with State(config) as state:
        pipeline = Pipeline(config, state, clock=lambda: NOON)
        for n in range(1, 201):
            pipeline.accept(timed(n, n, value=n / 8))
            if pipeline.pending >= 20:
                pipeline.commit()
        pipeline.flush()
        pipeline.commit()
        target = MemoryTarget()
        target.lost_answers = 1
        Sync(config, state, target).step(0.0)
        assert state.outbox.sealed
        assert state.outbox.rows
    return config


def test_buckets_as_csv(filled: Config) -> None:
    """Ordinals follow one another without a gap; counts and sums are those of the readings."""
    out = io.StringIO()
    count = write(rows_of(filled), "csv", out)
    rows = [*csv.DictReader(io.StringIO(out.getvalue()))]
    assert len(rows) == count > 10
    following = 0
    for row in rows:
        assert int(row["first"]) == following
        following += int(row["count"])
        assert float(row["min"]) <= float(row["mean"]) <= float(row["max"])
    assert following == 200
    assert sum(float(row["sum"]) for row in rows) == sum(range(1, 201)) / 8


def test_readings_as_json_lines(filled: Config) -> None:
    """Each with its ordinal, time and value; one stream alone where it is named."""
    out = io.StringIO()
    write(rows_of(filled, "heat", readings=True), "jsonl", out)
    rows = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [(row["ordinal"], row["value"]) for row in rows] == [(n - 1, n / 8) for n in range(1, 201)]
    assert write(rows_of(filled, "level"), "csv", io.StringIO()) == 0


def test_a_parquet_file_has_the_same(filled: Config, tmp_path: Path) -> None:
    """Typed columns, as many rows."""
    parquet = pytest.importorskip("pyarrow.parquet", reason="Parquet needs the extra `cloud`")
    count = write_parquet(rows_of(filled), tmp_path / "out.parquet")
    table = parquet.read_table(tmp_path / "out.parquet")
    assert table.num_rows == count == write(rows_of(filled), "csv", io.StringIO())
    assert sum(table["count"].to_pylist()) == 200
