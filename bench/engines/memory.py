"""The AMTA paper's Experiment 4: which window each engine reaches in a process whose memory is limited for real."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from array import array
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench.engines.tables import Column, Table, power
from bench.engines.timing import Effort
from bench.engines.windows import FAR, filled

import sluicegate as sg

GOAL = 1 << 25
PIECE = 512  # readings at once: their results and times take next to nothing beside the smallest limit
LIMITS = (8, 16, 32, 64, 128, 256, 512, 1024, 2048)
SECONDS = 120
#: Experiment 4's text: readings that fit into a Java heap of so many MiB (goal 2^25).
PAPER = {
    "amta": {256: 1_015, 32_768: GOAL}, "log_mta": {256: 877, 32_768: GOAL}, "daba": {256: 1_120, 32_768: GOAL},
    "recalc": {512: 171_923, 16_384: GOAL}, "amta in SQLite": {128: 1_281, 256: 59_276, 512: GOAL},
    "log_mta in SQLite": {128: 1_459, 256: 66_171, 512: GOAL},
}  # fmt: skip
STORED = " in SQLite"
ROOT = Path(__file__).resolve().parents[2]


def memory(engines: Sequence[str], effort: Effort) -> list[Table]:
    """Experiment 4, in processes of their own."""
    limits, goal = (LIMITS, GOAL) if not effort.quick else ((8, 16), 1 << 19)
    subjects = [
        *(engines if not effort.quick else engines[:2]),
        *(f"{engine}{STORED}" for engine in ("amta", "log_mta") if engine in engines and _has_stores()),
    ]
    rows: list[dict[str, Any]] = []
    for subject in subjects:
        row: dict[str, Any] = {"engine": subject, "paper": _said(subject)}
        for limit in limits:
            reached = _reached(subject, limit, goal)
            row |= {f"{limit} MiB": reached["reached"], f"{limit} ns": reached["ns"], f"{limit} end": reached["end"]}
            if reached["reached"] >= goal:
                break
        rows.append(row)
    columns = [Column("engine", "window reached"), *(Column(f"{limit} MiB", f"{limit} MiB", ",") for limit in limits)]
    notes = [
        f"Goal {power(goal)} readings, sum, at most {SECONDS} s. The limit is RLIMIT_DATA: what the interpreter holds "
        "once the window is there with its first reading, and so many MiB more. It ends at the first MemoryError, "
        "after which the window is asked and answers rightly. The paper's limits are whole Java heaps.",
    ]  # fmt: skip
    return [
        Table(
            "amta-memory",
            "AMTA Experiment 4: window reached by memory limit",
            [*columns, Column("paper", "paper")],
            rows,
            notes,
        )
    ]


def _said(subject: str) -> str | None:
    cells = PAPER.get(subject, {})
    return "; ".join(f"{limit:,} MiB: {power(count)}" for limit, count in cells.items()) or None


def _has_stores() -> bool:
    return hasattr(sg, "stores") and hasattr(sg.stores, "SQLite")


def _reached(subject: str, limit: int, goal: int) -> dict[str, Any]:
    """Run one subject in its own process, from the repository's folder."""
    command = [sys.executable, "-m", "bench.engines.memory", subject, str(limit), str(goal)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS + 60, check=False, cwd=ROOT)
    if ran.returncode:
        said = (ran.stderr.strip().splitlines() or ["no word"])[-1][:200]
        raise RuntimeError(f"{subject} within {limit} MiB: its process ended with {ran.returncode}: {said}")
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def fill(subject: str, limit: int, goal: int) -> dict[str, Any]:
    """Insert until the goal, the memory's or the time's end. To be called in a process of its own."""
    import resource
    import time

    with tempfile.TemporaryDirectory() as folder:
        window = _window(subject, Path(folder), goal)
        values, held = array("d", [1.0]) * PIECE, 0
        window.insert(1.0)
        own = _status("VmData") + (limit << 20)
        before = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (own, before[1]))
        start, end = time.monotonic_ns(), "goal"
        try:
            while window.accepted < goal:
                window.insert_many(values, results=False)
                if time.monotonic_ns() - start > SECONDS * 1_000_000_000:
                    end = "time"
                    break
        except MemoryError:
            end = "memory"
        held, taken = window.readings, time.monotonic_ns() - start
        resource.setrlimit(resource.RLIMIT_DATA, before)  # the folder's removal needs memory too
        if end != "time" and window.query()["sum"] != held:
            raise AssertionError(f"{subject}: {held} readings held, their sum {window.query()['sum']}")
    return {"reached": held, "ns": taken / max(1, held), "end": end}


def _window(subject: str, folder: Path, goal: int) -> Any:
    engine = subject.removesuffix(STORED)
    options: dict[str, Any] = {"store": sg.stores.SQLite(folder / "window.db")} if engine != subject else {}
    return sg.Window(sg.sum(), policy=sg.policies.count(goal), engine=engine, **options)


def _status(field: str) -> int:
    """A size of this process in bytes, as Linux tells it."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    return 0


def resident(engine: str, window: int) -> dict[str, Any]:
    """What an element takes of the process's resident memory, and what is left of that after half of them left."""
    command = [sys.executable, "-m", "bench.engines.memory", "resident", engine, str(window)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True, cwd=ROOT)
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def half(engine: str, window: int) -> dict[str, Any]:
    """In a process of its own: fill, let half leave at one reading, feed 2,000 more."""
    filled(engine, 64)
    before = _status("VmRSS")
    full, _ = filled(engine, window)
    held = _status("VmRSS") - before
    for first in range(0, 2_001, 3):
        full.insert_many(array("d", [1.0]) * 3, array("q", [FAR + window // 2 - 1 + first // 3]) * 3, results=False)
    return {"full": held / window, "ratio": (_status("VmRSS") - before) / (held / window * len(full))}


COMMANDS: dict[str, Callable[[Sequence[str], Effort], list[Table]]] = {"memory": memory}

if __name__ == "__main__":
    first, second, third = sys.argv[1:]
    print(json.dumps(half(second, int(third)) if first == "resident" else fill(first, int(second), int(third))))
