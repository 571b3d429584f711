"""The DABA paper's evaluation on our engines: Tables 2 and 3 and both halves of Figure 13."""

from __future__ import annotations

import math
import statistics
from array import array
from collections.abc import Callable, Sequence
from operator import mul
from typing import Any

from bench.engines.compiled import probe
from bench.engines.tables import Column, Table, power, rounded
from bench.engines.timing import Effort, alternated, quantiles
from bench.engines.windows import BY_NAME, OPERATORS, Full, Operator, full_windows

#: Table 2: mean ± standard deviation of latency in cycles of a 2.7 GHz Xeon, window 2^14.
TABLE_2 = {
    "Sum": {"two_stacks": (127, 2_980), "foa": (250, 15_559), "ioa": (1_824, 1_919), "daba": (193, 113)},
    "Max": {"two_stacks": (125, 2_991), "foa": (332, 15_356), "ioa": (1_831, 2_083), "daba": (200, 122)},
    "ArgMax": {"two_stacks": (136, 3_214), "foa": (378, 18_693), "ioa": (1_846, 1_925), "daba": (207, 137)},
    "MinCount": {"two_stacks": (154, 4_463), "foa": (395, 20_150), "ioa": (1_937, 2_103), "daba": (222, 157)},
    "ArithMean": {"two_stacks": (165, 3_740), "foa": (397, 18_528), "ioa": (1_898, 2_084), "daba": (237, 149)},
    "StdDev": {"two_stacks": (200, 4_099), "foa": (469, 20_373), "ioa": (1_943, 2_081), "daba": (274, 160)},
    "GeoMean": {"two_stacks": (299, 3_777), "foa": (484, 18_171), "ioa": (2_055, 2_100), "daba": (366, 168)},
    "Bloom": {
        "two_stacks": (5_532, 298_982),
        "foa": (12_394, 310_698),
        "ioa": (21_595, 14_691),
        "daba": (9_021, 4_249),
    },
}
#: Table 3: the window from which an engine beats recalculating.
TABLE_3 = {
    "Sum": {"reactive": 1_024, "two_stacks": 32, "foa": 128, "ioa": 1_024, "daba": 112},
    "Max": {"reactive": 1_024, "two_stacks": 28, "foa": 112, "ioa": 1_024, "daba": 64},
    "ArgMax": {"reactive": 512, "two_stacks": 28, "foa": 112, "ioa": 512, "daba": 64},
    "MinCount": {"reactive": 512, "two_stacks": 28, "foa": 64, "ioa": 1_024, "daba": 48},
    "ArithMean": {"reactive": 1_024, "two_stacks": 32, "foa": 128, "ioa": 1_024, "daba": 112},
    "StdDev": {"reactive": 1_024, "two_stacks": 32, "foa": 112, "ioa": 1_024, "daba": 64},
    "GeoMean": {"reactive": 16, "two_stacks": 2, "foa": 4, "ioa": 16, "daba": 4},
    "Bloom": {"reactive": 16, "two_stacks": 12, "foa": 28, "ioa": 48, "daba": 28},
}
PAPER_GHZ = 2.7
WINDOW = 1 << 14
LARGE = 1 << 20
SHARES = (0.5, 0.99, 0.999, 0.9999)
TAIL_RUNS = 9  # with three, what one in 10,000 readings takes is the machine's: engines that only add then show it, too
STEPS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096)
DOTS = 55  # of a run in the picture
PICTURED = ("two_stacks", "daba", "daba_lite", "amta")  # the paper's, and what came after
OF_PICTURE = ("Sum", "GeoMean", "Bloom")
LARGEST_OF = {"Bloom": 1 << 14}  # a partial is 2 KiB


def latency(engines: Sequence[str], effort: Effort) -> list[Table]:
    """Table 2 and the top of Figure 13."""
    rounds = 1 << 18 if not effort.quick else effort.most
    rows: list[dict[str, Any]] = []
    series: dict[str, Any] = {}
    for operator in OPERATORS:
        ours: dict[str, Any] = {"operator": operator.paper}
        for engine, full in full_windows(_without_recalc(engines), operator.aggregate(), WINDOW, {}):
            if not probe().compiled(full.window):
                continue
            few = rounds // 10 if operator.paper in LARGEST_OF else rounds
            taken = own_times(engine, operator.aggregate(), WINDOW, few, min(effort.rounds, 3), full)
            ours[engine] = _spread(taken)
            if operator.paper in OF_PICTURE and engine in PICTURED:
                series[f"{operator.paper} {engine}"] = _thinned(taken)
        rows += [ours, {"operator": "  paper", **_as_printed(TABLE_2.get(operator.paper, {}))}]
    unit = "cycles of the time stamp counter" if probe().CYCLES else "nanoseconds"
    notes = [
        f"{unit}, {probe().ticks_a_ns():.2f} to a nanosecond (the paper's Xeon: {PAPER_GHZ}), in which the two "
        f"readings of the clock, {probe().least_ticks()} by themselves, are included. {rounds:,} rounds of evict + "
        f"insert + query (Bloom: a tenth); of each the least of {min(effort.rounds, 3)} runs, so that what the "
        "scheduler does to one of them does not count (the paper: one run).",
    ]  # fmt: skip
    columns = [Column("operator", "mean ± sd"), *(Column(engine, engine) for engine in _without_recalc(engines))]
    title = f"DABA Table 2: latency in {unit}, window 2^14"
    return [Table("daba-latency", title, columns, rows, notes, series), tail(engines, effort)]


def tail(engines: Sequence[str], effort: Effort) -> Table:
    """How long the slowest operations take in a large window, and whether the algorithm or the scheduler made them."""
    size, rounds = (LARGE, 2 * LARGE) if not effort.quick else (1 << 12, min(effort.most, 1 << 14))
    aggregate, rows, through = BY_NAME["sum"].aggregate(), [], effort.rounds if effort.quick else TAIL_RUNS
    for engine, _ in full_windows(_without_recalc(engines), aggregate, 1, {}):
        runs = [Full(engine, aggregate, size).ticks(rounds) for _ in range(through)]
        rows.append({"engine": engine, **_tail_of(runs, probe().ticks_a_ns())})
    columns = [Column("engine", "sum"), *(Column(f"p{share * 100:g}", f"p{share * 100:g}") for share in SHARES)]
    columns += [Column("own", "greatest"), Column("greatest", "greatest in any run")]
    notes = [
        f"The same {rounds:,} readings through {through} windows, an engine after the other. All but the last column: "
        "the least of the runs for each reading, since what the scheduler or an interrupt does to one run does not "
        "come back at the same reading. The last: the slowest operation of any run.",
    ]  # fmt: skip
    return Table("latency-tail", f"Latency of one operation, sum, window {power(size)}", columns, rows, notes)


def own_times(engine: str, aggregate: Any, size: int, rounds: int, runs: int, first: Full) -> array[int]:
    """What each of the same rounds takes in the fastest of some runs, the first of them in a window that is there."""
    least = first.ticks(rounds)
    for _ in range(1, runs):
        least = array("Q", map(min, least, Full(engine, aggregate, size).ticks(rounds)))
    return least


def _tail_of(runs: list[array[int]], ticks_a_ns: float) -> dict[str, Any]:
    own = array("Q", map(min, *runs)) if len(runs) > 1 else runs[0]
    row: dict[str, Any] = {"greatest": rounded(max(map(max, runs)) / ticks_a_ns), "own": rounded(max(own) / ticks_a_ns)}
    for share, value in zip(SHARES, quantiles(own, SHARES), strict=True):
        row[f"p{share * 100:g}"] = rounded(value / ticks_a_ns)
    row["own_ns"], row["greatest_ns"] = max(own) / ticks_a_ns, max(map(max, runs)) / ticks_a_ns
    return row


def _spread(taken: array[int]) -> str:
    """Mean ± standard deviation; the statistics module's exact fractions would take longer than what was measured."""
    mean = sum(taken) / len(taken)
    return f"{mean:,.0f} ± {math.sqrt(max(0.0, sum(map(mul, taken, taken)) / len(taken) - mean * mean)):,.0f}"


def _as_printed(cells: dict[str, tuple[int, int]]) -> dict[str, str]:
    return {engine: f"{mean:,} ± {deviation:,}" for engine, (mean, deviation) in cells.items()}


def _thinned(taken: array[int]) -> dict[str, list[int]]:
    """The median and the greatest of each of so many parts of a run."""
    part = max(1, len(taken) // DOTS)
    parts = [taken[i : i + part] for i in range(0, len(taken), part)]
    return {"median": [int(statistics.median(p)) for p in parts], "greatest": [max(p) for p in parts]}


def _without_recalc(engines: Sequence[str]) -> list[str]:
    return [engine for engine in engines if engine != "recalc"]


def throughput(engines: Sequence[str], effort: Effort) -> list[Table]:
    """The bottom of Figure 13: million readings a second by window size."""
    sizes = [1 << k for k in range(0, 11 if effort.quick else 21, 5 if effort.quick else 4)]
    tables = []
    for operator in OPERATORS:
        if operator.paper in OF_PICTURE:
            most = LARGEST_OF.get(operator.paper, LARGE)
            tables.append(_throughput(operator, engines, [size for size in sizes if size <= most], effort))
    return tables


def _throughput(operator: Operator, engines: Sequence[str], sizes: Sequence[int], effort: Effort) -> Table:
    rows = []
    slow: set[str] = set()
    for size in sizes:
        row: dict[str, Any] = {"window": power(size), "size": size}
        fulls = dict(full_windows([e for e in engines if e not in slow], operator.aggregate(), size, {}))
        best = alternated({engine: full.batch for engine, full in fulls.items()}, effort)
        row |= {engine: 1e3 / each for engine, each in best.items()}
        slow |= {engine for engine, each in best.items() if each > 20_000}
        rows.append(row)
    paper = TABLE_2[operator.paper]
    said = ", ".join(f"{engine} {PAPER_GHZ * 1e3 / mean:.1f}" for engine, (mean, _) in paper.items())
    notes = [
        "insert_many with results. The paper draws this without figures; its Table 2 means, at 2^14, in million a "
        f"second: {said}.",
    ]
    columns = [Column("window", "window"), *(Column(engine, engine, ",.3g") for engine in engines)]
    name = f"daba-throughput-{operator.name.replace('_', '-')}"
    return Table(name, f"DABA Figure 13: million readings a second, {operator.paper}", columns, rows, notes)


def break_even(engines: Sequence[str], effort: Effort) -> list[Table]:
    """Table 3: from which window on an engine beats recalculating."""
    steps = STEPS if not effort.quick else STEPS[: 16 if effort.rounds > 1 else 4]
    effort = effort._replace(seconds=effort.seconds / 20)
    rows = []
    for operator in OPERATORS:
        ours: dict[str, Any] = {
            "operator": operator.paper,
            **_break_evens(operator, _without_recalc(engines), steps, effort),
        }
        rows += [ours, {"operator": "  paper", **TABLE_3.get(operator.paper, {})}]
    notes = [
        "The least window of ours at which, and at the next one tried, insert_many with results takes less than "
        f"`recalc`'s. Tried: {', '.join(map(str, steps))}.",
    ]  # fmt: skip
    columns = [Column("operator", "window"), *(Column(engine, engine, ",") for engine in _without_recalc(engines))]
    return [Table("daba-break-even", "DABA Table 3: break-even with recalculating", columns, rows, notes)]


def _break_evens(operator: Operator, engines: list[str], steps: Sequence[int], effort: Effort) -> dict[str, Any]:
    found: dict[str, int] = {}
    since: dict[str, int] = {}
    refused: dict[str, str] = {}
    for size in steps:
        open_engines = [engine for engine in engines if engine not in found and engine not in refused]
        if not open_engines:
            break
        fulls = dict(full_windows(["recalc", *open_engines], operator.aggregate(), size, refused))
        best = alternated({engine: full.batch for engine, full in fulls.items()}, effort)
        for engine in open_engines:
            if best.get(engine, math.inf) >= best["recalc"]:
                since.pop(engine, None)
            elif engine in since:
                found[engine] = since[engine]
            else:
                since[engine] = size
    above = f"> {steps[-1]}"
    return {engine: found.get(engine, above) for engine in engines if engine not in refused}


COMMANDS: dict[str, Callable[[Sequence[str], Effort], list[Table]]] = {
    "latency": latency, "throughput": throughput, "break-even": break_even,
}  # fmt: skip
