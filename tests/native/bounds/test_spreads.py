"""Variance, deviation, geometric mean, range and how often the extremes occur: their laws, answers and intervals."""

from __future__ import annotations

import math
import random
import sys
from array import array
from collections.abc import Sequence
from fractions import Fraction
from functools import reduce
from itertools import pairwise
from pathlib import Path
from typing import Any

import error_algebra as bounds
import extremes_twin as bounds_extremes
import pytest
import variance_twin as bounds_variance
from cut_buckets import cut_by_time, pool
from exact_windows import CLOCKS, SHAPES, Exact, readings
from hypothesis import given, settings
from hypothesis import strategies as st
from shares import in_processes
from thorough import WINDOWS, number
from twins.core import Core as Twin
from twins.program import combiner, lift
from variance_twin import Deviations

import sluicegate as sg
import sluicegate.window.configure
from sluicegate.bounds.intervals import difference
from sluicegate.catalogue import FACTS
from sluicegate.core.core import Core
from sluicegate.errors import BoundsError, ConfigurationError, InputError
from sluicegate.format.bucket import ORDERED, Builder
from sluicegate.monoids.layout import Op, lay_out

sys.path.append(str(Path(__file__).resolve().parents[3]))
from bench.intervals import KINDS, attack

NEW = {
    "variance": sg.variance(), "sample": sg.variance(ddof=1), "std": sg.std(), "range": sg.range(),
    "min_count": sg.min_count(), "max_count": sg.max_count(), "geometric_mean": sg.geometric_mean(),
}  # fmt: skip
EXACT_OPS = (Op.LOW_COUNT, Op.HIGH_COUNT, Op.LOW_ENDS, Op.HIGH_ENDS)


def truth(values: Sequence[float]) -> dict[str, Any]:
    """Every new aggregate of these values, as fractions where they are rational."""
    exact = [Fraction(x) for x in values]
    n, mean = len(exact), sum(exact) / len(exact)
    squares = sum((x - mean) ** 2 for x in exact)
    return {
        "variance": squares / n, "sample": squares / (n - 1) if n > 1 else None, "std": math.sqrt(squares / n),
        "range": max(exact) - min(exact), "min_count": values.count(min(values)),
        "max_count": values.count(max(values)),
        "geometric_mean": math.exp(math.fsum(map(math.log, values)) / n) if min(values) > 0 else None,
    }  # fmt: skip


# laws

Values = st.lists(st.one_of(st.integers(1, 6).map(float), st.floats(1e-12, 1e12)), min_size=3, max_size=12)


@given(Values, st.data())
def test_combining_is_associative(values: list[float], data: Any) -> None:
    """However the tree is built: counts and extremes to the bit, deviations and logarithms but for rounding."""
    layout = lay_out(NEW, header=False, times=False, bucketed=True)
    combine, first = combiner(layout), values[0]
    leaves = [lift(layout, [x], i, i, [first]) for i, x in enumerate(values)]
    straight = reduce(combine, leaves)
    while len(leaves) > 1:
        i = data.draw(st.integers(0, len(leaves) - 2))
        leaves[i : i + 2] = [combine(leaves[i], leaves[i + 1])]
    for component in layout.components:
        slots = slice(component.slot, component.slot + len(layout.format.format))
        if component.op in EXACT_OPS:
            assert leaves[0][slots][:2] == straight[slots][:2]
    at, spread = layout.slot(Op.MOMENTS), max(values) - min(values)
    scale = max(abs(x - first) for x in values)
    assert leaves[0][at] == straight[at] == len(values)
    assert leaves[0][at + 2] == pytest.approx(straight[at + 2], rel=1e-12, abs=1e-12 * spread * scale)


@given(st.lists(st.integers(-3, 3).map(float), min_size=1, max_size=14))
def test_what_precedes_and_follows_the_extremes(values: list[float]) -> None:
    """The greatest value before the first and after the last maximum; the least around the minimum: by definition."""
    layout = lay_out({"range": sg.range()}, header=False, times=False, bucketed=True)
    partial = reduce(combiner(layout), [lift(layout, [x], i, i, [0.0]) for i, x in enumerate(values)])
    for op, extreme, none in ((Op.HIGH_ENDS, max, -math.inf), (Op.LOW_ENDS, min, math.inf)):
        at, peak = layout.slot(op), extreme(values)
        before = values[: values.index(peak)]
        after = values[len(values) - values[::-1].index(peak) :]
        assert partial[at : at + 3] == [peak, extreme(before, default=none), extreme(after, default=none)]


@given(Values, st.data())
def test_compiled_and_twin_agree_to_the_bit(values: list[float], data: Any) -> None:
    """Partials combined in any order, and answers under any cut, are the same bytes."""
    layout = lay_out(NEW, header=False, times=False, bucketed=True)
    settings = layout, "recalc", 1, data.draw(st.integers(1, 12)), data.draw(st.sampled_from([4, 5, 8])), None
    cores = [Core(*settings, None, 1, 0), Twin(*settings, None, 1, 0)]
    for i, x in enumerate(values):
        for core in cores:
            core.insert((x,), i)
        assert cores[0].total() == cores[1].total()
        assert cores[0].results() == cores[1].results()


def test_deviations_survive_a_far_center() -> None:
    """Values around 1e9 that differ by 1: the variance is right to twelve digits, where sums of squares have none."""
    rng = random.Random(1)
    values = [1e9 + rng.random() for _ in range(5000)]
    for histograms in ([], [sg.Constrained(16)]):
        window = sg.Window(sg.variance(), policy=sg.policies.count(10**6), histograms=histograms)
        window.insert_many(array("d", values), results=False)
        exact = truth(values)["variance"]
        assert window.query()["variance"] == pytest.approx(float(exact), rel=1e-12)
        answer = window.query(bounds=True)["variance"]
        assert answer.low <= exact <= answer.high


# answers


@pytest.mark.usefixtures("implementation_of_window")
@pytest.mark.parametrize(
    "engine", [name for name in sg.ENGINES if FACTS[name].keeps_leaves and not FACTS[name].deducts]
)
@pytest.mark.parametrize("policy", [sg.policies.count(13), sg.policies.time(40)], ids=["count", "time"])
def test_windows_of_single_readings(engine: str, policy: Any) -> None:
    """Without buckets every answer is the recomputed one, and its interval is exact and holds the fraction."""
    rng, exact = random.Random(2), Exact(policy)
    window = sg.Window(NEW, policy=policy, engine=engine)
    assert window.query() == dict.fromkeys(NEW)
    for _ in range(number(200, 90)):
        value, time = float(rng.randrange(1, 5)), (exact.newest if exact.times else 0) + rng.randrange(9)
        window.insert(value, time)
        exact.insert(value, time)
        true = truth(exact.values[exact.begin :])
        for name, (answer, low, high, sure) in window.query(bounds=True).items():
            assert sure
            if true[name] is None:
                assert answer is None
                continue
            assert low <= true[name] <= high
            assert answer == pytest.approx(float(true[name]), rel=1e-12, abs=1e-15)


@pytest.mark.usefixtures("implementation_of_window")
@pytest.mark.parametrize("engine", ["soe", "amta", "two_stacks"])
@pytest.mark.parametrize("hop", [1, 7])
def test_an_interval_owes_nothing_to_readings_that_left(engine: str, hop: int) -> None:
    """What far readings round away may stay with an engine that subtracts; the interval holds the exact result."""
    source = random.Random(5)
    for far in (30.0, 1e3, 1e6, 1e9):
        window = sg.Window({"v": sg.variance(), "d": sg.std()}, policy=sg.policies.count(3, hop=hop), engine=engine)
        seen: list[Fraction] = []
        for i in range(number(400, 200)):
            value = source.random() * (far ** source.random() if i % 3 == 0 else 1.0)
            window.insert(value)
            seen.append(Fraction(value))
            held = seen[-len(window) :]
            mean = sum(held) / len(held)
            exact = sum((x - mean) ** 2 for x in held) / len(held)
            answers = window.query(bounds=True)
            assert Fraction(answers["v"].low) <= exact <= Fraction(answers["v"].high)
            assert Fraction(answers["d"].low) ** 2 <= exact <= Fraction(answers["d"].high) ** 2


def test_a_batch_gives_what_single_readings_give() -> None:
    """Columns of a batch are the answers after each reading; NaN where there is none."""
    values = [float(x % 7 + 1) for x in range(60)]
    batch, single = (sg.Window(NEW, policy=sg.policies.count(9), histograms=[sg.Constrained(4)]) for _ in range(2))
    columns = batch.insert_many(values)
    for i, value in enumerate(values):
        single.insert(value)
        for name, answer in single.query().items():
            column = columns[name][i]
            assert (math.isnan(column) and answer is None) or column == answer


@pytest.mark.usefixtures("implementation_of_window")
@pytest.mark.parametrize("histogram", [sg.SumLike(0.3), sg.MaxLike(block=8), sg.Constrained(5)], ids=str)
def test_a_batch_without_results_leaves_the_same_bytes(histogram: Any) -> None:
    """Runs of joining readings that are folded at once are folded as single ones are."""
    rng = random.Random(4)
    batch, single = (sg.Window(NEW, policy=sg.policies.count(90), histograms=[histogram]) for _ in range(2))
    for _ in range(12):
        values = [float(rng.randrange(1, 9)) for _ in range(rng.randrange(1, 50))]
        batch.insert_many(values, results=False)
        for value in values:
            single.insert(value)
        assert batch.snapshot() == single.snapshot()


@pytest.mark.usefixtures("implementation_of_window")
def test_one_reading_has_no_sample_variance() -> None:
    """The population's variance of one reading is 0, the sample's is nothing, in and out of a batch."""
    for histograms in ([], [sg.Constrained(4)]):
        kinds = {"p": sg.variance(), "s": sg.variance(ddof=1), "d": sg.std(ddof=1)}
        window = sg.Window(kinds, policy=sg.policies.count(1), histograms=histograms)
        window.insert(3.0)
        assert window.query() == {"p": 0.0, "s": None, "d": None}
        answers = window.query(bounds=True)
        assert answers["s"] == (None, None, None, True)
        assert answers["p"].low == 0.0 <= answers["p"].high < 1e-200 + 1e-12
        assert all(math.isnan(window.insert_many([2.0])[name][0]) for name in ("s", "d"))


@pytest.mark.usefixtures("implementation_of_window")
@pytest.mark.parametrize("value", [0.0, -0.0, -1.5])
def test_a_geometric_mean_refuses_what_is_not_positive(value: float) -> None:
    """Before anything enters, by name and index, and only in the dimension it reads."""
    window = sg.Window({"g": sg.geometric_mean("a"), "m": sg.mean("b")}, policy=sg.policies.count(5))
    window.insert({"a": 1.0, "b": value})
    with pytest.raises(InputError, match=r"reading\['a'\].*greater than 0"):
        window.insert({"a": value, "b": 1.0})
    block = memoryview(array("d", [1.0, value, 2.0, 1.0, value, 1.0])).cast("B").cast("d", shape=[3, 2])
    with pytest.raises(InputError, match=r"values\[2, 0\].*nothing was inserted"):
        window.insert_many(block)
    assert window.accepted == 1
    single = sg.Window(sg.geometric_mean(), policy=sg.policies.count(5))
    with pytest.raises(InputError, match=r"values\[1\]"):
        single.insert_many([1.0, value])
    assert single.accepted == 0


@pytest.mark.parametrize("ddof", [-1, 2, True, 0.5, None])
def test_ddof_is_the_population_or_a_sample(ddof: Any) -> None:
    """Anything but 0 and 1 is refused when the window is made."""
    with pytest.raises(ConfigurationError, match="ddof"):
        sg.Window(sg.variance(ddof=ddof), policy=sg.policies.count(5))


def test_values_whose_squares_overflow() -> None:
    """A variance beyond float64 is inf, and its interval has no upper end."""
    for histograms in ([], [sg.Constrained(4)]):
        window = sg.Window(sg.variance(), policy=sg.policies.count(9), histograms=histograms)
        window.insert_many([(-1.0) ** i * 1e200 for i in range(30)])
        assert window.query()["variance"] == math.inf
        assert window.query(bounds=True)["variance"].high == math.inf


# intervals


@pytest.mark.parametrize("kind", NEW)
def test_no_certain_bound_without_a_declared_policy(kind: str) -> None:
    """A policy that does not say it is monotone and dependent only on what remains gets answers, and no interval."""
    for monotone, remaining in ((False, False), (True, False), (False, True)):
        rule = sg.policies.custom(lambda total, old: total.count > 9, monotone=monotone, remaining=remaining)
        window = sg.Window({kind: NEW[kind]}, policy=rule, histograms=[sg.Constrained(4)])
        for x in range(30):
            window.insert(float(x + 1))
        assert window.query()[kind] is not None
        with pytest.raises(BoundsError):
            window.query(bounds=True)


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
@pytest.mark.usefixtures("implementation_of_window")
def test_every_shape_lies_inside(shape: Any, clock: str) -> None:
    """Compiled and pure, values as floats come: intervals hold the fraction, and the estimate lies in its interval."""
    rng = random.Random(clock + shape.__name__)
    policy = rng.choice([sg.policies.count(25), sg.policies.time(70)])
    kinds = {name: kind for name, kind in NEW.items() if name != "geometric_mean"}
    window, exact = sg.Window(kinds, policy=policy, histograms=[sg.Constrained(5)]), Exact(policy)
    for value, time in readings(rng, shape, clock, number(160, 70)):
        window.insert(value, time)
        exact.insert(value, time)
        true = truth(exact.values[exact.begin :]) if exact.begin < len(exact.values) else {}
        for name, (answer, low, high, _) in window.query(bounds=True).items() if true else ():
            if true[name] is not None and answer is not None:
                slack = 4e-16 * true[name] if name == "std" else 0  # the oracle's own root
                assert low - slack <= true[name] <= high + slack, (name, low, true[name], high)
                assert low <= answer <= high


@pytest.mark.slow
def test_many_windows_of_all_aggregates() -> None:
    """Random streams, clocks, policies, histograms: of WINDOWS windows none lies outside, and many are cut."""
    found = in_processes(__name__, *(f"share({WINDOWS // 4}, {seed})" for seed in (77, 78, 79, 80)))
    assert [outside for _, outside, _ in found] == [0, 0, 0, 0]
    assert sum(asked for asked, _, _ in found) >= WINDOWS
    cut = {name: sum(widths.get(name, 0) for *_, widths in found) for name in KINDS}
    assert all(count > WINDOWS // 2_000 for name, count in cut.items() if name != "last"), cut


def share(windows: int, seed: int) -> tuple[int, int, dict[str, int]]:
    """Windows asked, windows outside, and by aggregate those that were cut."""
    asked, outside, widths = attack(windows, seed, KINDS)
    return asked.total(), outside.total(), {name: len(each) for name, each in widths.items()}


def test_the_oracle_finds_a_bound_that_is_too_narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Narrowed by a tenth of what is uncertain, intervals do not hold: the brute force can fail."""
    whole = bounds_variance.variance_interval

    def narrow(*given: Any) -> bounds.Interval:
        found = whole(*given)
        return found._replace(high=found.high - 0.4 * (found.high - found.low))

    monkeypatch.setattr(bounds_variance, "variance_interval", narrow)
    monkeypatch.setattr(sluicegate.window.configure, "Core", Twin)  # which answers by the definition
    assert attack(number(20_000, 6_000), 3, {"variance": sg.variance(), "max": sg.max()})[1]["variance"] > 0


def folded(rng: random.Random, units: list[int], times: list[int]) -> list[tuple[Any, Deviations]]:
    """Buckets of random sizes and their moments; where time goes back they are unordered."""
    found, at = [], 0
    while at < len(units):
        end = min(len(units), at + rng.randrange(1, 12))
        builder = Builder(0.0, at)
        for unit, time in zip(units[at:end], times[at:end], strict=True):
            builder.add(float(unit), time)
        found.append((builder.close(), moments(units[at:end])))
        at = end
    return found


def moments(units: Sequence[int]) -> Deviations:
    """Of whole numbers, rounded once."""
    if not units:
        return Deviations()
    n, mean = len(units), Fraction(sum(units), len(units))
    return Deviations(n, float(mean), float(sum((x - mean) ** 2 for x in units)), min(units), max(units))


@pytest.mark.parametrize("seed", range(number(60, 12)))
def test_both_edges_cut(seed: int) -> None:
    """Windows in time over ordered and unordered buckets: two cut ones pooled, one with its moments, none."""
    rng = random.Random(seed)
    spread = rng.choice([1, 3, 1000])
    units = [rng.randrange(-spread, spread + 1) for _ in range(60)]
    times = sorted(rng.randrange(100) for _ in units)
    if seed % 3 == 0:
        times = [t + rng.randrange(-20, 20) for t in times]
    buckets = folded(rng, units, times)
    for _ in range(80):
        begin = rng.randrange(-5, 100)
        end = begin + rng.randrange(1, 90)
        inside = [x for x, t in zip(units, times, strict=True) if begin <= t < end]
        whole, parts, cut = [], bounds.NOTHING, []
        for bucket, own in buckets:
            if bucket.t_first >= begin and bucket.t_last < end:
                whole += units[bucket.first : bucket.first + bucket.n]
            elif bucket.t_last >= begin and bucket.t_first < end:
                parts = pool(parts, cut_by_time(bucket, 0.0, begin, end))
                cut.append(own)
        for ddof in (0, 1):
            single = cut[0] if len(cut) == 1 else None
            found = bounds_variance.variance_interval(moments(whole), parts, 0.0, single, ddof)
            if len(inside) > ddof:
                mean = Fraction(sum(inside), len(inside))
                true = sum((x - mean) ** 2 for x in inside) / (len(inside) - ddof)
                assert found.low <= true <= found.high


def test_many_counts_are_taken_in_runs() -> None:
    """Any range of counts is covered without gaps by at most 64 runs; few counts one by one."""
    for first, last in ((0, 0), (0, 63), (1, 64), (1, 65), (0, 10**6), (17, 12345), (10**9, 10**12)):
        runs = list(bounds_variance.runs(first, last))
        assert runs[0][0] == first
        assert runs[-1][1] == last
        assert len(runs) <= 64
        assert all(a[1] + 1 == b[0] for a, b in pairwise(runs))
    assert list(bounds_variance.runs(3, 5)) == [(3, 3), (4, 4), (5, 5)]


@settings(max_examples=300)
@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=9), st.lists(st.integers(0, 3), max_size=4),
    st.integers(0, 8), st.integers(0, 8), st.sampled_from([1, -1]),
)  # fmt: skip
def test_occurrences_by_brute_force(cut: list[int], rest: list[int], a: int, b: int, sign: int) -> None:
    """Of every place where the window may begin, the count of the extreme lies in the range, which is not idle."""
    extreme = max if sign == 1 else min
    low, high = sorted((a % len(cut), b % len(cut)))
    peak = extreme(cut)
    places = [i for i, x in enumerate(cut) if x == peak]
    none = -sign * math.inf
    around = extreme(cut[: places[0]], default=none), extreme(cut[places[-1] + 1 :], default=none)
    bucket = bounds_extremes.Peak(peak, places[0], places[-1], len(places), *around, cut[-1])
    inside = bounds_extremes.Known(extreme(rest), rest.count(extreme(rest))) if rest else None
    found = bounds_extremes.occurrences(inside, bucket, (low, high), len(cut), sign)
    possible = [(cut[start:] + rest).count(extreme(cut[start:] + rest)) for start in range(low, high + 1)]
    assert found[0] <= min(possible)
    assert max(possible) <= found[1] <= len(cut) - low + len(rest)
    if low == high == 0:
        assert found == (possible[0], possible[0])


def test_a_lost_maximum_is_bounded_by_what_follows_it() -> None:
    """A spike that has left the window does not stay its upper bound: what came after it does."""
    window = sg.Window(
        {"max": sg.max(), "range": sg.range()}, policy=sg.policies.count(30), histograms=[sg.Constrained(4)]
    )
    highest = []
    for i in range(300):
        window.insert(1000.0 if i == 200 else float(i % 5))
        if i >= 231:
            highest.append((window.query(bounds=True)["max"].high, window.query(bounds=True)["range"].high))
    assert set(highest) == {(4.0, 4.0)}


@given(st.floats(-1e300, 1e300), st.floats(-1e300, 1e300))
def test_differences_round_outward(a: float, b: float) -> None:
    """a − b lies between the two floats, which are neighbours or one."""
    low, high = difference(a, b)
    assert low <= Fraction(a) - Fraction(b) <= high
    assert math.nextafter(low, math.inf) >= high


def test_unordered_flag_is_used() -> None:
    """The streams of the test above do make unordered buckets."""
    buckets = folded(random.Random(0), [1, 2, 3, 4], [5, 1, 9, 2])
    assert any(not bucket.flags & ORDERED for bucket, _ in buckets)
