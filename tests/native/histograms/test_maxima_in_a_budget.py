"""Maxima within a number of buckets: few are opened up to the current one, a value is off by half its doubt."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from exact_windows import CLOCKS, SHAPES, Exact
from test_histogram_windows import count, outside, stream, time
from twins import core as pure
from twins.estimate import LEAST_TAKEN, LITTLE, MOST_TAKEN, SEEN, of_a_wave

import sluicegate as sg
import sluicegate.window.configure
from sluicegate.core import core as compiled

both = pytest.mark.usefixtures("implementation_of_window")
BUDGETS: dict[str, list[Any]] = {
    "levels": [sg.Constrained(6)],
    "pairs": [sg.Constrained(6, merge="pairs")],
    "late": [sg.MaxLike(staircase=True, staging=4), sg.Constrained(5, merge="pairs")],
}
POLICIES = {"count": count(70), "hops": count(70, hop=20), "time": time(160)}
SIGNS = {"max": 1, "min": -1}


def up_to(policy: Any, name: str) -> Any:
    """The same policy, which lets go what cannot be the extreme any more."""
    kind = count if hasattr(policy, "limit") else time
    return kind(policy.limit if kind is count else policy.span, hop=policy.hop, up_to=name)


@pytest.mark.parametrize("name", SIGNS)
@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("policy", POLICIES)
def test_up_to_the_extreme_it_is_the_whole_windows(policy: str, budget: str, name: str) -> None:
    """Every interval holds the exact extreme of the whole window, whatever joined; both cores agree to the bit."""
    for clock in CLOCKS:
        exact, windows = Exact(POLICIES[policy]), []
        for core in (compiled.Core, pure.Core):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(sluicegate.window.configure, "Core", core)
                given = {"policy": up_to(POLICIES[policy], name), "histograms": BUDGETS[budget]}
                windows.append(sg.Window({name: getattr(sg, name)()}, **given))
        fast, slow = windows
        start = 0
        for shape in SHAPES[:4]:
            for value, moment in stream(policy + budget + clock, shape, clock, 60):
                for each in (fast, slow, exact):
                    each.insert(value, start + moment)
                answers = fast.query(bounds=True)
                assert answers == slow.query(bounds=True)
                if exact.begin < len(exact.values):
                    assert outside(exact, answers) == []
            start += 500
        fast.verify()
        assert fast.snapshot() == slow.snapshot()


@both
@pytest.mark.parametrize("budget", ["levels", "pairs"])
def test_a_batch_up_to_the_extreme_leaves_the_same_bytes(budget: str) -> None:
    """Runs of readings that join, because they hide the newest bucket or have to, against one by one."""
    rng = random.Random(7)
    for name, policy in itertools.product(SIGNS, (count(300, up_to="max"), time(500, up_to="max"))):
        given = {"policy": up_to(policy, name), "histograms": BUDGETS[budget]}
        batch, single = (sg.Window({name: getattr(sg, name)()}, **given) for _ in range(2))
        for part in range(12):
            level = rng.random() * SIGNS[name]
            values = [level + rng.random() * rng.choice((0.0, 0.1, 3.0)) for _ in range(rng.randrange(1, 90))]
            times = [1000 * part + i for i in range(len(values))]
            batch.insert_many(values, times)
            for value, moment in zip(values, times, strict=True):
                single.insert(value, moment)
            assert batch.snapshot() == single.snapshot()


@both
@pytest.mark.parametrize("budget", ["levels", "pairs"])
def test_few_are_opened_up_to_the_maximum(budget: str) -> None:
    """What hides the newest bucket opens none; after the limit was reached once, no more than the window's share do."""
    window = sg.Window({"max": sg.max()}, policy=count(600, up_to="max"), histograms=BUDGETS[budget])
    for i in range(3000):  # a rise with dips: each reading that is greater than all before hides what was there
        window.insert(float(i) - (3.0 if i % 50 == 7 else 0.0))
    rising = window.footprint.created
    assert rising <= 1 + 3000 // 50
    for i in range(40):  # falls from a new maximum, each too short for it to leave: all are let go unseen
        for k in range(100):
            window.insert(5000.0 + i - k)
    assert window.footprint.created - rising <= 6 + 40 * 4


def falls(rng: random.Random) -> Iterator[float]:
    """Descents of slopes, little dips, a step and dips again, each as long as chance has it."""
    for _ in range(7):
        level = 1000.0
        for fall in (60.0, 2.0, 300.0, 2.0, 60.0, 2.0):
            length = rng.randrange(40, 60)
            for i in range(length):
                yield level - (fall * (2 * i > length) if fall > 100.0 else fall * i / length) - rng.random()
            level -= fall


@both
@pytest.mark.parametrize("name", SIGNS)
@pytest.mark.parametrize("shares", [1, 2])
def test_an_extreme_in_doubt_is_given_by_how_much(name: str, shares: int) -> None:
    """Little: an end. A slope's worth: as much of the way as is inside. A step: the middle. Also after `limit_to`."""
    rng, sign, limit, size = random.Random(3), SIGNS[name], 6, 120
    window = sg.Window({name: getattr(sg, name)()}, policy=count(size), histograms=[sg.Constrained(limit * shares)])
    window.limit_to(limit)
    seen: list[float] = []
    found: Counter[str] = Counter()
    for i, value in enumerate(falls(rng)):
        seen.append(sign * value)
        window.insert(seen[-1])
        if i % 2:
            continue
        answer, oldest = window.query(bounds=True)[name], next(iter(window.buckets()))
        gap, held = answer.high - answer.low, seen[oldest.t_first :]
        exact, share = sign * max(sign * x for x in seen[-size:]), (max(held) - min(held)) / limit
        if gap == 0.0:
            continue
        certain = answer.low if sign > 0 else answer.high
        cut = [sign * x for x in held[: oldest.count]]
        behind, taken = cut[::-1].index(max(cut)), oldest.count - (len(held) - size)
        depth = sign * (answer.high if sign > 0 else answer.low) - min(cut)
        share_behind, spread = behind / len(held), max(held) - min(held)
        slope = depth <= spread * of_a_wave(share_behind) and (depth <= SEEN * gap or share_behind >= 0.5)
        zone = "little" if gap <= LITTLE * share else "slope" if slope else "step"
        way = 0.5 if zone == "step" else min(max(taken / behind, LEAST_TAKEN), MOST_TAKEN)
        found[zone] += 1
        if zone == "little":
            assert answer.value in (answer.low, answer.high)
        else:
            assert answer.value == certain + sign * way * gap
            assert abs(answer.value - exact) <= max(way, 1.0 - way) * gap * (1 + 1e-12)
    assert min(found[zone] for zone in ("little", "slope", "step")) >= 20, found


BLOCKS: dict[str, list[Any]] = {"block": [sg.MaxLike(block=40)], "tail": [sg.MaxLike(block=40, staging=8)]}


def descent() -> list[float]:
    """A level that block maxima are learnt from; then three times a long slope far below."""
    high = [1000.0 - i % 7 for i in range(400)]
    return high + [500.0 - part - 2 * i for part in range(3) for i in range(200)]


@pytest.mark.parametrize("name", SIGNS)
@pytest.mark.parametrize("blocks", BLOCKS)
@pytest.mark.parametrize("policy", [count(150), time(150), count(150, up_to="max")], ids=["count", "time", "up to"])
def test_without_a_limit_the_likelier_end_is_given(policy: Any, blocks: str, name: str) -> None:
    """Blocks far too long: much is in doubt, and no value is the middle: restored, in a batch, in the twin."""
    sign = SIGNS[name]
    policy = up_to(policy, name) if policy.up_to else policy
    values, given = [sign * x for x in descent()], {"policy": policy, "histograms": BLOCKS[blocks]}
    windows, doubted = [], 0
    for core in (compiled.Core, pure.Core):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sluicegate.window.configure, "Core", core)
            windows.append(sg.Window({name: getattr(sg, name)()}, **given))
    batch = sg.Window({name: getattr(sg, name)()}, **given).insert_many(values, range(len(values)))[name]
    for i, value in enumerate(values):
        for each in windows:
            each.insert(value, i)
        if i % 5:
            continue
        answer = windows[0].query(bounds=True)[name]
        assert answer == windows[1].query(bounds=True)[name]
        assert batch[i] == answer.value
        if i % 200 == 170:
            windows[0] = sg.Window.restore(windows[0].snapshot(), {name: getattr(sg, name)()}, **given)
        if answer.high - answer.low > 100.0:
            doubted += 1
            assert answer.value in (answer.low, answer.high)
    assert doubted >= 10


@both
def test_windows_that_share_buckets_have_their_longests_rule() -> None:
    """A shorter window is answered by the same rule: what is in doubt between its ends in a budget, an end without."""
    for histogram, an_end in ((sg.Constrained(4), False), (sg.SumLike(error=0.9), True)):
        aggregates, policies = {"mean": sg.mean(), "max": sg.max()}, {"a": count(300), "b": count(150)}
        windows = sg.Windows(aggregates, policies=policies, histograms=[histogram])
        found = set()
        for value in descent():
            windows.insert(value)
            answer = windows.answer("b", bounds=True)["max"]
            if answer.high - answer.low > 150.0:
                found.add(answer.value in (answer.low, answer.high))
        assert found == {an_end}


def test_a_tail_takes_memory_as_the_staircase_grows() -> None:
    """Noise has few steps and takes little; 6,000 steps down all stay in the tail, exact, also after a restart."""
    window, rng = sg.Window(sg.max(), policy=count(10_000), histograms=[sg.MaxLike(staircase=True)]), random.Random(2)
    window.insert_many([rng.random() for _ in range(20_000)], results=False)
    little = window.footprint
    assert little.held < 40
    assert little.bytes < 64 * 1024
    window.insert_many([100.0 - i for i in range(6_000)], results=False)
    deep = window.footprint
    assert deep.created == 0
    assert deep.held == 6_000
    assert 20 * little.bytes < deep.bytes < 4 * 2**20
    again = sg.Window.restore(
        window.snapshot(), sg.max(), policy=count(10_000), histograms=[sg.MaxLike(staircase=True)]
    )
    for i in range(9_000):
        for each in (window, again):
            each.insert(50.0 - i / 200)
        if i % 500 == 0:
            assert again.query(bounds=True) == window.query(bounds=True)
            assert window.query(bounds=True)["max"].exact
    window.verify()
    assert again.snapshot() == window.snapshot()


@both
def test_a_large_bucket_joins_no_small_one_beyond_a_steep_fall() -> None:
    """A peak, a fall of some steps, a plateau that hides itself: the plateau's bucket is not put to the peak's."""
    window = sg.Window(sg.max(), policy=count(900), histograms=BUDGETS["late"])
    seen: list[float] = []
    greatest = 0.0
    for part in range(4):
        peak = [1000.0 - 10 * part - i for i in range(20)]
        fall, plateau = [980.0 - 30 * i for i in range(8)], [500.0 - part + i * 1e-4 for i in range(800)]
        slope = [499.0 - part - i * 0.01 for i in range(400)]
        for value in [*peak, *fall, *plateau, *slope]:
            seen.append(value)
            window.insert(value)
            answer = window.query(bounds=True)["max"]
            exact = max(seen[-900:])
            assert answer.low <= exact <= answer.high
            greatest = max(greatest, abs(answer.value - exact) / exact)
    assert greatest < 0.25


def test_no_wave_as_long_as_the_window_passes_for_a_step() -> None:
    """Every run of every such sine falls by no more than is asked of a slope, and what is asked is hardly more."""
    for share in (i / 100 for i in range(1, 51)):
        deepest = max(
            (math.cos(math.tau * at) - math.cos(math.tau * (at + share))) / 2 for at in (i / 400 for i in range(400))
        )
        assert deepest <= of_a_wave(share) * (1 + 1e-12)
        assert of_a_wave(share) - deepest < 0.06
    assert of_a_wave(0.7) == of_a_wave(0.5) == 1.0
