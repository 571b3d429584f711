"""The generic way, one reading at a time in compiled code, whatever the aggregate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bench.engines.peers import c_loop
from bench.engines.tables import Column, Table, power
from bench.engines.timing import Effort, Feed, alternated
from bench.engines.windows import Full, full_windows

import sluicegate as sg

#: One slot with an operator of its own; several slots; components side by side; any program of components.
QUESTIONS: dict[str, Callable[[], Any]] = {
    "sum": sg.sum,
    "max": sg.max,
    "std": sg.std,
    "geometric mean": sg.geometric_mean,
    "mean and max": lambda: {"mean": sg.mean(), "max": sg.max()},
    "argmax": sg.argmax,
}
HARD_WIRED = {"sum": "sum", "max": "max", "std": "std", "geometric mean": "geometric_mean"}


def generic(engines: Sequence[str], effort: Effort) -> list[Table]:
    """Evict, insert and query of one reading after the other, through the calls that any engine and aggregate take."""
    exponents = (4, 10, 14, 20, 22) if not effort.quick else (4, 10)
    taking = [engine for engine in engines if engine in ("soe", "two_stacks_lite", "daba_lite", "amta")]
    rows = [_row(name, 1 << exponent, taking, effort) for name in QUESTIONS for exponent in exponents]
    columns = [Column("window", "window"), *(Column(engine, engine, ",.3g") for engine in taking)]
    if "amta" in taking:
        columns.append(Column("amta by time", "amta by time", ",.3g"))
    columns += [Column(f"{engine} alone", f"{engine} alone", ",.3g") for engine in taking]
    columns.append(Column("C loop", "C loop", ",.3g"))
    notes = [
        "CPU ns a reading, full window, least of the rounds. `Core.slide_one` from compiled code, once a reading: "
        "lift, the policy, `Engine.slide_by` and the answers. Alone: `Engine.slide_by` of leaves lifted before "
        "(logarithms taken, centers subtracted), with a total after each that is not lowered (neither power of e nor "
        "root). "
        "C loop: bench/engines/loops.h, a whole batch in one call."
    ]
    return [Table("generic", "One reading at a time from compiled code", columns, rows, notes)]


def _row(name: str, size: int, engines: Sequence[str], effort: Effort) -> dict[str, Any]:
    fulls = dict(full_windows(engines, QUESTIONS[name](), size, {}))
    subjects: dict[str, Feed] = {engine: full.one_by_one for engine, full in fulls.items()}
    alone = full_windows(engines, QUESTIONS[name](), size, {})
    subjects |= {f"{engine} alone": full.by_engine_alone for engine, full in alone}
    if "amta" in fulls:
        subjects["amta by time"] = Full("amta", QUESTIONS[name](), size, by_time=True).one_by_one
    if name in HARD_WIRED:
        subjects["C loop"] = c_loop(HARD_WIRED[name], size)
    return {"window": f"{name}, {power(size)}", "aggregate": name, "size": size, **alternated(subjects, effort)}


COMMANDS: dict[str, Callable[[Sequence[str], Effort], list[Table]]] = {"generic": generic}
