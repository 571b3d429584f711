"""`cloud merge --windows` reads the definitions of the agent's TOML, and says of those it does not answer why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("click", reason="the cloud's tests need the extra `cloud`")
from click.testing import CliRunner

from sluicegate.errors import ConfigurationError
from sluicegate.windowing.definition import from_table, read
from sluicegate_cloud.commands import merge
from sluicegate_cloud.definitions import MONDAY, lengths, unsupported

HOUR = 3_600_000_000
HOPPING: dict[str, Any] = {"kind": "hopping", "evict": {"time": "6h", "hop": "1h"}}


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        (HOPPING, (6 * HOUR, HOUR, 0)),
        ({"kind": "tumbling", "evict": {"time": "1h"}, "lateness": "5min"}, (HOUR, HOUR, 0)),
        ({"kind": "tumbling", "evict": {"time": "1h"}, "aligned": "clock"}, (HOUR, HOUR, 0)),
        ({"kind": "tumbling", "aligned": "day"}, (24 * HOUR, 24 * HOUR, 0)),
        ({"kind": "tumbling", "aligned": "week"}, (168 * HOUR, 168 * HOUR, MONDAY)),
        (
            {"kind": "hopping", "evict": {"time": "2w", "hop": "1w"}, "aligned": "week"},
            (336 * HOUR, 168 * HOUR, MONDAY),
        ),
        (HOPPING | {"trigger": {"count": 3}, "lateness": "1h"}, (6 * HOUR, HOUR, 0)),
    ],
)
def test_the_grid_is_the_definitions(table: dict[str, Any], expected: tuple[int, int, int]) -> None:
    """The windows of the grid are those that the library has for any time."""
    definition = from_table({"name": "w", "aggregate": "max", **table}, "window[1]")
    assert [*unsupported(definition)] == []
    window, slide, origin = lengths(definition.spec)
    assert (window, slide, origin) == expected
    for time in (0, 1_750_000_000_123_456, -5):
        newest = (time - origin) // slide * slide + origin
        starts = range(newest - window + slide, newest + 1, slide)
        assert definition.spec.covering()(time) == [(start, start + window) for start in starts]


@pytest.mark.parametrize(
    ("table", "place", "words"),
    [
        ({"policy": {"time": "24h"}}, "kind", "answered when it is asked"),
        ({"kind": "session", "evict": {"time": "1h"}}, "kind", "where a session begins"),
        ({"kind": "tumbling", "evict": {"time": "1h"}}, "evict", "it goes by arrival"),
        ({"kind": "tumbling", "evict": {"count": 10}}, "evict", "it goes by arrival"),
        ({"kind": "sliding", "evict": {"count": 10}, "trigger": {"count": 1}}, "evict", "it goes by arrival"),
        (HOPPING | {"key": "room"}, "key", "devices and streams are its keys"),
        (HOPPING | {"aggregate": "longest_run"}, "aggregate", "'longest_run': choose from count, sum"),
        ({"kind": "hopping", "evict": {"time": "5h", "hop": "2h"}}, "evict.hop", "a whole number of hops"),
        ({"kind": "tumbling", "aligned": "month"}, "aligned", "a month is not"),
        ({"kind": "tumbling", "aligned": "day", "timezone": "Europe/Vienna"}, "timezone", "a day there is not"),
    ],
)
def test_what_the_merge_does_not_answer_has_a_reason(table: dict[str, Any], place: str, words: str) -> None:
    """By the key that is in the way."""
    found = [*unsupported(from_table({"name": "w", **table}, "window[1]"))]
    assert [each[0] for each in found] == [place]
    assert words in found[0][1]


AGENTS = """
[device]
id = "greenhouse-1"
[[window]]
name = "now"
policy = { time = "24h" }
buckets = 64
sum_like = { error = "1%" }
[[window]]
name = "hours"
kind = "hopping"
evict = { time = "6h", hop = "1h" }
aggregate = ["mean", "max"]
streams = ["temp"]
lateness = "5min"
"""


def test_an_agents_file_is_read_as_it_is(tmp_path: Path) -> None:
    """Its other tables and what a board keeps are passed over; the words are those of `spec.explain`."""
    file = tmp_path / "agent.toml"
    file.write_text(AGENTS)
    now, hours = read(file)
    assert now.spec.asked
    assert hours.covers("temp")
    assert not hours.covers("humid")
    assert now.covers("humid")
    told = CliRunner().invoke(merge, ["chunks", "--out", str(tmp_path), "--windows", str(file), "--explain"])
    assert told.exit_code == 0, told.output
    assert "Not merged: now: kind: it is answered when it is asked" in told.output
    assert f"hours: {hours.spec.explain('the mean and the max of temp')}." in told.output
    alike = tmp_path / "windows.json"
    alike.write_text(json.dumps({"window": [{"name": "hours", **HOPPING, "lateness": "5min", "streams": ["temp"],
                                             "aggregate": ["mean", "max"]}]}))  # fmt: skip
    assert read(alike) == [hours]


def test_options_are_a_definition_too(tmp_path: Path) -> None:
    """`--window` and `--slide` say a hopping window, or a tumbling one where they are equal."""
    asked = ["chunks", "--out", str(tmp_path), "--explain", "--aggregates", "mean"]
    told = CliRunner().invoke(merge, [*asked, "--window", "6h", "--slide", "1h"]).output
    assert told.startswith("windows: every hour, the count and the mean of the 6 hours before, by event time; ")
    told = CliRunner().invoke(merge, [*asked, "--window", "1h", "--slide", "1h"]).output
    assert told.startswith("windows: for each hour, the count and the mean, by event time; ")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no windows, expected one"),
        ("[[window]", "is not TOML"),
        ('[[window]]\nkind = "session"', r"window\[1\].name: None, expected what its results are called"),
        ('[[window]]\nname = "a"\nkind = "hop"', r"window\[1\].kind: 'hop', expected one of tumbling"),
        ('[[window]]\nname = "a"\nkinds = "hop"', r"window\[1\].kinds: unknown, expected kind, evict"),
        (
            '[[window]]\nname = "a"\npolicy = { count = 3 }\naggregate = []',
            r"window\[1\].aggregate: \[\], expected a name",
        ),
        ('[[window]]\nname = "a"\npolicy = { count = 3 }\n' * 2, "window 'a' is there twice"),
    ],
)
def test_a_file_that_says_no_windows(tmp_path: Path, text: str, words: str) -> None:
    """The file, the table counted from one, the key."""
    file = tmp_path / "w.toml"
    file.write_text(text)
    with pytest.raises(ConfigurationError, match=words):
        read(file)
    refused = CliRunner().invoke(merge, ["chunks", "--out", str(tmp_path), "--windows", str(file)])
    assert refused.exit_code == 2
    with pytest.raises(ConfigurationError, match="cannot be read"):
        read(tmp_path / "none.toml")


@pytest.mark.spark
def test_each_window_has_its_folder(tmp_path: Path) -> None:
    """What the one definition gives is what the options give, of the streams that it names."""
    from test_cloud_merge import digest, readings, stored, write_chunks

    write_chunks(tmp_path / "chunks", "board", readings(1, 400))
    file = tmp_path / "w.toml"
    file.write_text(AGENTS)
    source = [str(tmp_path / "chunks"), "--out"]
    done = CliRunner().invoke(merge, [*source, str(tmp_path / "by_file"), "--windows", str(file)])
    assert done.exit_code == 0, done.output
    options = ["--window", "6h", "--slide", "1h", "--aggregates", "mean,max"]
    assert CliRunner().invoke(merge, [*source, str(tmp_path / "by_options"), *options]).exit_code == 0
    assert digest(tmp_path / "by_file" / "hours") == digest(tmp_path / "by_options")
    assert len(stored(tmp_path / "by_options")) > 10
    file.write_text(AGENTS.replace("temp", "tmp"))
    refused = CliRunner().invoke(merge, [*source, str(tmp_path / "none"), "--windows", str(file)])
    assert "no document is of tmp; there are: temp" in str(refused.exception or refused.output)
