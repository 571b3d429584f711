"""The AMTA paper's experiments on our engines: 1 (window size), 2 (bulk eviction), 5 (dimensions)."""

from __future__ import annotations

import gc
import tempfile
from array import array
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.engines.compiled import probe
from bench.engines.memory import resident
from bench.engines.tables import Column, Table, power, rounded
from bench.engines.timing import Effort, alternated
from bench.engines.windows import BY_NAME, FAR, Full, filled, full_windows

import sluicegate as sg
from sluicegate.errors import ConfigurationError

TOO_SLOW = 20_000  # ns a reading: larger windows of such an engine are left out, as the papers did
WARM = 1 << 10  # readings: fewer may lie elsewhere than many do (engines/few.pxd)
BULK_WINDOW = 1 << 23
BESIDE = 100  # readings more, one by one: the one after 2^23 begins a chunk on every level, and pays for new memory
MOST_BYTES = 1 << 32
SQLITE = "amta in SQLite"
#: Experiment 2's text: the worst latency of a bulk eviction, in ns (Figure 7 has no figures).
WORST_BULK = {"amta": 455e3, "log_mta": 258e3, "recalc": 2e9}
#: Experiment 5's text: a count of one dimension, what is shared, and the latency at one dimension, in ns (KVS AMTA).
PER_DIMENSION, SHARED, ONE_DIMENSION = 411, 4_158, 4_895


def sizes(engines: Sequence[str], effort: Effort) -> list[Table]:
    """Experiment 1: constant-sized windows from 2^0 to 2^25, and the bytes an element takes."""
    exponents = (*range(0, 24, 4), 23, 25) if not effort.quick else (0, 4, 10, 14)
    rows: list[dict[str, Any]] = []
    slow: set[str] = set()
    for exponent in exponents:
        rows.append(_at_size(1 << exponent, [e for e in engines if e not in slow], effort))
        slow |= {engine for engine in engines if _too_much(rows[-1], engine)}
    titles = [Column("window", "window"), *(Column(engine, engine, ",.3g") for engine in engines)]
    notes = [
        "ns a reading: evict + insert + query, by insert_many with results into a full window, sum. The paper draws "
        "this without figures (Java in Storm): a few microseconds, constant for AMTA and DABA, AMTA least from 2^9 on. "
        "Two-Stacks' flip, once in a window's length, is in it up to 2^16; of 2^23 readings it takes as long as the "
        "eviction of one in Experiment 2, about 1.3 ns for each. "
        f"Left out where a reading would take {TOO_SLOW // 1000} µs or the window {MOST_BYTES >> 30} GiB.",
    ]  # fmt: skip
    single = [Column("window", "window"), *(Column(f"{engine} each", engine, ",.3g") for engine in engines)]
    held = [Column("window", "window"), *(Column(f"{engine} bytes", engine, ".3g") for engine in engines)]
    return [
        Table("amta-sizes", "AMTA Experiment 1: ns a reading by window size", titles, rows, notes),
        Table("amta-sizes-single", "The same reading by reading from compiled code", single, rows),
        Table("bytes-held", "Bytes held for each 8-byte partial, as the window reports", held, rows),
    ]


def _too_much(row: dict[str, Any], engine: str) -> bool:
    """Whether a window twice as large would take too long or too much memory."""
    held = row.get(f"{engine} bytes") or 0
    return (row.get(engine) or 0) > TOO_SLOW / 2 or 2 * held * row["size"] > MOST_BYTES


def _at_size(size: int, engines: Sequence[str], effort: Effort) -> dict[str, Any]:
    """Small windows take turns, of large ones only one is there at a time."""
    row: dict[str, Any] = {"window": power(size), "size": size}
    together = [engines] if size <= 1 << 18 else [[engine] for engine in engines]
    for group in together:
        fulls = dict(full_windows(group, BY_NAME["sum"].aggregate(), size, {}))
        row |= alternated({engine: full.batch for engine, full in fulls.items()}, effort)
        single = alternated({engine: full.one_by_one for engine, full in fulls.items()}, effort)
        row |= {f"{engine} each": each for engine, each in single.items()}
        row |= {
            f"{engine} bytes": full.window.footprint.bytes / size for engine, full in fulls.items() if size >= 1 << 10
        }
        del fulls
        gc.collect()
    return row


def bulk(engines: Sequence[str], effort: Effort) -> list[Table]:
    """Experiment 2: one insertion under a time policy lets so many readings leave at once."""
    window = BULK_WINDOW if not effort.quick else min(1 << 16, 4 * effort.most)
    counts = [1 << k for k in range(0, window.bit_length() - 1, 4 if not effort.quick else 5)] + [
        window // 2,
        window - 1,
    ]
    rows: list[dict[str, Any]] = [{"evicted": power(count), "count": count} for count in sorted(set(counts))]
    columns = [Column("evicted", "evicted")]
    after: list[dict[str, Any]] = []
    for engine in engines:
        try:
            _bulk_of(engine, window, rows, effort)
        except ConfigurationError:
            continue
        columns.append(Column(engine, engine))
        if not effort.quick:
            after.append({"engine": engine, **resident(engine, window)})
    for row in rows:
        row |= {engine: rounded(row.get(f"{engine} ns")) for engine in engines}
    worst = ", ".join(f"{engine} {rounded(value)}" for engine, value in WORST_BULK.items())
    notes = [
        f"One insert with its evictions and the result, least of {effort.rounds} fresh windows of {power(window)} "
        f"and {BESIDE} readings, sum. The paper's text: worst of Experiment 2 {worst}; linear for DABA.",
    ]  # fmt: skip
    held = [
        Column("engine", f"half of {power(window)} evicted"), Column("full", "bytes an element, full", ".3g"),
        Column("ratio", "resident / live after 2,000 readings more", ".3g"),
    ]  # fmt: skip
    told = [
        "Resident: the process's growth since before the window. Live: the elements left × what one took when full."
    ]
    return [
        Table("amta-bulk", "AMTA Experiment 2: bulk eviction", columns, rows, notes),
        Table("bulk-resident", "Memory after a bulk eviction", held, after, told),
    ]


def _bulk_of(engine: str, window: int, rows: list[dict[str, Any]], effort: Effort) -> None:
    """Largest eviction first: an engine that takes long for it is asked for fewer of the smaller ones."""
    spent, budget = 0.0, 6e9 if not effort.quick else 1e9
    for row in reversed(rows):
        for _ in range(effort.rounds):
            if spent > budget:
                return
            fill, taken = _evict_at_once(engine, window, row["count"])
            spent += fill + taken
            row[f"{engine} ns"] = min(row.get(f"{engine} ns", taken), taken)


def _evict_at_once(engine: str, window: int, count: int) -> tuple[float, float]:
    """CPU nanoseconds of filling, nanoseconds of the reading at which `count` leave."""
    small, _ = filled(engine, WARM)  # the code is warm then; what the large window needs of the caches is not
    if not probe().compiled(small):
        raise ConfigurationError(f"engine {engine}: not in compiled code")
    full, spent = filled(engine, window)
    times = array("q", range(window, window + BESIDE))
    probe().each(full._core, array("d", [1.0]) * BESIDE, times, array("Q", bytes(8 * BESIDE)))
    taken = array("Q", [0])
    for held, most in ((small, WARM), (full, count)):
        probe().each(held._core, array("d", [1.0]), array("q", [FAR + most - 1]), taken)
    if len(full) != window + BESIDE - count + 1:
        raise AssertionError(f"{engine}: {len(full)} readings held after {count} of {window + BESIDE} left")
    return spent, taken[0] / probe().ticks_a_ns()


def dimensions(engines: Sequence[str], effort: Effort) -> list[Table]:
    """Experiment 5: one window of 2^15 over 1 to 50 dimensions."""
    window = 1 << 15 if not effort.quick else min(1 << 12, effort.most)
    steps = (1, 2, 5, 10, 20, 30, 40, 50) if effort.rounds > 1 else (1, 2)
    chosen = [*(engine for engine in engines if engine != "recalc"), SQLITE]
    rows: list[dict[str, Any]] = []
    for k in steps:
        many = {f"count{j}": sg.sum(f"dimension{j}") for j in range(k)}
        fulls = dict(full_windows(chosen[:-1], many, window, {}))
        best = alternated({engine: full.batch for engine, full in fulls.items()}, effort)
        best |= _in_sqlite(many, window, effort)
        rows.append({"dimensions": k, "paper": SHARED + PER_DIMENSION * k, **best})
    shared = {
        engine: _line([(row["dimensions"], row[engine]) for row in rows]) for engine in chosen if engine in rows[0]
    }
    rows += [
        {"dimensions": "each dimension", "paper": PER_DIMENSION, **{e: line[1] for e, line in shared.items()}},
        {"dimensions": "shared", "paper": SHARED, **{e: line[0] for e, line in shared.items()}},
    ]
    columns = [Column("dimensions", "dimensions"), *(Column(engine, engine, ",.3g") for engine in chosen)]
    notes = [
        f"ns a reading, a sum a dimension, window {power(window)}, insert_many with results. Below: the straight line "
        "through them. The paper's is its line for KVS AMTA over Couchbase (at one dimension it measured "
        f"{ONE_DIMENSION:,} ns); ours over SQLite is by the clock, its background writer included.",
    ]  # fmt: skip
    return [
        Table(
            "amta-dimensions", "AMTA Experiment 5: dimensions", [*columns, Column("paper", "paper", ",")], rows, notes
        )
    ]


def _in_sqlite(many: Mapping[str, Any], window: int, effort: Effort) -> dict[str, float]:
    """The paper's own subject, AMTA over a key-value store: nanoseconds of the clock."""
    with tempfile.TemporaryDirectory() as folder:
        full = Full("amta", many, window, store=sg.stores.SQLite(Path(folder) / "window.db"))
        best = alternated({SQLITE: full.batch_by_the_clock}, effort)
        full.window.close()
    return best


def _line(points: list[tuple[int, float]]) -> tuple[float, float]:
    """Intercept and slope of least squares."""
    n = len(points)
    x, y = sum(p[0] for p in points) / n, sum(p[1] for p in points) / n
    slope = sum((p[0] - x) * (p[1] - y) for p in points) / sum((p[0] - x) ** 2 for p in points)
    return y - slope * x, slope


COMMANDS: dict[str, Callable[[Sequence[str], Effort], list[Table]]] = {
    "sizes": sizes, "bulk": bulk, "dimensions": dimensions,
}  # fmt: skip
