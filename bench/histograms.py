"""A2MTA's histograms at a tenth of the paper's scale: limits kept, exact shares, footprints, nanoseconds a reading.

    python bench/histograms.py [--readings 6220800] [--out bench/results/histograms.json]

The paper (section III) reads 62,208,000 values of a server's memory into a window of 2,592,000; that trace is not
public. Here a window of 259,200 over seeded traces: calm (a daily wave), regimes (a level that jumps) and signs (a mean
about zero). Footprint: leaves created a reading, after two windows' warm-up. Times are CPU time of a batch without
results, the best of five.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from array import array
from collections.abc import Callable, Iterator
from itertools import accumulate
from math import pi, sin
from pathlib import Path
from typing import Any

import sluicegate as sg

WINDOW = 259_200
TABLE_1 = {
    1e-6: 44.02,
    1e-5: 6.591,
    1e-4: 0.8335,
    1e-3: 0.099,
    1e-2: 0.01022,
    1e-1: 0.0009854,
}  # % at ten times this window
BLOCKS = (10**2, 10**3, 10**4, 10**5)


def calm(n: int) -> array[float]:
    """About 32 GB in KB, a daily wave of a tenth, slow noise."""
    rng = random.Random(1)
    noise = accumulate((rng.gauss(0, 2e5) for _ in range(n)), lambda a, b: 0.999 * a + b)
    return array("d", (32e6 + 3e6 * sin(2 * pi * i / 86_400) + x for i, x in enumerate(noise)))


def regimes(n: int) -> array[float]:
    """A level that jumps every 20,000 readings."""
    rng, level = random.Random(2), 0.0
    out = array("d")
    for i in range(n):
        if i % 20_000 == 0:
            level = rng.uniform(5e6, 60e6)
        out.append(level + rng.gauss(0, 3e5))
    return out


def signs(n: int) -> array[float]:
    """Slow noise about zero: a window's mean changes sign."""
    rng = random.Random(3)
    return array("d", accumulate((rng.gauss(0, 1) for _ in range(n)), lambda a, b: 0.9999 * a + b))


TRACES: dict[str, Callable[[int], array[float]]] = {"calm": calm, "regimes": regimes, "signs": signs}


def exact_means(values: array[float], window: int) -> Iterator[float]:
    """The mean of the newest `window` readings after each, around the first value so that sums stay small."""
    total, first = 0.0, values[0]
    for i, x in enumerate(values):
        total += x - first
        if i >= window:
            total -= values[i - window] - first
        yield first + total / min(i + 1, window)


def sum_like(values: array[float], error: float, atol: float) -> dict[str, Any]:
    """How a mean under control keeps its limit, and with how many leaves."""
    window = sg.Window(sg.mean(), policy=sg.policies.count(WINDOW), histograms=[sg.SumLike(error, atol)])
    warm = 2 * WINDOW
    means = window.insert_many(values[:warm])["mean"]
    before = window.footprint.created
    means += window.insert_many(values[warm:])["mean"]
    worst = over = same = 0.0
    for mean, true in zip(means, exact_means(values, WINDOW), strict=True):
        limit, off = error * abs(true) + atol, abs(mean - true)
        worst = max(worst, off / limit if limit else 0.0)
        over += off > limit * (1 + 1e-9)
        same += off <= 1e-12 * abs(true)
    after = window.footprint.created - before
    return {
        "footprint": after / (len(values) - warm), "whole": window.footprint.created / len(values),
        "worst share of the limit": worst, "over the limit": over / len(values), "exact": same / len(values),
    }  # fmt: skip


def max_like(values: array[float], block: int | None) -> dict[str, Any]:
    """How often a maximum that evicts up to the current one is exact, and with how many leaves."""
    policy = sg.policies.count(WINDOW, up_to="max")
    window = sg.Window(sg.max(), policy=policy, histograms=[sg.MaxLike(block=block)])
    exact = sg.Window(sg.max(), policy=policy)
    warm = 2 * WINDOW
    answers = window.insert_many(values[:warm])["max"]
    before = window.footprint.created
    answers += window.insert_many(values[warm:])["max"]
    true = exact.insert_many(values)["max"]
    same = sum(a == b for a, b in zip(answers, true, strict=True))
    changes = [i for i in range(1, len(true)) if true[i] != true[i - 1]]
    return {
        "footprint": (window.footprint.created - before) / (len(values) - warm), "exact": same / len(values),
        "exact per change": sum(answers[i] == true[i] for i in changes) / max(len(changes), 1),
    }  # fmt: skip


class Hops:
    """Reaches the window, then evicts about a third of it: N(86,400, 10) readings."""

    monotone = remaining = True

    def __init__(self) -> None:
        """Nothing evicted yet."""
        self.rng, self.first, self.hops = random.Random(4), 0, 0

    def __call__(self, total: Any, old: Any) -> bool:
        """Whether all of `old` lies before the first reading that stays."""
        if total.ordinal + total.count - self.first >= WINDOW:
            self.first += round(self.rng.gauss(86_400, 10))
            self.hops += 1
        return bool(old.ordinal + old.count <= self.first)


def hop(values: array[float], hint: tuple[int, float] | None, hops: int) -> dict[str, Any]:
    """Each tenth answer of a window under random hops, and that after each hop, against the plain readings."""
    policy = Hops()
    histograms: list[Any] = [sg.Hop(hint=hint)]
    window = sg.Window({"mean": sg.mean(), "n": sg.count()}, policy=policy, histograms=histograms)
    total, begin, same, asked, i, warm, before = 0.0, 0, 0, 0, 0, 0, 0
    while policy.hops < hops:
        total += values[i % len(values)]
        window.insert(values[i % len(values)])
        hopped = begin < policy.first
        while begin < policy.first:
            total -= values[begin % len(values)]
            begin += 1
        i += 1
        if hopped and policy.hops < 6:  # warm: a fitted sample
            warm, before = i, window.footprint.created
        if hopped or i % 10 == 0:
            answers, asked = window.query(), asked + 1
            near = abs(answers["mean"] - total / (i - begin)) <= 1e-9 * abs(answers["mean"])
            same += near and answers["n"] == i - begin
    return {
        "hops": policy.hops, "exact": same / asked, "whole": window.footprint.created / i,
        "footprint": (window.footprint.created - before) / (i - warm),
    }  # fmt: skip


def nanoseconds(values: array[float], aggregates: Any, policy: Any, histograms: list[Any]) -> dict[str, float]:
    """CPU time a reading of a batch in the steady state, and the share of readings that open a bucket."""
    window = sg.Window(aggregates, policy=policy, histograms=histograms)
    window.insert_many(values, results=False)
    before, best = window.footprint.created, float("inf")
    for _ in range(5):
        start = time.process_time()
        window.insert_many(values, results=False)
        best = min(best, time.process_time() - start)
    return {"ns": best / len(values) * 1e9, "opened": (window.footprint.created - before) / 5 / len(values)}


def speeds(values: array[float]) -> dict[str, Any]:
    """Joining and opening, by kind."""
    count, mean, peak = sg.policies.count, {"mean": sg.mean()}, {"max": sg.max()}
    n = 100_000
    rows: dict[str, tuple[Any, Any, list[Any]]] = {
        "exact mean: insert and evict": (mean, count(n), []),
        "constrained mean: join": (mean, count(n), [sg.Constrained(100)]),
        "sum-like mean: join": (mean, count(n), [sg.SumLike(0.05)]),
        "sum-like count: join": ({"last": sg.last()}, count(n), [sg.SumLike(0.05, of="count")]),
        "hop mean: join": (mean, count(66_000, hop=33_000), [sg.Hop(hint=33_000)]),
        "max-like max: join or open": (peak, count(n), [sg.MaxLike(block=3000)]),
        "sum-like mean: open": (mean, count(n), [sg.SumLike(1e-12)]),
        "constrained mean, limit never reached: open": (mean, count(n), [sg.Constrained(2 * n)]),
    }
    return {name: nanoseconds(values, *row) for name, row in rows.items()}


def main() -> None:
    """Run all and print a table and JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--readings", type=int, default=24 * WINDOW)
    parser.add_argument("--hops", type=int, default=70)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    report: dict[str, Any] = {"window": WINDOW, "readings": given.readings}
    for name, trace in TRACES.items():
        values = trace(given.readings)
        atol = 0.2 if name == "signs" else 0.0
        for error, paper in TABLE_1.items():
            row = report[f"sum-like {name} {error:g}"] = {
                **sum_like(values, error, atol),
                "ten times Table I": paper / 10,
            }
            print(f"sum-like {name:8} {error:7.0e}  " + "  ".join(f"{k} {v:.5%}" for k, v in row.items()), flush=True)
        for block in (None, *BLOCKS) if name != "signs" else ():
            row = report[f"max-like {name} {block}"] = max_like(values, block)
            print(
                f"max-like {name:8} {block or 'auto':>7}  " + "  ".join(f"{k} {v:.4%}" for k, v in row.items()),
                flush=True,
            )
    values = calm(WINDOW)
    row = report["hop"] = hop(values, None, given.hops)
    print(f"hop  {row['hops']} hops  exact {row['exact']:.4%}  whole {row['whole']:.4%}  after {row['footprint']:.4%}")
    report["speed"] = speeds(regimes(300_000))
    for name, speed in report["speed"].items():
        print(f"{name:45} {speed['ns']:7.1f} ns a reading, {speed['opened']:.3%} opened")
    if given.out:
        given.out.parent.mkdir(parents=True, exist_ok=True)
        given.out.write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
