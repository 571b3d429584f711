"""Runs of readings that join are folded at once: the same bytes as reading by reading, whatever the batches."""

from __future__ import annotations

import random
from array import array
from itertools import chain
from typing import Any

import pytest
from exact_windows import ALL, CLOCKS, SHAPES, readings
from test_histogram_windows import COMPOSITIONS
from thorough import number

import sluicegate as sg

count, time = sg.policies.count, sg.policies.time
MORE: dict[str, tuple[Any, list[Any]]] = {
    "constrained by count": (count(300), [sg.Constrained(12)]),
    "constrained by time": (time(700), [sg.Constrained(5)]),
    "constrained, hopping": (time(700, hop=50), [sg.Constrained(9)]),
    "up to the maximum": (count(90, up_to="max"), [sg.MaxLike(block=8)]),
    "up to the minimum": (time(200, up_to="min"), [sg.MaxLike(block=8), sg.Constrained(7)]),
    "sum-like, up to": (count(1900, up_to="max"), [sg.SumLike(0.1)]),
    "sum-like by time": (time(4000), [sg.SumLike(0.1)]),
    "sum-like by time, hopping": (time(4000, hop=300), [sg.SumLike(0.1)]),
    "sum-like, hopping": (count(900, hop=200), [sg.SumLike(0.1, atol=0.2)]),
    "sum-like, more buckets than it needs": (count(1900), [sg.SumLike(0.2), sg.Constrained(24)]),
    "never full": (count(10**6), [sg.SumLike(0.2)]),
    "pairs, up to the maximum": (count(90, up_to="max"), [sg.Constrained(5, merge="pairs")]),
    "paper's candidates, up to": (count(90, up_to="max"), [sg.MaxLike(block=5, candidates="paper")]),
}
#: Large windows where a sum-like histogram decides: it looks at its limits each 1/64 of the window, which ends a run.
EACH = {**COMPOSITIONS, **MORE}


def aggregates(policy: Any) -> dict[str, Any]:
    """All of them, or the only one that eviction up to an extreme allows."""
    return {policy.up_to: ALL[policy.up_to]} if policy.up_to else ALL


@pytest.mark.parametrize(
    ("composition", "engine"),
    [(name, "amta") for name in EACH] + [(name, "recalc") for name in EACH if not name.startswith("pairs")],
)
def test_a_batch_without_results_leaves_the_same_bytes(composition: str, engine: str) -> None:
    """Random batches over every shape and clock against single inserts; snapshot and intervals after each batch."""
    policy, histograms = EACH[composition]
    rng = random.Random(composition)
    for clock in CLOCKS:
        batch, single = (
            sg.Window(aggregates(policy), policy=policy, histograms=histograms, engine=engine) for _ in range(2)
        )
        start = 0
        for shape in SHAPES:
            rows = [(x, start + t) for x, t in readings(rng, shape, clock, number(260, 130))]
            start += 1500
            while rows:
                size = rng.randrange(1, 120)
                part, rows = rows[:size], rows[size:]
                assert batch.insert_many([x for x, _ in part], [t for _, t in part], results=False) is None
                for x, t in part:
                    single.insert(x, t)
                assert batch.snapshot() == single.snapshot()
            assert batch.query(bounds=True) == single.query(bounds=True)
            batch.verify()


def test_a_batch_without_times_counts_the_ordinals() -> None:
    """Times are the ordinals then, in a run as elsewhere."""
    windows = [sg.Window(ALL, policy=count(5000), histograms=[sg.Constrained(16)]) for _ in range(2)]
    values = [float(i * 7919 % 101) for i in range(20_000)]
    windows[0].insert_many(values, results=False)
    windows[1].insert_many(values, range(20_000), results=False)
    assert windows[0].snapshot() == windows[1].snapshot()


def test_several_dimensions() -> None:
    """Each component reads its own dimension."""
    aggregates = {"a": sg.mean("a"), "b": sg.max("b"), "c": sg.sum("b"), "n": sg.count()}
    batch, single = (
        sg.Window(aggregates, policy=count(400), histograms=[sg.SumLike(0.05), sg.Constrained(20)]) for _ in range(2)
    )
    rng = random.Random(5)
    rows = [(rng.gauss(20, 1), rng.gauss(-3, 4)) for _ in range(3000)]
    batch.insert_many(memoryview(array("d", chain.from_iterable(rows))).cast("B").cast("d", (3000, 2)), results=False)
    for row in rows:
        single.insert(row)
    assert batch.snapshot() == single.snapshot()


def test_a_new_maximum_ends_a_run() -> None:
    """A sum-like histogram joins it, but the leaves it makes irrelevant leave at once, wherever in a run it stands."""
    policy, histograms, falling = count(9000, up_to="max"), [sg.SumLike(0.2)], [float(-i) for i in range(2100)]
    for place in range(2000, 2064):
        batch, single = (sg.Window({"max": sg.max()}, policy=policy, histograms=histograms) for _ in range(2))
        values = [*falling[:place], 1.0, *falling[place:]]
        batch.insert_many(values, results=False)
        for value in values:
            single.insert(value)
        assert batch.snapshot() == single.snapshot()
