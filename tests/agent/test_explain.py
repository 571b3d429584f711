"""`sluicegate check --explain`: each window of a configuration in plain words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")

from click.testing import CliRunner

from sluicegate_agent.commands.check import check, sample_text
from sluicegate_agent.config import build
from sluicegate_agent.config.explain import explain

INTERVAL = "each answer has an interval that holds the truth, and says whether it is exact"
STREAMS = {"temp": "temp", "humid": "humid"}


def said(window: dict[str, Any], streams: dict[str, str] = STREAMS, **tables: Any) -> str:
    """The sentence of one window, without its name."""
    raw = {
        "device": {"id": "d"},
        "state": {"path": "state"},
        "source": [{"topic": "w", "streams": streams, "time": "t"}],
        "window": [{"name": "w", **window}],
    }
    (line,) = explain(build(raw | tables, Path("/etc/agent.toml")))
    assert line.startswith("w: ")
    return line[3:]


@pytest.mark.parametrize(
    ("window", "words"),
    [
        (
            {"policy": {"time": "1h"}, "aggregate": ["mean", "max"]},
            "when readings have come, at most every second, the mean and the max of the last hour by event time, "
            f"for each of temp and humid; readings are kept in at most 64 buckets; {INTERVAL}",
        ),
        (
            {"policy": {"count": 100}, "aggregate": "std", "buckets": 0, "streams": ["temp"]},
            "when readings have come, at most every second, the std of the newest 100 readings, of temp; "
            "every reading is kept, so each answer is exact",
        ),
        (
            {
                "policy": {"time": "7d", "hop": "1d"},
                "aggregate": "sum",
                "sum_like": {"error": "1%"},
                "streams": ["temp"],
            },
            "when readings have come, at most every second, the sum of the last week by event time, moved on by a day "
            f"at once, of temp; readings are kept in buckets that end where the error allows, at most 64; {INTERVAL}",
        ),
        (
            {"policy": {"time": "90s", "up_to": "max"}, "aggregate": "max", "streams": ["temp"]},
            "when readings have come, at most every second, the max of the last 90 seconds by event time, without what "
            f"stands before the maximum, of temp; readings are kept in at most 64 buckets; {INTERVAL}",
        ),
        (
            {"kind": "hopping", "evict": {"time": "1h", "hop": "10min"}, "lateness": "5min", "streams": ["temp"]},
            "every 10 minutes, the mean of temp of the hour before, by event time; a late reading gives a revised "
            "result until 5 minutes after the end, when it is final; later ones are counted and change nothing; one "
            "record is kept for each hop, and each answer is exact",
        ),
        (
            {"policy": {"count": 9}, "trigger": {"count": 3}, "buckets": 0},
            "after every 3 readings, the mean of the last 9 readings, for each of temp and humid; every reading is "
            "kept, so each answer is exact",
        ),
    ],
)
def test_what_a_window_asks(window: dict[str, Any], words: str) -> None:
    """When, what, of which readings, of which streams; then what an answer rests on."""
    assert said(window) == words


def test_where_answers_go() -> None:
    """At the pace of [results], with each commit, or nowhere but to `status`."""
    window = {"policy": {"time": "1h"}}
    assert "at most every 5 minutes, the mean" in said(window, results={"every": "5min"})
    assert "as soon as it is committed, the mean" in said(window, results={"every": "0s"})
    assert said(window, results={"topic": ""}).startswith("for `sluicegate status` only")


def test_an_aggregate_of_two_values_says_of_which() -> None:
    """The path of the second value; of several streams with different ones, that each has its own."""
    window = {"policy": {"time": "1h"}, "aggregate": ["covariance", "mean"], "streams": ["temp"]}
    values = {"temp": {"with": "air.humidity"}, "humid": {"with": "temp"}}
    source = [{"topic": "w", "streams": STREAMS, "time": "t", "values": values}]
    assert "the covariance with air.humidity and the mean of the last hour" in said(window, source=source)
    window["streams"] = ["*"]
    assert "the covariance with the second value of each and the mean" in said(window, source=source)


def test_many_streams_are_not_all_named() -> None:
    """The first eight, and how many more there are."""
    streams = {f"s{n}": f"s{n}" for n in range(11)}
    assert "for each of s0, s1, s2, s3, s4, s5, s6, s7 and 3 more;" in said({"policy": {"time": "1h"}}, streams)


def test_the_command_says_it(tmp_path: Path) -> None:
    """Asked for, a line for each window of the sample; not asked for, none."""
    file = tmp_path / "agent.toml"
    file.write_text(sample_text())
    plain, asked = (CliRunner().invoke(check, [str(file), *more]).output for more in ([], ["--explain"]))
    assert "by event time" not in plain
    assert asked.count("by event time") == plain_windows(file)


def plain_windows(file: Path) -> int:
    """Windows by time of a configuration file."""
    import tomllib

    return sum(
        "time" in window.get("policy", window.get("evict")) for window in tomllib.loads(file.read_text())["window"]
    )


def test_check_counts_what_may_come_by_key_and_says_what_a_start_refuses(tmp_path: Path) -> None:
    """`run` would refuse the budget: somebody who checks is told before."""
    text = """
    device = { id = "d" }
    state = { path = "state", memory = "8MiB" }
    [[source]]
    topic = "hall/{machine}"
    input = "http"
    streams = { x = "x", y = "y" }
    [[window]]
    name = "w"
    policy = { count = 9 }
    [http]
    listen = "127.0.0.1:9"
    """
    (tmp_path / "agent.toml").write_text(text)
    done = CliRunner().invoke(check, [str(tmp_path / "agent.toml")])
    assert done.exit_code == 0, done.output
    assert "fine. Device d: up to 200 streams by key, 1 window, no broker." in done.output
    assert "Warning: `sluicegate run` will refuse it: state.memory = 8.0 MiB" in done.output
