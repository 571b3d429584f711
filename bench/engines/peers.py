"""Beside others: pandas rolling, river, a loop written by hand in C, and what one Python call costs."""

from __future__ import annotations

import importlib.util
import math
from array import array
from collections.abc import Callable, Sequence
from typing import Any

from bench.engines.compiled import probe
from bench.engines.tables import Column, Table, power
from bench.engines.timing import Effort, Feed, alternated, pool, timed
from bench.engines.windows import BY_NAME, Full, full_windows

import sluicegate as sg

OF_LOOPS = ("sum", "max", "geometric_mean", "std")
PANDAS = {"sum": "sum", "max": "max", "std": "std"}
FASTEST = "amta"
TWO = "mean and max"
SMALL = {"recalc": 64, "log_mta": 1 << 14}  # up to here they take part


def peers(engines: Sequence[str], effort: Effort) -> list[Table]:
    """insert_many with results against pandas rolling, river and C."""
    exponents = (4, 10, 14, 17, 20, 22) if not effort.quick else (4, 10)
    others = [name for name in ("C loop", "pandas", "pandas by time", "river") if name != "river" or _has("river")]
    ours = [f"{engine}{kind}" for engine in (FASTEST,) if engine in engines for kind in ("", " by time")]
    rows = [
        _peer_row(name, 1 << exponent, engines, effort)
        for name in OF_LOOPS for exponent in exponents
    ]  # fmt: skip
    columns = [Column("window", "window"), *(Column(name, name, ",.3g") for name in [*ours, "best engine"])]
    columns += [Column("which", "which"), *(Column(name, name, ",.3g") for name in others)]
    columns += [Column(f"{name} ratio", f"{FASTEST} / {name}", ".2f") for name in others]
    notes = [
        "CPU ns a reading, full window, a result after each reading, taking turns, least of the rounds, each after a "
        "batch not timed. C loop: bench/engines/loops.h, one hard-wired aggregate over a ring, sums by adding and "
        "subtracting without a care for drift. pandas: `rolling`, a Series of float64 of at least two windows, so that "
        "the window is full for half of it at least."
        + ("" if _has("river") else " river is not installed here: no column for it."),
    ]  # fmt: skip
    return [Table("peers", "Beside pandas, river and C", columns, rows, notes)]


def _peer_row(name: str, size: int, engines: Sequence[str], effort: Effort) -> dict[str, Any]:
    row: dict[str, Any] = {"window": f"{name}, {power(size)}", "aggregate": name, "size": size}
    aggregate = BY_NAME[name].aggregate()
    subjects: dict[str, Feed] = {"C loop": c_loop(name, size), **_pandas(name, size, effort), **_river(name, size)}
    few = [engine for engine in engines if size <= SMALL.get(engine, size)]
    fulls = dict(full_windows(few, aggregate, size, {}))
    subjects |= {engine: full.batch for engine, full in fulls.items()}
    if FASTEST in fulls:
        subjects[f"{FASTEST} by time"] = Full(FASTEST, aggregate, size, by_time=True).batch
    whole = dict.fromkeys((name for name in subjects if name.startswith("pandas")), max(2 * size, effort.most))
    row |= alternated(subjects, effort._replace(seconds=effort.seconds / 2), whole)
    best = min(fulls, key=lambda engine: row[engine], default=None)
    row |= {"which": best, "best engine": row[best] if best else None}
    for other in ("C loop", "pandas", "river"):
        if other in row and FASTEST in row:
            row[f"{other} ratio"] = row[FASTEST] / row[other]
    if "pandas by time" in row and FASTEST in row:
        row["pandas by time ratio"] = row[f"{FASTEST} by time"] / row["pandas by time"]
    return row


def c_loop(name: str, size: int) -> Feed:
    """A full window of the C loop."""
    loop, out = probe().CLoop(name, size), array("d", bytes(8 * len(pool())))
    for start in range(0, size, len(pool())):
        loop.feed(pool()[: min(len(pool()), size - start)], out)
    return lambda count: float(loop.feed(pool()[:count], out))


def _pandas(name: str, size: int, effort: Effort) -> dict[str, Feed]:
    if name not in PANDAS or not _has("pandas"):
        return {}
    import pandas as pd

    def by(window: Any, by_time: bool) -> Feed:
        def feed(count: int) -> float:
            values = _long_enough(count)
            index = pd.to_datetime(range(len(values)), unit="us") if by_time else None
            rolling = pd.Series(values, index=index).rolling(window)
            return timed(lambda: getattr(rolling, PANDAS[name])())

        return feed

    if size > 1 << 20:
        return {"pandas": by(size, False)}
    return {"pandas": by(size, False), "pandas by time": by(f"{size}us", True)}


def _long_enough(count: int) -> array[float]:
    values = pool()
    return (values * math.ceil(count / len(values)))[:count]


def _river(name: str, size: int) -> dict[str, Feed]:
    """river's rolling statistics, where installed: update and get a reading."""
    if not _has("river") or size > 1 << 14:
        return {}
    from river import stats, utils  # type: ignore[import-not-found]

    made: dict[str, Callable[[], Any]] = {
        "sum": lambda: utils.Rolling(stats.Sum(), window_size=size),
        "max": lambda: stats.RollingMax(window_size=size),
        "std": lambda: utils.Rolling(stats.Var(), window_size=size),
    }
    if name not in made:
        return {}
    window = made[name]()
    for value in pool()[:size]:
        window.update(value)

    def feed(count: int) -> float:
        values = pool()[:count].tolist()
        return timed(lambda: [(window.update(value), window.get()) for value in values])

    return {"river": feed}


def _has(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def calls(engines: Sequence[str], effort: Effort) -> list[Table]:
    """One Python call a reading with its result."""
    size = 1 << 10
    small = effort._replace(most=min(effort.most, 1 << 16))
    rows: dict[str, dict[str, Any]] = {engine: {"engine": engine} for engine in engines if engine != "recalc"}
    for name in (*OF_LOOPS, TWO):
        asked = {"mean": sg.mean(), "max": sg.max()} if name == TWO else BY_NAME[name].aggregate()
        fulls = dict(full_windows(rows, asked, size, {}))
        for engine, each in alternated({engine: full.call for engine, full in fulls.items()}, small).items():
            rows[engine][name] = each
        for engine, each in alternated({engine: full.two_calls for engine, full in fulls.items()}, small).items():
            rows[engine][f"{name} twice"] = each
    columns = [Column("engine", "ns a reading"), *(Column(name, name, ",.0f") for name in (*OF_LOOPS, TWO))]
    columns += [Column(f"{name} twice", f"{name}, two calls", ",.0f") for name in (*OF_LOOPS, TWO)]
    notes = [f"`window.slide(x)`, or `window.insert(x)` and `window.query()`, in a loop; window {power(size)}."]
    return [Table("calls", "One Python call a reading with its result", columns, list(rows.values()), notes)]


COMMANDS: dict[str, Callable[[Sequence[str], Effort], list[Table]]] = {"peers": peers, "calls": calls}
