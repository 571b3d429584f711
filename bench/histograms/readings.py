"""A constrained footprint over real readings: whole levels and pairs side by side, at the same limit.

python -m bench.histograms readings [--data ../shared/data] [--json FILE]

Every answer after the first tenth of a file is asked for its interval, and compared with the window of single readings.
Widths and errors are shares of the exact result. "squeezed": the limit falls by a quarter and comes back, every 500
readings, as while a target is away.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import sluicegate as sg

Row = dict[str, Any]
Reading = tuple[float, int]
DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
SQUEEZED = 500
time, count = sg.policies.time, sg.policies.count


class Question(NamedTuple):
    """A file, a column of it, and what is asked of it."""

    file: str
    column: str
    aggregate: str
    policy: Any
    buckets: int
    squeezed: bool = False

    @property
    def name(self) -> str:
        """For the table."""
        return f"{self.file.split('.')[0]} {self.aggregate}, {self.policy.name}" + (" squeezed" * self.squeezed)


MACHINE, WEATHER, AMBIENT = "machine_temperature.csv", "weather_3stations.csv", "ambient_temperature.csv"
QUESTIONS = (
    Question(MACHINE, "value", "mean", time("24h"), 24),
    Question(MACHINE, "value", "mean", time("7d"), 64),
    Question(MACHINE, "value", "mean", time("7d"), 64, squeezed=True),
    Question(MACHINE, "value", "mean", count(2016), 32),
    Question(AMBIENT, "value", "mean", time("7d"), 24),
    Question(WEATHER, "temp", "mean", time("7d"), 24),
    Question(WEATHER, "temp", "mean", time("7d"), 24, squeezed=True),
    Question("road_speed.csv", "value", "mean", time("24h"), 16),
    Question(MACHINE, "value", "std", time("24h"), 24),
    Question(MACHINE, "value", "max", time("7d"), 16),
    Question(WEATHER, "temp", "max", time("7d"), 16),
    Question(WEATHER, "wind_speed", "max", time("7d"), 16),
    Question(WEATHER, "wind_speed", "max", time("7d"), 16, squeezed=True),
)


def readings(data: Path, file: str, column: str) -> list[Reading]:
    """A column with its times in µs; of the weather the first station's."""
    with (data / file).open(newline="") as lines:
        rows = [row for row in csv.DictReader(lines) if row.get("origin", "EWR") == "EWR"]
    return [(float(row[column]), moment(row)) for row in rows if row[column] != "NA"]


def moment(row: dict[str, str]) -> int:
    """A row's time in µs, UTC."""
    told = datetime.fromisoformat((row.get("timestamp") or row["time_hour"]).replace("Z", ""))
    return int(told.replace(tzinfo=UTC).timestamp()) * 1_000_000


def ask(question: Question, stream: Sequence[Reading], merge: Any) -> Row:
    """All readings through both windows: how wide the intervals are, how far the values are off, what lies outside."""
    aggregate, histogram = getattr(sg, question.aggregate)(), sg.Constrained(question.buckets, merge=merge)
    window = sg.Window(aggregate, policy=question.policy, histograms=[histogram])
    plain, widths, errors, outside = sg.Window(aggregate, policy=question.policy), [], [], 0
    for i, (value, at) in enumerate(stream):
        if question.squeezed and i % SQUEEZED == 0:
            window.limit_to(question.buckets * 3 // 4 if i // SQUEEZED % 2 else question.buckets)
        window.insert(value, at)
        plain.insert(value, at)
        if i < len(stream) // 10:
            continue
        answer = window.query(bounds=True)[question.aggregate]
        exact = plain.query()[question.aggregate]
        slack = 1e-9 * abs(exact)  # the plain window rounds too
        outside += not answer.low - slack <= exact <= answer.high + slack
        widths.append((answer.high - answer.low) / abs(exact) * 100)
        errors.append(abs(answer.value - exact) / abs(exact) * 100)
    widths.sort()
    return {
        "row": question.name, "buckets": question.buckets, "merge": merge, "answers": len(widths), "outside": outside,
        "mean width, %": sum(widths) / len(widths), "median width, %": widths[len(widths) // 2],
        "99 % of widths, %": widths[len(widths) * 99 // 100], "mean error, %": sum(errors) / len(errors),
    }  # fmt: skip


COLUMNS = (
    "buckets",
    "merge",
    "answers",
    "outside",
    "mean width, %",
    "median width, %",
    "99 % of widths, %",
    "mean error, %",
)


def table(rows: Sequence[Row]) -> str:
    """A row a question and way of merging."""
    lines = [f"{'':58}" + "".join(f"{name:>19}" for name in COLUMNS)]
    for row in rows:
        cells = (f"{row[name]:.4g}" if isinstance(row[name], float) else str(row[name]) for name in COLUMNS)
        lines.append(f"{row['row']:58}" + "".join(f"{cell:>19}" for cell in cells))
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> None:
    """Ask, print, and write JSON where asked to."""
    parser = argparse.ArgumentParser(prog="readings", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    rows = []
    for question in QUESTIONS:
        stream = readings(options.data, question.file, question.column)
        rows += [ask(question, stream, merge) for merge in ("levels", "pairs")]
    print(table(rows))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
