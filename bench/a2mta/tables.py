"""Tables I and II and the times of Figure 6: the paper's figure, ours, and how they stand to each other."""

from __future__ import annotations

from bench.a2mta.paper import Setting
from bench.a2mta.run import Row
from bench.engines.tables import Column, Table, as_text

COLUMNS = (
    Column("scenario", ""), Column("label", "method"), Column("paper", "paper, %", ".4g"),
    Column("footprint", "footprint, %", ".4g"), Column("ratio", "ours / paper", ".2f"),
    Column("whole run", "whole run, %", ".4g"), Column("greatest", "greatest error, %", ".3g"),
    Column("exact", "exact, %", ".2f"), Column("exact of changes", "of changes, %", ".2f"),
    Column("over the limit", "over limit", ",d"), Column("asked", "intervals", ",d"),
    Column("outside", "outside", ",d"),
    Column("wider", "width / error", ".1f"),
)  # fmt: skip
TIMES = (
    Column("scenario", ""), Column("label", "method"), Column("p10", "10 %", ".1f"), Column("p50", "50 %", ".1f"),
    Column("p90", "90 %", ".1f"), Column("of AMTA's", "of AMTA's", ".2f"),
)  # fmt: skip
TITLES = {"I": "Table I: one method's parameters", "II": "Table II: a constrained footprint"}


def tables(rows: list[Row], setting: Setting) -> list[Table]:
    """All of them; rows of a table that nothing was run for are left out."""
    scale = f"a window of {setting.window:,} over {setting.readings:,} readings"
    notes = ["Footprint: buckets opened a reading, after warm-up (two windows, or four hops) and for the whole run."]
    if setting.scale > 1:
        notes.append(f"The paper's figures times {setting.scale} where a bucket is a share of the window.")
    found = []
    for name, title in TITLES.items():
        told = [_told(row) for row in rows if row["table"] == name]
        if told:
            found.append(Table(f"a2mta-{name}", f"A2MTA {title}; {scale}", COLUMNS, told, notes))
    return [*found, times(rows)]


def times(rows: list[Row]) -> Table:
    """Figure 6: thread CPU time a reading, with its result, in pieces of some hundred."""
    base = {row["scenario"]: row["ns"] for row in rows if row["table"] == "AMTA"}  # of the same partials where they ran
    told = [
        {"scenario": row["scenario"], "label": row["label"], **{f"p{part}": row["ns"][part] for part in row["ns"]},
         "of AMTA's": row["ns"]["50"] / base[row["scenario"]]["50"]}
        for row in rows
    ]  # fmt: skip
    return Table("a2mta-times", "A2MTA Figure 6: ns a reading with its result, beside the exact AMTA", TIMES, told)


def text(rows: list[Row], setting: Setting) -> str:
    """For a terminal."""
    return "\n\n".join(as_text(table) for table in tables(rows, setting))


def _told(row: Row) -> Row:
    return row | {"wider": row["widths"] / row["errors"] if row["errors"] and row["exact"] < 100 else None}
