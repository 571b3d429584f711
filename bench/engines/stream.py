"""The AMTA paper's Experiment 3: a stream of memory usage under policies that let most of a window leave at once."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

from bench.engines.tables import Column, Table, power
from bench.engines.timing import Effort, timed
from bench.histograms.memory_trace import memory

import sluicegate as sg
from sluicegate.errors import ConfigurationError

WINDOW = 1 << 20
PIECE = 1 << 10
SECONDS = 4  # of one run of one engine
#: Table 2 of the paper: mean latency in ns (Java in Storm).
PAPER: dict[str, dict[str, float]] = {
    "sum": {"recalc": 3.69e8, "log_mta": 10_341, "daba": 4_288, "amta": 4_163},
    "mean": {"recalc": 3.26e8, "log_mta": 10_378, "daba": 4_389, "amta": 4_033},
    "geometric_mean": {"recalc": 2.83e8, "log_mta": 11_166, "daba": 4_795, "amta": 4_183},
    "std": {"recalc": 3.5e8, "log_mta": 12_934, "daba": 4_880, "amta": 3_864},
    "max": {"recalc": 2_554, "log_mta": 6_188, "daba": 3_500, "amta": 1_763},
    "longest_run": {"recalc": 19_294, "log_mta": 19_794, "daba": 10_027, "amta": 6_476},
}
POLICIES = {"max": "newer_than_maximum", "longest_run": "newer_than_longest_run"}


class Run(NamedTuple):
    """Nanoseconds a reading, and how many readings the window held at the end."""

    each: float
    held: int


def stream(engines: Sequence[str], effort: Effort) -> list[Table]:
    """Experiment 3, on a seeded trace in place of the paper's."""
    window = WINDOW if not effort.quick else min(1 << 12, effort.most)
    rows: list[dict[str, Any]] = []
    for name, paper in PAPER.items():
        row: dict[str, Any] = {"aggregate": name}
        for engine in engines:
            best = _best(engine, name, window, min(effort.rounds, 3))
            if best:
                row |= {engine: best.each, "held": best.held}
        rows += [row, {"aggregate": "  paper"} | paper]
    columns = [Column("aggregate", "ns a reading"), *(Column(engine, engine, ",.3g") for engine in engines)]
    notes = [
        f"insert_many with results, {4 * window:,} readings after a full window. At most {power(window)} readings; "
        "for the maximum and the longest increasing run also only what is newer than its start (the paper's rule): "
        f"«held» is what that left at the end. An engine stops after {SECONDS} s. The trace is "
        "bench/histograms/memory_trace.py, the paper's is not public.",
    ]  # fmt: skip
    columns.append(Column("held", "held", ","))
    return [Table("amta-stream", "AMTA Experiment 3: stream analytics", columns, rows, notes)]


def _best(engine: str, name: str, window: int, rounds: int) -> Run | None:
    """The fastest of some runs; an engine for which one is too long is not asked again."""
    best = _run(engine, name, window)
    for _ in range(1, rounds if best else 0):
        best = min(run for run in (best, _run(engine, name, window)) if run)
    return best


def _run(engine: str, name: str, window: int) -> Run | None:
    """None where the engine or this build does not take the question, or filling the window takes too long."""
    aggregate, rule = getattr(sg, name, None), getattr(sg.policies, POLICIES.get(name, "count"), None)
    if aggregate is None or rule is None or (engine == "recalc" and name not in POLICIES):
        return None
    try:
        full = sg.Window(aggregate(), policy=rule(limit=window), engine=engine)
    except ConfigurationError:
        return None
    first, rest = _trace(window)
    if _fed(full, first)[0] < len(first):
        return None
    done, taken = _fed(full, rest)
    return Run(taken / done, full.readings)


def _fed(full: sg.Window, values: array[float]) -> tuple[int, float]:
    """Feed in pieces for so long at most; how many, and their CPU nanoseconds."""
    taken, done = 0.0, 0
    while done < len(values) and taken < SECONDS * 1e9:
        piece = values[done : done + PIECE]
        taken += timed(lambda piece=piece: full.insert_many(piece))  # type: ignore[misc]
        done += len(piece)
    return done, taken


@cache
def _trace(window: int) -> tuple[array[float], array[float]]:
    values = array("d", memory(5 * window).tobytes())
    return values[:window], values[window:]


COMMANDS: dict[str, Callable[[Sequence[str], Effort], list[Table]]] = {"stream": stream}
