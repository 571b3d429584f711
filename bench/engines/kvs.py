"""Windows in SQLite in a process limited to 64 MiB of address space: nanoseconds an update, memory, bulk evictions.

python -m bench.engines.kvs [--quick] [--engines amta,log_mta] [--json FILE] [--docs]
python -m bench.engines.kvs --kept FILE --seconds 30    (again until it says that nothing is missing)

Each figure comes from a process of its own, whose limit (RLIMIT_AS) is set before the window is made and is never
lifted; it ends with the one that started it, and takes its files along. Time is the clock's, with the background
thread's share of the machine in it; CPU time is given beside. On a machine that is quiet for moments only, --kept
measures what its file does not hold yet, for about so long.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from bench.engines.tables import Column, Table, as_json, as_text, power
from bench.engines.timing import FULL, QUICK, Effort

import sluicegate as sg

LIMIT = 64 << 20
UPDATES, WINDOWS = 1 << 25, (1 << 22, 1 << 23, 1 << 24)
QUICK_UPDATES, QUICK_WINDOWS = 1 << 19, (1 << 16,)
BULK, QUICK_BULK = 1 << 22, 1 << 16
PIECE = 1 << 14
SLICE = 1 << 16
ROUNDS, QUICK_ROUNDS, LARGE_ROUNDS, LARGE = 30, 10, 3, 1 << 20  # of a bulk eviction in a process
RUNS = 3  # of the same, where AMTA keeps them in SQLite: log_mta takes five times as long, and goes through one window
PATIENCE = 10.0  # seconds for a process to end after it was told to
GOAL = 5.0  # milliseconds of a bulk eviction
ROOT = Path(__file__).resolve().parents[2]
STORED = ("amta", "log_mta")
STARTED_BY = "SLUICEGATE_BENCH_PARENT"


def updates(engine: str, size: int, count: int, file: Path | None) -> dict[str, Any]:
    """Fill a count window and slide it on, `count` readings in all; `file` None: in memory, without the limit."""
    window = sg.Window(sg.sum(), policy=sg.policies.count(size), engine=engine, **_store(file))
    source = random.Random(1)
    values = array("d", [source.gauss(20.0, 3.0) for _ in range(PIECE)])
    clocks, own, cpu = [time.perf_counter_ns()], time.thread_time_ns(), time.process_time_ns()
    for _ in range(count // SLICE):
        check_parent()
        for _ in range(SLICE // PIECE):
            window.insert_many(values, results=False)
        clocks.append(time.perf_counter_ns())
    own, cpu = time.thread_time_ns() - own, time.process_time_ns() - cpu
    writer = cpu - own
    sliding = [(after - before) / SLICE for before, after in pairwise(clocks[size // SLICE :])]
    found = {
        "ns": (clocks[-1] - clocks[0]) / count,
        "least": min(sliding),
        "own": own / count,
        "writer": max(0, writer) / count,
    }
    if file is not None:
        start = time.perf_counter_ns()
        window.close()
        found |= {"close": (time.perf_counter_ns() - start) / 1e6, "file": file.stat().st_size / 2**20}
    return found | {"hwm": status("VmHWM") / 2**20, "peak": status("VmPeak") / 2**20}


def bulk(engine: str, size: int, quick: int, file: Path | None) -> dict[str, Any]:
    """Let some of `size` readings leave at one insertion, fill up again, some times each: milliseconds by how many."""
    window = sg.Window(sg.sum(), policy=sg.policies.time(size), engine=engine, **_store(file))
    now, found = 0, dict[str, Any]()
    for count in bulk_counts(bool(quick)):
        found[str(count)], now = evictions(window, size, count, now)
    found["hwm"] = status("VmHWM") / 2**20
    if file is not None:
        window.close()
    return found


def evictions(window: sg.Window, size: int, count: int, now: int) -> tuple[dict[str, list[float]], int]:
    """Milliseconds of each round, all of them and of the CPU, and of those not preempted; the time it is then.

    What leaves at once is a gap in time until it is the oldest itself: only then is the window full again. So it is
    filled once for as many as leave from the same side of all gaps, and goes on by a piece between two.
    """
    taken, own, whole = list[float](), list[float](), list[float]()
    now = go_on(window, now, size + PIECE)
    for _ in range(rounds_of(count, size)):
        if count >= LARGE:
            now = go_on(window, now, size)
        now = go_on(window, now, PIECE)
        held = len(window)
        now += count - 1
        preempted, cpu, start = preemptions(), time.thread_time_ns(), time.perf_counter_ns()
        window.insert(1.0, now)
        taken.append((time.perf_counter_ns() - start) / 1e6)
        own.append((time.thread_time_ns() - cpu) / 1e6)
        if preemptions() == preempted:
            whole.append(taken[-1])
        now += 1
        if window.query()["sum"] != len(window) or len(window) != held - count + 1:
            raise AssertionError(f"{len(window)} readings of {held} after {count} have left")
    return {"taken": taken, "own": own, "whole": whole}, now


def go_on(window: sg.Window, now: int, readings: int) -> int:
    """So many readings more, one a microsecond; the time it is then."""
    values = array("d", [1.0]) * PIECE
    for start in range(now, now + readings, PIECE):
        check_parent()
        n = min(PIECE, now + readings - start)
        window.insert_many(values[:n], array("q", range(start, start + n)), results=False)
    return now + readings


def rounds_of(count: int, size: int) -> int:
    """How often so many leave at once, out of one filling where that is possible."""
    if count >= LARGE:
        return LARGE_ROUNDS
    most = QUICK_ROUNDS if size < BULK else ROUNDS
    return max(1, min(most, size // (count + PIECE) - 1))


def _store(file: Path | None) -> dict[str, Any]:
    return {} if file is None else {"store": sg.stores.SQLite(file)}


def check_parent() -> None:
    """End where the process that started this one has ended, by whatever means."""
    if os.environ.get(STARTED_BY, str(os.getppid())) != str(os.getppid()):
        sys.exit("the process that asked for this has ended")


def preemptions() -> int:
    """How often the scheduler has taken the processor away from this thread."""
    import resource

    return resource.getrusage(resource.RUSAGE_THREAD).ru_nivcsw


def status(field: str) -> int:
    """A size of this process in bytes, as Linux tells it."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    return 0


class Cell(NamedTuple):
    """One process: what is measured, of which window, how often already."""

    what: str
    engine: str
    size: int
    count: int
    stored: bool = True
    run: int = 0

    @property
    def name(self) -> str:
        """In a file of what was measured."""
        return " ".join(map(str, self))


Found = dict[str, dict[str, Any]]


def measured(cell: Cell) -> dict[str, Any]:
    """One figure in a process of its own."""
    command = [sys.executable, "-m", "bench.engines.kvs", "--child", *map(str, cell[:5])]
    # One arena: glibc would reserve 64 MiB of addresses for the second thread's, and try again at each allocation.
    settings = {**os.environ, "MALLOC_ARENA_MAX": "1", STARTED_BY: str(os.getpid())}
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=settings) as running,
        ending_with_us(running),
    ):
        said, _ = running.communicate()
    if running.returncode:
        raise subprocess.CalledProcessError(running.returncode, command)
    found: dict[str, Any] = json.loads(said)
    return found


@contextmanager
def ending_with_us(running: subprocess.Popen[str]) -> Iterator[None]:
    """Told to end, or interrupted, have it end first, so that it removes its files."""
    before = signal.signal(signal.SIGTERM, told_to_end)
    try:
        yield
    except BaseException:
        running.terminate()
        try:
            running.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            running.kill()
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


def told_to_end(number: int, _frame: FrameType | None) -> None:
    """As an exception, so that what is open is closed."""
    sys.exit(128 + number)


def take(wanted: Sequence[Cell], found: Found, seconds: float = math.inf, kept: Path | None = None) -> int:
    """Measure what is not in `found` yet, and keep it; begins nothing after so many seconds. How many are missing."""
    (ROOT / "build").mkdir(exist_ok=True)
    start = time.monotonic()
    missing = [cell for cell in wanted if cell.name not in found]
    while missing and time.monotonic() - start < seconds:
        found[missing[0].name] = measured(missing[0])
        missing.pop(0)
        if kept is not None:
            kept.write_text(json.dumps(found, indent=1) + "\n")
    return len(missing)


def child(what: str, engine: str, size: int, count: int, stored: bool) -> None:
    """In the process of its own."""
    import resource

    signal.signal(signal.SIGTERM, told_to_end)

    if stored:
        resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))
    with tempfile.TemporaryDirectory(dir=ROOT / "build") as folder:
        measure = {"updates": updates, "bulk": bulk}[what]
        print(json.dumps(measure(engine, size, count, Path(folder) / "window.db" if stored else None)))


def kvs(engines: Sequence[str], effort: Effort) -> list[Table]:
    """Updates of constant windows, and bulk evictions, of each engine that can keep its partials in a store."""
    found: Found = {}
    take(cells(engines, effort), found)
    return tables(engines, effort, found)


def cells(engines: Sequence[str], effort: Effort) -> list[Cell]:
    """All that the tables need, AMTA's updates first."""
    subjects = [engine for engine in STORED if engine in engines]
    updating = [cell for engine in subjects for row in update_rows(engine, effort) for cell in row]
    return updating + [cell for engine in subjects for cell in bulk_runs(engine, effort)]


def update_rows(engine: str, effort: Effort) -> list[list[Cell]]:
    """For each window in SQLite, and the smallest in memory, the runs."""
    count, sizes = (QUICK_UPDATES, QUICK_WINDOWS) if effort.quick else (UPDATES, WINDOWS)
    rows = [*((size, True) for size in (sizes if engine == "amta" else sizes[:1])), (sizes[0], False)]
    often = 1 if effort.quick or engine != "amta" else RUNS
    return [
        [Cell("updates", engine, size, count, stored, run) for run in range(often if stored else 1)]
        for size, stored in rows
    ]


def bulk_runs(engine: str, effort: Effort) -> list[Cell]:
    """The runs; each takes every number of readings that leave at once."""
    size = QUICK_BULK if effort.quick else BULK
    often = 1 if effort.quick or engine != "amta" else RUNS
    return [Cell("bulk", engine, size, int(effort.quick), run=run) for run in range(often)]


def bulk_counts(quick: bool) -> list[int]:
    """How many readings leave at once; all but one in the end."""
    return [1 << 8, 1 << 12, 1 << 15, QUICK_BULK - 1] if quick else [*(1 << k for k in (10, 14, 18, 20, 21)), BULK - 1]


def tables(engines: Sequence[str], effort: Effort, found: Found) -> list[Table]:
    """What was measured."""
    subjects = [engine for engine in STORED if engine in engines]
    return [_updates(subjects, effort, found), _bulk(subjects, effort, found)]


def _updates(subjects: Sequence[str], effort: Effort, found: Found) -> Table:
    rows = []
    for runs in (runs for engine in subjects for runs in update_rows(engine, effort)):
        cell, best = runs[0], min((found[cell.name] for cell in runs), key=lambda each: float(each["ns"]))
        name = f"{cell.engine} in SQLite" if cell.stored else f"{cell.engine} in memory, no limit"
        most = max(found[cell.name]["ns"] for cell in runs)
        rows.append(
            {"engine": name, "window": power(cell.size), "waits": best["ns"] - best["own"], "most": most, **best}
        )
    count = QUICK_UPDATES if effort.quick else UPDATES
    columns = [
        Column("engine", "engine"), Column("window", "window"), Column("ns", "ns an update", ".0f"),
        Column("most", "worst run", ".0f"), Column("least", "least of a stretch", ".0f"),
        Column("own", "CPU of the caller", ".0f"), Column("writer", "CPU of the writer", ".0f"),
        Column("waits", "caller not running", ".0f"),
        Column("hwm", "resident, most (MiB)", ".1f"), Column("peak", "addresses, most (MiB)", ".1f"),
        Column("file", "file (MiB)", ".0f"), Column("close", "close (ms)", ".0f"),
    ]  # fmt: skip
    notes = [
        f"The clock's time, filling included, of the best of {RUNS} runs (other rows: one), the worst beside; the "
        f"least of a stretch of {power(SLICE)} once the window slides (pages may wait for the store then). CPU time of "
        "the two threads; not running: the caller waits for the writer, the interpreter's lock, the disk or the "
        "processor."
    ]
    title = f"Windows in SQLite: {power(count)} updates (sum) in 64 MiB of addresses"
    return Table("kvs-updates", title, columns, rows, notes)


def _bulk(subjects: Sequence[str], effort: Effort, found: Found) -> Table:
    size = QUICK_BULK if effort.quick else BULK
    rows = [
        _evictions(engine, count, [found[cell.name] for cell in bulk_runs(engine, effort)])
        for engine in subjects
        for count in bulk_counts(effort.quick)
    ]
    columns = [
        Column("engine", "engine"), Column("count", "leave at once"), Column("evictions", "evictions"),
        Column("over", f"over {GOAL:.0f} ms"), Column("least", "ms, least", ".3f"),
        Column("median", "ms, median", ".3f"),
        Column("undisturbed", "ms, greatest not preempted", ".3f"), Column("own", "ms of CPU, greatest", ".3f"),
        Column("preempted", "preempted"), Column("greatest", "ms, greatest of all", ".3f"),
        Column("hwm", "resident, most (MiB)", ".1f"),
    ]  # fmt: skip
    notes = [
        f"Up to {ROUNDS} evictions a process ({LARGE_ROUNDS} from {power(LARGE)} on), out of {power(size)} readings, "
        "less what has left before, under a time policy: one call of insert, from Python. The pages are deleted in the "
        "background. Preempted: so many times the scheduler gave the processor to another process meanwhile; the call "
        "itself waits for a page that has to be read and, where the insertions before it were faster than the store, "
        "up to 2 ms for that."
    ]
    return Table("kvs-bulk", "Windows in SQLite: bulk evictions in 64 MiB of addresses", columns, rows, notes)


def _evictions(engine: str, count: int, runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One row: the same evictions in some processes."""
    taken, whole, own = ([each for run in runs for each in run[str(count)][what]] for what in ("taken", "whole", "own"))
    return {
        "engine": f"{engine} in SQLite",
        "count": f"{count:,}",
        "evictions": len(taken),
        "over": sum(each > GOAL for each in taken),
        "least": min(taken),
        "median": statistics.median(taken),
        "greatest": max(taken),
        "undisturbed": max(whole, default=None),
        "preempted": len(taken) - len(whole),
        "own": max(own),
        "hwm": max(run["hwm"] for run in runs),
    }


COMMANDS: dict[str, Callable[[Sequence[str], Effort], list[Table]]] = {"kvs": kvs}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.engines.kvs", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="under half a minute")
    parser.add_argument("--engines", default=",".join(STORED), help="of amta, log_mta; with commas")
    parser.add_argument("--json", type=Path, help="write everything measured to this file")
    parser.add_argument("--kept", type=Path, help="keep what is measured in this file; measure only what it lacks")
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin nothing after so long")
    options = parser.parse_args(arguments)
    engines = [engine for engine in options.engines.split(",") if engine in sg.ENGINES]
    effort = QUICK if options.quick else FULL
    found: Found = json.loads(options.kept.read_text()) if options.kept and options.kept.exists() else {}
    missing = take(cells(engines, effort), found, options.seconds, options.kept)
    if missing:
        sys.exit(f"{missing} of {len(cells(engines, effort))} figures are still missing; run it again")
    measured_tables = tables(engines, effort, found)
    command = "python -m bench.engines.kvs" + (" --quick" if options.quick else "")
    print("\n\n".join(as_text(table) for table in measured_tables))
    if options.json:
        options.json.write_text(json.dumps([as_json(table, command) for table in measured_tables], indent=1) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]), sys.argv[6] == "True")
    else:
        main()
