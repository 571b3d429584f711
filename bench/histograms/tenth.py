"""The papers' setting at a tenth of its scale: limits kept, exact shares and footprints beside the paper's figures.

python -m bench.histograms tenth [--quick] [--trace memory] [--only sum,constrained,max,hop] [--json FILE]

A2MTA, section III, reads 62,208,000 values into a window of 2,592,000. Here 6,220,800 go into one of 259,200 (--quick:
a tenth of both), from a seeded trace (traces.py), since the paper's is not public: memory, calm, regimes or signs.
Footprint: leaves created a
reading, for the whole run and after the first two windows (the first fill, and the sample); only the second is compared
with the paper's, times ten, because the window is a tenth and a bucket may hold as many of its parts. Every value
returned is compared with the exact one; windows are asked for their certain interval every so many readings.
"""

from __future__ import annotations

import argparse
import json
import random
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from bench.histograms.traces import TRACES, WINDOW, Column

import sluicegate as sg

Row = dict[str, Any]
ASKED = 997  # readings between two questions for the interval
SUM_LIKE = {1e-1: 9.854e-4, 1e-2: 1.022e-2, 1e-3: 9.9e-2, 1e-4: 8.335e-1, 1e-5: 6.591, 1e-6: 44.02}  # Table I, in %
MAX_LIKE = {1e1: 91.33, 1e2: 91.1, 1e3: 95.49, 1e4: 60.97, 1e5: 4.394, 1e6: 19.88}  # by block size
HOP = 5.229e-1
CONSTRAINED = {  # Table II, in %: buckets → sum-like, max-like, hopping
    10**5: (3.846, 11.75, 4.583), 10**4: (3.845e-1, 2.189, 4.679e-1), 10**3: (3.858e-2, 3.368e-1, 4.69e-2),
    100: (3.864e-3, 3.676e-2, 4.7e-3), 10: (4.018e-4, 3.298e-3, 4.9e-4),
}  # fmt: skip


class Setting(NamedTuple):
    """The stream, the window over it, and by how much that is smaller than the paper's."""

    values: Column
    window: int
    scale: int

    def paper(self, footprint: float) -> float | None:
        """The paper's footprint for a window so much smaller; None where it could not be less than 100 %."""
        return footprint * self.scale if footprint * self.scale < 100.0 else None


def setting(scale: int = 10, trace: str = "memory", windows: int = 24) -> Setting:
    """The paper's 24 windows, a `scale`-th of its size, over a trace."""
    window = WINDOW * 10 // scale
    return Setting(TRACES[trace](windows * window), window, scale)


def exact_means(values: Column, begin: Any) -> Column:
    """The mean of values[begin[i] … i]; the traces' values are multiples of 2⁻¹⁰, so that sums are exact."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    ends = np.arange(1, len(values) + 1)
    return (sums[ends] - sums[begin]) / (ends - begin)


def run(window: sg.Window, given: Setting, name: str, exact: Column, limit: tuple[float, float] = (0.0, 0.0)) -> Row:
    """All readings through a window: footprints, how far its values were off, windows outside their interval.

    `limit`: relative and absolute; with one, how many values are beyond it, how many surely are not (`SumLike.keeps`),
    and how many of those are beyond all the same.
    """
    values, warm = given.values, 2 * given.window
    allowed, found = limit[0] * np.abs(exact) + limit[1], np.empty(len(values))
    outside = before = sure = broken = 0
    keeps = sg.SumLike(limit[0] or None, limit[1]).keeps if any(limit) else None
    for at in range(0, len(values), ASKED):
        end = min(at + ASKED, len(values))
        results = window.insert_many(values[at:end])
        found[at:end] = results[name]
        answer = window.query(bounds=True)[name]
        outside += not answer.low <= exact[end - 1] <= answer.high
        if keeps is not None and keeps(answer):
            sure, broken = sure + 1, broken + bool(abs(answer.value - exact[end - 1]) > allowed[end - 1] * (1 + 1e-9))
        before = window.footprint.created if end <= warm else before
    off = np.abs(found - exact)
    relative = off / np.maximum(np.abs(exact), 1e-300)
    warm -= warm % ASKED
    row = {
        "whole run, %": window.footprint.created / len(values) * 100,
        "after warm-up, %": (window.footprint.created - before) / (len(values) - warm) * 100,
        "greatest error, %": relative.max() * 100, "exact, %": (relative < 1e-12).mean() * 100,
        "asked": -(-len(values) // ASKED), "outside": outside, "buckets": len(window),
    }  # fmt: skip
    if keeps is not None:
        row |= {"beyond the limit, %": (off > allowed * (1 + 1e-9)).mean() * 100}
        row |= {"surely kept, %": sure / row["asked"] * 100, "falsely sure": broken}
    return row


def count_begins(given: Setting) -> Any:
    """Where a count window begins after each reading."""
    return np.maximum(0, np.arange(1, len(given.values) + 1) - given.window)


def sum_like(given: Setting, errors: Sequence[float] = tuple(SUM_LIKE), atol: float = 0.0) -> list[Row]:
    """A mean whose sum and count are under control."""
    exact, rows = exact_means(given.values, count_begins(given)), []
    for error in errors:
        histograms: list[Any] = [sg.SumLike(error=error, atol=atol)]
        window = sg.Window({"mean": sg.mean()}, policy=sg.policies.count(given.window), histograms=histograms)
        row = run(window, given, "mean", exact, (error, atol))
        row["limit kept"] = row["beyond the limit, %"] == 0
        paper = given.paper(SUM_LIKE[error]) if error in SUM_LIKE else None
        rows.append(
            {"row": f"sum-like, limit {error:.4%}" + (f" + {atol:g}" if atol else ""), "paper, %": paper, **row}
        )
    return rows


def constrained(given: Setting) -> list[Row]:
    """The same mean in so many buckets; the paper's figures scale with the share of the window that a bucket is."""
    exact, rows = exact_means(given.values, count_begins(given)), []
    for buckets, paper in CONSTRAINED.items():
        histograms: list[Any] = [sg.Constrained(buckets)]
        window = sg.Window({"mean": sg.mean()}, policy=sg.policies.count(given.window), histograms=histograms)
        row = run(window, given, "mean", exact)
        rows.append({"row": f"constrained mean, {buckets} buckets", "paper, %": given.paper(paper[0]), **row})
    return rows


def max_like(given: Setting, blocks: Sequence[int | None] = (None, *map(int, MAX_LIKE))) -> list[Row]:
    """A maximum that evicts up to the current one; blocks as in the paper, the window's share of them kept."""
    policy, rows = sg.policies.count(given.window, up_to="max"), []
    exact = np.array(sg.Window(sg.max(), policy=policy).insert_many(given.values)["max"])
    for block in blocks:
        size = None if block is None else max(2, block // given.scale)
        window = sg.Window(sg.max(), policy=policy, histograms=[sg.MaxLike(block=size, staircase=False)])
        row = run(window, given, "max", exact)
        paper = None if block is None else MAX_LIKE[block]  # not scaled: its blocks are as large a part of the window
        rows.append({"row": f"max-like, blocks of {size or 'automatic'}", "paper, %": paper, **row})
    return rows


class Hops:
    """Reaches the window, then evicts about a third of it at once: N(mean, deviation) readings."""

    monotone = remaining = True

    def __init__(self, most: int, mean: float, deviation: float) -> None:
        """Nothing evicted yet."""
        self.most, self.mean, self.deviation = most, mean, deviation
        self.rng, self.first, self.starts = random.Random(4), 0, [0]

    def __call__(self, total: Any, old: Any) -> bool:
        """Whether all of `old` lies before the first reading that stays."""
        if total.ordinal + total.count - self.first >= self.most:
            self.first += round(self.rng.gauss(self.mean, self.deviation))
            self.starts.append(self.first)
        return bool(old.ordinal + old.count <= self.first)


def hop(given: Setting, hops: int = 70) -> list[Row]:
    """A mean over random hops: every value returned against the plain readings."""
    policy, values = Hops(given.window, given.window / 3, 10.0), np.concatenate([given.values, given.values])
    window = sg.Window({"mean": sg.mean()}, policy=policy, histograms=[sg.Hop()])
    found, warm, before = array("d"), 0, 0
    for at in range(0, len(values), ASKED):
        found += window.insert_many(values[at : at + ASKED])["mean"]
        if len(policy.starts) <= 4:
            warm, before = len(found), window.footprint.created
        if len(policy.starts) > hops:
            break
    exact = exact_means(values[: len(found)], hop_begins(policy, len(found)))
    off = np.abs(np.array(found) - exact) / exact
    return [
        {
            "row": f"hop, {len(policy.starts) - 1} hops of N({policy.mean:,.0f}, {policy.deviation:g})",
            "paper, %": given.paper(HOP), "whole run, %": window.footprint.created / len(found) * 100,
            "after warm-up, %": (window.footprint.created - before) / (len(found) - warm) * 100,
            "greatest error, %": off.max() * 100, "exact, %": (off < 1e-12).mean() * 100, "buckets": len(window),
        }
    ]  # fmt: skip


def hop_begins(policy: Hops, readings: int) -> Any:
    """Where the hopping window begins after each reading: it hops at the reading that fills it."""
    begins, start = np.zeros(readings, dtype=np.int64), 0
    for following in policy.starts[1:]:
        begins[start + policy.most - 1 :] = following
        start = following
    return begins


PARTS = {"sum": sum_like, "constrained": constrained, "max": max_like, "hop": hop}
COLUMNS = (
    "paper, %",
    "after warm-up, %",
    "whole run, %",
    "greatest error, %",
    "exact, %",
    "buckets",
    "asked",
    "outside",
    "beyond the limit, %",
    "surely kept, %",
)


def table(rows: list[Row]) -> str:
    """A row a setting, the paper's footprint first."""
    lines = [f"{'':40}" + "".join(f"{name:>18}" for name in COLUMNS)]
    for row in rows:
        cells = ("" if row.get(name) is None else f"{row[name]:.4g}" for name in COLUMNS)
        lines.append(f"{row['row']:40}" + "".join(f"{cell:>18}" for cell in cells))
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> None:
    """Run, print a table, and write JSON where asked to."""
    parser = argparse.ArgumentParser(prog="tenth", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="a tenth of the window and the readings")
    parser.add_argument("--trace", default="memory", choices=TRACES)
    parser.add_argument("--atol", type=float, default=0.0, help="a floor for the sum-like histogram")
    parser.add_argument("--only", default=",".join(PARTS), help="parts, by comma")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    given, rows = setting(100 if options.quick else 10, options.trace), []
    for part in options.only.split(","):
        rows += sum_like(given, atol=options.atol) if part == "sum" else PARTS[part](given)
    print(table(rows))
    if options.json:
        options.json.write_text(json.dumps({"window": given.window, "rows": rows}, indent=1, default=float) + "\n")
