"""Sketches over windows of buckets: what is said to be certain is, and the stated errors hold as often as stated."""

from __future__ import annotations

import math
import random
from collections import Counter
from typing import Any

import pytest
from exact_windows import of_the_last
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import number
from twins import core as pure

import sluicegate as sg
import sluicegate.window.configure
from sluicegate.core import core as compiled
from sluicegate.monoids.kll import Kll, as_slots, of_slots

SEEN = {
    "tops": sg.top_k(4), "different": sg.distinct_count(lg_k=8), "spread": sg.quantiles(k=16),
    "often": sg.count_min(16, 3), "set": sg.bloom_filter(128, 3),
}  # fmt: skip
Steps = st.lists(st.tuples(st.integers(-9, 9).map(lambda x: x / 2), st.integers(-3, 9)), max_size=70)


def hold(found: dict[str, Any], inside: list[tuple[float, int]]) -> None:
    """What is certain, against the plain list of readings that are inside."""
    values = [x for x, _ in inside]
    counts, falling = Counter(values), sorted(values, reverse=True)
    value, low, high, sure = found["tops"]
    assert all(top.value <= true for top, true in zip(low, falling, strict=False))
    assert all(top.value >= true for top, true in zip(high, falling, strict=False))
    assert len(low) <= min(4, len(values)) <= len(high)
    assert not sure or [top.value for top in value] == falling[:4]
    distinct = found["different"]
    assert distinct.low <= len(counts) <= distinct.high
    assert distinct.value.least <= len(counts)
    assert distinct.low <= distinct.value.estimate <= distinct.high
    assert not distinct.exact or distinct.value.estimate == len(counts)
    spread = found["spread"].value
    for x in counts if spread.error == 0.0 else ():
        rank = sum(y <= x for y in values) / len(values)
        assert abs(spread.rank(x) - rank) <= spread.cut + 1e-12
    assert spread.n - spread.doubt <= len(values) <= spread.n
    assert spread.low <= min(values)
    assert spread.high >= max(values)
    often = found["often"].value
    assert all(often.most(x) >= times for x, times in counts.items())
    assert often.n - often.doubt <= len(values) <= often.n
    assert all(found["set"].value.might_contain(x) for x in values)


@pytest.mark.usefixtures("implementation_of_window")
@settings(max_examples=25, deadline=None)
@given(Steps, st.integers(1, 60), st.booleans(), st.sampled_from([4, 6]), st.sampled_from(["levels", "pairs"]))
def test_what_is_certain_holds(steps: list[Any], size: int, by_time: bool, limit: int, merge: Any) -> None:
    """Repeated times, steps back and late readings, windows by count and by time; stored, a window goes on alike."""
    policy = sg.policies.time(size) if by_time else sg.policies.count(size)
    tested = sg.Window(SEEN, policy=policy, histograms=[sg.Constrained(limit, merge=merge)])
    assert tested.query()["spread"].n == tested.query()["often"].n == 0
    arrived: list[tuple[float, int]] = []
    time = newest = 1_700_000_000_000_000
    for x, ahead in steps:
        time += ahead
        newest = max(newest, time)
        if by_time and time <= newest - size:
            continue
        tested.insert(x, time)
        arrived.append((x, time))
        hold(tested.query(bounds=True), of_the_last(arrived, newest - size) if by_time else arrived[-size:])
    tested.verify()
    same = sg.Window.restore(
        tested.snapshot(), SEEN, policy=policy, histograms=[sg.Constrained(limit, merge=merge)]
    )  # fmt: skip
    assert same.query() == tested.query()


@pytest.mark.usefixtures("implementation_of_window")
def test_a_cut_bucket_of_one_value_leaves_one_value() -> None:
    """As time goes on without readings, until the last one has left."""
    tested = sg.Window(SEEN, policy=sg.policies.time(10), histograms=[sg.Constrained(4)])
    arrived = [(7.0, time) for time in range(9)]
    for x, time in arrived:
        tested.insert(x, time)
    for now in range(9, 18):
        tested.advance(now)
        hold(tested.query(bounds=True), of_the_last(arrived, now - 10))


@pytest.mark.parametrize("k", [8, 64, 256])
def test_core_and_twin_keep_the_same_sketches(k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every bit, through thousands of readings, merged levels and both zeros."""
    aggregates = {"spread": sg.quantiles(k=k), "often": sg.count_min(32, 4)}
    windows = []
    for module in (compiled, pure):
        monkeypatch.setattr(sluicegate.window.configure, "Core", module.Core)
        windows.append(sg.Window(aggregates, policy=sg.policies.count(1500), histograms=[sg.Constrained(8)]))
    rng = random.Random(k)
    for i in range(number(2000, 800)):
        x = rng.choice([rng.gauss(0, 1), float(i % 50), -0.0, 0.0])
        for each in windows:
            each.insert(x)
        if i % 250 == 249:
            assert windows[0]._core.total() == windows[1]._core.total()
            assert windows[0].query() == windows[1].query()


def streams(rng: random.Random, n: int) -> dict[str, list[float]]:
    """Orders that are hard for a sketch."""
    noise = [rng.gauss(0, 1) for _ in range(n)]
    return {"noise": noise, "rising": sorted(noise), "falling": sorted(noise, reverse=True),
            "saw": [float(i % 97) + rng.random() for i in range(n)]}  # fmt: skip


def test_ranks_are_as_right_as_stated() -> None:
    """Of ranks at nine places of 60 streams, merged as trees of buckets are, at most one in a hundred is beyond it."""
    k, wrong, asked = 32, 0, 0
    own = Kll(k)
    for seed in range(15):
        for values in streams(random.Random(seed), 1200).values():
            parts = [own.lift(x, 0) for x in values]
            while len(parts) > 1:  # neighbours, as levels are evicted
                merged = [own.combine(a, b) for a, b in zip(parts[::2], parts[1::2], strict=False)]
                parts = merged + parts[2 * len(merged) :]
            ordered = sorted(values)
            for tenth in range(1, 10):
                x = ordered[tenth * len(values) // 10]
                wrong += abs(parts[0].rank(x) - (tenth * len(values) // 10 + 1) / len(values)) > parts[0].error
                asked += 1
    assert wrong <= asked // 100


def test_ranks_of_buckets_that_are_alike_do_not_drift() -> None:
    """A hundred buckets of the same length, each with its own noise: errors do not add up as one coin's would."""
    k, rng = 32, random.Random(3)
    own, errors = Kll(k), []
    for _ in range(20):
        values, total = [], None
        for _ in range(60):
            bucket = None
            for x in (rng.gauss(0, 1) for _ in range(100)):
                values.append(x)
                bucket = own.lift(x, 0) if bucket is None else own.combine(bucket, own.lift(x, 0))
            total = bucket if total is None else own.combine(total, bucket)  # type: ignore[arg-type]
        assert total is not None
        median = sorted(values)[len(values) // 2]
        errors.append(total.rank(median) - 0.5)  # type: ignore[operator]
    assert abs(math.fsum(errors)) / len(errors) < total.error / 4
    assert max(map(abs, errors)) < total.error


def test_counts_are_too_great_as_seldom_as_stated() -> None:
    """Never too small; beyond e / width of the readings in at most e^-depth of 800 questions."""
    beyond = asked = 0
    for seed in range(8):
        rng = random.Random(seed)
        values = [float(int(rng.paretovariate(1.0))) for _ in range(500)]
        tested = sg.Window(sg.count_min(32, 2), policy=sg.policies.count(10_000), histograms=[sg.Constrained(16)])
        tested.insert_many(values, results=False)
        sketch, counts = tested.query()["count_min"], Counter(values)
        assert sketch.n == 500
        assert sketch.failure == pytest.approx(math.exp(-2))
        for x in rng.choices(sorted(counts), k=100):
            assert sketch.most(x) >= counts[x]
            beyond += sketch.most(x) > counts[x] + sketch.error
            asked += 1
    assert beyond <= asked * math.exp(-2)


def test_distinct_values_of_many_buckets() -> None:
    """4,000 readings of 1,500 different values in 16 buckets: the estimate within three times its stated error."""
    rng = random.Random(1)
    tested = sg.Window(sg.distinct_count(lg_k=8), policy=sg.policies.count(4000), histograms=[sg.Constrained(16)])
    values = [float(rng.randrange(1500)) for _ in range(5000)]
    tested.insert_many(values, results=False)
    true = len(set(values[-4000:]))
    value, low, high, sure = tested.query(bounds=True)["distinct_count"]
    assert not sure
    assert abs(value.estimate - true) <= 3 * value.error * true + value.cut
    assert low <= true <= high
    assert 0.0 < value.cut < 300


def test_a_sketch_goes_to_slots_and_back() -> None:
    """A partial holds all of a sketch; of damaged sizes no more is read than there is."""
    own = Kll(16)
    sketch = own.lift(0.0, 0)
    for i in range(500):
        sketch = own.combine(sketch, own.lift(float(i * 7 % 101), 0))
    slots = as_slots(sketch, 400)
    assert of_slots(16, slots) == sketch
    slots[4] = 10**9
    assert len(of_slots(16, slots).levels[0]) <= 400


@pytest.mark.parametrize(
    "wrong", [lambda: sg.count_min(4, 2), lambda: sg.count_min(64, 9), lambda: sg.count_min(4096, 8)]
)
def test_wrong_sizes_are_refused(wrong: Any) -> None:
    """With what was expected."""
    with pytest.raises(sg.errors.ConfigurationError, match="expected"):
        wrong()
    with pytest.raises(sg.errors.ConfigurationError, match="at most 256"):
        sg.Window(sg.quantiles(k=300), policy=sg.policies.count(9), histograms=[sg.Constrained(8)])
