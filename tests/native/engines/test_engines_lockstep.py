"""Every engine, compiled and twin, beside the oracle: every window size 0 … 99, every eviction length, then random."""

from __future__ import annotations

import random
from array import array
from typing import Any

import pytest
from engine_windows import (
    ORDERED,
    OTHERS,
    WITH_BUCKETS,
    Counted,
    agree,
    clock,
    same_columns,
    whole_numbers,
    windows,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import some
from twins.factory import make

import sluicegate as sg
from sluicegate.reference.engines.engine import Engine

MOST = 99


def twin(name: str) -> tuple[Engine, Counted]:
    """A twin over intervals."""
    combine = Counted()
    return make(name, combine), combine


def push(engine: Engine) -> None:
    """Append the interval of one reading."""
    engine.push([engine.tail, engine.tail + 1])


def right(engine: Engine) -> None:
    """The window's interval, and the one without the oldest reading."""
    head, tail = engine.head, engine.tail
    assert engine.total() == ([head, tail] if head < tail else None)
    assert engine.rest() == ([head + 1, tail] if tail - head > 1 else None)


@pytest.mark.parametrize("name", OTHERS)
def test_twins_at_every_size_and_eviction_length(name: str) -> None:
    """From a window of each size up to 99 each number of readings leaves, then it fills again: right all the way."""
    engine, _ = twin(name)
    for size in some(range(MOST + 1), 9):
        for length in range(size + 1):
            while engine.tail - engine.head < size:
                push(engine)
            right(engine)
            for _ in range(length):
                engine.pop()
            right(engine)
        engine.verify()


@pytest.mark.parametrize("name", OTHERS)
def test_twins_check_themselves_at_every_step(name: str) -> None:
    """The invariants hold after each insertion and eviction, in windows that grow, slide, shrink and run empty."""
    for seed, share in enumerate((0.5, 0.55, 0.7, 0.8, 1.0)):
        rng, (engine, _) = random.Random(seed), twin(name)
        for step in range(250):
            if engine.head < engine.tail and (rng.random() > share or step % 100 > 90):
                engine.pop()
            else:
                push(engine)
            engine.verify()
            right(engine)


@pytest.mark.parametrize("name", OTHERS)
def test_bulk_evictions_of_twins(name: str) -> None:
    """From a window of each size the readings before any cut leave by a rule, all of them too."""
    for size in (0, 1, 2, 3, 7, 8, 9, 31, 32, 33, 64, 99):
        for cut in range(size + 1):
            engine, _ = twin(name)
            for _ in range(size):
                push(engine)
            engine.bulk(lambda old, cut=cut: old[1] <= cut)  # type: ignore[misc]
            assert engine.head == cut
            engine.verify()
            right(engine)


@pytest.mark.parametrize("name", OTHERS)
def test_compiled_at_every_size_and_eviction_length(name: str) -> None:
    """The same through a window: filled to each size, each number of readings evicted, refilled in batches."""
    oracle, other = windows(name, sg.policies.count(MOST))
    for size in some(range(MOST + 1), 3):
        for length in range(size + 1):
            values = whole_numbers(size - len(oracle), oracle.accepted)
            same_columns(oracle.insert_many(values), other.insert_many(values))
            for window in (oracle, other):
                window.evict(length)
            agree(oracle.query(), other.query())
        other.verify()
    assert len(oracle) == len(other) == 0


@pytest.mark.parametrize("size", range(1, MOST + 1))
def test_compiled_windows_of_every_size_slide(size: int) -> None:
    """A count and a time window of each size fill and slide; every result of the batch is the oracle's."""
    values = whole_numbers(2 * size + 70)
    for name in OTHERS:
        for policy in (sg.policies.count(size), sg.policies.time(size)):
            oracle, other = windows(name, policy)
            times = range(0, 2 * len(values), 2) if size % 2 else [3 * (i // 2) for i in range(len(values))]
            ticks = clock(times)
            same_columns(oracle.insert_many(values, ticks), other.insert_many(values, ticks))
            other.verify()


@pytest.mark.parametrize("name", sg.ENGINES)
def test_long_windows_are_what_their_leaves_give(name: str) -> None:
    """What rounds in another order, and more with each reading, is no contradiction."""
    n = 1 << (12 if name == "recalc" else 19)
    window = sg.Window({"sum": sg.sum(), "mean": sg.mean()}, policy=sg.policies.count(n), engine=name)
    window.insert_many(array("d", [0.1]) * (n + n // 2), results=False)
    window.verify()


Steps = st.lists(
    st.tuples(st.sampled_from(["insert", "batch", "evict", "verify", "quiet"]), st.integers(0, 40), st.integers(0, 30)),
    max_size=60,
)
Policies = st.one_of(
    st.integers(1, 60).map(sg.policies.count),
    st.integers(1, 90).map(sg.policies.time),
    st.tuples(st.integers(1, 40), st.integers(2, 9)).map(lambda sizes: sg.policies.count(sizes[0], hop=sizes[1])),
)


@pytest.mark.usefixtures("implementation_of_window")
@pytest.mark.parametrize("name", OTHERS)
@settings(max_examples=25, deadline=None)
@given(Steps, Policies)
def test_any_steps_under_any_policy(name: str, steps: list[tuple[str, int, int]], policy: Any) -> None:
    """Single readings, batches with and without results, evictions, checks: in any order the engine is the oracle."""
    oracle, other = windows(name, policy)
    time = 0
    for step, n, tick in steps:
        values = whole_numbers(n, oracle.accepted)
        times = clock([time + i * tick for i in range(n)])
        if step == "insert":
            for window in (oracle, other):
                window.insert(float(n - 20), time)
        elif step == "batch":
            same_columns(oracle.insert_many(values, times), other.insert_many(values, times))
        elif step == "quiet":
            for window in (oracle, other):
                window.insert_many(values, times, results=False)
        elif step == "evict":
            held = len(oracle)
            for window in (oracle, other):
                window.evict(min(n, held))
        else:
            other.verify()
        time = times[-1] if step in ("batch", "quiet") and n else time + tick
        agree(oracle.query(), other.query())
        assert len(oracle) == len(other)


@pytest.mark.usefixtures("implementation_of_window")
@pytest.mark.parametrize("name", [name for name in OTHERS if name != "soe"])
@settings(max_examples=12, deadline=None)
@given(st.lists(st.tuples(st.integers(-9, 9).map(float), st.integers(0, 12)), max_size=60), st.booleans())
def test_any_rule_of_the_users(name: str, steps: list[tuple[float, int]], monotone: bool) -> None:
    """A callable that lets any number of readings leave, in bulk or one by one, gives the oracle's window."""
    kept = [0]
    rule = sg.policies.custom(lambda total, old: total.count - old.count >= kept[0], monotone=monotone, label="keep")
    bounds = sg.policies.custom(lambda total, old: total.count > kept[0], label="keep")
    pair = [
        sg.Window(ORDERED, policy=policy, engine=engine)
        for policy, engine in ((bounds, "recalc"), (rule if monotone else bounds, name))
    ]
    for value, keep in steps:
        kept[0] = keep
        for window in pair:
            window.insert(value)
        pair[1].verify()
        agree(pair[0].query(), pair[1].query())
        assert len(pair[0]) == len(pair[1]) <= keep


@pytest.mark.usefixtures("implementation_of_window")
@pytest.mark.parametrize("name", WITH_BUCKETS)
@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(-9, 9).map(float), max_size=150), st.integers(4, 9), st.integers(1, 60))
def test_buckets_and_level_evictions(name: str, values: list[float], limit: int, size: int) -> None:
    """The engines that keep buckets keep the oracle's, through joins and level evictions."""
    kept = {"sum": sg.sum(), "max": sg.max(), "argmin": sg.argmin()}
    pair = [
        sg.Window(kept, policy=sg.policies.count(size), engine=engine, histograms=[sg.Constrained(limit)], center=0.0)
        for engine in ("recalc", name)
    ]
    for value in values:
        for window in pair:
            window.insert(value)
        pair[1].verify()
        assert pair[0].query() == pair[1].query()
    assert [(b.count, b.results) for b in pair[0].buckets()] == [(b.count, b.results) for b in pair[1].buckets()]
