"""Merging the neighbouring pair that adds least to the bound: which pair, what stays certain, what a restart knows."""

from __future__ import annotations

import itertools
import math
import random
import zlib
from typing import Any

import pytest
from exact_windows import ALL, CLOCKS, SHAPES, Exact
from restarts import Rows
from test_histogram_windows import in_step, outside, stream
from test_spreads import NEW, truth
from thorough import number
from twins import core as pure
from twins.widths import width

import sluicegate as sg
import sluicegate.window.configure
from sluicegate import errors
from sluicegate.core import core as compiled
from sluicegate.histograms.widths import Width, terms
from sluicegate.monoids.layout import lay_out

MOST = (-math.inf, math.inf)
count, time = sg.policies.count, sg.policies.time
both = pytest.mark.usefixtures("implementation_of_window")


def pairs(limit: int) -> sg.Constrained:
    """A footprint whose pairs are merged."""
    return sg.Constrained(limit, merge="pairs")


def made(core: Any, aggregates: Any, policy: Any, histograms: list[Any]) -> sg.Window:
    """A window over one of the two cores."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sluicegate.window.configure, "Core", core)
        return sg.Window(aggregates, policy=policy, histograms=histograms)


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("policy", [time(300), count(90), time(300, hop=100)], ids=lambda policy: policy.name)
def test_shrunk_and_grown_every_window_holds_the_exact_result(policy: Any, clock: str) -> None:
    """The limit changes at random: both cores agree to the bit, nothing is lost, the edge never goes back."""
    fast, slow = (made(core, ALL, policy, [pairs(24)]) for core in (compiled.Core, pure.Core))
    exact, start, edge = Exact(policy), 0, -1
    rng = random.Random(zlib.crc32((policy.name + clock).encode()))
    for shape in SHAPES[:6]:
        for value, moment in stream(policy.name + clock, shape, clock, 80):
            if rng.random() < 0.1:
                limit = rng.randint(4, 24)
                for window in (fast, slow):
                    before = len(window)
                    window.limit_to(limit)
                    assert len(window) == min(before, limit)
                    window.verify()
            edge = in_step(fast, slow, exact, value, start + moment, edge)
            assert len(fast) <= fast.limit
        start += 900
        fast.verify()
        assert fast.snapshot() == slow.snapshot()
        assert fast.changes() == slow.changes()


@both
@pytest.mark.parametrize("policy", [time(250), count(80)], ids=lambda policy: policy.name)
def test_rows_are_rewritten_or_retired_and_a_restart_changes_nothing(policy: Any) -> None:
    """Rows kept as a store keeps them: the rows of the closed leaves and no others; rebuilt, the same bits."""
    rng, rows = random.Random(5), Rows()
    going, rebuilt = (sg.Window(ALL, policy=policy, histograms=[pairs(12)]) for _ in range(2))
    given = 0
    for i, (value, moment) in enumerate(stream("rows", SHAPES[5], "irregular", number(1500, 700))):
        if rng.random() < 0.02:
            limit = rng.randint(4, 12)
            going.limit_to(limit)
            rebuilt.limit_to(limit)
        if rng.random() < 0.1:
            given += rows.keep(rebuilt)
            state, stored = rebuilt.state(), rows.shuffled(rng)
            rebuilt = sg.Window.rebuild(ALL, policy=policy, histograms=[pairs(12)], state=state, leaves=stored)
            assert rebuilt.changes().closed == []
        if i % 97 == 0:
            rebuilt = sg.Window.restore(rebuilt.snapshot(), ALL, policy=policy, histograms=[pairs(12)])
        going.insert(value, moment)
        rebuilt.insert(value, moment)
        assert rebuilt.query(bounds=True) == going.query(bounds=True)
    assert rebuilt.state() == going.state()
    assert number(250, 110) < given < number(1500, 700)


@both
def test_a_missing_row_is_named() -> None:
    """A leaf that no row begins, or whose row says that it holds nothing, is an error, not a gap."""
    window = sg.Window(sg.mean(), policy=count(400), histograms=[pairs(8)])
    for i in range(400):
        window.insert(float(i % 13))
    rows = [(0, number, leaf) for number, leaf in window.changes().closed]
    again = {"policy": count(400), "histograms": [pairs(8)], "state": window.state()}
    assert sg.Window.rebuild(sg.mean(), leaves=rows, **again).query() == window.query()
    for broken in (rows[:2] + rows[3:], [*rows[:2], (0, rows[2][1], bytes(len(rows[2][2]))), *rows[3:]]):
        with pytest.raises(errors.SnapshotError, match=f"ordinal {rows[2][1]} is missing"):
            sg.Window.rebuild(sg.mean(), leaves=broken, **again)
    with pytest.raises(errors.ForeignSnapshotError):
        sg.Window.rebuild(sg.mean(), leaves=rows, **(again | {"histograms": [sg.Constrained(8)]}))


def chosen(window: sg.Window, timed: bool) -> tuple[int, int]:
    """The pair (counts) that adds least, from the leaves alone: of several widths, each less what follows hides.

    A range's two ends are measured by the same spread, so that may be left out.
    """
    layout = window._layout
    given = terms(layout, timed)
    leaves = [layout.format.unpack(window._core.leaf(i)) for i in range(window._core.head, window._core.tail)]

    def extreme(term: Any, later: Any) -> float:
        least = term.width == Width.LOW
        return (min if least else max)((leaf[term.low if least else term.high] for leaf in later), default=MOST[least])

    def weight(leaf: Any, later: Any) -> float:
        hidden = len(given) > 1
        wide = (width(term, leaf, extreme(term, later)) if hidden else width(term, leaf) for term in given)
        return leaf[0] * sum(wide) if leaf[0] > 1 else 0.0

    def both_as_one(i: int) -> Any:
        return layout.format.unpack(window._core.combine(*(layout.format.pack(*leaf) for leaf in leaves[i : i + 2])))

    def key(i: int) -> tuple[float, int, int]:
        a, b, one = leaves[i], leaves[i + 1], both_as_one(i)
        later = leaves[i + 2 :]
        return weight(one, later) - weight(a, [b, *later]) - weight(b, later), one[0], i

    i = min(range(len(leaves) - 1), key=key)
    return i, leaves[i][0] + leaves[i + 1][0]


@both
@pytest.mark.parametrize("aggregate", ["mean", "max", "min", "variance", "geometric_mean", "first", "count", "range"])
def test_the_pair_that_adds_least_is_merged(aggregate: str) -> None:
    """Against the definition, from the leaves alone: each time the limit is lowered by one."""
    window = sg.Window(getattr(sg, aggregate)(), policy=time(900), histograms=[pairs(20)])
    rng = random.Random(aggregate)
    for i in range(900):
        window.insert(math.exp(rng.gauss(1.0, 0.5 if i % 200 < 150 else 2.0)), i)
        if i < 400 or i % 11:
            continue
        for limit in (19, 17, 14):
            before = [bucket.count for bucket in window.buckets()]
            if len(before) != limit + 1:
                continue
            place, size = chosen(window, timed=True)
            window.limit_to(limit)
            after = [bucket.count for bucket in window.buckets()]
            assert after == [*before[:place], size, *before[place + 2 :]]
            window.limit_to(20)


@both
@pytest.mark.parametrize("length", [20.0, 40.0])
def test_a_range_spends_no_bucket_on_what_later_readings_hide(length: float) -> None:
    """Waves, then greater ones, whose ends stay in the window longer: hardly a bucket is kept for those before."""
    window = sg.Window(sg.range(), policy=count(1000), histograms=[pairs(12)])
    for i in range(900):
        window.insert(math.sin(i / length) * (100.0 if 500 <= i < 640 else 80.0))
    ends = list(itertools.accumulate(bucket.count for bucket in window.buckets()))
    assert sum(end <= 500 for end in ends) <= 1
    assert window.query(bounds=True)["range"].exact


@both
def test_of_equals_the_fewest_readings_then_the_oldest() -> None:
    """A constant adds nothing anywhere: buckets stay even, and the oldest of the smallest pairs goes first."""
    window = sg.Window(sg.mean(), policy=count(10_000), histograms=[pairs(8)])
    for _ in range(8):
        window.insert(5.0)
    for sizes in ([2, 1, 1, 1, 1, 1, 1], [2, 2, 1, 1, 1, 1]):
        window.limit_to(len(sizes))
        assert [bucket.count for bucket in window.buckets()] == sizes
    window.limit_to(8)
    for _ in range(5000):
        window.insert(5.0)
    sizes = [bucket.count for bucket in window.buckets()]
    assert max(sizes[:-1]) <= 4.2 * min(sizes[:-1])


def test_a_width_is_what_a_cut_leaves_in_doubt() -> None:
    """By the definition, by hand: five readings around 10, the maximum third."""
    layout = lay_out({**ALL, **NEW}, header=True, times=True, bucketed=True)
    values = [11.0, 12.0, 15.0, 13.0, 9.0]
    program = pure.Core(layout, "amta", 2, 10**6, 0, [10.0])
    packed = b""
    for i, value in enumerate(values):
        single = pure.Core(layout, "amta", 2, 10**6, 0, [10.0])
        single.accepted = i
        single.insert([value], i)
        packed = program.combine(packed, single.leaf(0)) if packed else single.leaf(0)
    leaf = list(layout.format.unpack(packed))
    found = {term.width: width(term, leaf) for term in terms(layout, True) if "LOG" not in str(term)}
    assert found[Width.COUNT] == 4
    assert found[Width.HIGH] == 13.0 - 9.0
    assert found[Width.LOW] == 0.0  # the minimum is the last reading: always inside
    assert found[Width.RANGE] == 6.0
    assert found[Width.SQUARES] == 4 * 36.0
    total = [term for term in terms(layout, True) if term.width == Width.SUM and term.low >= 0]
    assert [width(term, leaf) for term in total] == [min(11.0 - 1.0, 4 * 6.0)]  # prefix sums 1, 3, 8, 11
    known = lay_out({"n": sg.count(), "s": sg.sum()}, header=True, times=True, bucketed=True)
    assert Width.COUNT not in [term.width for term in terms(known, False)]  # a count's edge says how many are inside
    bins = lay_out({"h": sg.histogram([0.0, 1.0])}, header=True, times=True, bucketed=True)
    assert [term.width for term in terms(bins, False)] == [Width.COUNT]


@pytest.mark.parametrize("clock", ["irregular", "going back"])
def test_spreads_stay_certain_too(clock: str) -> None:
    """Variance, range, geometric mean and how often the extremes occur, all in one window, under both cores."""
    fast, slow = (made(core, NEW, time(300), [pairs(9)]) for core in (compiled.Core, pure.Core))
    exact = Exact(time(300))
    for value, moment in stream(clock, SHAPES[0], clock, number(350, 200)):
        for each_one in (fast, slow, exact):
            each_one.insert(value, moment)
        answers = fast.query(bounds=True)
        assert answers == slow.query(bounds=True)
        for name, true in truth(exact.values[exact.begin :]).items():
            if true is not None:
                slack = (
                    1e-13 * true if name in ("std", "geometric_mean") else 0
                )  # the oracle's own root, its logarithms
                assert answers[name].low - slack <= true <= answers[name].high + slack, name
    fast.verify()
    assert fast.snapshot() == slow.snapshot()


def test_readings_that_only_come_late_open_buckets_and_stay_bounded() -> None:
    """Times that only go back: never more buckets than the limit, every result inside."""
    window, exact = sg.Window(ALL, policy=count(60), histograms=[pairs(6)]), Exact(count(60))
    for i in range(800):
        window.insert(float(i * 7919 % 101), -i)
        exact.insert(float(i * 7919 % 101), -i)
        assert len(window) <= 6
        assert outside(exact, window.query(bounds=True)) == []
    window.verify()


def test_a_large_footprint_is_built_shrunk_and_emptied() -> None:
    """Thousands of buckets: the tree stands after every kind of change, memory is given back to the next bucket."""
    window, rng = sg.Window(sg.mean(), policy=time(50_000), histograms=[pairs(4000)]), random.Random(2)
    window.insert_many([rng.gauss(0, 1) for _ in range(60_000)], range(60_000), results=False)
    window.verify()
    assert 3500 < len(window) <= 4000
    held = window.footprint.bytes
    for limit in (1000, 100, 4, 4000):
        window.limit_to(limit)
        window.verify()
    window.insert_many([rng.gauss(0, 1) for _ in range(60_000)], range(10**6, 1_060_000), results=False)
    window.verify()
    assert window.footprint.bytes <= held * 1.02
    window.insert(1.0, 10**9)
    assert len(window) == 1
    assert window.query(bounds=True)["mean"].low <= 1.0 <= window.query(bounds=True)["mean"].high


@both
@pytest.mark.parametrize("aggregates", [{"v": sg.variance()}, {"v": sg.std(), "m": sg.max()}], ids=["one", "two"])
def test_what_overflows_still_has_an_order(aggregates: Any) -> None:
    """Squares beyond float64 leave no cost: it counts as infinite, the tree stays in order, a restart knows it."""
    given = {"policy": count(64), "histograms": [pairs(4)]}
    window = sg.Window(aggregates, **given)
    for i in range(40):
        window.insert((2.0**960, 1.0, -(2.0**960), 3.0)[i % 4 if i < 30 else 1])
        window.verify()
        again = sg.Window.restore(window.snapshot(), aggregates, **given)
        again.verify()
        assert again.snapshot() == window.snapshot()
    assert len(window) <= 4


@both
def test_what_makes_no_sense_is_refused() -> None:
    """Another way of merging, another engine: named, with what is expected."""
    with pytest.raises(errors.ConfigurationError, match=r"merge='triples'.*'pairs'"):
        sg.Constrained(8, merge="triples")  # type: ignore[arg-type]
    with pytest.raises(errors.ConfigurationError, match=r"recalc.*brings its own tree"):
        sg.Window(sg.mean(), policy=count(9), engine="recalc", histograms=[pairs(8)])
    window = sg.Window(sg.mean(), policy=count(50), histograms=[pairs(8)])
    with pytest.raises(errors.ConfigurationError, match="expected 4 to 8"):
        window.limit_to(3)
    with pytest.raises(IndexError, match="ordinal"):
        window.leaf(0)
