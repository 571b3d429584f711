"""Readings of any CSV file for `sluicegate plan --advise`: its first rows, so many at most, as times and values."""

from __future__ import annotations

import csv
from array import array
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import chain, islice
from math import isfinite
from pathlib import Path
from typing import NamedTuple

from sluicegate_agent.errors import InputRefused

LOOKED = 50  # rows from which the columns are told
ONLY = "--only COLUMN=VALUE"
SHOWN = 8  # values of a column, in a message
_LARGEST = 2.0**960
_UNITS = ((1e17, 1e-3), (1e14, 1.0), (1e11, 1e3))  # nanoseconds, microseconds, milliseconds since 1970 by magnitude
_CLOCKS = ("time", "timestamp", "date", "datetime", "ts", "time_hour", "t")
_LONGEST_TIME = 2**61


class Readings(NamedTuple):
    """What was read: times (µs, None where the file has none) and values; rows passed over; whether more follow.

    `unread`: why a column that is named like one of times gives none, in words that follow "without times".
    """

    values: array[float]
    times: array[int] | None
    column: str
    clock: str | None
    passed_over: int
    cut_short: bool
    unread: str = ""

    def late(self) -> tuple[int, int]:
        """How many readings come after a newer one, and by how many µs at most."""
        newest, count, behind = -(2**62), 0, 0
        for time in self.times or ():
            newest = max(newest, time)
            count += time < newest
            behind = max(behind, newest - time)
        return count, behind


def read(path: Path, column: str | None, clock: str | None, most: int, only: tuple[str, str] | None = None) -> Readings:
    """The first `most` readings of a column. Memory: 16 bytes a reading, whatever the file's size.

    `column`: by default the last that holds numbers in most of the first 50 rows; `clock`: by default one named time,
    timestamp, … or the first that holds dates. `only`: a column and what it holds in the rows that count. Rows
    without a finite number (or a time) are passed over and counted. Raises InputRefused.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            return _read(csv.reader(file), path, column, clock, most, only)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputRefused(f"{path}: {reason}; expected a CSV file in UTF-8 with a line of names first") from error


def _read(
    rows: Iterator[list[str]], path: Path, column: str | None, clock: str | None, most: int,
    only: tuple[str, str] | None,
) -> Readings:  # fmt: skip
    head = _names(path, next(rows, []))
    if only is not None:
        rows = _those(path, head, rows, *only)
    some = list(islice((row for row in rows if row), LOOKED))
    if not some:
        raise InputRefused(f"{path}: no rows after the line of names; expected readings")
    value_at, time_at = _value_column(path, head, some, column), _time_column(path, head, some, clock)
    values, times, passed = array("d"), array("q"), 0
    told = head[value_at], None if time_at is None else head[time_at]
    unread = "" if time_at is not None or clock == "" else _unread(head, some)
    for row in chain(some, rows):
        value = _number(row, value_at)
        time = None if time_at is None else _time(row, time_at)
        if value is None or (time is None and time_at is not None):
            passed += 1
            continue
        if len(values) == most:
            return Readings(values, None if time_at is None else times, *told, passed, cut_short=True, unread=unread)
        values.append(value)
        if time is not None:
            times.append(time)
    if not values:
        raise InputRefused(f"{path}: column {head[value_at]!r} holds no number; name another with --value")
    return Readings(values, None if time_at is None else times, *told, passed, cut_short=False, unread=unread)


def _names(path: Path, head: list[str]) -> list[str]:
    """The line of names, which is none if all of it are numbers or times."""
    if not head:
        raise InputRefused(f"{path}: the first line is empty; expected names of columns, separated by commas")
    if all(_number(head, at) is not None or _time(head, at) is not None for at in range(len(head))):
        raise InputRefused(
            f"{path}: the first line is {','.join(head)!r}; expected names of columns, such as time,value"
        )
    return head


def _those(path: Path, head: Sequence[str], rows: Iterator[list[str]], column: str, value: str) -> Iterator[list[str]]:
    """The rows in which the column holds the value."""
    other: dict[str, None] = {}
    at, found = _named(path, head, column, "--only"), False
    for row in rows:
        cell = row[at] if at < len(row) else ""
        found = found or cell == value
        if cell == value:
            yield row
        elif len(other) < SHOWN:
            other[cell] = None
    if not found:
        raise InputRefused(f"{path}: no row has {column} = {value!r}; there are {', '.join(other)}")


def _value_column(path: Path, head: Sequence[str], some: Sequence[Sequence[str]], named: str | None) -> int:
    if named is not None:
        return _named(path, head, named, "--value")
    numbers = [at for at in range(len(head)) if _mostly(some, at, _number)]
    if not numbers:
        raise InputRefused(f"{path}: no column holds numbers in half of its rows; {_nearest(head, some)}")
    return numbers[-1]


def _nearest(head: Sequence[str], some: Sequence[Sequence[str]]) -> str:
    """What there is instead, and what to do about it."""
    counts = [sum(_number(row, at) is not None for row in some) for at in range(len(head))]
    most = max(counts)
    if most:
        name = head[len(counts) - 1 - counts[::-1].index(most)]
        return f"{name!r} has {most} in the first {len(some)} rows, take it with --value {name}"
    for at, name in enumerate(head):
        far = next((row[at] for row in some if at < len(row) and _too_far(row[at])), None)
        if far is not None:
            return f"{name!r} holds {far}; expected magnitudes up to 2^960"
    seen = f"its first row is {','.join(some[0])!r}"
    return f"{seen}; expected fields separated by commas, and a point in numbers; or name one with --value"


def _too_far(cell: str) -> bool:
    try:
        return abs(float(cell)) > _LARGEST
    except ValueError:
        return False


def _mostly(some: Sequence[Sequence[str]], at: int, read: Callable[[Sequence[str], int], object]) -> bool:
    """Whether half of the rows or more hold what is read there."""
    return 2 * sum(read(row, at) is not None for row in some) >= len(some)


def _time_column(path: Path, head: Sequence[str], some: Sequence[Sequence[str]], named: str | None) -> int | None:
    if named == "":
        return None
    if named is not None:
        return _named(path, head, named, "--time")
    known = [at for at in range(len(head)) if _mostly(some, at, _time)]
    named_so = [at for at in known if head[at].strip().lower() in _CLOCKS]
    dated = [at for at in known if not _mostly(some, at, _number)]
    return next(iter(named_so + dated), None)


def _unread(head: Sequence[str], some: Sequence[Sequence[str]]) -> str:
    """Why a column that is called time, or alike, is not taken for one."""
    at = next((at for at, name in enumerate(head) if name.strip().lower() in _CLOCKS), None)
    cell = next((row[at] for row in some if at is not None and at < len(row) and row[at].strip()), None)
    if at is None or cell is None or _mostly(some, at, _time):
        return ""
    return f" ({head[at]!r} holds {cell!r}: expected a date such as 2026-01-31 12:00, or seconds since 1970)"


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
