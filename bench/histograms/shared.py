"""Several windows from one set of buckets, beside windows of their own with as many buckets each, on real readings.

python -m bench.histograms shared [--data ../shared/data] [--json FILE]

Widths and errors are shares of the exact result, over answers after every seventh reading from the 2,300th on.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.histograms.readings import DATA, MACHINE, Reading, readings

import sluicegate as sg

POLICIES = {name: sg.policies.time(name) for name in ("6h", "24h", "7d")}
FIRST, EVERY = 2_300, 7


class Tally:
    """How wide the intervals of one window are, how far its values are off, how many intervals lie."""

    def __init__(self) -> None:
        self.asked = self.outside = 0
        self.errors = self.widths = 0.0

    def take(self, answer: Any, exact: float) -> None:
        """One answer of `query(bounds=True)`."""
        slack = 1e-9 * abs(exact)  # the exact window's own rounding
        self.asked += 1
        self.outside += not answer.low - slack <= exact <= answer.high + slack
        self.errors += abs(answer.value - exact) / abs(exact)
        self.widths += (answer.high - answer.low) / abs(exact)

    def said(self) -> dict[str, Any]:
        """In %."""
        share = 100.0 / self.asked
        return {
            "error": self.errors * share,
            "width": self.widths * share,
            "outside": self.outside,
            "asked": self.asked,
        }


def ask(stream: Sequence[Reading], aggregate: str, buckets: int) -> dict[str, Any]:
    """All readings through the shared windows, through their own, and through exact ones."""
    asked: dict[str, Any] = {aggregate: getattr(sg, aggregate)()}
    histograms = [sg.Constrained(buckets, merge="pairs")]
    shared = sg.Windows(asked, policies=POLICIES, histograms=histograms)
    own = {name: sg.Window(asked, policy=policy, histograms=histograms) for name, policy in POLICIES.items()}
    exact = {name: sg.Window(asked, policy=policy) for name, policy in POLICIES.items()}
    tallies = {(kind, name): Tally() for kind in ("shared", "own") for name in POLICIES}
    for i, (value, moment) in enumerate(stream):
        for window in (shared, *own.values(), *exact.values()):
            window.insert(value, moment)
        if i < FIRST or i % EVERY:
            continue
        answers = shared.query(bounds=True)
        for name, window in exact.items():
            truth = window.query()[aggregate]
            tallies["shared", name].take(answers[name][aggregate], truth)
            tallies["own", name].take(own[name].query(bounds=True)[aggregate], truth)
    return {
        "aggregate": aggregate, "buckets": buckets, "bytes": shared.footprint.bytes,
        "own bytes": sum(window.footprint.bytes for window in own.values()), "opened": shared.footprint.created,
        "own opened": sum(window.footprint.created for window in own.values()),
        "windows": {f"{kind} {name}": tally.said() for (kind, name), tally in tallies.items()},
    }  # fmt: skip


def main(arguments: Sequence[str]) -> None:
    """Run and print; see the module."""
    parser = argparse.ArgumentParser(prog="bench.histograms shared", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    stream = readings(options.data, MACHINE, "value")
    rows = [ask(stream, aggregate, buckets) for aggregate in ("mean", "max") for buckets in (64, 128)]
    for row in rows:
        print(f"{row['aggregate']}, {row['buckets']} buckets: {row['bytes']:,} bytes (own {row['own bytes']:,}), "
              f"{row['opened']:,} opened ({row['own opened']:,})")  # fmt: skip
        for name, said in row["windows"].items():
            print(f"  {name:<12} error {said['error']:.4f} %  interval {said['width']:.4f} %  "
                  f"outside {said['outside']} of {said['asked']:,}")  # fmt: skip
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
