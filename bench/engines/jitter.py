"""Batches by time whose readings are not a step apart, as clocks and networks have it, beside even ones and pandas."""

from __future__ import annotations

import importlib.util
from array import array
from collections.abc import Callable, Sequence
from typing import Any

from bench.engines.compiled import probe
from bench.engines.tables import Column, Table, power
from bench.engines.timing import Effort, Feed, alternated, pool, timed
from bench.engines.windows import BY_NAME, STEP, Arrivals, Full

ENGINES = ("amta", "two_stacks_lite")
EXPONENTS = (0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 17, 20, 22)
PART = 0.4  # of a step, by which a reading comes early or late at most


def even(times: array[int], start: int) -> None:
    """Each a step after the one before."""
    probe().jitter(times, start, STEP, 0)


def jittered(times: array[int], start: int) -> None:
    """Each up to 0.4 of a step early or late."""
    probe().jitter(times, start, STEP, int(PART * STEP))


class Independent:
    """Each after a gap that knows nothing of the others: Poisson arrivals."""

    def __init__(self) -> None:
        self.last = 0

    def __call__(self, times: array[int], start: int) -> None:
        """The next of them."""
        self.last = probe().arrive(times, start, self.last, STEP)


ARRIVALS: dict[str, Callable[[], Arrivals]] = {
    "even": lambda: even,
    "jittered": lambda: jittered,
    "independent": Independent,
}


def jitter(engines: Sequence[str], effort: Effort) -> list[Table]:
    """insert_many with results by time, where readings come early or late, beside the same by count."""
    some = [engine for engine in ENGINES if engine in engines]
    exponents = EXPONENTS if not effort.quick else (4, 10)
    rows = [_row(name, 1 << exponent, some, effort) for name in ("sum", "max") for exponent in exponents]
    columns = [Column("window", "window")]
    columns += [Column(f"{engine} count", f"{engine}, by count", ",.3g") for engine in some]
    columns += [Column(_key(engine, gaps), f"{engine}, {gaps}", ",.3g") for engine in some for gaps in ARRIVALS]
    if _has_pandas():
        columns.append(Column("pandas", "pandas, jittered", ",.3g"))
    notes = [
        f"CPU ns a reading, a window by time of as many steps of {STEP:,} µs, batches of {effort.most:,} with a result "
        "after each reading, taking turns, least of the rounds. By count: of as many readings. Even: a step apart. "
        "Jittered: each up to 0.4 of a step early or late, so none, one or two leave. Independent: exponential gaps, a "
        "step on average. pandas: `rolling` over as long, to 2^17."
    ]
    return [Table("jitter", "Times that are not a step apart", columns, rows, notes)]


def _row(name: str, size: int, engines: Sequence[str], effort: Effort) -> dict[str, Any]:
    subjects: dict[str, Feed] = {}
    for engine in engines:
        subjects[f"{engine} count"] = Full(engine, BY_NAME[name].aggregate(), size).batch
        for gaps, arrive in ARRIVALS.items():
            full = Full(engine, BY_NAME[name].aggregate(), size, by_time=True, arrive=arrive())
            subjects[_key(engine, gaps)] = full.batch
    counts = dict.fromkeys(subjects, effort.most)
    if _has_pandas() and size <= 1 << 17:
        subjects["pandas"], counts["pandas"] = _pandas(name, size), max(2 * size, effort.most)
    measured = alternated(subjects, effort._replace(rounds=4 * effort.rounds), counts)
    return {"window": f"{name}, {power(size)}", "aggregate": name, "size": size} | measured


def _key(engine: str, gaps: str) -> str:
    return engine if gaps == "even" else f"{engine} {gaps}"


def _pandas(name: str, size: int) -> Feed:
    import pandas as pd

    def feed(count: int) -> float:
        times = array("q", bytes(8 * count))
        jittered(times, 0)
        rolling = pd.Series(pool()[:count], index=pd.to_datetime(times, unit="us")).rolling(f"{size * STEP}us")
        return timed(lambda: getattr(rolling, name)())

    return feed


def _has_pandas() -> bool:
    return importlib.util.find_spec("pandas") is not None


COMMANDS: dict[str, Callable[[Sequence[str], Effort], list[Table]]] = {"jitter": jitter}
