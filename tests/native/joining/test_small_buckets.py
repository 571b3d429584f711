"""One sum or one maximum over many small buckets: a batch, single readings and the twin leave the same bits."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from test_answered_runs import Tumbler, number, same
from test_pairs import made
from thorough import number as most
from thorough import some
from twins import core as pure

import sluicegate as sg
from sluicegate.core import core as compiled

count = sg.policies.count
Case = tuple[sg.Monoid, Callable[[], Any], list[Any]]
CASES: dict[str, Case] = {
    "every reading a bucket": (sg.mean(), lambda: count(150), [sg.Constrained(400)]),
    "sum-like, a few readings each": (sg.mean(), lambda: count(700), [sg.SumLike(0.002)]),
    "a sum, with a tolerance": (sg.sum(), lambda: count(300), [sg.SumLike(1e-4, atol=0.05)]),
    "sum-like, limited": (sg.mean(), lambda: count(500), [sg.SumLike(0.003), sg.Constrained(60)]),
    "constrained": (sg.mean(), lambda: count(260), [sg.Constrained(70)]),
    "constrained, where it hangs on what leaves": (sg.sum(), lambda: count(675), [sg.Constrained(70)]),
    "sum-like, long ones": (sg.mean(), lambda: count(900), [sg.SumLike(0.025)]),
    "a minimum": (sg.min(), lambda: count(260), [sg.Constrained(70)]),
    "a compiled rule": (sg.mean(), lambda: Tumbler().policy(True), [sg.Constrained(60)]),
    "candidates": (sg.max(), lambda: count(200, up_to="max"), [sg.MaxLike(block=7)]),
    "candidates that stay": (sg.max(), lambda: count(200), [sg.MaxLike(block=7)]),
    "candidates, limited": (sg.max(), lambda: count(200, up_to="max"), [sg.MaxLike(block=30), sg.Constrained(20)]),
    "least candidates": (sg.min(), lambda: count(200, up_to="min"), [sg.MaxLike(block=64)]),
    "limited, up to": (sg.max(), lambda: count(200, up_to="max"), [sg.Constrained(40)]),
    "staircase behind a tail": (sg.max(), lambda: count(200, up_to="max"), [sg.MaxLike(staircase=True, staging=6)]),
    "candidates behind a tail": (sg.max(), lambda: count(200, up_to="max"), [sg.MaxLike(block=5, staging=16)]),
    "a tail that keeps all": (sg.max(), lambda: count(200), [sg.MaxLike(staircase=True, staging=16)]),
    "a tail, least": (sg.min(), lambda: count(90, up_to="min"), [sg.MaxLike(block=5, staging=4)]),
}


def walk(seed: str, size: int) -> list[tuple[float, int]]:
    """Plateaus, so that extremes are equal, jumps, falls that outlast a window; some readings come late."""
    rng, x, time = random.Random(seed), 1000.0, 0
    found = []
    for i in range(size):
        x += rng.choice((0, 0, 0, 1, -1, 2, -2, 17, -15)) if i % 900 < 600 else -1
        time += rng.randrange(3)
        found.append((x, time - 40 if rng.random() < 0.01 else time))
    return found


@pytest.mark.parametrize("timed", [False, True], ids=["by ordinal", "late ones too"])
@pytest.mark.parametrize("name", CASES)
def test_a_batch_gives_what_single_readings_and_the_twin_give(name: str, timed: bool) -> None:
    """Values after each reading, now and then intervals, and snapshots after each batch."""
    aggregate, policy, histograms = CASES[name]
    rng, rows = random.Random(name), walk(name, most(1700, 800))
    batch, bounded, single, twin = (
        made(core, {"x": aggregate}, policy(), histograms)
        for core in (compiled.Core, compiled.Core, compiled.Core, pure.Core)
    )
    while rows:
        size = rng.choice((1, 3, 40, 300))
        part, rows = rows[:size], rows[size:]
        values, times = [x for x, _ in part], [t for _, t in part] if timed else None
        found, columns = batch.insert_many(values, times)["x"], bounded.insert_many(values, times, bounds=True)["x"]
        for i, (x, t) in enumerate(part):
            for window in (single, twin):
                window.insert(x, t) if timed else window.insert(x)
            assert same(found[i], number(single.query()["x"])), (single.accepted, found[i])
            if i % 7 == 0:
                assert same(found[i], number(twin.query()["x"])), twin.accepted
                assert all(map(same, [each[i] for each in columns], map(number, single.query(bounds=True)["x"][:3])))
        assert batch.snapshot() == bounded.snapshot() == single.snapshot() == twin.snapshot()
    batch.verify()
    assert batch.footprint.created > most(150, 70)


def test_a_limit_that_changes_between_batches() -> None:
    """While the oldest buckets are far longer than the new ones, what these take depends on them."""
    batch, single, twin = (
        made(core, {"x": sg.mean()}, count(600), [sg.Constrained(200)])
        for core in (compiled.Core, compiled.Core, pure.Core)
    )
    rows = walk("limit", 3000)
    for at in range(0, 3000, 300):
        part = [x for x, _ in rows[at : at + 300]]
        found = batch.insert_many(part)["x"]
        for i, x in enumerate(part):
            single.insert(x)
            twin.insert(x)
            assert same(found[i], number(single.query()["x"])), single.accepted
        for window in (batch, single, twin):
            window.limit_to(20 if at == 900 else 200)
        assert batch.snapshot() == single.snapshot() == twin.snapshot(), at


def test_a_batch_without_results_leaves_the_same_bytes() -> None:
    """Where nobody asks, nothing is answered; the window is the same."""
    for name, (aggregate, policy, histograms) in CASES.items():
        asked, quiet = (sg.Window({"x": aggregate}, policy=policy(), histograms=histograms) for _ in range(2))
        values = [x for x, _ in walk(name, 1500)]
        for at in range(0, 1500, 250):
            asked.insert_many(values[at : at + 250])
            assert quiet.insert_many(values[at : at + 250], results=False) is None
            assert asked.snapshot() == quiet.snapshot(), name


@pytest.mark.parametrize("sign", [1.0, -1.0], ids=["highest", "lowest"])
def test_an_extreme_of_zero_keeps_the_sign_of_its_first(sign: float) -> None:
    """In a long run that joins, whichever zero comes first is the extreme, as it is one by one."""
    rng = random.Random(sign)
    for more in some(range(0, 96, 6), 8):  # the run that meets the first zero begins elsewhere each time
        values = [1e9] * 2 + [-sign] * (3000 + more) + [rng.choice((0.0, -0.0, -sign, -2 * sign)) for _ in range(200)]
        batch, single, twin = (
            made(core, {"x": sg.sum()}, count(5000), [sg.SumLike(atol=1e5)])
            for core in (compiled.Core, compiled.Core, pure.Core)
        )
        batch.insert_many(values[:3000])
        batch.insert_many(values[3000:])
        assert 1 < batch.footprint.created < 20
        for x in values:
            single.insert(x)
            twin.insert(x)
        assert batch.snapshot() == single.snapshot() == twin.snapshot()


def test_memory_of_many_buckets_returns() -> None:
    """A wide window gives back what it grew to when it shrinks, and its answers stay right."""
    window = sg.Window({"mean": sg.mean()}, policy=count(70_000), histograms=[sg.Constrained(200_000)])
    values = [float(i % 997) for i in range(70_000)]
    window.insert_many(values, results=False)
    full = window.footprint.bytes
    assert full > 2**22
    window.limit_to(1000)
    for _ in range(3):
        answers = window.insert_many(values)["mean"]
    assert window.footprint.bytes < full // 8
    low, high = window.query(bounds=True)["mean"][1:3]
    assert low <= sum(values) / 70_000 <= high
    assert low <= answers[-1] <= high
