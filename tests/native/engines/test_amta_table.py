"""AMTA's Experiment 3 in small: every algorithm's answers are the oracle's, and a wrong one is counted."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

np = pytest.importorskip("numpy", reason="the benchmark's oracle needs numpy, of the extra cloud")
sys.path.insert(0, str(Path(__file__).parents[3]))
from bench.amta import __main__ as command_line  # noqa: E402  (found by the line above)
from bench.amta import paper  # noqa: E402
from bench.amta.oracle import oracle  # noqa: E402
from bench.amta.paper import Setting  # noqa: E402
from bench.amta.run import Followed, follow  # noqa: E402
from bench.traces import trace  # noqa: E402

import sluicegate as sg  # noqa: E402

TINY = Setting(1_600, piece=1_024, naive_seconds=0.02)  # a window of 655 over 38,880 readings


@pytest.fixture
def fractions(tmp_path: Path) -> Path:
    """A file of readings that are not whole, as those of most files."""
    file = tmp_path / "tenths.csv"
    file.write_text("value\n" + "".join(f"{20 + i * 7919 % 1009 / 10}\n" for i in range(3_000)))
    return file


@pytest.mark.parametrize("source", ["memory", "steps", "file"])
@pytest.mark.parametrize("aggregate", paper.AGGREGATES)
def test_every_algorithm_answers_as_the_oracle(aggregate: str, source: str, fractions: Path) -> None:
    """The paper's six columns, in memory and in SQLite; the bulk evictions of max and longest run change nothing."""
    source = str(fractions) if source == "file" else source
    rows = follow(aggregate, TINY, source, 7, None)
    assert rows[0]["algorithm"] == "naive"
    assert {row["algorithm"] for row in rows} == set(paper.ALGORITHMS)
    for row in rows:
        assert row["wrong"] == 0, row
        assert row["compared"] > 0
        assert row["ns"] > 0
        if row["algorithm"] != "naive":
            assert row["taken"] == TINY.readings
            assert row["compared"] == (38 if aggregate == "longest_run" else TINY.readings)
        if aggregate in ("max", "longest_run") and source == "memory":
            assert row["held"] < TINY.window


@pytest.mark.parametrize("aggregate", paper.AGGREGATES)
def test_the_oracle_is_the_definition(aggregate: str) -> None:
    """From the list of the newest readings alone, in blocks of any size."""
    values, window = trace("memory")(0, 900), 100
    found, at = oracle(aggregate, window), 0
    for size in (1, 99, 300, 500):
        answers = found.after(values[at : at + size])
        at += size
        newest = values[max(0, at - window) : at]
        runs = np.split(newest, np.flatnonzero(np.diff(newest) <= 0) + 1)
        exact = {
            "sum": newest.sum(), "mean": newest.mean(), "geometric_mean": np.exp(np.log(newest).mean()),
            "std": newest.std(), "max": newest.max(), "longest_run": max(len(run) for run in runs),
        }[aggregate]  # fmt: skip
        assert answers[-1] == pytest.approx(exact, rel=1e-9, abs=1e-3)


def test_a_wrong_answer_is_counted() -> None:
    """The comparison can fail: a window of another size."""
    values = trace("memory")(0, 4_000)
    followed = Followed("amta", "sum", sg.Window({"sum": sg.sum()}, policy=sg.policies.count(99)))
    followed.take(values, oracle("sum", 100).after(values))
    row = followed.row()
    assert row["wrong"] > 3_000
    assert command_line.failed([row]) == [row]


@pytest.mark.parametrize(("aggregate", "by"), [("sum", 1e-6), ("mean", 1e-8), ("std", 1e-6), ("geometric_mean", 1e-7)])
def test_what_rounding_may_do_hides_no_fault(aggregate: str, by: float, fractions: Path) -> None:
    """Readings that are not whole, an answer off by a little: counted."""
    values = trace(str(fractions))(0, 4_000)
    window = sg.Window({aggregate: getattr(sg, aggregate)()}, policy=sg.policies.count(100))
    followed = Followed("amta", aggregate, window)
    exact = oracle(aggregate, 100).after(values)
    followed.take(values, exact + by * (np.arange(4_000) % 2))
    assert followed.wrong == 2_000


def test_the_command_prints_the_papers_figures_and_ours(tmp_path: Path, capsys: Any) -> None:
    """Both in a cell, and everything measured as JSON."""
    file = tmp_path / "amta.json"
    assert command_line.main(["--scale", "6400", "--only", "max,mean", "--workers", "1", "--json", str(file)]) == 0
    printed = capsys.readouterr().out
    assert "1.76 µs → " in printed
    said = json.loads(file.read_text())
    assert {(row["aggregate"], row["algorithm"]) for row in said["rows"]} == {
        (aggregate, algorithm) for aggregate in ("max", "mean") for algorithm in paper.ALGORITHMS
    }
    with pytest.raises(SystemExit):
        command_line.main(["--only", "median"])
