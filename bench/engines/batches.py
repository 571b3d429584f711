"""A batch into a window made anew: by count, and by time whose readings come evenly or not, beside pandas."""

from __future__ import annotations

import importlib.util
from array import array
from collections.abc import Callable, Sequence
from typing import Any

from bench.engines.compiled import probe
from bench.engines.tables import Column, Table, power
from bench.engines.timing import Effort, Feed, alternated, pool, timed
from bench.engines.windows import STEP, Arrivals

import sluicegate as sg

EXPONENTS = (4, 6, 8, 10, 12, 14, 17, 20)
PART = 0.4  # of a step, by which a reading comes early or late at most
ROUNDS = 8  # times as many: each round is short


def even(times: array[int], start: int) -> None:
    """Each a step after the one before."""
    probe().jitter(times, start, STEP, 0)


def jittered(times: array[int], start: int) -> None:
    """Each up to 0.4 of a step early or late."""
    probe().jitter(times, start, STEP, int(PART * STEP))


def independent(times: array[int], start: int) -> None:
    """Each after a gap that knows nothing of the others: Poisson arrivals."""
    probe().arrive(times, start, 0, STEP)


ARRIVALS: dict[str, Arrivals] = {"even": even, "jittered": jittered, "independent": independent}


def batches(engines: Sequence[str], effort: Effort) -> list[Table]:
    """insert_many with results into a window made anew."""
    if "amta" not in engines:
        return []
    exponents = EXPONENTS if effort.most >= 1 << 17 else (4, 10)
    rows = [_row(name, 1 << exponent, effort) for name in ("sum", "max") for exponent in exponents]
    columns = [Column("window", "window"), Column("amta", "by count", ",.3g")]
    columns += [Column(gaps, gaps, ",.3g") for gaps in ARRIVALS]
    columns += [Column("pandas", "pandas, by count", ",.3g"), Column("pandas jittered", "pandas, jittered", ",.3g")]
    columns += [Column("ratio", "by count / pandas", ".2f"), Column("jittered ratio", "jittered / pandas", ".2f")]
    notes = [
        f"CPU ns a reading of one `insert_many` of {effort.most:,} readings with a result after each, into a window "
        f"made anew, taking turns, least of the rounds. By time, windows are as many steps of {STEP:,} µs long. Even: "
        "a step apart. Jittered: each up to 0.4 of a step early or late. Independent: exponential gaps, a step on "
        "average. pandas: `rolling` over as long."
    ]
    return [Table("batches", "A batch with results into a window made anew", columns, rows, notes)]


def _row(name: str, size: int, effort: Effort) -> dict[str, Any]:
    subjects: dict[str, Feed] = {"amta": _ours(name, sg.policies.count(size), None)}
    for gaps, arrive in ARRIVALS.items():
        subjects[gaps] = _ours(name, sg.policies.time(size * STEP), arrive)
    if importlib.util.find_spec("pandas") is not None:
        subjects["pandas"], subjects["pandas jittered"] = _pandas(name, size), _pandas(name, size, f"{size * STEP}us")
    effort = effort._replace(rounds=ROUNDS * effort.rounds)
    row = {"window": f"{name}, {power(size)}", "aggregate": name, "size": size}
    row |= alternated(subjects, effort, dict.fromkeys(subjects, effort.most))
    for ours, theirs, ratio in (("amta", "pandas", "ratio"), ("jittered", "pandas jittered", "jittered ratio")):
        if theirs in row:
            row[ratio] = row[ours] / row[theirs]
    return row


def _ours(name: str, policy: Any, arrive: Arrivals | None) -> Feed:
    """One call, whose times are written and whose window is made before it is timed."""
    times = array("q")

    def feed(count: int) -> float:
        if arrive is not None and len(times) != count:
            times[:] = array("q", bytes(8 * count))
            arrive(times, 0)
        values, window = memoryview(pool())[:count], sg.Window(getattr(sg, name)(), policy=policy)
        return timed(lambda: window.insert_many(values, None if arrive is None else times))

    return feed


def _pandas(name: str, size: int, span: str | None = None) -> Feed:
    import pandas as pd

    def feed(count: int) -> float:
        index = None
        if span is not None:
            times = array("q", bytes(8 * count))
            jittered(times, 0)
            index = pd.to_datetime(times, unit="us")
        rolling = pd.Series(pool()[:count], index=index).rolling(span or size, min_periods=1)
        return timed(lambda: getattr(rolling, name)())

    return feed


COMMANDS: dict[str, Callable[[Sequence[str], Effort], list[Table]]] = {"batches": batches}
