"""`plan --advise`: candidates are tried on the user's own readings, and what is advised keeps the limit on them."""

from __future__ import annotations

import json
import math
import random
import tomllib
from array import array
from pathlib import Path

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
import click
from click.testing import CliRunner

import sluicegate as sg
from sluicegate_agent.advice.options import checked_error, policy_of
from sluicegate_agent.advice.readings import Readings, read
from sluicegate_agent.advice.trials import Trial, advise, candidates
from sluicegate_agent.commands.check import check
from sluicegate_agent.commands.plan import plan
from sluicegate_agent.config import build
from sluicegate_agent.config.questions import build_arguments
from sluicegate_agent.errors import InputRefused

DAY = 86_400_000_000
AGENT = """
[device]
id = "d"
[state]
path = "s"
[[source]]
topic = "w"
time = "t"
sequence = "n"
streams = { temp = "temp" }
"""


def written(folder: Path, lines: list[str]) -> Path:
    """A CSV file of these lines."""
    file = folder / "readings.csv"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def wave(size: int) -> list[float]:
    """A daily wave with noise, a reading each five minutes."""
    rng = random.Random(1)
    return [20 + 5 * math.sin(i / 288 * 2 * math.pi) + rng.gauss(0, 0.3) for i in range(size)]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight days."""
    rows = [
        f"2026-01-{1 + i // 288:02}T{i % 288 // 12:02}:{i % 12 * 5:02}:00Z,{x:.3f}" for i, x in enumerate(wave(2_304))
    ]
    return written(tmp_path_factory.mktemp("advice"), ["when,temp", *rows])


def test_times_and_values_are_found_by_themselves(tmp_path: Path, file: Path) -> None:
    """The last column of numbers, the column of dates; what is no reading is counted; no more than was asked for."""
    found = read(file, None, None, 10_000)
    assert (found.column, found.clock, len(found.values), found.cut_short) == ("temp", "when", 2_304, False)
    assert found.times is not None
    assert found.times[288] - found.times[0] == DAY
    assert found.times[0] == 1_767_225_600 * 10**6
    few = read(file, None, None, 100)
    assert (len(few.values), few.cut_short) == (100, True)
    broken = written(tmp_path, ["\ufefft,a,b", "1700000000,1,2", "1700000001,x,3", "no,4,4", "1700000002,nan,5", "1,2"])
    found = read(broken, "a", None, 10)
    assert (list(found.values), found.passed_over, found.clock) == ([1.0, 2.0], 3, "t")
    assert found.times is not None
    assert list(found.times) == [1_700_000_000_000_000, 1_000_000]
    assert read(broken, "b", "", 10).times is None


def test_columns_are_told_from_more_than_the_first_row(tmp_path: Path) -> None:
    """A first row without a time or a value hides no column; one that is named time and cannot be read is told."""
    rows = [f"2026-01-01 00:{i:02}:00,{i}" for i in range(60)]
    found = read(written(tmp_path, ["time,v", ",NA", *rows]), None, None, 100)
    assert (found.clock, found.column, len(found.values), found.passed_over) == ("time", "v", 60, 1)
    american = written(tmp_path, ["time,v", *(f"01/31/2026 00:{i:02},{i}" for i in range(60))])
    found = read(american, None, None, 100)
    assert found.times is None
    assert "'time' holds '01/31/2026 00:00': expected a date such as" in found.unread
    assert "without times ('time' holds" in CliRunner().invoke(plan, ["--advise", str(american)]).output
    assert read(american, None, "", 100).unread == ""


def test_one_device_of_a_file_of_several(tmp_path: Path) -> None:
    """`--only` takes its rows; without it the command tells that readings come after newer ones, and what to try."""
    rows = [f"{name},{1_700_000_000 + 600 * i},{i % 7}" for name in ("a", "b", "c") for i in range(300)]
    mixed = written(tmp_path, ["device,time,v", *rows])
    found = read(mixed, None, None, 10_000)
    assert found.late() == (2 * 299, 299 * 600_000_000)
    ran = CliRunner().invoke(plan, ["--advise", str(mixed), "--aggregate", "max", "--window", "3h"])
    assert "598 of them come after a newer one, by up to " in ran.output
    assert "try one of them: --only COLUMN=VALUE" in ran.output
    one = read(mixed, None, None, 10_000, ("device", "b"))
    assert (len(one.values), one.late(), one.passed_over) == (300, (0, 0), 0)
    ran = CliRunner().invoke(plan, ["--advise", str(mixed), "--only", "device=b", "--window", "3h"])
    assert "300 readings of 'v'" in ran.output
    assert "come after a newer" not in ran.output
    for only, words in (("device=x", "no row has device = 'x'; there are a, b, c"), ("device", "such as device=7"),
                        ("station=a", "there are device, time, v")):  # fmt: skip
        ran = CliRunner().invoke(plan, ["--advise", str(mixed), "--only", only])
        assert words in str(ran.exception)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([""], "first line is empty"), (["time,v"], "no rows after"), (["1,2", "2,3"], "expected names of columns"),
        (["a;b", "1;2", "2;3"], "fields separated by commas"), (["t,v", '2026-01-01,"1,5"'], "a point in numbers"),
    ],
)  # fmt: skip
def test_a_file_that_is_none_of_readings_says_why(tmp_path: Path, lines: list[str], words: str) -> None:
    """Nothing in it, no names, other separators: each with what was seen and what is expected."""
    with pytest.raises(InputRefused, match=words):
        read(written(tmp_path, lines), None, None, 10)


@pytest.mark.parametrize(
    ("text", "micros"),
    [("1700000000", 17 * 10**14), ("1700000000123", 1_700_000_000_123_000), ("1700000000000001", 1_700_000_000_000_001),
     ("1700000000000001000", 1_700_000_000_000_001), ("2023-11-14 22:13:20", 17 * 10**14),
     ("2023-11-14T23:13:20+01:00", 17 * 10**14)],
)  # fmt: skip
def test_a_time_is_read_by_its_size_or_as_a_date(tmp_path: Path, text: str, micros: int) -> None:
    """Seconds, milliseconds, micro- and nanoseconds since 1970, and ISO 8601, UTC where it says nothing."""
    found = read(written(tmp_path, ["time,v", f"{text},1"]), None, None, 5)
    assert found.times is not None
    assert abs(found.times[0] - micros) <= 256  # nanoseconds as float64


def test_what_is_advised_kept_the_limit_and_is_the_smallest(file: Path) -> None:
    """By the trials' own figures and by trying once more; the exact window is exact, and no interval lies."""
    readings = read(file, None, None, 10_000)
    policy, called = policy_of(None, readings)
    assert called == "the newest 24h"
    for aggregate in ("mean", "max"):
        found = advise(readings, aggregate, policy, called, 0.01)
        assert len(found.trials) == len(candidates(aggregate, 0.01))
        first, best = found.trials[0], found.advised
        assert (first.greatest, first.exact, first.opened) == (0.0, 1.0, 1.0)
        assert all(trial.outside == 0 for trial in found.trials)
        assert best.greatest <= 0.01
        assert best.bytes < first.bytes
        assert found.exact_bytes < first.bytes / 3  # as the agent keeps it, every reading is a bucket
        assert all(trial.bytes >= best.bytes for trial in found.trials if trial.greatest <= 0.01)
        again = next(each for each in candidates(aggregate, 0.01) if each.method == best.method)
        exact = sg.Window(getattr(sg, aggregate)(), policy=policy).insert_many(readings.values, readings.times)[
            aggregate
        ]
        answers = sg.Window(getattr(sg, aggregate)(), policy=policy, histograms=again.histograms).insert_many(
            readings.values, readings.times
        )[aggregate]
        off = max(abs(a - b) / abs(b) for a, b in zip(answers, exact, strict=True))
        assert off == pytest.approx(best.greatest, abs=1e-12)
        fewest = min(trial.opened for trial in found.trials if trial.keeps(0.01))
        assert found.fewest is None or found.fewest.opened == fewest < best.opened / 2
        assert (found.fewest is None) == (fewest >= best.opened / 2)
        staircase = [trial for trial in found.trials if trial.promised and "staircase" in trial.method]
        assert all(trial.exact == 1.0 and trial.width == 0.0 for trial in staircase)


def test_without_a_method_that_keeps_the_limit_every_reading_is_kept() -> None:
    """Noise and a limit that no histogram keeps in less memory: the exact window is the advice."""
    rng = random.Random(2)
    readings = Readings(array("d", [rng.gauss(0, 1) for _ in range(1_500)]), None, "x", None, 0, cut_short=False)
    found = advise(readings, "mean", sg.policies.count(700), "the newest 700 readings", 1e-7)
    assert found.advised.method == "every reading"


@pytest.mark.parametrize("flag", [[], ["--json"]])
def test_the_command_prints_tables_or_json(file: Path, flag: list[str]) -> None:
    """A table an aggregate with one line marked, or one object with every trial."""
    ran = CliRunner().invoke(plan, ["--advise", str(file), "--window", "288", "--error", "2%", *flag])
    assert ran.exit_code == 0, ran.output
    if not flag:
        assert ran.output.count("\n> ") == 2
        assert "mean of the newest 288 readings, values within 2 %" in ran.output
        assert ran.output.count("\nTake ") == 2
        assert ran.output.count("\n[[window]]\nname = ") == 2
        return
    told = json.loads(ran.output)
    assert [each["aggregate"] for each in told["advice"]] == ["mean", "max"]
    assert {"method", "bytes", "greatest", "width", "outside"} <= set(told["advice"][0]["trials"][0])
    assert told["advice"][0]["advised"] in [trial["method"] for trial in told["advice"][0]["trials"]]


def test_what_the_agent_may_be_told_is_a_window_of_it(file: Path, tmp_path: Path) -> None:
    """Each [[window]] passes `check` as it stands, has the method's histograms, and what was held fits in it."""
    readings = read(file, None, None, 10_000)
    for window in ("24h", "288"):
        policy, called = policy_of(window, readings)
        for aggregate in ("mean", "max"):
            found = advise(readings, aggregate, policy, called, 0.01)
            for trial, candidate in zip(found.trials, candidates(aggregate, 0.01), strict=True):
                written_for_it = AGENT + trial.agent + "\n"
                (tmp_path / "agent.toml").write_text(written_for_it)
                ran = CliRunner().invoke(check, [str(tmp_path / "agent.toml")])
                assert "fine" in ran.output, (trial.agent, ran.output, ran.exception)
                (asked,) = build(tomllib.loads(written_for_it), tmp_path / "agent.toml").windows
                given = build_arguments(asked)
                assert given["policy"] == policy
                kinds = [type(each) for each in candidate.histograms if not isinstance(each, sg.Constrained)]
                assert [type(each) for each in given["histograms"] if not isinstance(each, sg.Constrained)] == kinds
                assert asked.buckets >= trial.held or asked.buckets == 0 or asked.max_like is not None


def test_what_cannot_be_is_refused_with_a_reason(tmp_path: Path, file: Path) -> None:
    """Files, columns, windows, errors: named, with what is expected; usage errors for both or neither."""
    (tmp_path / "few").mkdir()
    for name in ("gaps", "far"):
        (tmp_path / name).mkdir()
    words_only, few = written(tmp_path, ["a,b", "x,y"]), written(tmp_path / "few", ["v", "1", "2"])
    gaps = written(tmp_path / "gaps", ["when,v", "mon,1.5", "tue,", "wed,nan", "thu,NA", "fri,2.5"])
    far = written(tmp_path / "far", ["when,v", "mon,1e300", "tue,-1e300"])
    for arguments, words in (
        (["--advise", str(tmp_path / "none.csv")], "No such file"),
        (["--advise", str(file), "--value", "humid"], "there are when, temp"),
        (["--advise", str(file), "--window", "24x"], "expected a length"),
        (["--advise", str(file), "--window", "9d"], "span no more"),
        (["--advise", str(file), "--window", "1"], "expected 2 to"),
        (["--advise", str(file), "--time", "", "--window", "24h"], "no times"),
        (["--advise", str(file), "--aggregate", "median"], "expected one of mean"),
        (["--advise", str(file), "--error", "0"], "up to 20 %"),
        (["--advise", str(file), "--most", "3"], "expected 8 to"),
        (["--advise", str(words_only)], "no column holds numbers in half of its rows; its first row is 'x,y'"),
        (["--advise", str(gaps)], "'v' has 2 in the first 5 rows, take it with --value v"),
        (["--advise", str(far)], "'v' holds 1e300; expected magnitudes up to 2^960"),
        (["--advise", str(few)], "something to try"),
    ):
        ran = CliRunner().invoke(plan, arguments)
        assert isinstance(ran.exception, InputRefused), (arguments, ran.output)
        assert words in str(ran.exception), arguments
    for arguments in ([], ["agent.toml", "--advise", str(file)]):
        assert CliRunner().invoke(plan, arguments).exit_code == click.UsageError.exit_code
    assert checked_error("0.5 %") == 0.005
    assert not Trial("m", "", True, 1.0, 1, 1, 0.0, 0.0, 1.0, 0.0, 1, 1.0).keeps(0.1)  # an interval that lied
