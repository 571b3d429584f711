"""The paper's experiment in small: limits kept, intervals true, exact answers by another method; and it can fail."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

np = pytest.importorskip("numpy", reason="the benchmark's checker needs numpy, of the extra cloud")
sys.path.insert(0, str(Path(__file__).parents[3]))
from bench.a2mta import __main__ as command_line  # noqa: E402  (found by the line above)
from bench.a2mta import exact, hops, paper  # noqa: E402
from bench.a2mta import run as experiment  # noqa: E402
from bench.a2mta.check import Followed, Timed  # noqa: E402
from bench.a2mta.paper import Setting  # noqa: E402
from bench.a2mta.run import SCENARIOS, follow, run  # noqa: E402
from thorough import WHOLE  # noqa: E402

import sluicegate as sg  # noqa: E402

TINY = Setting(960)  # a window of 2,700 over 64,800 readings


@pytest.mark.parametrize("source", ["memory", "calm", "near-zero"])
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_limits_are_kept_and_intervals_hold(scenario: str, source: str) -> None:
    """Every method of the tables on each trace: no interval without the truth, no value beyond the user's limit.

    But for a mean that goes through 0: a share of what it will be cannot be known before; `limits` withholds those.
    """
    rows = run(TINY, source, 7, None, [scenario], workers=0)
    assert {row["table"] for row in rows} == ({"limits"} if scenario == "limits" else {"AMTA", "I", "II"})
    for row in rows:
        assert row["outside"] == 0, row
        crosses = source == "near-zero" and row["table"] == "I"
        assert row["over the limit"] <= (TINY.readings // 20 if crosses else 0), row
        assert row["checked"] == TINY.readings
        assert row["asked"] >= (0.8 * TINY.readings if row["table"] != "AMTA" else 0)
        assert row["footprint"] <= 100.0
        assert row["withheld"] == 0.0 or (row["table"] == "limits" and row["withheld"] < 50.0)
    if scenario != "limits":
        assert rows[0]["exact"] == rows[0]["footprint"] == 100.0


@pytest.mark.skipif(not WHOLE, reason="as above, of the paper's own size by 120: of the nightly tests")
def test_the_quick_form_keeps_limits_and_intervals_and_its_memory(tmp_path: Path) -> None:
    """A 120th of the paper: 18 million intervals, none outside, no value over its limit; exit code 0."""
    file = tmp_path / "quick.json"
    assert command_line.main(["--quick", "--workers", "0", "--json", str(file)]) == 0
    rows = json.loads(file.read_text())["rows"]
    assert sum(row["asked"] for row in rows) > 15_000_000
    assert not any(row["outside"] or row["over the limit"] for row in rows)
    hop = next(row for row in rows if row["label"] == "hop")
    assert hop["exact"] == 100.0
    for row in rows:
        assert row["memory"]["peak"] - row["memory"]["windows"] - row["memory"]["exact"] < 2**30  # of this process


def test_memory_is_what_the_windows_hold_at_one_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hopping window is largest before its first hop, when those beside it are small: no sum of what never was."""
    windows: list[Any] = []
    sizes: list[list[int]] = []

    def kept(made: Any) -> Any:
        def make(*arguments: Any, **named: Any) -> Any:
            windows.append(made(*arguments, **named))
            return windows[-1]

        return make

    def watched(*arguments: Any) -> Any:
        for values in experiment_blocks(*arguments):
            yield values
            sizes.append([each.window.footprint.bytes for each in windows])

    experiment_blocks = experiment.blocks
    monkeypatch.setattr(experiment, "blocks", watched)
    monkeypatch.setattr(experiment, "Followed", kept(Followed))
    monkeypatch.setattr(experiment, "Timed", kept(Timed))
    row = follow("hopping", Setting(240), "memory", 7, None, 1)
    assert row["label"] == "hop"
    assert row["memory"]["windows"] == max(sum(each) for each in sizes)
    assert max(each[0] for each in sizes) + sum(sizes[-1][1:]) > row["memory"]["windows"]


def test_a_method_by_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--method` runs the row with that label and no other; refused: a label that there is not, a page with gaps."""
    file = tmp_path / "one.json"
    chosen = ["--scale", "960", "--only", "max-like", "--workers", "0", "--method", "block 104"]
    assert command_line.main([*chosen, "--json", str(file)]) == 0
    assert [row["label"] for row in json.loads(file.read_text())["rows"]] == ["block 104"]
    for extra, said in ((["--method", "block 7"], "'block 7'"), (["--docs"], "other rows")):
        with pytest.raises(SystemExit):
            command_line.main([*chosen, *extra])
        assert said in capsys.readouterr().err


def test_hops_are_met_exactly_with_few_buckets() -> None:
    """The hop histogram: every answer of some seventy random hops is that of the plain readings."""
    row = follow("hopping", TINY, "memory", 7, None, 1)
    assert row["table"] == "I"
    assert row["exact"] == 100.0
    assert row["footprint"] < 50.0


def test_a_limit_that_is_not_kept_and_an_interval_that_lies_are_counted() -> None:
    """The checker can fail: a window too coarse for the limit it claims, and exact answers that are others'."""
    values = np.random.default_rng(1).normal(20, 5, 8_000)
    answers = exact.Means(exact.newest(1_000), 1_000, 8_000).after(values)
    coarse = sg.Window({"mean": sg.mean()}, policy=sg.policies.count(1_000), histograms=[sg.Constrained(8)])
    followed = Followed(coarse, "mean", (1e-6, 0.0), 100)
    followed.take_block(values, answers, [])
    assert followed.row()["over the limit"] > 1_000
    assert followed.row()["outside"] == 0
    lied_to = sg.Window({"mean": sg.mean()}, policy=sg.policies.count(1_000), histograms=[sg.Constrained(5_000)])
    followed = Followed(lied_to, "mean", (0.1, 0.0), 100)
    followed.take_block(values, answers + 1e-6, [])
    assert followed.row()["asked"] == followed.row()["outside"] == 7_000
    assert command_line.failed([followed.row()])


@pytest.mark.parametrize("size", [1, 7, 1_000, 5_000])
def test_the_exact_answers_are_those_of_plain_lists(size: int) -> None:
    """Means and maxima of windows that slide or hop, in blocks of any size."""
    rng = np.random.default_rng(size)
    values = rng.integers(-50, 50, 3_000).astype(np.float64)
    to = np.array([90, 200, 310, 900])
    at = np.array([299, 389, 499, 1_400])
    slide, maxima, hop = (
        exact.Means(exact.newest(300), 300, size), exact.Maxima(300), exact.Means(exact.hopping(at, to), 3_000, size),
    )  # fmt: skip
    made = [
        np.concatenate([of.after(values[i : i + size]) for i in range(0, 3_000, size)]) for of in (slide, maxima, hop)
    ]
    for i in range(3_000):
        window = values[max(0, i - 299) : i + 1]
        begin = max([0, *to[at <= i].tolist()])
        assert made[0][i] == window.sum() / len(window)
        assert made[1][i] == window.max()
        assert made[2][i] == values[begin : i + 1].sum() / (i + 1 - begin)


def test_the_compiled_rule_hops_as_the_paper_says() -> None:
    """At the window's size the oldest leave up to the next start, and not before."""
    first = hops.starts(TINY)
    window = sg.Window({"n": sg.count()}, policy=hops.policy(TINY, first))
    found = np.array(window.insert_many(np.zeros(40_000))["n"])
    at = hops.begins(TINY, first)
    begin = np.concatenate([[0], first])[np.searchsorted(at, np.arange(40_000), side="right")]
    assert np.array_equal(found, np.arange(1, 40_001) - begin)
    assert found.max() == TINY.window - 1, "the reading that fills the window hops it"
    assert abs(np.diff(first).mean() - paper.HOP / TINY.scale) < 10


def test_the_command_writes_tables_json_and_figures(tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    """As a user calls it, with a CSV in the trace's place; exit code 0 where all is kept."""
    pytest.importorskip("matplotlib", reason="draws the figures")
    file = tmp_path / "a.csv"
    file.write_text("t,x\n" + "\n".join(f"{i},{20 + i % 97 / 10}" for i in range(5_000)) + "\n")
    monkeypatch.setitem(command_line.SCALES, "tiny", 960)
    options = ["--tiny", "--trace", str(file), "--only", "sum-like", "--workers", "0"]
    out = ["--json", str(tmp_path / "o.json"), "--figures", str(tmp_path / "f")]
    assert command_line.main([*options, *out]) == 0
    said = json.loads((tmp_path / "o.json").read_text())
    assert {row["label"] for row in said["rows"]} >= {"exact", "error 0.1 %", "100 buckets"}
    assert sorted(path.name for path in (tmp_path / "f").iterdir()) == [
        f"a2mta-figure-{n}.svg" for n in ("3a", "3b", "6")
    ]
    shown = capsys.readouterr().out
    assert "Table I" in shown
    assert "Table II" in shown
    with pytest.raises(SystemExit):
        command_line.main(["--only", "sums"])


@pytest.mark.parametrize("scale", [1, 24, 120])
def test_the_amta_beside_hops_as_long_as_the_stream_lasts(scale: int) -> None:
    """Its rule knows a hop for each that the stream may come to: without one more it would only grow."""
    setting = Setting(scale)
    beside = experiment._of_beside(setting)
    assert beside.readings >= setting.readings
    assert beside.window <= setting.window
    assert hops.starts(beside)[-1] >= setting.readings
