"""A constrained footprint at equal size: the paper's answer, ours by levels, and ours by the pair that adds least.

python -m bench.histograms budget [--scale 40] [--trace memory|calm|steps|near-zero] [--json FILE]

The paper keeps a cut bucket as a whole and bounds nothing; here its total is taken from the same buckets (levels). Ours
interpolates what the bucket knows and gives a certain interval. `levels` are those of the paper; `pairs` spends the
buckets where they cut the interval most; for a maximum and a range `staircase` decides late besides, with a tail as
large as the budget. Errors and widths are shares of the exact result, where that is not 0, after every 97th reading of
a window that has been full once.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.a2mta.exact import Maxima
from bench.a2mta.paper import Setting
from bench.amta.oracle import Means
from bench.engines.tables import Column, Table, as_text
from bench.traces import blocks, trace

import sluicegate as sg

ASKED = 97
BUCKETS = (10, 100, 1_000)
COLUMNS = (
    Column("aggregate", "aggregate"), Column("buckets", "buckets", ",d"), Column("method", "method"),
    Column("opened", "opened, %", ".4g"), Column("greatest", "greatest error, %", ".3g"),
    Column("mean", "mean error, %", ".3g"), Column("ratio", "of the paper's, greatest", ".2f"),
    Column("mean ratio", "mean", ".2f"), Column("width", "interval, %", ".3g"), Column("outside", "outside", ",d"),
    Column("asked", "asked", ",d"),
)  # fmt: skip


class Ranges:
    """Greatest less least of the newest readings."""

    def __init__(self, window: int) -> None:
        self._greatest, self._least = Maxima(window), Maxima(window)

    def after(self, values: Any) -> Any:
        """The range after each of the next readings."""
        return self._greatest.after(values) + self._least.after(-values)


EXACT: dict[str, Any] = {"mean": Means, "max": Maxima, "range": Ranges}


class Followed:
    """One window, and the errors of its answers; `whole`: the cut bucket counts as a whole, as in the paper."""

    def __init__(self, method: str, aggregate: str, policy: Any, histograms: list[Any], *, whole: bool = False) -> None:
        self.method, self.aggregate, self.whole = method, aggregate, whole
        self.window = sg.Window({aggregate: getattr(sg, aggregate)()}, policy=policy, histograms=histograms)
        self.asked = self.outside = 0
        self.greatest = self.errors = self.widths = 0.0

    def take(self, values: Any, exact: float, full: bool) -> None:
        """The next readings, and the exact answer after the last."""
        self.window.insert_many(values, results=False)
        if not full or not exact:
            return
        answer = self.window.query(bounds=True)[self.aggregate]
        value = self._paper() if self.whole else answer.value
        self.asked += 1
        self.outside += not answer.low <= exact <= answer.high
        self.greatest = max(self.greatest, abs(value - exact) / abs(exact))
        self.errors += abs(value - exact) / abs(exact)
        self.widths += (answer.high - answer.low) / abs(exact)

    def _paper(self) -> float:
        core = self.window._core
        return float(core.lower(core.total())[0])

    def row(self, readings: int) -> dict[str, Any]:
        """In %."""
        share = 100.0 / self.asked
        return {
            "aggregate": self.aggregate, "method": self.method, "asked": self.asked, "outside": self.outside,
            "opened": 100.0 * self.window.footprint.created / readings, "greatest": 100.0 * self.greatest,
            "mean": self.errors * share, "width": None if self.whole else self.widths * share,
        }  # fmt: skip


def made(aggregate: str, buckets: int, policy: Any) -> list[Followed]:
    """The paper's first."""
    levels, pairs = sg.Constrained(buckets), sg.Constrained(buckets, merge="pairs")
    found = [
        Followed("the paper's, a cut bucket as a whole", aggregate, policy, [levels], whole=True),
        Followed("levels", aggregate, policy, [levels]), Followed("pairs", aggregate, policy, [pairs]),
    ]  # fmt: skip
    if aggregate != "mean":
        late = sg.MaxLike(staircase=True, staging=buckets)
        found.append(Followed("staircase and pairs, a tail as large", aggregate, policy, [late, pairs]))
    return found


def follow(aggregate: str, buckets: int, setting: Setting, source: str) -> list[dict[str, Any]]:
    """All methods of an aggregate and a size over the trace."""
    policy = sg.policies.count(setting.window)
    exact = EXACT[aggregate](setting.window)
    subjects, seen = made(aggregate, buckets, policy), 0
    for values in blocks(trace(source), setting.readings, ASKED):
        answers, seen = exact.after(values), seen + len(values)
        for each in subjects:
            each.take(values, float(answers[-1]), seen > setting.window)
    rows = [each.row(seen) for each in subjects]
    for row in rows:
        row["buckets"] = buckets
        for key, name in (("greatest", "ratio"), ("mean", "mean ratio")):
            row[name] = row[key] / rows[0][key] if rows[0][key] else None
    return rows


def main(arguments: Sequence[str]) -> None:
    """Run and print; see the module."""
    parser = argparse.ArgumentParser(prog="bench.histograms budget", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--scale", type=int, default=40, help="1/N of the paper's readings and window")
    parser.add_argument("--trace", default="memory")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    setting = Setting(options.scale)
    rows = [row for aggregate in EXACT for buckets in BUCKETS
            for row in follow(aggregate, buckets, setting, options.trace)]  # fmt: skip
    title = f"A budget of buckets; a window of {setting.window:,} over {setting.readings:,} readings, {options.trace}"
    table = Table("budget", title, COLUMNS, rows, [f"{title}."])
    print(as_text(table))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
