"""Readings one by one through the quick ways of the engines with a queue: the twin's bits, whatever comes between."""

from __future__ import annotations

import math
import random
from array import array
from typing import Any

import pytest
from bench.engines.compiled import probe
from thorough import number, some
from twins import core as pure

import sluicegate as sg
import sluicegate.window.configure
from sluicegate.core import core as compiled
from sluicegate.errors import InputError

QUESTIONS = {
    "sum": sg.sum(), "mean": sg.mean(), "std": sg.std(), "variance": sg.variance(),
    "geometric_mean": sg.geometric_mean(),
    "two": {"mean": sg.mean(), "count": sg.count()}, "max": sg.max(), "min": sg.min(),
    "mixed": {"first": sg.first(), "sum": sg.sum(), "argmin": sg.argmin()},
}  # fmt: skip
ENGINES = ("soe", "two_stacks_lite", "daba_lite")
PAIRS = [
    (engine, question)
    for engine in ENGINES
    for question in QUESTIONS
    if engine != "soe" or question not in ("max", "min", "mixed")
]
TWINS = [(engine, question) for engine, question in PAIRS if engine != "soe"]  # it rounds in a way of its own
SIZES = (*range(1, 20), 31, 32, 33, 63, 64, 65, 100, 128, 129, 300, 1000)


def windows(engine: str, question: str, policy: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[sg.Window, sg.Window]:
    """The same window compiled and as the readable twin."""
    made = []
    for module in (compiled, pure):
        monkeypatch.setattr(sluicegate.window.configure, "Core", module.Core)
        made.append(sg.Window(QUESTIONS[question], policy=policy, engine=engine))
    return made[0], made[1]


def drawn(rng: random.Random) -> float:
    """Numbers whose sums depend on the order, some of which hide all others while they are inside."""
    return rng.choice(
        (1.0, 1e9 * rng.random() + 1, rng.uniform(1, 9), rng.uniform(1, 9), rng.choice((2.0, 1e17, 1e-9)))
    )


def state(window: sg.Window, by_time: bool = False) -> tuple[Any, ...]:
    """What two windows agree in that hold the same; the time that partials by time begin with may be a later one."""
    core, begin = window._core, 8 * by_time
    partials = (core.total()[begin:], core.rest()[begin:])
    return (core.accepted, core.created, core.newest, core.edge, core.head, core.tail, *partials)


def disturb(rng: random.Random, one: sg.Window, two: sg.Window, now: int | None) -> None:
    """Something else than `slide`, on both."""
    choice = rng.randrange(5)
    if choice == 0:
        one.verify()
    elif choice == 1:
        count = min(len(one), rng.choice((0, 1, 2, 5, 100)))
        one.evict(count)
        two.evict(count)
    elif choice == 2:
        for window in (one, two):
            with pytest.raises(InputError):
                window.slide(math.nan, now)
    elif choice == 3:
        values = array("d", (drawn(rng) for _ in range(rng.choice((1, 3, 70, 400)))))
        times = None if now is None else array("q", [now]) * len(values)
        assert one.insert_many(values, times) == two.insert_many(values, times)
    assert state(one, now is not None) == state(two, now is not None)
    assert one.query() == two.query()
    assert len(one) == len(two)


@pytest.mark.parametrize("by_time", [False, True], ids=["count", "time"])
@pytest.mark.parametrize(("engine", "question"), TWINS)
def test_one_by_one_is_the_twin_to_the_bit(
    engine: str, question: str, by_time: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every result of `slide`, with evictions, refused readings and batches in between; late ones are refused."""
    rng = random.Random(f"{engine} {question} {by_time}")
    for size in some(SIZES, 4):
        policy = (sg.policies.time if by_time else sg.policies.count)(size, hop=rng.choice((1, 1, 1, 3)))
        one, two = windows(engine, question, policy, monkeypatch)
        now = 0
        for _ in range(8):
            for _ in range(rng.choice((1, 2, 3, 10, 40, 140))):
                value = drawn(rng)
                now += rng.choice((1, 1, 1, 1, 1, 0, 2, rng.choice((0, 0, 0, 5, size // 2, size, 3 * size))))
                assert one.slide(value, now if by_time else None) == two.slide(value, now if by_time else None)
            disturb(rng, one, two, now if by_time else None)
        one.verify()


@pytest.mark.parametrize(("engine", "question"), PAIRS)
def test_a_caller_in_compiled_code_gets_what_slide_gives(engine: str, question: str) -> None:
    """Every row of `Core.slide_one`, and the state after it, by count, by time, hopping, and after evictions."""
    pytest.importorskip("Cython", reason="the caller is compiled by the test")
    rng = random.Random(f"{engine} {question}")
    for size in (1, 2, 3, 7, 16, 33, 100, 1000):
        for policy in (sg.policies.count(size), sg.policies.count(size, hop=3), sg.policies.time(size)):
            taking, sliding = (sg.Window(QUESTIONS[question], policy=policy, engine=engine) for _ in range(2))
            start = 0
            for count in (1, 5, 2 * size + 70, 300):
                values = array("d", (drawn(rng) for _ in range(count)))
                times = array("q", (start + i + (i % 3 == 0) for i in range(count)))
                start += count
                found = probe().answers_one_by_one(taking._core, values, times)
                rows = (sliding.slide(value, when) for value, when in zip(values, times, strict=True))
                expected = [
                    math.nan if each is None else each
                    for row in rows
                    for each in (row.values() if isinstance(row, dict) else [row])
                ]
                assert found.tobytes() == array("d", expected).tobytes(), (size, policy)
                assert state(taking) == state(sliding)
                taking.evict(min(len(taking), 2))
                sliding.evict(min(len(sliding), 2))


@pytest.mark.parametrize(("engine", "question"), TWINS)
def test_one_leaves_for_each_that_comes_after_an_eviction_too(
    engine: str, question: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By time, which may pass so that the next reading goes the quick way at once: that is not where it was before."""
    rng = random.Random(f"{engine} {question}")
    for size in (5, 16, 33, 100, 300):
        one, two = windows(engine, question, sg.policies.time(size), monkeypatch)
        now = 0
        for gone in [0] * 30 + [rng.choice((1, 1, 2, 4)) for _ in range(30)]:
            gone = max(min(gone, len(one) - 1), 0)
            one.evict(gone)
            two.evict(gone)
            now += gone
            for _ in range(max(size // 10, 1) if gone == 0 else rng.choice((1, 2, 5, 20))):
                value, now = rng.uniform(1, 9), now + 1
                assert one.slide(value, now) == two.slide(value, now)
            one.verify()


@pytest.mark.parametrize("question", ["sum", "geometric_mean", "std"])
@pytest.mark.parametrize("size", [2, 16, 500])
def test_soe_does_not_drift_one_by_one(question: str, size: int) -> None:
    """Over many turns, through totals taken anew, with great values that come and leave: as close to the oracle."""
    rng = random.Random(f"{question} {size}")
    near = 1e-9 if question == "std" else 1e-13
    one, two = (sg.Window(QUESTIONS[question], policy=sg.policies.count(size), engine=e) for e in ("soe", "recalc"))
    great = -size
    for i in range(12 * size + number(6_000, 2_000)):
        if rng.random() < 0.001:
            great = i
        value = 1e12 if great == i else 1000.0 + rng.random()
        found, expected = one.slide(value), two.slide(value)
        if i >= great + size or question != "std":
            assert math.isclose(found, expected, rel_tol=near, abs_tol=near), (i, found, expected)
    one.verify()


@pytest.mark.parametrize("question", ["sum", "std"])
@pytest.mark.parametrize("size", [20, 100, 300])
def test_soe_goes_on_one_by_one_after_a_batch(question: str, size: int) -> None:
    """With which readings came at one time and none left, so that what comes no longer lies where it would have."""
    rng = random.Random(f"{question} {size}")
    one, two = (sg.Window(QUESTIONS[question], policy=sg.policies.time(size), engine=e) for e in ("soe", "recalc"))
    now = 0
    for many in (0, *(rng.choice((1, 2, 7, 30)) for _ in range(40))):
        values = array("d", (rng.uniform(1, 9) for _ in range(many)))
        for window in (one, two):
            window.insert_many(values, array("q", [now]) * many)
        for _ in range(rng.choice((1, 5, size + 5))):
            value, now = rng.uniform(1, 9), now + 1
            assert math.isclose(one.slide(value, now) or 0.0, two.slide(value, now) or 0.0, rel_tol=1e-9), now
        one.verify()


@pytest.mark.parametrize("size", [2, 16, 100])
def test_soe_forgets_one_by_one(size: int) -> None:
    """Deviations are taken anew from the leaves in every fourth turn: of two pasts no bit is left then."""
    rng = random.Random(size)
    one, two = (sg.Window(sg.std(), policy=sg.policies.count(size), engine="soe") for _ in range(2))
    differed = False
    for window in (one, two):
        window.slide(5.0)
        for _ in range(2 * size + 50):
            window.slide(rng.uniform(1, 9))
    for _ in range(4 * size + 512 + size):
        value = rng.uniform(1, 9)
        differed = one.slide(value) != two.slide(value) or differed
    assert differed
    assert state(one) == state(two)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("size", [20, 300, 20_000])
def test_one_by_one_gives_back_what_has_left(engine: str, size: int) -> None:
    """A full window of so many takes no more memory after many turns than after two."""
    pytest.importorskip("Cython", reason="the caller is compiled by the test")
    window = sg.Window(sg.sum(), policy=sg.policies.count(size), engine=engine)
    found = []
    for readings in (2 * size + 100, 3 * size + 20_000, 20_000):
        values = array("d", [1.0]) * readings
        probe().answers_one_by_one(window._core, values, None)
        found.append(window.footprint.bytes)
    assert max(found) <= 1.5 * found[0], found
