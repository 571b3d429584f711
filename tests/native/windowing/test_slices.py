"""Windows kept in slices give what the literal model gives, in any order of readings, over any restart."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from decimal import Decimal, getcontext
from fractions import Fraction
from typing import Any

import pytest
from event_model import EventModel
from hypothesis import given, settings
from hypothesis import strategies as st

import sluicegate as sg
from sluicegate.errors import ConfigurationError, SnapshotError
from sluicegate.windowing.slices import SliceResult, Slices
from sluicegate.windowing.whole import answer

HOUR = 3_600_000_000


class Kept:
    """Slices, and the records that a store would have of them; `again` is what a restart does."""

    def __init__(self, spec: sg.WindowSpec) -> None:
        self.spec, self.slices = spec, Slices(spec)
        self.records: dict[tuple[int, int], bytes] = {}
        self.state = self.slices.state()

    def save(self) -> None:
        """A commit."""
        for kind, start, record in self.slices.changes():
            if record is None:
                self.records.pop((kind, start), None)
            else:
                self.records[kind, start] = record
        self.state = self.slices.state()
        self.slices.saved()

    def again(self) -> None:
        """Go on from what was saved."""
        self.slices = Slices(self.spec)
        self.slices.restore(self.state, [(*place, record) for place, record in self.records.items()])


def told(each: SliceResult) -> tuple[Any, ...]:
    """A result as whole numbers: values are ordinals of arrival, so that sums say which readings it holds."""
    bucket = each.bucket
    total = bucket.total + bucket.n * each.center
    found = (bucket.n, total, bucket.low, bucket.high, each.first, each.last, bucket.t_first, bucket.t_last)
    return each.at, each.start, each.end, each.stage, found


def expected(result: tuple[Any, ...]) -> tuple[Any, ...]:
    """The model's, told alike."""
    taken = result[4]
    values, times = [float(ordinal) for _, ordinal in taken], [time for time, _ in taken]
    ends = (values[0], values[-1], times[0], times[-1])
    return (*result[:4], (len(values), sum(values), min(values), max(values), *ends))


@st.composite
def definitions(draw: st.DrawFn, kind: str) -> tuple[sg.WindowSpec, dict[str, int]]:
    """A definition and its model's; hops need not divide the length."""
    lateness, length = draw(st.sampled_from([0, 3, 8, 15])), draw(st.integers(2, 7))
    early = draw(st.sampled_from(["", "count", "time"]))
    model: dict[str, int] = {"lateness": lateness}
    given: dict[str, Any] = {"kind": kind, "lateness": lateness, "evict": sg.policies.time(length)}
    if early:
        size = draw(st.integers(1, 4))
        model["count" if early == "count" else "period"] = size
        given["trigger"] = getattr(sg.triggers, early)(size)
    if kind == "session":
        return sg.WindowSpec(**given), model | {"gap": length}
    hop = draw(st.integers(2, length)) if kind == "hopping" else length
    if kind == "hopping":
        given["evict"] = sg.policies.time(length, hop=hop)
    return sg.WindowSpec(**given), model | {"length": length, "hop": hop}


steps = st.lists(
    st.tuples(st.sampled_from(["read", "read", "read", "wait", "restart"]), st.integers(0, 3), st.integers(-12, 4)),
    min_size=8, max_size=40,
)  # fmt: skip


@pytest.mark.parametrize("kind", ["tumbling", "hopping", "session"])
@given(data=st.data(), steps=steps)
@settings(max_examples=60)
def test_any_window_over_any_stream(kind: str, data: st.DataObject, steps: list[Any]) -> None:
    """Late readings, silence, restarts from what the last commit saved: results are the model's, to the last."""
    spec, of_model = data.draw(definitions(kind))
    model, kept, found, now = EventModel(**of_model), Kept(spec), list[Any](), 20
    for step, on, late in [*steps, ("wait", 60, 0)]:
        now += on
        if step == "restart":
            kept.save()
            kept.again()
        elif step == "wait":
            if model.now is not None:
                found += kept.slices.advance(now)
                model.until(now)
        else:
            time, took = now + min(late, 0), model.arrived
            model.arrive(None, time)
            found += kept.slices.insert_many([float(took + 1)], [time])
    # of one reading, early results come before revised ones
    assert sorted(map(told, found)) == sorted(expected(each) for each in model.results.get(None, []))
    of_windows = [each for each in found if each.stage != "revised"]
    assert [each.at for each in of_windows] == sorted(each.at for each in of_windows)
    assert kept.slices.late == model.late
    assert not kept.slices.slices
    assert not kept.slices.windows
    kept.save()
    assert not kept.records


@pytest.mark.parametrize("kind", ["tumbling", "hopping", "session"])
def test_a_batch_shares_revised_results(kind: str) -> None:
    """The same windows, the same final results, and one revised result for all late readings of a batch."""
    rng = random.Random(kind)
    evict = sg.policies.time(40, hop=10) if kind == "hopping" else sg.policies.time(12 if kind == "session" else 40)
    spec = sg.WindowSpec(kind=kind, evict=evict, lateness=60)
    one, batched = Slices(spec), Slices(spec)
    readings = [(float(i), 5 * i - (rng.randrange(90) if rng.random() < 0.2 else 0)) for i in range(600)]
    single = [each for value, time in readings for each in one.insert_many([value], [time])]
    together: list[SliceResult] = []
    for begin in range(0, len(readings), 50):
        values, times = zip(*readings[begin : begin + 50], strict=True)
        together += batched.insert_many(values, times)
    single, together = single + one.advance(10_000), together + batched.advance(10_000)
    finals = [[told(each) for each in of if each.stage == "final"] for of in (single, together)]
    assert finals[0] == finals[1]
    assert len(finals[0]) > 10
    revised = [sum(each.stage == "revised" for each in of) for of in (single, together)]
    assert 0 < revised[1] < revised[0]
    assert one.late == batched.late


@pytest.mark.parametrize(
    "given",
    [
        {"kind": "tumbling", "aligned": "day"},
        {"kind": "tumbling", "aligned": "week", "lateness": "6h"},
        {"kind": "tumbling", "aligned": "month"},
        {"kind": "tumbling", "evict": sg.policies.time("6h"), "aligned": "clock", "lateness": "3h"},
        {"kind": "hopping", "evict": sg.policies.time("3d", hop="1d"), "aligned": "day", "lateness": "12h"},
        {"kind": "hopping", "evict": sg.policies.time("2h", hop="30min"), "aligned": "clock"},
    ],
)
@pytest.mark.parametrize("month", [3, 10])
def test_by_the_clock_of_vienna(given: dict[str, Any], month: int) -> None:
    """Over both changes of its clocks: the extents, counts and stages of `WindowOperator`."""
    spec = sg.WindowSpec(**given, timezone="Europe/Vienna")
    slices, operator = Slices(spec), sg.operators.Aggregate(spec, {"n": sg.count(), "sum": sg.sum()})
    rng, begin = random.Random(month), int(datetime(2026, month, 20, tzinfo=UTC).timestamp()) * 1_000_000
    found, wanted = list[SliceResult](), list[Any]()
    for i in range(900):
        time = begin + i * HOUR // 2 - (rng.randrange(9 * HOUR) if rng.random() < 0.1 else 0)
        found += slices.insert_many([float(i)], [time])
        wanted += operator.insert(float(i), time)
    found, wanted = found + slices.advance(begin + 900 * HOUR), wanted + operator.advance(begin + 900 * HOUR)
    assert [(*told(each)[1:4], *told(each)[4][:2]) for each in found] == [
        (each.start, each.end, each.stage, each.values["n"], each.values["sum"]) for each in wanted
    ]
    assert found
    assert slices.late == operator.window.late


@pytest.mark.parametrize("scale", [1.0, 2.0**40, 2.0**-30])
@pytest.mark.parametrize("low", [-500, 1, 10**9])
def test_every_answer_is_in_its_interval_and_exact(scale: float, low: int) -> None:
    """Beside fractions of whole numbers; readings late, with equal times and equal values."""
    rng = random.Random(low)
    slices = Slices(sg.WindowSpec(kind="hopping", evict=sg.policies.time(60, hop=10), lateness=50))
    readings = [(rng.randrange(low, low + 40), 2 * (i // 3) - rng.choice((0, 0, 30))) for i in range(2_000)]
    found = slices.insert_many([x * scale for x, _ in readings], [time for _, time in readings])
    checked = 0
    for each in (each for each in found if each.stage == "final"):
        held = [(t, i, x) for i, (x, t) in enumerate(readings) if each.start <= t < each.end]
        if len(held) != each.bucket.n:  # one came too late for it
            continue
        checked += 1
        for name, truth in exactly(sorted(held), Fraction(scale)).items():
            value, least, most, exact = answer(name, each)
            assert exact
            assert least <= value <= most
            assert least <= truth <= most, (name, each)
            assert abs(value - truth) <= 1e-9 * max(abs(float(truth)), float(low * scale), 40 * scale, 1e-300), name
    assert checked > 10


@pytest.mark.parametrize("first", [20.0, 0.1, 1e6, -1e12, 3e15, 1e200])
def test_a_first_reading_far_from_all_others_leaves_them_within_their_intervals(first: float) -> None:
    """Sums are kept relative to it, so that a mean and a spread may lose digits: they say how many."""
    rng = random.Random(3)
    slices = Slices(sg.WindowSpec(kind="hopping", evict=sg.policies.time(20, hop=5), lateness=0))
    readings = [(0, first), *((100 + i, round(rng.gauss(20, 3), 1 + i % 15)) for i in range(80))]
    found = slices.insert_many([x for _, x in readings], [time for time, _ in readings]) + slices.advance(1_000)
    checked = 0
    for each in (each for each in found if each.stage == "final" and each.start > 80):
        held = [(time, i, Fraction(x)) for i, (time, x) in enumerate(readings) if each.start <= time < each.end]
        truth = exactly(held, Fraction(1))  # type: ignore[arg-type]  # fractions are numbers, too
        for name in ("sum", "mean", "variance", "std"):
            value, low, high, _ = answer(name, each)
            assert low <= truth[name] <= high, (name, each)
            assert low <= value <= high
            checked += 1
    assert checked > 60


@pytest.mark.parametrize("values", [(0.1, 1e16), (-0.1, 0.3), (1.0, 2.0)])
def test_a_range_is_rounded(values: tuple[float, float]) -> None:
    """The difference of the extremes lies in its interval, which is one number only where float64 has it."""
    slices = Slices(sg.WindowSpec(kind="tumbling", evict=sg.policies.time(10), lateness=0))
    found = answer("range", slices.insert_many([*values, 0.0], [0, 1, 99])[-1])
    truth = Fraction(values[1]) - Fraction(values[0])
    assert found.low <= truth <= found.high
    assert (found.low == found.high) == (truth == Fraction(found.value))


def test_a_spread_beyond_float64_is_inf() -> None:
    """As of a window that slides; of equal values it is 0, however great they are, and of tiny ones not surely so."""
    spec = sg.WindowSpec(kind="tumbling", evict=sg.policies.time(10), lateness=0)
    of_great, of_equal, of_tiny = (
        Slices(spec).insert_many([*values, 0.0], [0, 1, 2, 99])[-1]
        for values in ([1e200, -1e200, 3.0], [1e200] * 3, [1e-320, 3e-320, 3e-320])
    )
    for name in ("variance", "std"):
        assert answer(name, of_great) == (float("inf"), 0.0, float("inf"), False)
        assert answer(name, of_equal) == (0.0, 0.0, 0.0, True)
        assert answer(name, of_tiny).low == 0.0 < answer(name, of_tiny).high < 1e-150


def exactly(held: list[tuple[int, int, int]], scale: Fraction) -> dict[str, Any]:
    """By (time, ordinal): the definitions, without rounding; the roots as decimals."""
    values = [x * scale for _, _, x in held]
    n, low, high = len(values), min(values), max(values)
    mean = sum(values) / n
    variance = sum((x - mean) ** 2 for x in values) / n
    getcontext().prec = 60
    found = {
        "count": n, "sum": sum(values), "mean": mean, "min": low, "max": high, "range": high - low,
        "first": values[0], "last": values[-1], "variance": variance, "std": root(variance),
        "argmin": min(t for (t, _, _), x in zip(held, values, strict=True) if x == low),
        "argmax": min(t for (t, _, _), x in zip(held, values, strict=True) if x == high),
        "min_count": values.count(low), "max_count": values.count(high),
    }  # fmt: skip
    if low > 0:
        logarithms = sum(((Decimal(x.numerator) / Decimal(x.denominator)).ln() for x in values), Decimal())
        found["geometric_mean"] = Fraction((logarithms / n).exp())
    return found


def root(x: Fraction) -> Fraction:
    """To 50 digits."""
    return Fraction((Decimal(x.numerator) / Decimal(x.denominator)).sqrt())


def test_a_window_costs_a_record_a_hop() -> None:
    """However many readings come, and however many windows hold each."""
    kept = Kept(sg.WindowSpec(kind="hopping", evict=sg.policies.time("24h", hop="10min")))
    for i in range(20_000):
        kept.slices.insert_many([1.0], [i * 7_000_000])
    kept.save()
    assert len(kept.records) == 144
    assert len(kept.state) == 44


def test_what_is_damaged_is_refused() -> None:
    """A state, a record cut short; a window that goes by arrival, or has keys."""
    kept = Kept(sg.WindowSpec(kind="session", evict=sg.policies.time(10)))
    kept.slices.insert_many([1.0], [5])
    kept.save()
    for state, record in ((b"", None), (kept.state[:-1], None), (b"SGX1" + kept.state[4:], None), (kept.state, b"x")):
        records = [(*place, record or each) for place, each in kept.records.items()]
        with pytest.raises(SnapshotError, match="windows in slices: what is kept of them is damaged"):
            Slices(kept.spec).restore(state, records)
    for other in ({"kind": "tumbling", "evict": sg.policies.count(3)}, {"kind": "session", "key": "k"}):
        with pytest.raises(ConfigurationError, match="slices: expected a window by event time"):
            Slices(sg.WindowSpec(**{"evict": sg.policies.time(10), **other}))
