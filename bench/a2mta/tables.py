"""Tables I and II and the times of Figure 6: the paper's figure, ours, and how they stand to each other."""

from __future__ import annotations

from bench.a2mta.paper import Setting
from bench.a2mta.run import Row
from bench.engines.tables import Column, Table

COLUMNS = (
    Column("scenario", ""), Column("label", "method"), Column("paper", "paper, %", ".4g"),
    Column("footprint", "footprint, %", ".4g"), Column("ratio", "ours / paper", ".2f"),
    Column("whole run", "whole run, %", ".4g"), Column("greatest", "greatest error, %", ".3g"),
    Column("exact", "exact, %", ".2f"), Column("exact of changes", "of changes, %", ".2f"),
    Column("over the limit", "over limit", ",d"), Column("asked", "intervals", ",d"),
    Column("outside", "outside", ",d"),
    Column("wider", "width / error", ".1f"),
)  # fmt: skip
TOTALS = (
    Column("methods", "methods", ",d"), Column("checked", "values compared", ",d"), Column("asked", "intervals", ",d"),
    Column("outside", "outside", ",d"), Column("over", "over the limit", ",d"), Column("wall", "minutes", ".1f"),
    Column("spent", "of CPU", ".1f"), Column("peak", "greatest process, MiB", ".0f"),
)  # fmt: skip
LIMITS = (
    Column("label", "limit"), Column("footprint", "footprint, %", ".4g"), Column("checked", "values", ",d"),
    Column("withheld", "withheld, %", ".3g"), Column("over the limit", "over the limit", ",d"),
    Column("greatest", "greatest error, %", ".3g"), Column("asked", "intervals", ",d"),
    Column("outside", "outside", ",d"),
)  # fmt: skip
TIMES = (
    Column("scenario", ""), Column("label", "method"), Column("p10", "10 %", ".1f"), Column("p50", "50 %", ".1f"),
    Column("p90", "90 %", ".1f"), Column("alike", "AMTA, same partials", ".1f"), Column("of alike", "ratio", ".2f"),
    Column("of least", "of the quickest tenths", ".2f"), Column("plain", "AMTA, its own", ".1f"),
    Column("of plain", "ratio", ".2f"),
)  # fmt: skip
MEMORY = (
    Column("scenario", ""), Column("label", "method"), Column("peak", "peak of the process, MiB", ".0f"),
    Column("windows", "windows that are measured", ".0f"), Column("exact", "exact answers", ".0f"),
    Column("rest", "all else", ".0f"),
)  # fmt: skip
TITLES = {"I": "Table I: one method's parameters", "II": "Table II: a constrained footprint"}


def tables(rows: list[Row], setting: Setting, trace: str = "memory", seconds: float = 0.0) -> list[Table]:
    """All of them, of another trace by names of their own; rows of a table that nothing was run for are left out."""
    scale = f"a window of {setting.window:,} over {setting.readings:,} readings"
    notes = ["Footprint: buckets opened a reading, after warm-up (two windows, or four hops) and for the whole run."]
    if setting.scale > 1:
        notes.append(f"The paper's figures times {setting.scale} where a bucket is a share of the window; {scale}.")
    found = [totals(rows, scale, seconds)]
    for name, title in TITLES.items():
        told = [_told(row) for row in rows if row["table"] == name]
        if told:
            found.append(Table(f"a2mta-{name}", f"A2MTA {title}; {scale}", COLUMNS, told, notes))
    certain = [_told(row) for row in rows if row["table"] == "limits"]
    if certain:
        found.append(Table("a2mta-limits", f"Limits that every value returned keeps; {scale}", LIMITS, certain))
    found += [times(rows), memory(rows)]
    return [table._replace(name=f"{table.name}-{trace}") for table in found] if trace != "memory" else found


def totals(rows: list[Row], scale: str, seconds: float) -> Table:
    """All windows of buckets together."""
    some = [row for row in rows if row["table"] != "AMTA"]
    total = {name: sum(row[name] for row in some) for name in ("checked", "asked", "outside")}
    total["over"] = sum(row["over the limit"] for row in some)
    peak = max(row["memory"]["peak"] for row in rows) / 2**20
    spent = sum(row["seconds"] for row in rows)
    told = [{"methods": len(some), **total, "wall": seconds / 60, "spent": spent / 60, "peak": peak}]
    return Table("a2mta-totals", f"All methods together; {scale}", TOTALS, told)


def times(rows: list[Row]) -> Table:
    """Figure 6: thread CPU time a reading with its result, and AMTA's, which took the same pieces in turns with it."""
    told = []
    for row in rows:
        ours, alike, plain = row["ns"], row["beside"]["AMTA, the same partials"], row["beside"]["AMTA"]
        told.append({
            "scenario": row["scenario"], "label": row["label"], **{f"p{part}": ours[part] for part in ours},
            "alike": alike["50"], "of alike": ours["50"] / alike["50"], "of least": ours["10"] / alike["10"],
            "plain": plain["50"], "of plain": ours["50"] / plain["50"],
        })  # fmt: skip
    return Table("a2mta-times", "A2MTA Figure 6: ns a reading with its result, beside AMTA in turns", TIMES, told)


def memory(rows: list[Row]) -> Table:
    """What each pass held at its peak, MiB."""
    told = []
    for row in rows:
        sizes = {name: size / 2**20 for name, size in row["memory"].items()}
        rest = sizes["peak"] - sizes["windows"] - sizes["exact"]
        told.append({"scenario": row["scenario"], "label": row["label"], **sizes, "rest": rest})
    return Table("a2mta-memory", "Memory of each pass, MiB", MEMORY, told)


def _told(row: Row) -> Row:
    """With the width beside the error; an absolute limit's error is no share."""
    wider = row["widths"] / row["errors"] if row["errors"] and row["exact"] < 100 else None
    absolute = row["limit"] is not None and row["limit"][1]
    return row | {"wider": wider, "greatest": None if absolute else row["greatest"]}
