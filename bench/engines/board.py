"""What an agent asks of its windows: the answer with bounds of one of 64 buckets, its memory, one call a reading."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.engines.tables import Column, Table
from bench.engines.timing import Effort, alternated, pool, timed

import sluicegate as sg

BUCKETS = 64
READINGS = 4_096  # of a window, of which a bucket takes 64
GOALS = {"query(bounds=True), ns": 10_000, "slide, ns": 100, "resident, bytes a window": 9 * 1024}


def board(engines: Sequence[str], effort: Effort) -> list[Table]:
    """Two times and a size, beside their goals."""
    if "amta" not in engines:
        return []
    windows = 4_000 if effort.most > 1_000 else 20
    measured = _times(effort) | {"resident, bytes a window": _resident(windows)}
    rows = [{"what": what, "amta": found, "goal": GOALS[what]} for what, found in measured.items()]
    columns = [Column("what", "what"), Column("amta", "measured", ",.0f"), Column("goal", "goal", ",")]
    notes = [
        f"A window by count of {READINGS:,} readings in {BUCKETS} buckets, mean and max. `slide`: an exact sum of "
        f"1,024 readings, the loop included. Resident: what a fresh process grows by for each of {windows:,} such "
        "windows, with all their Python objects."
    ]
    return [Table("board", "What the agent asks", columns, rows, notes)]


def bucketed() -> sg.Window:
    """A full one."""
    window = sg.Window(
        {"mean": sg.mean(), "max": sg.max()},
        policy=sg.policies.count(READINGS),
        histograms=[sg.Constrained(BUCKETS)],
    )
    window.insert_many(memoryview(pool())[: 2 * READINGS], results=False)
    return window


def _times(effort: Effort) -> dict[str, float]:
    window = bucketed()
    exact = sg.Window(sg.sum(), policy=sg.policies.count(1 << 10))
    exact.insert_many(memoryview(pool())[: 1 << 10], results=False)

    def query(count: int) -> float:
        def loop() -> None:
            for _ in range(count):
                window.query(bounds=True)

        return timed(loop)

    def slide(count: int) -> float:
        values = pool()[:count].tolist()

        def loop() -> None:
            for value in values:
                exact.slide(value)

        return timed(loop)

    subjects = {"query(bounds=True), ns": query, "slide, ns": slide}
    return alternated(subjects, effort._replace(rounds=4 * effort.rounds, most=min(effort.most, 1 << 14)))


def _resident(windows: int) -> float:
    """Bytes a window, of a process of its own: memory that was freed before would take them in without growing."""
    command = [sys.executable, "-m", "bench.engines.board", str(windows)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def _growth(windows: int) -> float:
    """What any first one loads is there before."""
    kept = [bucketed() for _ in range(10)]
    before = _resident_bytes()
    kept += [bucketed() for _ in range(windows)]
    return max(0.0, (_resident_bytes() - before) / windows)


def _resident_bytes() -> int:
    status = Path("/proc/self/statm")
    return int(status.read_text().split()[1]) * 4096 if status.exists() else 0


COMMANDS: dict[str, Callable[[Sequence[str], Effort], list[Table]]] = {"board": board}

if __name__ == "__main__":
    print(_growth(int(sys.argv[1])))
