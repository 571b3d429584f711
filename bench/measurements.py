"""The pages of measurements: what stands in their tables is what stands in bench/results, and nothing else.

python -m bench.measurements          # fills the tables of PAGES from bench/results
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from bench.engines.tables import Table, cells, machine, today

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "docs/measurements" / name for name in ("index.md", "engines.md", "papers.md", "comparison.md")]
RESULTS = ROOT / "bench/results"
Row = Mapping[str, Any]
FIGURE = re.compile(r"–|[\d., →nµms]+")


class Shown(NamedTuple):
    """A table of a page: its file, where in it the rows are, the columns (key → title), and which rows.

    Of several places, by blanks, the rows of one `what` are one: its keys are then `place.key`. `taken`: whether
    it says below when and where it was measured.
    """

    file: str
    at: str
    columns: Mapping[str, str]
    rows: Callable[[Row], bool] = lambda row: True
    taken: bool = True


METHODS = {
    "": "", "method": "method", "paper, %": "paper, %", "footprint, %": "ours, %", "ours / paper": "ours / paper",
    "greatest error, %": "greatest error, %", "exact, %": "exact, %", "outside": "outside",
}  # fmt: skip
SOME_I = ("error 0.01 %", "error 0.1 %", "error 1 %", "error 10 %", "block automatic", "block 1,000,000", "hop")
SOME_II = ("10,000 buckets", "1,000 buckets", "100 buckets")
SHOWN = {
    "messages": Shown("agent", "broker", {
        "what": "a message", "us": "the agent, µs", "paho_us": "paho alone, µs", "ratio": "agent / paho",
    }),
    "plant": Shown("plant", "plant", {
        "sensors": "sensors, a reading each in turn", "instructions": "instructions a message",
    }),
    "standing": Shown("standing", "standing", {
        "what": "a plant of", "start_processor_s": "a start, s of processor", "after": "resident, all silent, MiB",
        "spoken": "once each has spoken, MiB", "planned": "planned, MiB",
    }),
    "alerts": Shown("alerts", "alerts", {
        "commit": "`commit.every`", "beside_s": "other messages a second", "changes": "changes", "told": "told",
        "p50_ms": "p50, ms", "p99_ms": "p99, ms",
    }),
    "wear": Shown("wear", "runs", {
        "streams": "streams, a reading a second each", "set": "set", "gb_a_day": "GB a day",
        "bytes_a_reading": "bytes a reading", "commits_a_day": "commits a day",
    }),
    "batches": Shown("engines/batches", "batches", {
        "window": "window", "amta": "by count", "jittered": "by time", "pandas": "pandas, by count",
        "pandas jittered": "pandas, by time", "ratio": "by count / pandas", "jittered ratio": "by time / pandas",
    }, lambda row: row["size"] in (2**4, 2**10, 2**20)),
    "board": Shown("engines/board", "board", {"what": "what", "amta": "measured"}),
    "peers": Shown("engines/peers", "peers", {
        "window": "window", "amta": "amta", "soe": "soe", "two_stacks_lite": "two_stacks_lite",
        "daba_lite": "daba_lite", "C loop": "C loop", "pandas": "pandas",
    }, lambda row: row["size"] == 2**10),
    "merge": Shown("cloud", "rows", {
        "what": "way", "devices": "devices", "width": "frames in a window", "s": "s", "cpu_s": "s of processor",
        "worker_mb": "MB of a worker", "load": "load of the machine",
    }, lambda row: row["devices"] == 1000 and "aggregates" not in row["what"]),
    "methods": Shown("a2mta", "a2mta-I", METHODS, lambda row: row["method"] in SOME_I or "staircase" in row["method"]),
    "budgets": Shown("a2mta", "a2mta-II", METHODS, lambda row: row["method"].startswith(SOME_II)),
    "algorithms": Shown("amta", "amta-2", {
        name: name for name in ("algorithm", "sum", "standard deviation", "max", "longest run")
    }),
    "tools": Shown("peers", "cost killed broker", {
        "what": "tool", "cost.us_a_message": "processor a message, µs", "cost.idle_MiB": "resident, idle, MiB",
        "cost.most_MiB": "at most, MiB", "killed.lost": "its own `kill -9`: lost", "killed.twice": "twice",
        "broker.lost": "the broker's `kill -9`: lost", "broker.twice": "twice",
    }),
    "late": Shown("peers", "late", {"what": "tool", "lost": "missing in its windows"}, taken=False),
}  # fmt: skip


def keep(path: Path, tables: Iterable[Table], command: str) -> None:
    """Put tables into a file of results, each in the place of the one of its name; figures as they are shown."""
    found = {each["name"]: each for each in json.loads(path.read_text("utf-8"))} if path.exists() else {}
    for table in tables:
        titles = [column.title for column in table.columns]
        rows = [dict(zip(titles, row, strict=True)) for row in cells(table)]
        taken = f"`{command}`, {today()}, {_of(machine())}."
        found[table.name] = {"name": table.name, "measured": taken, "notes": [*table.notes], "columns": titles}
        found[table.name]["rows"] = rows
    path.write_text(json.dumps(list(found.values()), indent=1) + "\n", "utf-8")


def filled(text: str) -> str:
    """The page with each table between the marks that bear its name. Raises KeyError for a name that is none."""
    return re.sub(
        r"<!-- (?!end)(\S+) -->\n.*?<!-- end -->",
        lambda mark: f"<!-- {mark[1]} -->\n{markdown(SHOWN[mark[1]])}\n<!-- end -->", text, flags=re.DOTALL,
    )  # fmt: skip


def markdown(shown: Shown) -> str:
    """The rows, then by which command they came, when and where."""
    whole = json.loads((RESULTS / f"{shown.file}.json").read_text("utf-8"))
    found = next(each for each in whole if each["name"] == shown.at) if isinstance(whole, list) else whole
    rows = [row for row in found.get("rows") or _rows(found, shown.at.split()) if shown.rows(row)]
    told = [[_cell(row.get(key)) for key in shown.columns] for row in rows]
    sides = ["---:" if all(map(FIGURE.fullmatch, column)) else "---" for column in zip(*told, strict=True)]
    lines = [" | ".join(shown.columns.values()), " | ".join(["---", *sides[1:]]), *map(" | ".join, told)]
    taken = textwrap.fill(_taken(found) if shown.taken else "", 100, break_long_words=False, break_on_hyphens=False)
    return "\n".join(f"| {line} |" for line in lines) + f"\n\n{taken}".rstrip()


def _rows(found: Row, places: list[str]) -> Iterable[Row]:
    """Those of one place, or of several, put together by what they are of."""
    if len(places) == 1:
        return found[places[0]]  # type: ignore[no-any-return]
    joined: dict[str, dict[str, Any]] = {}
    for place in places:
        for row in found[place]:
            whole = joined.setdefault(row["what"], {"what": row["what"]})
            whole |= {f"{place}.{key}": value for key, value in row.items() if not _hidden(row, key)}
    return joined.values()


def _hidden(row: Row, key: str) -> bool:
    """What is twice is not known where totals are compared: a lost reading hides it."""
    return key == "twice" and row.get("by") == "total"


def _cell(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(f"`{each}`" for each in value) or "–"
    if isinstance(value, float):
        return f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    return "–" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def _taken(found: Row) -> str:
    """Where a file names its command: with the day and the machine."""
    if "machine" in found:
        return f"*`{found['command']}`, {found['date']}, {_of(found['machine'])}.*"
    if "with" in found:
        return f"*{'; '.join(f'{name}: {said}' for name, said in found['with'].items())}.*"
    return f"*{found['measured']}*" if found.get("columns") else ""


def _of(machine: Row) -> str:
    """A machine in words."""
    return (
        f"{machine['processor']}, {machine['cores']} cores, {machine['system']}, "
        f"Python {machine['python']}, load {machine['load']}"
    )


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(filled(page.read_text("utf-8")), "utf-8")
