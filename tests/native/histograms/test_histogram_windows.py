"""Windows under every composition of histograms: intervals hold, compiled and pure agree, a restart changes nothing."""

from __future__ import annotations

import math
import random
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from exact_windows import ALL, CLOCKS, SHAPES, Exact, readings
from thorough import WINDOWS, number
from twins import core as pure

import sluicegate as sg
import sluicegate.window.configure
from sluicegate import errors
from sluicegate.core import core as compiled
from sluicegate.window import snapshot

AT_ONCE = 500
count, time = sg.policies.count, sg.policies.time
Shape = Callable[[random.Random, int], float]

COMPOSITIONS: dict[str, tuple[Any, list[Any]]] = {
    "sum-like": (count(60), [sg.SumLike(0.05)]),
    "sum-like, absolute": (count(150), [sg.SumLike(atol=0.5)]),
    "count alone": (time(200), [sg.SumLike(0.1, of="count")]),
    "sum-like, constrained": (time(150), [sg.SumLike(0.02, atol=1e-3), sg.Constrained(9)]),
    "max-like": (count(80), [sg.MaxLike(block=8)]),
    "max-like, automatic": (time(400), [sg.MaxLike(staircase=False)]),
    "max-like, the paper's": (time(200), [sg.MaxLike(block=6, candidates="paper")]),
    "max-like, constrained": (count(100), [sg.MaxLike(block=10), sg.Constrained(8)]),
    "hop": (count(60, hop=20), [sg.Hop()]),
    "hop, hint": (count(60, hop=20), [sg.Hop(hint=20)]),
    "hop by time": (time(200, hop=60), [sg.Hop(confidence=0.95)]),
    "hop, sum-like": (time(200, hop=60), [sg.Hop(), sg.SumLike(0.05)]),
    "hop, max-like": (count(90, hop=30), [sg.Hop(hint=(30, 1.0)), sg.MaxLike(block=9)]),
    "hop, constrained": (time(300, hop=100), [sg.Hop(), sg.Constrained(7)]),
    "all three": (time(300, hop=100), [sg.Hop(), sg.SumLike(0.1), sg.Constrained(6)]),
    "pairs": (time(300), [sg.Constrained(9, merge="pairs")]),
    "pairs, count": (count(90), [sg.Constrained(7, merge="pairs")]),
    "pairs, sum-like": (count(120), [sg.SumLike(0.02, atol=1e-3), sg.Constrained(8, merge="pairs")]),
    "pairs, max-like": (time(250), [sg.MaxLike(block=9), sg.Constrained(6, merge="pairs")]),
    "pairs, all three": (time(300, hop=100), [sg.Hop(), sg.SumLike(0.1), sg.Constrained(5, merge="pairs")]),
}
each = pytest.mark.parametrize("composition", COMPOSITIONS)
both = pytest.mark.usefixtures("implementation_of_window")


def made(core: Any, composition: str, aggregates: Any = ALL) -> sg.Window:
    """A window of a composition over one of the two cores."""
    policy, histograms = COMPOSITIONS[composition]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sluicegate.window.configure, "Core", core)
        return sg.Window(aggregates, policy=policy, histograms=histograms)


def outside(exact: Exact, answers: dict[str, Any]) -> list[str]:
    """Results that are not inside their interval, values that are not, and what is falsely said to be exact."""
    true, found = exact.results(), []
    for name, (answer, low, high, sure) in answers.items():
        if true[name] is None or exact.begin == len(exact.values):
            continue
        if not low <= true[name] <= high or not low <= answer <= high:
            found.append(f"{name}: {true[name]!r} or {answer!r} outside [{low!r}, {high!r}]")
        elif sure and name not in ("sum", "mean") and answer != true[name]:
            found.append(f"{name}: {answer!r} said to be exact, is {true[name]!r}")
    return found


def in_step(fast: sg.Window, slow: sg.Window, exact: Exact, value: float, moment: int, edge: int = -1) -> int:
    """One reading into all: the same answers, which hold the exact ones; where the edge stands, not before `edge`."""
    for each_one in (fast, slow, exact):
        each_one.insert(value, moment)
    assert edge <= fast._core.edge < exact.begin
    answers = fast.query(bounds=True)
    assert answers == slow.query(bounds=True)
    assert outside(exact, answers) == []
    return fast._core.edge


def stream(text: str, shape: Shape, clock: str, n: int) -> Iterator[tuple[float, int]]:
    """Readings seeded by a text."""
    return readings(random.Random(zlib.crc32(text.encode())), shape, clock, n)


@each
@pytest.mark.parametrize("clock", CLOCKS)
def test_compiled_and_pure_agree_and_hold_the_exact_result(composition: str, clock: str) -> None:
    """Every aggregate of every window, over all shapes one after the other; state and snapshot the same bytes."""
    fast, slow = made(compiled.Core, composition), made(pure.Core, composition)
    exact, start, edge = Exact(COMPOSITIONS[composition][0]), 0, -1
    for shape in SHAPES[:6]:
        for value, moment in stream(composition + clock, shape, clock, number(70, 35)):
            edge = in_step(fast, slow, exact, value, start + moment, edge)
        start += 700
        fast.verify()
        slow.verify()
        assert fast.snapshot() == slow.snapshot()
        assert fast.state() == slow.state()


@each
@both
def test_a_restart_changes_nothing(composition: str) -> None:
    """Rebuilt from rows and state, or restored from a snapshot, now and then: the answers of one that ran on."""
    policy, histograms = COMPOSITIONS[composition]
    rng, rows = random.Random(3), {}
    going = sg.Window(ALL, policy=policy, histograms=histograms)
    rebuilt = sg.Window(ALL, policy=policy, histograms=histograms)
    for i, (value, moment) in enumerate(
        stream(composition, SHAPES[i_shape(composition)], "irregular", number(900, 250))
    ):
        going.insert(value, moment)
        rebuilt.insert(value, moment)
        if rng.random() < 0.03:
            changes = rebuilt.changes()
            rows.update({(changes.level, index): row for index, row in changes.closed})
            stored = [(level, index, row) for (level, index), row in rows.items()]
            rebuilt = sg.Window.rebuild(ALL, policy=policy, histograms=histograms, state=rebuilt.state(), leaves=stored)
        if i % 211 == 0:
            rebuilt = sg.Window.restore(rebuilt.snapshot(), ALL, policy=policy, histograms=histograms)
        assert rebuilt.query(bounds=True) == going.query(bounds=True)
    assert rebuilt.buckets()[-1].results == going.buckets()[-1].results


def i_shape(composition: str) -> int:
    """A shape for each composition, so that all are met."""
    return list(COMPOSITIONS).index(composition) % len(SHAPES)


@pytest.mark.slow
@each
def test_many_windows_lie_inside(composition: str) -> None:
    """Over all compositions, shapes and clocks together (WINDOWS says how many)."""
    runs = -(-WINDOWS // (AT_ONCE * len(COMPOSITIONS)))
    for run in range(runs):
        shape, clock = SHAPES[run % len(SHAPES)], CLOCKS[run // len(SHAPES) % len(CLOCKS)]
        names = needed(composition, ("mean", "max", "sum", "min")[run % 4])
        window, exact = (
            made(compiled.Core, composition, {n: ALL[n] for n in names}),
            Exact(COMPOSITIONS[composition][0]),
        )
        for value, moment in stream(f"{composition}{run}", shape, clock, AT_ONCE):
            window.insert(value, moment)
            exact.insert(value, moment)
            inside = exact.values[exact.begin :]
            if not inside:
                continue
            for name, (answer, low, high, _) in window.query(bounds=True).items():
                true = RESULTS[name](inside)
                assert low <= true <= high, (name, run, true, low, high)
                assert low <= answer <= high


RESULTS: dict[str, Callable[[list[float]], float]] = {
    "mean": lambda values: math.fsum(values) / len(values), "sum": math.fsum, "min": min, "max": max,
}  # fmt: skip


def needed(composition: str, name: str) -> set[str]:
    """The aggregate asked for, and what the composition cannot do without."""
    return {name, "max"} if "max-like" in composition else {name}


# eviction up to the current extreme


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("policy", ["count", "time"])
@pytest.mark.parametrize(
    "histograms",
    [
        [], [sg.MaxLike(block=6)], [sg.Constrained(8)], [sg.MaxLike(staircase=False), sg.Constrained(8)],
        [sg.MaxLike(staircase=False), sg.Constrained(8, merge="pairs")],
    ],
    ids=str,
)  # fmt: skip
def test_eviction_up_to_the_extreme_answers_as_the_whole_window(sign: int, policy: str, histograms: list[Any]) -> None:
    """The interval holds the whole window's maximum; without a limit the value is that maximum, from fewer leaves."""
    name = "max" if sign == 1 else "min"
    whole_policy = count(50) if policy == "count" else time(60)
    kept_policy = count(50, up_to=name) if policy == "count" else time(60, up_to=name)
    whole = sg.Window(ALL[name], policy=whole_policy)
    windows = []
    for core in (compiled.Core, pure.Core):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sluicegate.window.configure, "Core", core)
            windows.append(sg.Window(ALL[name], policy=kept_policy, histograms=histograms))
    held = 0
    for shape in SHAPES[:6]:
        for value, _ in stream(policy, shape, "even", 150):
            for window in (whole, *windows):
                window.insert(sign * value, whole.accepted * 2)
            fast, slow = (window.query(bounds=True)[name] for window in windows)
            assert fast == slow
            assert fast.low <= whole.query()[name] <= fast.high
            assert histograms or fast.value == whole.query()[name]
            held += len(windows[0])
        windows[0].verify()
    assert windows[0].snapshot() == windows[1].snapshot()
    assert histograms or held < 0.9 * 900 * 50


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("hop", [1, 30])
@pytest.mark.parametrize(
    "histograms",
    [
        [], [sg.MaxLike(block=6)], [sg.Constrained(8)], [sg.MaxLike(staircase=False), sg.Constrained(8)],
        [sg.MaxLike(staircase=False), sg.Constrained(8, merge="pairs")],
    ],
    ids=str,
)  # fmt: skip
def test_what_left_as_irrelevant_changes_no_answer(sign: int, hop: int, histograms: list[Any]) -> None:
    """Where times go back, too, the answer is that of a window that keeps all; a restart changes nothing."""
    name, rng = ("max" if sign == 1 else "min"), random.Random(17)
    policy, whole = time(60, hop=hop, up_to=name), sg.Window(ALL[name], policy=time(60, hop=hop))
    windows = []
    for core in (compiled.Core, pure.Core):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sluicegate.window.configure, "Core", core)
            windows.append(sg.Window(ALL[name], policy=policy, histograms=histograms))
    batch = sg.Window(ALL[name], policy=policy, histograms=histograms)
    now = 0
    for i in range(number(1500, 600)):
        now += rng.choice([1, 2, 3, 200, -rng.randrange(300)]) if i % 40 == 39 else rng.randrange(4)
        value = sign * float(rng.randrange(40))
        for window in (whole, *windows):
            window.insert(value, now)
        batch.insert_many([value], [now])
        if i % 97 == 0:
            windows[0] = sg.Window.restore(windows[0].snapshot(), ALL[name], policy=policy, histograms=histograms)
        fast, slow, third = (window.query(bounds=True)[name] for window in (*windows, batch))
        assert fast == slow == third
        true = whole.query()[name]
        assert fast.low <= true <= fast.high
        assert histograms or fast.value == true
    assert windows[0].snapshot() == windows[1].snapshot()


def test_what_cannot_work_is_refused() -> None:
    """Another aggregate beside the extreme, a foreign extreme, a hop of 0, Hop where nothing hops, all by name."""
    for aggregates in ({"max": sg.max(), "n": sg.count()}, sg.min()):
        with pytest.raises(errors.ConfigurationError, match="only aggregate"):
            sg.Window(aggregates, policy=count(9, up_to="max"))
    with pytest.raises(errors.ConfigurationError, match="up_to='mean'"):
        count(9, up_to="mean")
    with pytest.raises(errors.ConfigurationError, match="hop=0"):
        count(9, hop=0)
    with pytest.raises(errors.ConfigurationError, match="hop='soon'"):
        time("1h", hop="soon")
    with pytest.raises(errors.ConfigurationError, match="reading by reading"):
        sg.Window(sg.mean(), policy=time("1h"), histograms=[sg.Hop()])
    with pytest.raises(errors.ConfigurationError, match="two windows"):
        sg.Window({"a": sg.mean(), "b": sg.max()}, policy=count(9), histograms=[sg.SumLike(0.1), sg.MaxLike()])


# policies that hop


@both
@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("policy", [count(50, hop=7), time(90, hop=40), time(1, hop=1)], ids=lambda policy: policy.name)
def test_a_hopping_window_without_histograms_is_exact(policy: Any, clock: str) -> None:
    """Count: the newest limit … limit + hop − 1; time: after the last multiple of the hop, less the span."""
    window, exact = sg.Window(ALL, policy=policy), Exact(policy)
    for value, moment in stream(policy.name, SHAPES[4], clock, 400):
        window.insert(value, moment)
        exact.insert(value, moment)
        assert window.query() == pytest.approx(exact.results())


class RandomHops:
    """Reaches `most` readings, then evicts about `hop` of them at once: the paper's hopping window."""

    monotone = remaining = True

    def __init__(self, most: int, hop: float, deviation: float, seed: int) -> None:
        self.most, self.hop, self.deviation, self.rng = most, hop, deviation, random.Random(seed)
        self.first = 0
        self.hops = 0

    def __call__(self, total: Any, old: Any) -> bool:
        """Whether `old` leaves: all of it lies before the first reading that stays."""
        if total.ordinal + total.count - self.first >= self.most:
            self.first += round(self.rng.gauss(self.hop, self.deviation))
            self.hops += 1
        return old.ordinal + old.count <= self.first


def hopped(core: Any, histogram: sg.Hop, n: int, seed: int) -> tuple[sg.Window, RandomHops]:
    """A window over n readings under random hops; every answer is compared with the plain readings."""
    policy, values = RandomHops(900, 300.0, 3.0, seed), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sluicegate.window.configure, "Core", core)
        window = sg.Window({"mean": sg.mean(), "n": sg.count()}, policy=policy, histograms=[histogram])
    for i in range(n):
        values.append(float(i * 7919 % 101))
        window.insert(values[-1])
        begin = policy.first
        assert window.query()["n"] == len(values) - begin
        assert window.query()["mean"] == pytest.approx(math.fsum(values[begin:]) / (len(values) - begin))
    return window, policy


def test_random_hops_are_met_exactly() -> None:
    """Seventy hops of N(300, 3): each falls between singles: every answer is exact, from fewer leaves."""
    window, policy = hopped(compiled.Core, sg.Hop(), 70 * 300 + 600, 4)
    assert policy.hops >= 68
    assert window.footprint.created < 0.35 * window.accepted
    twin, _ = hopped(pure.Core, sg.Hop(), 3000, 4)
    again, _ = hopped(compiled.Core, sg.Hop(), 3000, 4)
    assert twin.snapshot() == again.snapshot()


# storage


@both
@pytest.mark.parametrize("version", [1, 2])
def test_a_state_of_an_older_version_is_still_read(version: int) -> None:
    """Written before the rules (1) or the limit (2) were part of it: the same window goes on from it."""
    policy, histograms = count(50), [sg.Constrained(8)]
    window = sg.Window(sg.mean(), policy=policy, histograms=histograms)
    for i in range(200):
        window.insert(float(i % 7))
    data = bytearray(window.snapshot())
    width = window._layout.width
    leaves = 8 * width * (len(window) - 1)
    at = len(data) - 4 - leaves - 20  # the empty state of the rules: its length alone, the limit, what holds
    assert data[at : at + 20] == struct.pack("<Iqq", 0, 8, pure.NEVER)
    old = bytearray(data[: at + (4 if version == 2 else 0)] + data[at + 20 : -4])
    struct.pack_into("<H", old, 4, version)
    struct.pack_into("<Q", old, 24, len(old) - 32)
    old += struct.pack("<I", zlib.crc32(old))
    again = sg.Window.restore(bytes(old), sg.mean(), policy=policy, histograms=histograms)
    assert again.snapshot() == window.snapshot()
    assert snapshot.VERSION == 4


@both
def test_another_composition_and_damaged_rules_are_refused() -> None:
    """A snapshot belongs to its histograms; a rule's state that contradicts itself is named."""
    window = sg.Window(sg.max(), policy=count(50), histograms=[sg.MaxLike(block=5)])
    for i in range(99):
        window.insert(float(i % 7))
    data = window.snapshot()
    with pytest.raises(errors.ForeignSnapshotError):
        sg.Window.restore(data, sg.max(), policy=count(50), histograms=[sg.MaxLike(block=6)])
    saved = window._core.save()
    for rules in (saved.rules[:-8], b"", saved.rules[: 26 + 64] + b"\xff" * 8 + saved.rules[26 + 72 :]):
        payload = snapshot.pack_state(saved._replace(rules=rules))
        state = snapshot.seal(snapshot.STATE, window._owner(), payload, 3)
        rows = [(0, i, window.leaf(i)) for i in range(window._core.head, window._core.tail - 1)]
        with pytest.raises(errors.SnapshotError, match="start the window anew"):
            sg.Window.rebuild(sg.max(), policy=count(50), histograms=[sg.MaxLike(block=5)], state=state, leaves=rows)


# in batches


@each
def test_a_batch_is_the_readings_one_by_one(composition: str) -> None:
    """insert_many gives the results, and leaves the bytes, of as many inserts."""
    batch, single = made(compiled.Core, composition), made(compiled.Core, composition)
    values, times = zip(*stream(composition, SHAPES[1], "irregular", 600), strict=True)
    columns = batch.insert_many(list(values), list(times))
    for i, (value, moment) in enumerate(zip(values, times, strict=True)):
        single.insert(value, moment)
        answers = single.query()
        assert all(columns[name][i] == answer for name, answer in answers.items())
    assert batch.snapshot() == single.snapshot()


class Sized:
    """A custom policy that lets go of so many readings at once, as soon as it holds 350."""

    def __init__(self, sizes: list[int]) -> None:
        """`sizes`: of its hops, one after the other."""
        self.sizes, self.first, self.hops = sizes, 0, 0

    def __call__(self, total: Any, old: Any) -> bool:
        """Whether all of `old` lies before the first reading that stays."""
        if total.ordinal + total.count - self.first >= 350:
            self.first += self.sizes[self.hops]
            self.hops += 1
        return bool(old.ordinal + old.count <= self.first)


@both
@pytest.mark.parametrize("jitter", [0, 5])
def test_a_missed_hop_costs_a_few_hops_and_not_thirty(jitter: int) -> None:
    """After equal hops, one of another size or a jitter from then on: blocks are back, and cuts are certain, soon."""
    rng = random.Random(1)
    policy = Sized([100] * 20 + [105] + [100 + rng.randint(-jitter, jitter) for _ in range(40)])
    rule = sg.policies.custom(policy, monotone=True, remaining=True)
    window = sg.Window(sg.count(), policy=rule, histograms=[sg.Hop()])
    created, certain = [], []
    while policy.hops < 60:
        before, hops = window.footprint.created, policy.hops
        while policy.hops == hops:
            window.insert(1.0)
        created.append(window.footprint.created - before)
        certain.append(window._core.edge + 1 == policy.first)
    assert not all(certain[20:24])
    assert sum(certain[24:]) >= len(certain[24:]) - 2
    assert sum(created[24:30]) <= (100 if jitter == 0 else 250)
