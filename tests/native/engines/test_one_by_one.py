"""Readings one by one through the quick way of `amta`: bit for bit the twin's, whatever is asked or done in between."""

from __future__ import annotations

import math
import random
from array import array
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from thorough import number, some
from twins import core as pure

import sluicegate as sg
import sluicegate.window.configure
from sluicegate.core import core as compiled

QUESTIONS = {
    "sum": sg.sum(), "max": sg.max(), "min": sg.min(), "std": sg.std(), "geometric_mean": sg.geometric_mean(),
    "two": {"mean": sg.mean(), "peak": sg.max()},
    "mixed": {"first": sg.first(), "sum": sg.sum(), "argmin": sg.argmin()},
}  # fmt: skip
SIZES = (1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 63, 64, 65, 66, 100, 127, 128, 129, 300, 1000)


def windows(question: Any, policy: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[sg.Window, sg.Window]:
    """The same window compiled and as the readable twin."""
    made = []
    for module in (compiled, pure):
        monkeypatch.setattr(sluicegate.window.configure, "Core", module.Core)
        made.append(sg.Window(question, policy=policy, engine="amta"))
    return made[0], made[1]


def clock(rng: random.Random, size: int) -> Iterator[int]:
    """Times that mostly go on by one, stand, skip a few, or leave much of the window behind."""
    now = 0
    while True:
        now += rng.choice((1, 1, 1, 1, 1, 1, 0, 2, 5, rng.choice((0, 0, 0, 0, 20, size // 2, size, 3 * size))))
        yield now


def same_state(one: sg.Window, two: sg.Window) -> None:
    """What would be stored is equal: R0, R1 less the newest leaf, and where the window stands."""
    assert one._core.save() == two._core.save()
    assert (one._core.total(), one._core.rest()) == (two._core.total(), two._core.rest())


def disturb(rng: random.Random, one: sg.Window, two: sg.Window, feed: list[tuple[float, int | None]]) -> None:
    """Something else than `slide`, on both."""
    choice = rng.randrange(8)
    if choice == 0:
        one.verify()
    elif choice == 1:
        same_state(one, two)
    elif choice == 2 and len(one):
        index = rng.randrange(one._core.head, one._core.tail)
        assert one._core.leaf(index) == two._core.leaf(index)
    elif choice == 3:
        count = min(len(one), rng.choice((0, 1, 2, 5, 100)))
        one.evict(count)
        two.evict(count)
    elif choice == 4 and feed:
        times = None if feed[0][1] is None else array("q", (when or 0 for _, when in feed))
        values = array("d", (value for value, _ in feed))
        assert one.insert_many(values, times) == two.insert_many(values, times)
    assert one.query() == two.query()
    assert len(one) == len(two)


@pytest.mark.parametrize("by_time", [False, True], ids=["count", "time"])
@pytest.mark.parametrize("question", QUESTIONS)
def test_one_by_one_is_the_twin_to_the_bit(question: str, by_time: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every result of runs of `slide`, and the whole state, with batches, evictions and questions between the runs."""
    rng = random.Random(f"{question} {by_time}")
    for size in some(SIZES, 2):
        policy = (sg.policies.time if by_time else sg.policies.count)(size, hop=rng.choice((1, 1, 1, 3)))
        one, two = windows(QUESTIONS[question], policy, monkeypatch)
        times = clock(rng, size)
        for _ in range(8):
            for _ in range(rng.choice((1, 2, 3, 10, 40, 140))):
                value, when = rng.choice((1.0, 1e9 * rng.random() + 1, rng.uniform(1, 9))), next(times)
                assert one.slide(value, when if by_time else None) == two.slide(value, when if by_time else None)
            feed = [(rng.uniform(1, 9), next(times) if by_time else None) for _ in range(rng.choice((0, 1, 3, 70)))]
            disturb(rng, one, two, feed)
        same_state(one, two)
        one.verify()
        if by_time:
            late_ones_agree(one, two, next(times))


def late_ones_agree(one: sg.Window, two: sg.Window, now: int) -> None:
    """From the first late reading on the leaves stand in a tree that adds in an order of its own."""
    for when in (now, now - 3, now + 1, now, now + 2):
        assert one.slide(4.0, when) == pytest.approx(two.slide(4.0, when), rel=1e-9)
        assert len(one) == len(two)
    one.verify()
    two.verify()


ANY = QUESTIONS | {
    "rate": sg.rate(),
    "run": sg.longest_run(),
    "bins": sg.histogram([0.0, 5.0]),
    "sketch": sg.distinct_count(),
}


@pytest.mark.parametrize("by_time", [False, True], ids=["count", "time"])
@pytest.mark.parametrize("question", ANY)
def test_two_calls_say_what_one_does(question: str, by_time: bool) -> None:
    """`insert` and `query`, bound to compiled code, against `slide` and the class's own; empty windows too."""
    policy = (sg.policies.time if by_time else sg.policies.count)(5)
    bound, once, plain = (sg.Window(ANY[question], policy=policy) for _ in range(3))
    assert bound.insert == vars(bound)["insert"]
    assert bound.query() == once.query() == dict(zip(plain.query(), plain._core.results(), strict=True))
    rng = random.Random(question)
    for now in range(40):
        value, when = rng.choice((3, rng.uniform(0.5, 9))), now + 20 * (now > 30) if by_time else None
        bound.insert(value, time=when)
        sg.Window.insert(plain, value, when)
        found = once.slide(value, when)
        assert (
            bound.query() == plain.query() == (found if len(bound.query()) > 1 else {next(iter(bound.query())): found})
        )
    for window in (bound, once, plain):
        window.evict(len(window))
    assert bound.query() == once.query() == dict(zip(plain.query(), plain._core.results(), strict=True))


def test_a_subclass_is_asked_for_each_reading() -> None:
    """Who overrides `insert` sees every reading, by `slide` too."""

    class Counting(sg.Window):
        seen = 0

        def insert(self, value: Any, time: int | None = None) -> None:
            self.seen += 1
            super().insert(value, time)

    window = Counting(sg.sum(), policy=sg.policies.count(3))
    window.insert(1.0)
    assert window.slide(2.0) == 3.0
    assert window.seen == 2


@pytest.mark.parametrize("by_time", [False, True], ids=["count", "time"])
@pytest.mark.parametrize("question", ["sum", "std"])
def test_few_readings_stay_laid_out(question: str, by_time: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs often around the ring, in small windows, bit for bit the twin's; all else finds what it needs."""
    rng = random.Random(f"few {question} {by_time}")
    for size in some((2, 5, 16, 23, 63, 200, 351, 352, 670, 704), 5):
        policy = (sg.policies.time if by_time else sg.policies.count)(size)
        one, two = windows(QUESTIONS[question], policy, monkeypatch)
        now = 0
        for readings in some((500, 700, 1300, 450, 900), 2):
            for _ in range(readings):
                value, now = rng.uniform(1, 9), now + (by_time and rng.random() > 0.01)
                assert one.slide(value, now if by_time else None) == two.slide(value, now if by_time else None)
            one.verify()
            same_state(one, two)
            disturb(rng, one, two, [(rng.uniform(1, 9), now if by_time else None) for _ in range(rng.choice((1, 40)))])
        same_state(one, two)


@pytest.mark.parametrize("question", ["sum", "max", "std"])
def test_what_a_batch_leaves_in_the_ring_is_the_twins(question: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves alone, whatever is asked of them first; batches of all lengths after each other and after single readings.

    Of numbers whose sums no order rounds; deviations are rounded.
    """
    rng = random.Random(f"ring {question}")
    for size in some((5, 11, 12, 16, 64, 200, 329, 331, 600), 4):
        one, two = windows(QUESTIONS[question], sg.policies.count(size), monkeypatch)
        for _ in range(number(24, 10)):
            count = rng.choice((1, 4, 20, 33, 64, 100, 700))
            values = array("d", (float(rng.randrange(-1000, 1000)) for _ in range(count)))
            columns = zip(one.insert_many(values)[question], two.insert_many(values)[question], strict=True)
            assert all(math.isclose(x, y, rel_tol=1e-13 if question == "std" else 0.0) for x, y in columns)
            if rng.random() < 0.5:
                disturb(rng, one, two, [])
            for _ in range(rng.choice((0, 0, 1, 40))):
                value = float(rng.randrange(-1000, 1000))
                assert one.slide(value) == two.slide(value)
        one.verify()
        same_state(one, two)


@pytest.mark.parametrize("question", ["sum", "max", "geometric_mean"])
def test_a_window_that_grows_and_shrinks_is_the_twin_to_the_bit(question: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """From a few readings to thousands and back, wherever levels come to lie in other chunks; singles and batches."""
    rng = random.Random(question)
    one, two = windows(QUESTIONS[question], sg.policies.time(1 << 20), monkeypatch)
    now = 0
    for size in some((40, 63, 66, 109, 112, 300, 890, 900, 2040, 2060, 3000, 1500, 700, 90, 50, 1000, 100, 2500, 5), 4):
        step = (1 << 20) // size
        for readings in (rng.choice((40, 150, 700)), 2 * size):
            feed = [
                (float(rng.randrange(1, 1 << 20)), now + step * k) for k in range(1, readings + 1)
            ]  # no order rounds their sums
            now += step * readings
            if rng.random() < 0.5:
                for value, when in feed:
                    assert one.slide(value, when) == two.slide(value, when)
            else:
                values, times = array("d", (value for value, _ in feed)), array("q", (when for _, when in feed))
                assert one.insert_many(values, times) == two.insert_many(values, times)
            disturb(rng, one, two, [])
        one.verify()
        same_state(one, two)


@pytest.mark.parametrize("question", ["sum", "geometric_mean", "two"])
def test_any_number_evicted_by_hand_leaves_the_twin_to_the_bit(question: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than about log n leave at once, which takes sums in another order than one by one."""
    rng = random.Random(f"evicted {question}")
    one, two = windows(QUESTIONS[question], sg.policies.count(300), monkeypatch)
    for count in (*range(70), 99, 150, 211, 299, 300):
        for _ in range(count + 300 - len(one) if count else 300):
            value = rng.uniform(1, 9)
            assert one.slide(value) == two.slide(value)
        one.evict(count)
        two.evict(count)
        assert one.query() == two.query(), count
        same_state(one, two)


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_reading_after_a_gap_is_the_twins(question: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """About log n, many or all leave with it: soon after another gap, after a calm stretch and after a batch."""
    rng = random.Random(f"gap {question}")
    size = 1500
    one, two = windows(QUESTIONS[question], sg.policies.time(size), monkeypatch)
    now = 0
    for gap in some((3, 11, 12, 13, 40, 600, 1300, 1499, 1500, 4000), 6):
        for before in some((5, 70, 333), 2):
            now, full = now + 1, [(rng.uniform(1, 9), now + k) for k in range(1, size + rng.randrange(64))]
            values, times = array("d", (value for value, _ in full)), array("q", (when for _, when in full))
            assert one.insert_many(values, times) == two.insert_many(values, times)
            now = times[-1]
            for step in (gap, *[1] * before, gap, 1, gap):
                value, now = rng.uniform(1, 9), now + step
                assert one.slide(value, now) == two.slide(value, now), (gap, before)
            one.verify()
            same_state(one, two)


@pytest.mark.parametrize("question", ["sum", "max", "std"])
def test_what_a_rule_lets_go_of_few_readings_is_the_twins(question: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bulk eviction asks about the same prefixes, and leaves the same behind; the window goes on where it lies."""
    rng = random.Random(f"rule {question}")
    for size in some((1, 3, 7, 30, 64, 100, 257, 600), 2):
        one, two = windows(QUESTIONS[question], sg.policies.count(size), monkeypatch)
        for _ in range(12):
            for _ in range(rng.choice((1, 5, size, 2 * size))):
                value = rng.uniform(1, 9)
                assert one.slide(value) == two.slide(value)
            steps, asked = rng.choice((0, 1, 4, 12, 99)), []
            for window in (one, two):
                seen: list[tuple[bytes, bytes]] = []

                def leaves(
                    total: bytes, old: bytes, seen: list[tuple[bytes, bytes]] = seen, steps: int = steps
                ) -> bool:
                    seen.append((total, old))
                    return len(seen) <= steps

                window._core.evict(leaves, True)
                asked.append(seen)
            assert asked[0] == asked[1]
            assert len(one) == len(two)
            one.verify()
            same_state(one, two)


@pytest.mark.parametrize("question", ["sum", "std"])
def test_hops_over_few_readings_are_the_twins(question: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many leave at once, or none: by fewer and by more than a log n, up to all but the newest."""
    rng = random.Random(f"hops {question}")
    for size, hop in ((4, 4), (10, 3), (60, 9), (64, 64), (100, 20), (300, 12), (300, 150), (600, 7), (640, 600)):
        one, two = windows(QUESTIONS[question], sg.policies.count(size, hop=hop), monkeypatch)
        for i in range(5 * size + 50):
            value = rng.uniform(1, 9)
            assert one.slide(value) == two.slide(value), (size, hop, i)
        one.verify()
        same_state(one, two)


@pytest.mark.parametrize("size", [16, 64, 640, 1 << 10, 2560, 1 << 14])  # 640: the leftmost tree has two roots
def test_a_long_run_one_by_one(size: int) -> None:
    """Through many chunks and trees: the extremes, which no order rounds, are the oracle's, and the invariants hold."""
    rng = random.Random(size)
    values = array("d", (float(rng.randrange(1 << 20)) for _ in range(3 * size + 20_000)))
    window, batch = (sg.Window(sg.max(), policy=sg.policies.count(size), engine="amta") for _ in range(2))
    expected = batch.insert_many(values)["max"]
    for i, value in enumerate(values):
        assert window.slide(value) == expected[i], i
    window.verify()
    assert window._core.save() == batch._core.save()


def test_no_level_of_a_large_window_moves_at_once() -> None:
    """Bytes never change by five large chunks within 64 readings, which a level that moves to large ones takes at once.

    Levels whose chunks end at one reading take four.
    """
    size, large = 1 << 20, 64 << 10
    window = sg.Window(sg.sum(), policy=sg.policies.count(size), engine="amta")
    window.insert_many(array("d", [1.0]) * size, results=False)
    held = [window.footprint.bytes]
    for i in range(1 << 18):
        window.slide(1.0)
        if i % 64 == 0:
            held.append(window.footprint.bytes)
    assert max(abs(after - before) for before, after in pairwise(held)) < 5 * large
