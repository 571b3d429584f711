"""Readings of any CSV file for `sluicegate plan --advise`: its first rows, so many at most, as times and values."""

from __future__ import annotations

import csv
from array import array
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path
from typing import NamedTuple

from sluicegate_agent.errors import InputRefused

_LARGEST = 2.0**960
_UNITS = ((1e17, 1e-3), (1e14, 1.0), (1e11, 1e3))  # nanoseconds, microseconds, milliseconds since 1970 by magnitude
_CLOCKS = ("time", "timestamp", "date", "datetime", "ts", "time_hour", "t")
_LONGEST_TIME = 2**61


class Readings(NamedTuple):
    """What was read: times (µs, None where the file has none) and values; rows passed over; whether more follow."""

    values: array[float]
    times: array[int] | None
    column: str
    clock: str | None
    passed_over: int
    cut_short: bool


def read(path: Path, column: str | None, clock: str | None, most: int) -> Readings:
    """The first `most` readings of a column. Memory: 16 bytes a reading, whatever the file's size.

    `column`: by default the last whose first cell is a number; `clock`: by default one named time, timestamp, … or
    the first that holds dates. Rows without a finite number (or a time) are passed over and counted. Raises
    InputRefused.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            return _read(csv.reader(file), path, column, clock, most)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputRefused(f"{path}: {error}; expected a CSV file in UTF-8 with a line of names first") from error


def _read(rows: Iterator[list[str]], path: Path, column: str | None, clock: str | None, most: int) -> Readings:
    head, first = next(rows, []), next(rows, [])
    value_at, time_at = _value_column(path, head, first, column), _time_column(path, head, first, clock)
    values, times, passed = array("d"), array("q"), 0
    for row in _chained(first, rows):
        value = _number(row, value_at)
        time = None if time_at is None else _time(row, time_at)
        if value is None or (time is None and time_at is not None):
            passed += 1
            continue
        if len(values) == most:
            return _found(values, times, head, value_at, time_at, passed, cut_short=True)
        values.append(value)
        if time is not None:
            times.append(time)
    if not values:
        raise InputRefused(f"{path}: column {head[value_at]!r} holds no number; name another with --value")
    return _found(values, times, head, value_at, time_at, passed, cut_short=False)


def _found(
    values: array[float], times: array[int], head: Sequence[str], value: int, time: int | None, passed: int,
    *, cut_short: bool,
) -> Readings:  # fmt: skip
    clock = None if time is None else head[time]
    return Readings(values, None if time is None else times, head[value], clock, passed, cut_short)


def _chained(first: list[str], rows: Iterator[list[str]]) -> Iterator[list[str]]:
    yield first
    yield from rows


def _value_column(path: Path, head: Sequence[str], first: Sequence[str], named: str | None) -> int:
    if named is not None:
        return _named(path, head, named, "--value")
    numbers = [at for at in range(min(len(head), len(first))) if _number(first, at) is not None]
    if not numbers:
        raise InputRefused(f"{path}: no column of its first row holds a number; name one with --value")
    return numbers[-1]


def _time_column(path: Path, head: Sequence[str], first: Sequence[str], named: str | None) -> int | None:
    if named == "":
        return None
    if named is not None:
        return _named(path, head, named, "--time")
    known = [at for at in range(min(len(head), len(first))) if _time(first, at) is not None]
    named_so = [at for at in known if head[at].strip().lower() in _CLOCKS]
    dated = [at for at in known if _number(first, at) is None]
    return next(iter(named_so + dated), None)


def _named(path: Path, head: Sequence[str], name: str, option: str) -> int:
    if name not in head:
        raise InputRefused(f"{path}: {option} {name!r}: no such column; there are {', '.join(head)}")
    return head.index(name)


def _number(row: Sequence[str], at: int) -> float | None:
    try:
        value = float(row[at])
    except (ValueError, IndexError):
        return None
    return value if isfinite(value) and abs(value) <= _LARGEST else None


def _time(row: Sequence[str], at: int) -> int | None:
    """µs since 1970: a number in s, ms, µs or ns by its size, or a date as ISO 8601 has it, UTC unless it says."""
    number = _number(row, at)
    if number is not None:
        scale = next((factor for least, factor in _UNITS if abs(number) >= least), 1e6)
        found = int(number * scale)
        return found if abs(found) < _LONGEST_TIME else None
    try:
        moment = datetime.fromisoformat(row[at].strip())
    except (ValueError, IndexError):
        return None
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1e6)
