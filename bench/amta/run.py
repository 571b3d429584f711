"""The experiment: one pass over the trace for each aggregate, all algorithms side by side, every answer compared."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from bench.amta import paper
from bench.amta.oracle import Values, oracle
from bench.amta.paper import Setting
from bench.traces import Trace, blocks, trace

import sluicegate as sg

Row = dict[str, Any]
#: How far from the oracle's an answer may be, as a share of it, for rounding; the others are whole numbers, equal.
CLOSE = {"mean": 1e-15, "geometric_mean": 1e-10, "std": 1e-9}
ROUNDED = 2.0**-53  # a reading: what sums of positive numbers that are not whole may be off by, whatever their order
SPREAD = 1.2e-9  # of the readings' span: on a plateau the oracle's mean of squares less the mean's square has no digits
MADE: dict[str, Callable[[], Any]] = {
    "sum": sg.sum, "mean": sg.mean, "geometric_mean": sg.geometric_mean, "std": sg.std, "max": sg.max,
    "longest_run": sg.longest_run,
}  # fmt: skip
STORED = {"log_mta in a store": "log_mta", "amta in a store": "amta"}
NAIVE_PIECE = 16


def policy(aggregate: str, window: int) -> Any:
    """The newest readings; of a maximum or a longest run those that may still become it, as the paper has it."""
    if aggregate == "max":
        return sg.policies.newer_than_maximum(limit=window)
    if aggregate == "longest_run":
        return sg.policies.newer_than_longest_run(limit=window)
    return sg.policies.count(window)


class Followed:
    """One algorithm's window: what it took, what it answered wrongly."""

    def __init__(self, algorithm: str, aggregate: str, window: sg.Window) -> None:
        self.algorithm, self.aggregate, self.window = algorithm, aggregate, window
        self.taken = self.compared = self.wrong = self.held = self.pieces = 0
        self.cpu = self.clock = 0
        self.low, self.high, self.whole = np.inf, -np.inf, True

    def take(self, values: Values, exact: Values) -> None:
        """The next readings, a result each, beside the exact answers."""
        cpu, clock = time.thread_time_ns(), time.perf_counter_ns()
        results = self.window.insert_many(values)
        self.cpu += time.thread_time_ns() - cpu
        self.clock += time.perf_counter_ns() - clock
        self.taken += len(values)
        self.pieces += 1
        self.held += len(self.window)
        known = ~np.isnan(exact)
        found, expected = np.asarray(results[self.aggregate])[known], exact[known]
        off = np.abs(found - expected) > self._allowed(values, expected)
        self.compared += len(found)
        self.wrong += int((off | np.isnan(found)).sum())

    def _allowed(self, values: Values, expected: Values) -> Values:
        """How far the answers may be from the oracle's."""
        self.low, self.high = min(self.low, float(values.min())), max(self.high, float(values.max()))
        self.whole = self.whole and bool((values == np.rint(values)).all())
        share = CLOSE.get(self.aggregate, 0.0)
        if self.aggregate in ("sum", "mean") and not self.whole:
            share += len(self.window) * ROUNDED
        return np.asarray(
            share * np.abs(expected) + (SPREAD * (self.high - self.low) if self.aggregate == "std" else 0.0)
        )

    def row(self) -> Row:
        """What was measured: CPU of the calling thread and the clock's, nanoseconds a reading with its result."""
        own = paper.TABLE[self.algorithm, self.aggregate]
        return {
            "aggregate": self.aggregate, "algorithm": self.algorithm, "paper": own, "taken": self.taken,
            "ns": self.cpu / self.taken, "clock": self.clock / self.taken, "times": own / (self.cpu / self.taken),
            "held": self.held / self.pieces, "compared": self.compared, "wrong": self.wrong,
        }  # fmt: skip


def follow(aggregate: str, setting: Setting, source: str, seed: int, column: str | None) -> list[Row]:
    """All algorithms over the trace, in one pass; the naive one over as much as it can take in its time."""
    values = trace(source, seed, column)
    with _windows(aggregate, setting) as windows:
        made = [Followed(name, aggregate, window) for name, window in windows.items()]
        exact = oracle(aggregate, setting.window)
        for block in blocks(values, setting.readings, setting.piece):
            answers = exact.after(block)
            for each in made:
                each.take(block, answers)
        rows = [each.row() for each in made]
    return [_naive(aggregate, setting, values), *rows]


@contextmanager
def _windows(aggregate: str, setting: Setting) -> Iterator[dict[str, sg.Window]]:
    folder = Path(__file__).resolve().parents[2] / "build"
    folder.mkdir(exist_ok=True)
    with TemporaryDirectory(dir=folder) as place:
        made = {name: _window(aggregate, setting, name, Path(place)) for name in paper.ALGORITHMS if name != "naive"}
        yield made
        for name in STORED:
            made[name].close()


def _window(aggregate: str, setting: Setting, algorithm: str, place: Path) -> sg.Window:
    stored = STORED.get(algorithm)
    store = sg.stores.SQLite(place / f"{stored}.db") if stored else None
    rule = policy(aggregate, setting.window)
    return sg.Window({aggregate: MADE[aggregate]()}, policy=rule, engine=stored or algorithm, store=store)


def _naive(aggregate: str, setting: Setting, values: Trace) -> Row:
    """All readings are aggregated anew for each answer: a full window, then a few readings until its time is over."""
    window = sg.Window({aggregate: MADE[aggregate]()}, policy=policy(aggregate, setting.window), engine="recalc")
    followed, exact = Followed("naive", aggregate, window), oracle(aggregate, setting.window)
    at = 0
    if aggregate not in ("max", "longest_run"):  # their policies ask for the total at each reading: they begin empty
        at = setting.window
        filled = values(0, at)
        window.insert_many(filled, results=False)
        exact.after(filled)
    while followed.cpu < setting.naive_seconds * 1e9 and at < setting.readings:
        piece = values(at, min(at + NAIVE_PIECE, setting.readings))
        followed.take(piece, exact.after(piece))
        at += len(piece)
    return followed.row()


def run(
    setting: Setting, source: str, seed: int, column: str | None, aggregates: list[str], workers: int = 2
) -> list[Row]:
    """Every aggregate, so many at a time; each has a process of its own."""
    if workers < 2 or len(aggregates) < 2:
        return [row for name in aggregates for row in follow(name, setting, source, seed, column)]
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        parts = [pool.submit(follow, name, setting, source, seed, column) for name in aggregates]
        return [row for part in parts for row in part.result()]
