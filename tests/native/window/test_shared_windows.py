"""Several windows from one set of buckets: each one's interval holds its own exact result; the longest is a Window."""

from __future__ import annotations

import random
from typing import Any

import pytest
from exact_windows import ALL, CLOCKS, SHAPES, Exact
from test_histogram_windows import outside, stream
from thorough import number

import sluicegate as sg
from sluicegate import errors

count, time = sg.policies.count, sg.policies.time
both = pytest.mark.usefixtures("implementation_of_window")
BY_TIME = {"short": time(60), "middle": time(150), "long": time(400)}
BY_COUNT = {"long": count(120), "one": count(1), "short": count(17), "hops": count(40, hop=20)}
MADE: dict[str, list[Any]] = {
    "levels": [sg.Constrained(12)],
    "pairs": [sg.Constrained(16, merge="pairs")],
    "sum-like": [sg.SumLike(error=0.1)],
    "staircase": [sg.MaxLike(staircase=True, staging=6), sg.Constrained(6, merge="pairs")],
}


@both
@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("histograms", MADE)
@pytest.mark.parametrize("policies", [BY_TIME, BY_COUNT], ids=["time", "count"])
def test_every_window_holds_its_exact_result(policies: dict[str, Any], histograms: str, clock: str) -> None:
    """Every aggregate of every window after most readings, also where times go back; the longest to the bit."""
    windows = sg.Windows(ALL, policies=policies, histograms=MADE[histograms])
    alone = sg.Window(ALL, policy=policies["long"], histograms=MADE[histograms])
    exact = {name: Exact(policy) for name, policy in policies.items()}
    rng, edges = random.Random(1), dict.fromkeys(policies, -1)
    shape = SHAPES[(len(histograms) + len(clock)) % len(SHAPES)]
    for value, moment in stream(histograms + clock, shape, clock, 150):
        windows.insert(value, moment)
        alone.insert(value, moment)
        for each in exact.values():
            each.insert(value, moment)
        if rng.random() < 0.6:
            continue
        answers = windows.query(bounds=True)
        for name, each in exact.items():
            assert outside(each, answers[name]) == [], name
            if name != "long":
                part = windows._parts[name]
                assert edges[name] <= part.edge < each.begin
                edges[name] = part.edge
        assert answers["long"] == alone.query(bounds=True)
    values = windows.query()
    assert list(values) == list(policies)
    assert values["long"] == alone.query()


@both
def test_counts_by_count_are_exact_and_a_maximum_is_in_all() -> None:
    """A count window knows how many are inside, whichever bucket is cut; a staircase is exact for all of them."""
    policies = {"day": count(100), "hour": count(9), "half": count(50)}
    few = sg.Windows({"n": sg.count()}, policies=policies, histograms=[sg.Constrained(8)])
    steps = sg.Windows({"max": sg.max()}, policies=policies, histograms=[sg.MaxLike(staircase=True, staging=4)])
    rng, seen = random.Random(3), []
    for _ in range(500):
        seen.append(rng.random())
        few.insert(seen[-1])
        steps.insert(seen[-1])
        counted, found = few.query(bounds=True), steps.query(bounds=True)
        for name, policy in policies.items():
            inside = seen[-policy.limit :]
            assert counted[name]["n"] == (len(inside), len(inside), len(inside), True)
            assert found[name]["max"] == (max(inside), max(inside), max(inside), True)


@both
def test_a_restart_changes_nothing() -> None:
    """A snapshot in the midst, restored: the same answers and bytes from then on; batches and single readings alike."""
    made: dict[str, Any] = {"policies": BY_TIME, "histograms": MADE["pairs"]}
    going, again = (sg.Windows({"mean": sg.mean(), "max": sg.max()}, **made) for _ in range(2))
    rng = random.Random(4)
    for block in range(40):
        values = [rng.gauss(0, 1) for _ in range(10)]
        times = [30 * block + 3 * i for i in range(10)]
        going.insert_many(values, times)
        for value, moment in zip(values, times, strict=True):
            again.insert(value, moment)
        if block % 7 == 3:
            assert going.query(bounds=True) == again.query(bounds=True)
            again = sg.Windows.restore(again.snapshot(), {"mean": sg.mean(), "max": sg.max()}, **made)
        if block % 3 == 0:
            close(going.query(bounds=True), again.query(bounds=True))
    assert going.snapshot() == again.snapshot()
    assert again.footprint == again.longest.footprint
    assert again.accepted == 400


def close(one: Any, other: Any) -> None:
    """Equal, but for the rounding of sums that were folded in another order."""
    for name, answers in one.items():
        for aggregate, answer in answers.items():
            assert answer.exact == other[name][aggregate].exact
            assert list(answer[:3]) == pytest.approx(list(other[name][aggregate][:3]), rel=1e-12, abs=1e-12)


def test_one_set_of_buckets_is_what_is_held() -> None:
    """Three windows hold what the longest alone holds, a third of three of their own; the day's mean is near."""
    policies = {"short": count(1_000), "middle": count(5_000), "long": count(25_000)}
    histograms = [sg.Constrained(128, merge="pairs")]
    shared = sg.Windows(sg.mean(), policies=policies, histograms=histograms)
    alone = [sg.Window(sg.mean(), policy=policy, histograms=histograms) for policy in policies.values()]
    rng = random.Random(5)
    values = [20 + i / 10_000 + rng.gauss(0, 1) for i in range(60_000)]
    shared.insert_many(values)
    for window in alone:
        window.insert_many(values, results=False)
    assert shared.footprint.bytes == alone[2].footprint.bytes
    assert 2.5 * shared.footprint.bytes < sum(window.footprint.bytes for window in alone)
    assert shared.footprint.created == alone[2].footprint.created
    for name, answer in shared.query().items():
        exact = values[-policies[name].limit :]
        assert answer["mean"] == pytest.approx(sum(exact) / len(exact), rel=0.01)


@both
def test_before_the_first_reading_nothing_is_answered() -> None:
    """Each window as an empty Window answers."""
    made: dict[str, Any] = {"policies": BY_COUNT, "histograms": MADE["levels"]}
    windows = sg.Windows({"n": sg.count(), "mean": sg.mean()}, **made)
    assert windows.query() == {name: {"n": 0, "mean": None} for name in BY_COUNT}
    assert windows.query(bounds=True)["one"]["n"] == (0, 0, 0, True)


def test_what_cannot_share_buckets_is_refused() -> None:
    """No windows, no buckets, two kinds, what drops the irrelevant, a hop that outgrows the longest; foreign bytes."""
    histograms = [sg.Constrained(8)]
    for policies, words in (
        ({}, "expected 1 to 64"),
        ({"a": count(5), "b": time(5)}, "all by count or all by time"),
        ({"a": count(5, up_to="max"), "b": count(9)}, "without up_to"),
        ({"a": count(5, hop=6), "b": count(9)}, "waits for its hop"),
        ({"a": lambda total, old: True}, "all by count"),
    ):
        with pytest.raises(errors.ConfigurationError, match=words):
            sg.Windows(sg.max(), policies=policies, histograms=histograms)  # type: ignore[arg-type]
    with pytest.raises(errors.ConfigurationError, match="no buckets to share"):
        sg.Windows(sg.max(), policies=BY_COUNT, histograms=[])
    windows = sg.Windows(sg.max(), policies=BY_COUNT, histograms=histograms)
    windows.insert_many([1.0, 2.0])
    data = windows.snapshot()
    for broken, given in ((data, BY_COUNT | {"short": count(18)}), (b"x" + data[1:], BY_COUNT), (data[:30], BY_COUNT)):
        with pytest.raises(errors.SnapshotError):
            sg.Windows.restore(broken, sg.max(), policies=given, histograms=histograms)


@both
def test_shorter_windows_over_one_that_there_is() -> None:
    """As if made together; what was known to have left is taken over; what cannot be has a reason."""
    made: dict[str, Any] = {"policy": BY_TIME["long"], "histograms": MADE["pairs"]}
    shorter = {name: policy for name, policy in BY_TIME.items() if name != "long"}
    together = sg.Windows({"mean": sg.mean()}, policies=BY_TIME, histograms=MADE["pairs"])
    window = sg.Window({"mean": sg.mean()}, **made)
    over = sg.Windows.over(window, "long", shorter)
    for i in range(900):
        together.insert(float(i % 31), i)
        window.insert(float(i % 31), time=i)
        if i % 7 == 0:
            assert over.query(bounds=True) == together.query(bounds=True)
            assert over.answer("short") == together.query()["short"]
            assert 1 <= over.held("short") <= over.held("middle") <= over.held("long") == len(window)
    again = sg.Windows.over(window, "long", shorter)
    again.know(over.edges)
    assert again.edges == over.edges == together.edges
    assert again.query(bounds=True) == over.query(bounds=True)
    for edges in ({"short": 900}, {"short": -2}, {"other": 1}):
        with pytest.raises(errors.SnapshotError, match="cannot have left"):
            again.know(edges)
    for name, policies, reason in (("long", {"long": time(9)}, "another"), ("long", {"more": time(999)}, "longer")):
        with pytest.raises(errors.ConfigurationError, match=reason):
            sg.Windows.over(window, name, policies)


@both
def test_what_is_withheld_is_withheld_in_shorter_windows() -> None:
    """A mean through zero: every value that a window gives out keeps the limit of the exact one, some are not given."""
    limit = sg.SumLike(0.05, withhold=True)
    windows = sg.Windows({"mean": sg.mean()}, policies={"short": count(60), "long": count(240)}, histograms=[limit])
    rng, seen, withheld = random.Random(8), list[float](), 0
    for i in range(number(2500, 1400)):  # through zero twice
        seen.append(10.0 * (i % 700 - 350) / 350 + rng.gauss(0, 0.3))
        windows.insert(seen[-1])
        for name, size in (("short", 60), ("long", 240)):
            exact = sum(seen[-size:]) / len(seen[-size:])
            value, bounded = windows.query()[name]["mean"], windows.query(bounds=True)[name]["mean"]
            assert value == bounded.value
            assert bounded.low - 1e-9 <= exact <= bounded.high + 1e-9
            withheld += value is None and name == "short"
            assert value is None or abs(value - exact) <= 0.05 * abs(exact) + 1e-9
    assert withheld > 0
