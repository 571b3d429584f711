"""Figures 3 to 6 as SVG: the errors' distribution, the share of exact results, the greatest error, times."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from bench.a2mta.check import BINS
from bench.a2mta.run import Row
from bench.engines.pictures import COLORS, STYLE

NUMBERS = {("sum-like", "I"): "3a", ("sum-like", "II"): "3b", ("max-like", "I"): "4a", ("max-like", "II"): "4b",
           ("hopping", "II"): "5"}  # fmt: skip


def draw(rows: list[Row], folder: Path) -> Iterator[Path]:
    """Draw what there are rows for; each path as it is written."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context(STYLE):
        for (scenario, table), number in NUMBERS.items():
            some = [row for row in rows if (row["scenario"], row["table"]) == (scenario, table)]
            if some:
                yield _save(plt, _errors(plt, some, f"{scenario}, Figure {number} of the paper"), folder, number)
        yield _save(plt, _times(plt, rows), folder, "6")


def _errors(plt: Any, rows: list[Row], title: str) -> Any:
    """The cumulative distribution, and beside it the share of exact results and the greatest error."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.4), width_ratios=(3, 2))
    for place, row in enumerate(rows):
        color, line = COLORS[place % len(COLORS)], ("-", "--", ":")[place // len(COLORS) % 3]
        share = np.cumsum(row["distribution"])[:-1] / max(sum(row["distribution"]), 1)
        left.plot(BINS * 100, share * 100, color=color, linestyle=line, label=row["label"], linewidth=1.4)
    exact = min(row["exact"] for row in rows)
    least = 0.0 if exact < 80 else 100 - 1.2 * (100 - exact) - 0.1  # where all but a few are exact, those few
    left.set(xscale="log", xlabel="error of a value, %", ylabel="values, %", title=title)
    left.set_ylim(least, 100 + (100 - least) / 50)
    left.legend(frameon=False, fontsize=8)
    places = np.arange(len(rows))
    right.bar(places, [row["exact"] for row in rows], color=COLORS[0], width=0.7)
    right.set(xticks=places, ylabel="exact, %", ylim=(0, 112), title="share exact; greatest error above")
    right.set_xticklabels([row["label"] for row in rows], rotation=35, ha="right", fontsize=8)
    for place, row in zip(places, rows, strict=True):
        right.text(place, row["exact"] + 1.5, f"{row['greatest']:.2g} %", ha="center", fontsize=6)
    return figure


def _times(plt: Any, rows: list[Row]) -> Any:
    """The median with the tenth and the ninetieth percent of pieces; AMTA over the same partials as a mark."""
    figure, axes = plt.subplots(figsize=(9.5, 0.24 * len(rows) + 1.2))
    places = np.arange(len(rows))
    middle = np.array([row["ns"]["50"] for row in rows])
    ends = np.array([[row["ns"]["50"] - row["ns"]["10"], row["ns"]["90"] - row["ns"]["50"]] for row in rows]).T
    axes.barh(places, middle, xerr=ends, color=COLORS[0], height=0.7, error_kw={"elinewidth": 0.8})
    for name, color, mark in (("AMTA, the same partials", COLORS[1], "|"), ("AMTA", COLORS[2], "d")):
        axes.plot([row["beside"][name]["50"] for row in rows], places, mark, color=color, label=name)
    names = [f"{row['scenario']}: {row['label']}" for row in rows]
    axes.set(yticks=places, yticklabels=names, xlabel="ns a reading with its result", title="Figure 6")
    axes.tick_params(axis="y", labelsize=8)
    axes.legend(frameon=False, fontsize=8)
    axes.invert_yaxis()
    return figure


def _save(plt: Any, figure: Any, folder: Path, number: str) -> Path:
    path = folder / f"a2mta-figure-{number}.svg"
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})
    plt.close(figure)
    return path
