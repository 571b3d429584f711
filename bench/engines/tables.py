"""A table of figures: as text, as JSON with the machine and the date it was taken on."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple


class Column(NamedTuple):
    """A key of the rows, its heading, and how a number of it is written."""

    key: str
    title: str
    format: str = ""


class Table(NamedTuple):
    """Rows of one experiment. `name`: its name in bench/results; `series`: what a picture needs beside rows."""

    name: str
    title: str
    columns: Sequence[Column]
    rows: list[dict[str, Any]]
    notes: Sequence[str] = ()
    series: Mapping[str, Any] = MappingProxyType({})


def as_text(table: Table) -> str:
    """For a terminal: a heading, the rows, the notes."""
    told = [[column.title for column in table.columns], *cells(table)]
    widths = [max(len(row[k]) for row in told) for k in range(len(table.columns))]
    lines = ["  ".join(_aligned(row[k], width, k) for k, width in enumerate(widths)) for row in told]
    return "\n".join(
        [table.title, "-" * max(len(lines[0]), len(table.title)), *lines, *(f"  {note}" for note in table.notes)]
    )


def as_json(table: Table, command: str) -> dict[str, Any]:
    """All that was measured, and where."""
    return {
        "name": table.name, "title": table.title, "command": command, "machine": machine(), "date": today(),
        "rows": table.rows, "notes": list(table.notes), "series": dict(table.series),
    }  # fmt: skip


def cells(table: Table) -> list[list[str]]:
    """The rows as they are shown."""
    return [[_cell(row.get(column.key), column.format) for column in table.columns] for row in table.rows]


def _cell(value: Any, style: str) -> str:
    if value is None:
        return "–"
    return format(value, style) if isinstance(value, int | float) and style else str(value)


def _aligned(cell: str, width: int, k: int) -> str:
    return cell.ljust(width) if k == 0 else cell.rjust(width)


def rounded(nanoseconds: float | None) -> str | None:
    """Three digits that mean something, in the unit that fits."""
    if nanoseconds is None:
        return None
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.3g} {unit}"
    return f"{nanoseconds:.3g} ns"


def power(size: int) -> str:
    """A power of two as such, another number as it is."""
    return f"2^{size.bit_length() - 1}" if size & (size - 1) == 0 else f"{size:,}"


def machine() -> dict[str, Any]:
    """What the figures depend on."""
    return {
        "processor": _processor(), "cores": os.cpu_count(), "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(), "load": _load(),
    }  # fmt: skip


def today() -> str:
    """The day, UTC."""
    return datetime.now(UTC).date().isoformat()


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _load() -> float | None:
    """How many processes wanted a core in the last minute: above 1, the figures were taken beside other work."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None
