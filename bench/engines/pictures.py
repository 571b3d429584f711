"""Draws the tables' pictures as SVG: throughput, latency and the AMTA experiments."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench.engines.tables import Table

INK, SOFT = "#1f2933", "#9aa5b1"
COLORS = (
    "#2f6fab",
    "#c2410c",
    "#2e7d32",
    "#7b3fa0",
    "#b7791f",
    "#0f766e",
    "#be185d",
    "#475569",
    "#65a30d",
    "#0ea5e9",
    "#a16207",
    "#dc2626",
)
ACROSS = {"size": "readings in the window", "count": "readings evicted at once"}
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none", "svg.hashsalt": "sluicegate", "font.family": "sans-serif", "font.size": 10,
    "axes.edgecolor": SOFT, "axes.labelcolor": INK, "text.color": INK, "xtick.color": INK, "ytick.color": INK,
    "axes.spines.top": False, "axes.spines.right": False, "figure.facecolor": "white", "axes.facecolor": "white",
    "axes.titlesize": 11, "axes.titlelocation": "left",
}  # fmt: skip


def draw(table: Table, folder: Path) -> Path | None:
    """The picture of a table that has one, as NAME.svg."""
    painter = next((paint for prefix, paint in PAINTERS.items() if table.name.startswith(prefix)), None)
    if painter is None or not table.rows:
        return None
    import matplotlib as mpl

    mpl.use("svg")
    import matplotlib.pyplot as plt

    with mpl.rc_context(STYLE):
        figure = painter(plt, table)
        target = folder / f"engines-{table.name}.svg"
        folder.mkdir(parents=True, exist_ok=True)
        figure.savefig(target, metadata={"Date": None}, bbox_inches="tight")
        plt.close(figure)
    target.write_text(_shorter(target.read_text(encoding="utf-8")), encoding="utf-8")
    return target


def _shorter(svg: str) -> str:
    """A tenth of a pixel is enough, and one font's name of ten."""
    svg = re.sub(r"(\d\.\d)\d+", r"\1", svg)
    return re.sub(r"font-family: [^;\"]*", "font-family: sans-serif", svg)


def _by_size(plt: Any, table: Table, label: str, log: bool, key: str = "size", suffix: str = "") -> Any:
    figure, axes = plt.subplots(figsize=(8, 4))
    for color, engine in zip(COLORS * 2, _engines(table), strict=False):
        points = [
            (row[key], row[engine + suffix])
            for row in table.rows
            if row.get(engine + suffix) is not None and key in row
        ]
        if points:
            axes.plot(*zip(*points, strict=True), label=engine, color=color, marker="o", markersize=2.5, linewidth=1.2)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log" if log else "linear")
    axes.set(
        xlabel="readings in the window" if key == "size" else "readings evicted at once",
        ylabel=label,
        title=table.title,
    )
    axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def _engines(table: Table) -> Sequence[str]:
    return [column.key for column in table.columns[1:] if column.key != "paper"]


def _throughput(plt: Any, table: Table) -> Any:
    return _by_size(plt, table, "million readings a second", log=True)


def _sizes(plt: Any, table: Table) -> Any:
    return _by_size(plt, table, "ns a reading", log=True)


def _bulk(plt: Any, table: Table) -> Any:
    return _by_size(plt, table, "ns of one bulk eviction", log=True, key="count", suffix=" ns")


def _latency(plt: Any, table: Table) -> Any:
    """A column an operator; each engine's median, and thin the greatest, of each part of the run."""
    operators = sorted({name.split()[0] for name in table.series})
    figure, row = plt.subplots(
        1, max(1, len(operators)), figsize=(4.2 * max(1, len(operators)), 3.6), sharey=True, squeeze=False
    )
    for axes, operator in zip(row[0], operators, strict=False):
        names = [name for name in table.series if name.split()[0] == operator]
        for color, name in zip(COLORS * 2, names, strict=False):
            parts = table.series[name]
            axes.plot(parts["median"], color=color, linewidth=1, label=name.split()[1])
            axes.plot(parts["greatest"], color=color, linewidth=0.4)
        axes.set(yscale="log", title=operator, xlabel="part of the run")
        axes.minorticks_off()
    row[0][0].set_ylabel("median (thick), greatest (thin)")
    row[0][-1].legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def _dimensions(plt: Any, table: Table) -> Any:
    figure, axes = plt.subplots(figsize=(8, 4))
    rows = [row for row in table.rows if isinstance(row["dimensions"], int)]
    for color, engine in zip(COLORS * 2, _engines(table), strict=False):
        points = [(row["dimensions"], row[engine]) for row in rows if row.get(engine) is not None]
        if points:
            axes.plot(*zip(*points, strict=True), label=engine, color=color, marker="o", markersize=2.5, linewidth=1.2)
    axes.set(xlabel="dimensions", ylabel="ns a reading", title=table.title)
    axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


PAINTERS: dict[str, Callable[[Any, Table], Any]] = {
    "daba-latency": _latency, "daba-throughput": _throughput, "amta-sizes": _sizes, "amta-bulk": _bulk,
    "amta-dimensions": _dimensions,
}  # fmt: skip
