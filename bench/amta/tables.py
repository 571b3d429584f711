"""Table 2 as the paper has it, ours beside: nanoseconds an update with its result."""

from __future__ import annotations

from bench.amta.paper import AGGREGATES, ALGORITHMS, Setting
from bench.amta.run import Row
from bench.engines.tables import Column, Table, as_text, rounded

NAMES = {"longest_run": "longest run", "geometric_mean": "geometric mean", "std": "standard deviation"}
DETAILS = (
    Column("aggregate", "aggregate"), Column("algorithm", "algorithm"), Column("paper", "the paper's, ns", ",.0f"),
    Column("ns", "ours, ns of CPU", ",.1f"), Column("clock", "of the clock", ",.1f"),
    Column("times", "paper / ours", ",.0f"), Column("held", "readings held, mean", ",.0f"),
    Column("taken", "readings", ",d"), Column("compared", "answers compared", ",d"), Column("wrong", "wrong", ",d"),
)  # fmt: skip


def tables(rows: list[Row], setting: Setting) -> list[Table]:
    """The paper's table with both figures in a cell, and all that was measured."""
    scale = f"a window of {setting.window:,} over {setting.readings:,} readings"
    details = Table("amta-details", f"AMTA Experiment 3, all of it; {scale}", DETAILS, rows, [f"{scale}.".capitalize()])
    return [_both(rows, scale), details]


def _both(rows: list[Row], scale: str) -> Table:
    found = {(row["algorithm"], row["aggregate"]): row for row in rows}
    columns = [Column("algorithm", "algorithm"), *(Column(name, NAMES.get(name, name)) for name in AGGREGATES)]
    told = [
        {"algorithm": algorithm}
        | {name: _cell(found[algorithm, name]) for name in AGGREGATES if (algorithm, name) in found}
        for algorithm in ALGORITHMS
    ]
    notes = [f"The paper's mean latency → ours (CPU of the calling thread), an update with its result; {scale}."]
    return Table("amta-2", f"AMTA Table 2; {scale}", columns, told, notes)


def _cell(row: Row) -> str:
    return f"{rounded(row['paper'])} → {rounded(row['ns'])}"


def text(rows: list[Row], setting: Setting) -> str:
    """For a terminal."""
    return "\n\n".join(as_text(table) for table in tables(rows, setting))
