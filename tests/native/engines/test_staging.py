"""The staging tail: what may become an extreme is decided late; exact where the staircase is kept, certain always."""

from __future__ import annotations

import random
import zlib
from typing import Any

import pytest
from exact_windows import ALL, CLOCKS, SHAPES, Exact
from restarts import Rows
from test_histogram_windows import in_step, stream
from test_pairs import made, pairs
from twins import core as pure

import sluicegate as sg
from sluicegate import errors
from sluicegate.core import core as compiled

count, time = sg.policies.count, sg.policies.time
both = pytest.mark.usefixtures("implementation_of_window")


def staircase(staging: int | None = None) -> sg.MaxLike:
    """All steps are kept."""
    return sg.MaxLike(staircase=True, staging=staging)


def readings(kind: str, size: int, seed: int = 1) -> list[float]:
    """Noise, a walk with equal values, a stream that only falls, or one that falls and jumps back.

    Whole numbers, so that a range is not rounded.
    """
    rng, x = random.Random(f"{kind}{seed}"), 0.0
    found = []
    for i in range(size):
        x = x - rng.randint(1, 9) if kind == "falling" else x + rng.choice((-1, 0, 1))
        saw = -float(i % 97) + rng.randint(0, 2)
        found.append({"noise": float(rng.randint(0, 10**6)), "walk": x, "falling": x, "saw": saw}[kind])
    return [float(value) for value in found]


KINDS = ("noise", "walk", "falling", "saw")
MADE = (
    [staircase(3)], [staircase(16)], [sg.MaxLike(block=10, staging=5)], [staircase(4), pairs(6)],
    [sg.MaxLike(block=8, staging=4), pairs(4)],
)  # fmt: skip


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("histograms", MADE, ids=lambda made: "+".join(each.name for each in made))
@pytest.mark.parametrize("policy", [count(90), time(300), time(300, hop=100)], ids=lambda policy: policy.name)
def test_both_cores_agree_to_the_bit_and_hold_the_exact_result(policy: Any, histograms: Any, clock: str) -> None:
    """Every aggregate beside each other, so that nothing but equal readings is hidden at once: the general case."""
    fast, slow = (made(core, ALL, policy, histograms) for core in (compiled.Core, pure.Core))
    exact, start, edge = Exact(policy), 0, -1
    chosen = random.Random(zlib.crc32((policy.name + clock).encode())).sample(range(len(SHAPES)), 1)
    for shape in (SHAPES[place] for place in chosen):
        for value, moment in stream(policy.name + clock, shape, clock, 60):
            edge = in_step(fast, slow, exact, value, start + moment, edge)
        start += 900
        fast.verify()
        slow.verify()
    assert fast.snapshot() == slow.snapshot()
    assert fast.changes() == slow.changes()
    assert fast.footprint[:2] == slow.footprint[:2]


@pytest.mark.parametrize("up_to", [None, "max"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("staging", [2, 7])
def test_a_staircase_is_exact(staging: int, kind: str, up_to: Any) -> None:
    """A maximum of the newest 60 after each of 400 readings, an interval that is a point, the same bits in batches."""
    values, policy = readings(kind, 400), count(60, up_to=up_to)
    windows = [made(core, {"max": sg.max()}, policy, [staircase(staging)]) for core in (compiled.Core, pure.Core)]
    for i, value in enumerate(values):
        exact = max(values[max(0, i - 59) : i + 1])
        for window in windows:
            window.insert(value)
            assert window.query(bounds=True)["max"] == (exact, exact, exact, True)
    fast, slow = windows
    assert fast.snapshot() == slow.snapshot()
    batch = sg.Window({"max": sg.max()}, policy=policy, histograms=[staircase(staging)])
    batch.insert_many(values[:150], results=False)
    found = batch.insert_many(values[150:])
    assert list(found["max"]) == [max(values[max(0, i - 59) : i + 1]) for i in range(150, 400)]
    assert batch.snapshot() == fast.snapshot()
    steps = [x for i, x in enumerate(values[-60:]) if x > max(values[-60:][i + 1 :], default=float("-inf"))]
    assert len(fast) == len(steps)
    assert [bucket["max"] for bucket in fast.buckets()] == steps


@both
@pytest.mark.parametrize(
    ("aggregate", "oracle"),
    [
        (sg.min(), min),
        (sg.range(), lambda values: max(values) - min(values)),
        (sg.max_count(), lambda values: values.count(max(values))),
    ],
    ids=["min", "range", "max_count"],
)
@pytest.mark.parametrize("kind", KINDS)
def test_other_extremes_are_exact_too(aggregate: Any, oracle: Any, kind: str) -> None:
    """Without block maxima nothing that counts is given up, also of both extremes at once."""
    values = readings(kind, 350, seed=2)
    window = sg.Window({"it": aggregate}, policy=count(80), histograms=[staircase(6)])
    for i, value in enumerate(values):
        window.insert(value)
        exact = oracle(values[max(0, i - 79) : i + 1])
        assert window.query(bounds=True)["it"] == (exact, exact, exact, True)
    assert len(window) < 80 or kind in ("falling", "walk", "saw")


@both
def test_the_first_greatest_reading_is_told() -> None:
    """An argmax: equal values do not hide each other, so the time is the first one's."""
    values = readings("walk", 500, seed=4)
    window = sg.Window({"when": sg.argmax()}, policy=count(70), histograms=[staircase(4)])
    plain = sg.Window({"when": sg.argmax()}, policy=count(70))
    for i, value in enumerate(values):
        window.insert(value, i)
        plain.insert(value, i)
        assert window.query()["when"] == plain.query()["when"]


def test_little_leaves_the_tail() -> None:
    """Noise about a slow wave: a reading in two thousand is stored, all answers exact; without the tail half of all."""
    rng = random.Random(3)
    values = [100.0 * (1 - abs((i % 8_000) / 4_000 - 1)) + rng.gauss(0, 30) for i in range(80_000)]
    policy = count(20_000)
    late = sg.Window({"max": sg.max()}, policy=policy, histograms=[staircase(64)])
    early = sg.Window({"max": sg.max()}, policy=policy, histograms=[staircase(2)])
    exact = sg.Window({"max": sg.max()}, policy=policy).insert_many(values)
    for window in (late, early):
        assert window.insert_many(values) == exact
    assert late.footprint.created <= 0.0005 * len(values)
    assert early.footprint.created > 20 * late.footprint.created
    assert late.footprint.held < 64 + 20


@both
@pytest.mark.parametrize("kind", KINDS)
def test_within_a_budget_intervals_stay_certain(kind: str) -> None:
    """At most four buckets before a tail of three: whatever the stream, the exact result lies inside."""
    values = readings(kind, 450, seed=5)
    window = sg.Window({"max": sg.max()}, policy=count(150), histograms=[staircase(3), pairs(4)])
    for i, value in enumerate(values):
        window.insert(value)
        _, low, high, _ = window.query(bounds=True)["max"]
        assert low <= max(values[max(0, i - 149) : i + 1]) <= high
        assert len(window) <= 4 + 3
    window.verify()


@both
@pytest.mark.parametrize("histograms", MADE[1:], ids=lambda made: "+".join(each.name for each in made))
@pytest.mark.parametrize("policy", [time(250), count(80)], ids=lambda policy: policy.name)
def test_rows_are_rewritten_or_retired_and_a_restart_changes_nothing(policy: Any, histograms: Any) -> None:
    """Rows kept as a store keeps them: the rows of the closed leaves and no others; rebuilt, the same bits."""
    rng, rows = random.Random(5), Rows()
    aggregates = {"max": sg.max(), "mean": sg.mean()}
    made = {"policy": policy, "histograms": histograms}
    going, rebuilt = (sg.Window(aggregates, **made) for _ in range(2))
    for i, value in enumerate(readings("saw", 300) + readings("noise", 150)):
        if rng.random() < 0.1:
            rows.keep(rebuilt)
            rebuilt = sg.Window.rebuild(aggregates, state=rebuilt.state(), leaves=rows.shuffled(rng), **made)
            assert rebuilt.changes().closed == []
        if i % 97 == 0:
            rebuilt = sg.Window.restore(rebuilt.snapshot(), aggregates, **made)
        going.insert(value, 3 * i)
        rebuilt.insert(value, 3 * i)
        assert rebuilt.query(bounds=True) == going.query(bounds=True)
    assert rebuilt.state() == going.state()


@both
def test_a_damaged_state_is_refused() -> None:
    """A tail that is longer than it may be, or parted elsewhere than between its ends."""
    made = {"policy": count(50), "histograms": [staircase(4)]}
    window = sg.Window({"max": sg.max()}, **made)
    window.insert_many(readings("falling", 40), results=False)
    saved = window._core.save()
    for wrong in ((0, 5, 2), (0, 4, 0), (0, 4, 4), (0, -1, 0)):
        rules = b"".join(number.to_bytes(8, "little", signed=True) for number in wrong) + saved.rules[24:]
        leaves = [window._core.leaf(i) for i in range(window._core.head, window._core.tail)]
        with pytest.raises(ValueError, match="staged"):
            sg.Window({"max": sg.max()}, **made)._core.load(saved._replace(rules=rules), leaves)
    with pytest.raises(errors.ForeignSnapshotError):
        sg.Window.restore(window.snapshot(), {"max": sg.max()}, policy=count(50), histograms=[staircase(5)])


@both
def test_a_step_joins_where_that_adds_least() -> None:
    """Levels of 20 readings a thousand apart, each falling slowly: no bucket ever spans two of them, small or not."""
    window = sg.Window({"max": sg.max()}, policy=count(70), histograms=[staircase(2), pairs(6)])
    opened = []
    for i in range(600):
        window.insert(-1000.0 * (i // 20) - i % 20)
        assert all(bucket["max"] + 1000.0 * (bucket.t_last // 20) <= 0.0 for bucket in window.buckets())
        opened.append(window.footprint.created)
    window.verify()
    assert opened[-1] - opened[300] < 300 * 0.6  # a step that joins opens none


@both
def test_nothing_joins_while_there_is_room() -> None:
    """A budget that was reached once does not make steps join when it is half empty again: those answers are exact."""
    window = sg.Window({"max": sg.max()}, policy=count(400), histograms=[staircase(2), pairs(40)])
    for i in range(300):
        window.insert(-float(i))
    window.insert(5.0)  # hides all of them
    for i in range(30):
        window.insert(4.0 - i)
    assert [bucket.count for bucket in window.buckets()] == [301] + [1] * 30


def test_what_makes_no_sense_is_refused() -> None:
    """Sizes out of range, an estimate for a staircase, company that contradicts it."""
    for wrong, words in (
        ({"staging": 1}, "staging=1"), ({"staging": 2**21}, "from 2 to"), ({"staircase": True, "staging": 0}, "a tail"),
        ({"staircase": True, "block": 9}, "leave one"),
    ):  # fmt: skip
        with pytest.raises(errors.ConfigurationError, match=words):
            sg.MaxLike(**wrong)
    with pytest.raises(errors.ConfigurationError, match="merge='pairs'"):
        sg.Window(sg.max(), policy=count(90), histograms=[staircase(), sg.Constrained(8)])
    with pytest.raises(errors.ConfigurationError, match="staging=0"):
        sg.Window(sg.max(), policy=count(90, hop=10), histograms=[staircase(), sg.Hop()])
    with pytest.raises(errors.ConfigurationError, match="no maximum"):
        sg.Window(sg.mean(), policy=count(90), histograms=[staircase()])
    with pytest.raises(errors.ConfigurationError, match="brings its own tree"):
        sg.Window(sg.max(), policy=count(90), engine="recalc", histograms=[staircase()])
    with pytest.raises(errors.ConfigurationError, match="decides in memory"):
        sg.Window(sg.max(), policy=count(90), histograms=[staircase()], store=sg.stores.Memory())
