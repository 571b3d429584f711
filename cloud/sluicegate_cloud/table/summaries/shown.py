"""The quality of a table's streams in lines for a terminal: of all devices and of each, the least complete ones."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, timedelta
from itertools import islice
from math import floor
from typing import Any

import pyarrow as pa

#: Streams that are shown of all devices, and of each; the others are counted.
MOST = 40
#: Days from 1970 that a calendar has, both ways.
_DAYS = 700_000
Row = dict[str, Any]


def lines(tables: Iterable[pa.Table], aggregates: Sequence[str]) -> Iterator[str]:
    """A head, then lines of streams of all devices and of each; `tables` as of `quality`."""
    left = iter(tables)
    yield f"{'stream':<20}{'device':<20}{'windows':>10}{'complete':>10}{'least':>9}{'missing':>10}{'in doubt':>10}" \
          f"{'resolution':>12}{'lag':>10}  width of intervals (at most)"  # fmt: skip
    for some, whose in ((islice(left, 1), "all devices"), (left, "devices")):
        worst, count = _least_complete(some)
        yield from (_line(row, aggregates) for row in worst)
        if count > MOST:
            yield f"… and {count - MOST:,} more streams of {whose}: --json has all"


def _least_complete(tables: Iterable[pa.Table]) -> tuple[list[Row], int]:
    """The MOST least complete rows of these tables, and how many rows there are in all."""
    worst: list[tuple[Any, ...]] = []
    count = 0
    for table in tables:
        some = ((_order(row), count + at, row) for at, row in enumerate(table.to_pylist()))
        worst = heapq.nsmallest(MOST, [*worst, *some])
        count += table.num_rows
    return [row for *_, row in worst], count


def _order(row: Row) -> tuple[float, float]:
    """A sort key: the least complete first; of equal ones the one with the worst window; unknown completeness last."""
    return tuple(2.0 if row[name] is None else row[name] for name in ("complete", "completeness_least"))  # type: ignore[return-value]  # two


def _line(row: Row, aggregates: Sequence[str]) -> str:
    names = f"{_short(row['stream'])}{_short(row['device'] or 'all')}"
    shares = f"{_percent(row['complete']):>10}{_percent(row['completeness_least']):>9}"
    counts = f"{row['windows']:>10,}{shares}{row['missing']:>10,}{row['doubt']:>10,}"
    return f"{names}{counts}{_time(row['resolution_us']):>12}{_time(row['lag_us']):>10}  {_widths(row, aggregates)}"


def late_line(row: Row) -> str:
    """A stream's day: how many readings came late, and how late the latest one, both between two numbers."""
    day = f"{date(1970, 1, 1) + timedelta(row['day'])}" if abs(row["day"]) < _DAYS else f"{row['day']}"
    counts, by = _between(row, "late_{}", "{:,}".format), _between(row, "late_by_{}_us", _time)
    return f"{day:<12}{_short(row['stream'])}{_short(row['device'])}{counts:>16} of {row['readings']:,} late, by {by}"


def _between(row: Row, named: str, spelled: Callable[[Any], str]) -> str:
    low, high = (spelled(row[named.format(end)]) for end in ("low", "high"))
    return low if low == high else f"{low} to {high}"


def _widths(row: Row, aggregates: Sequence[str]) -> str:
    """The widths of each aggregate that is not exact in every window; – where no window of the stream has a reading."""
    known = [name for name in aggregates if row[f"{name}_exact"] is not None]
    if not known:
        return "–"
    some = [name for name in known if row[f"{name}_exact"] < 1.0]
    return ", ".join(f"{name} {_width(row, name)}" for name in some) or "exact"


def _width(row: Row, name: str) -> str:
    """The mean width and the greatest; – where no window has an answer."""
    mean, most = row[f"{name}_width"], row[f"{name}_width_most"]
    return "–" if mean is None else f"{mean:.2%} ({most:.2%})"


def _short(name: str) -> str:
    return f"{name if len(name) < 19 else name[:18] + '…':<20}"


def _percent(share: float | None) -> str:
    """Rounded down, so that 100 % means complete."""
    return "–" if share is None else f"{floor(1e4 * share) / 100:.2f} %"


def _time(us: float | None) -> str:
    """In the largest unit of which there is at least one."""
    if us is None:
        return "–"
    units = (("d", 86_400e6), ("h", 3_600e6), ("min", 60e6), ("s", 1e6), ("ms", 1e3), ("µs", 1.0))
    unit, length = next((of for of in units if abs(us) >= of[1]), ("s", 1e6))
    return f"{us / length:,.0f} {unit}" if abs(us) >= 100 * length else f"{us / length:.3g} {unit}"
