"""Puts measured tables into docs/measurements/benchmarks.md, between the marks that bear their names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from bench.engines.tables import Table, as_markdown, machine, today


def update(page: Path, tables: Iterable[Table], command: str) -> list[str]:
    """Replace what stands between `<!-- NAME -->` and `<!-- end -->`; the names that the page has no place for."""
    text, missing = page.read_text(encoding="utf-8"), []
    for table in tables:
        text, found = _place(text, table, command)
        if not found:
            missing.append(table.name)
    page.write_text(text, encoding="utf-8")
    return missing


def _place(text: str, table: Table, command: str) -> tuple[str, int]:
    mark = f"<!-- {table.name} -->"
    body = f"{mark}\n{as_markdown(table)}\n\n{_taken(command)}\n<!-- end -->"
    return re.subn(rf"{re.escape(mark)}\n.*?<!-- end -->", lambda _: body, text, flags=re.DOTALL)


def _taken(command: str) -> str:
    found = machine()
    return (
        f"*`{command}`, {today()}, {found['processor']}, {found['cores']} cores, {found['system']}, "
        f"Python {found['python']}, load {found['load']}.*"
    )
