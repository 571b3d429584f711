"""Windows over Python objects: right as a plain list, lawful, and never left half-way by a user's code that raises."""

from __future__ import annotations

import csv
import random
from pathlib import Path
from typing import Any

import pytest
from exact_windows import of_the_last
from hypothesis import given, settings
from hypothesis import strategies as st

import sluicegate as sg
from sluicegate.monoids.kll import Kll
from sluicegate.monoids.objects import Collect

DATA = Path(__file__).resolve().parents[4] / "shared" / "data"


class Words:
    """Not commutative: values written one after the other; it can be told to raise."""

    neutral = ""

    def __init__(self) -> None:
        self.raising: dict[str, BaseException | None] = {}
        self.refused: str | None = None

    def _raise(self, what: str) -> None:
        error = self.raising.get(what)
        if error is not None:
            raise error

    def lift(self, value: float, time: int) -> str:
        """A value and its time."""
        self._raise("lift")
        return f"{value:g}@{time} "

    def combine(self, a: str, b: str) -> str:
        """Side by side."""
        self._raise("combine")
        if self.refused is not None and self.refused in a + b:
            raise ValueError(self.refused)
        return a + b

    def deduct(self, total: str, oldest: str) -> str:
        """Without what it begins with."""
        self._raise("deduct")
        assert total.startswith(oldest)
        return total[len(oldest) :]

    def lower(self, partial: str) -> list[str]:
        """As a list."""
        self._raise("lower")
        return partial.split()


def text(readings: list[tuple[float, int]]) -> list[str]:
    """What `Words` answers."""
    return [f"{value:g}@{time}" for value, time in readings]


@pytest.mark.parametrize("engine", ["recalc", "amta"])
def test_every_window_size_to_99(engine: str) -> None:
    """Each size, growing and sliding: the user's own, collected values and quantiles as a plain list has them."""
    aggregates = {"words": sg.custom(Words()), "newest": sg.collect(7), "q": sg.quantiles(k=128), "sum": sg.sum()}
    windows = {size: sg.Window(aggregates, policy=sg.policies.count(size), engine=engine) for size in range(1, 100, 1)}
    readings = [(float(i * i * 31 % 97), i) for i in range(104)]
    for size, window in windows.items():
        assert window.query()["words"] == window.query()["newest"] == []
        for i, reading in enumerate(readings[: size + 5]):
            window.insert(*reading)
            if i in (0, size // 2, size - 1, size, size + 4):
                inside = readings[max(0, i + 1 - size) : i + 1]
                found = window.query()
                values = [value for value, _ in inside]
                assert (found["words"], found["newest"], found["sum"]) == (text(inside), values[-7:], sum(values))
                assert found["q"].quantile(0.5) == sorted(values)[(len(values) + 1) // 2 - 1]
        window.verify()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(-9, 9).map(float), st.integers(-20, 60)), max_size=60), st.integers(1, 40))
def test_random_times(steps: list[tuple[float, int]], span: int) -> None:
    """A time policy, times that go back too; batches give what single readings give."""
    window, batch = (
        sg.Window({"words": sg.custom(Words()), "n": sg.count()}, policy=sg.policies.time(span)) for _ in "ab"
    )
    inside, newest = list[tuple[float, int]](), -999
    for value, time in steps:
        window.insert(value, time)
        inside.append((value, time))
        newest = max(newest, time)
        inside = of_the_last(inside, newest - span)
        assert window.query() == {"words": text(inside), "n": len(inside)}
        window.verify()
    columns = batch.insert_many([value for value, _ in steps], [time for _, time in steps])
    assert batch.query() == window.query()
    assert len(columns["n"]) == len(steps)


def test_a_policy_over_objects() -> None:
    """A callable policy sees results over objects, and evicts in bulk."""

    def over(total: Any, old: Any) -> bool:
        return len(total["words"]) - len(old["words"]) >= 4

    window = sg.Window({"words": sg.custom(Words())}, policy=sg.policies.custom(over, monotone=True))
    for i in range(40):
        window.insert(float(i), time=i)
        window.verify()
    assert window.query()["words"] == text([(float(i), i) for i in range(36, 40)])
    assert [one["words"] for one in window.buckets()] == [[f"{i}@{i}"] for i in range(36, 40)]


def test_a_built_in_rule() -> None:
    """The rule that a sum stays within a limit evicts from a window over objects, after a failed combination too."""
    words = Words()
    window = sg.Window({"words": sg.custom(words), "sum": sg.sum()}, policy=sg.policies.total(None, 10))
    for i in range(30):
        words.raising["combine"] = ValueError("not now") if i in (7, 8) else None
        window.insert(float(i % 5), time=i)
        inside: list[tuple[float, int]] = []
        for k in range(i, -1, -1):
            if sum(x for x, _ in inside) + k % 5 > 10:
                break
            inside.insert(0, (float(k % 5), k))
        if i not in (7, 8):
            assert window.query()["words"] == text(inside)
        window.verify()


def test_several_dimensions() -> None:
    """A user's aggregate of two dimensions gets both values of a reading, in the order in which it named them."""

    class Products:
        def lift(self, value: tuple[float, float], time: int) -> float:
            return value[0] - 10 * value[1]

        def combine(self, a: float, b: float) -> float:
            return a + b

        def lower(self, partial: float) -> float:
            return partial

    window = sg.Window({"ba": sg.custom(Products(), ["b", "a"]), "sum": sg.sum("a")}, policy=sg.policies.count(2))
    for i in range(5):
        window.insert({"a": float(i), "b": 100.0 * i})
    assert window.query() == {"ba": 700.0 - 70.0, "sum": 7.0}


# a user's code that raises


def built(size: int = 4, engine: str = "amta") -> tuple[sg.Window, Words]:
    """A window of words and a sum."""
    words = Words()
    aggregates = {"words": sg.custom(words), "sum": sg.sum(), "n": sg.count()}
    return sg.Window(aggregates, policy=sg.policies.count(size), engine=engine), words


@pytest.mark.parametrize("engine", sg.ENGINES)
def test_lift_raises(engine: str) -> None:
    """The reading is refused and nothing has changed; later readings enter."""
    window, words = built(engine=engine)
    for i in range(6):
        window.insert(float(i), time=i)
    before = window.query()
    words.raising["lift"] = ZeroDivisionError("no")
    with pytest.raises(sg.errors.AggregateError, match=r"aggregates\['words'\].*ZeroDivisionError.*refused"):
        window.insert(9.0, time=9)
    assert window.query() == before
    assert window.accepted == 6
    words.raising["lift"] = None
    window.insert(6.0, time=6)
    assert window.query() == {"words": text([(float(i), i) for i in range(3, 7)]), "sum": 18.0, "n": 4}


@pytest.mark.parametrize("engine", sg.ENGINES)
@pytest.mark.parametrize("when", range(0, 12, 3))
def test_combine_raises_for_a_while(engine: str, when: int) -> None:
    """Wherever it raises, the readings are in, eviction goes on, and answers are right once it works again."""
    window, words = built(5, engine)
    for i in range(30):
        words.raising["combine"] = words.raising["deduct"] = ValueError("not now") if when <= i < when + 3 else None
        window.insert(float(i), time=i)
        window.verify()
        inside = [(float(k), k) for k in range(max(0, i - 4), i + 1)]
        if when <= i < when + 3 and len(inside) > 1:
            with pytest.raises(sg.errors.AggregateError, match=r"not now.*tried anew"):
                window.query()
            assert (len(window), window.readings) == (len(inside), len(inside))
        elif i % 2:
            assert window.query() == {"words": text(inside), "sum": sum(x for x, _ in inside), "n": len(inside)}


def test_combine_raises_for_one_reading() -> None:
    """A reading that cannot be combined makes answers raise until it has left; then they are right."""
    window, words = built(4)
    words.refused = "7@7"
    for i in range(20):
        window.insert(float(i), time=i)
        if 7 <= i < 11:
            with pytest.raises(sg.errors.AggregateError):
                window.query()
        else:
            assert window.query()["words"] == text([(float(k), k) for k in range(max(0, i - 3), i + 1)])


def test_lower_raises() -> None:
    """Asking raises, nothing has changed; a batch stops where it raised, with the readings up to there in."""
    window, words = built(4)
    window.insert_many([1.0, 2.0])
    words.raising["lower"] = KeyError("x")
    with pytest.raises(sg.errors.AggregateError, match="lower"):
        window.query()
    with pytest.raises(sg.errors.AggregateError):
        window.insert_many([3.0, 4.0, 5.0])
    assert window.accepted == 3
    words.raising["lower"] = None
    assert window.query() == {"words": text([(1.0, 0), (2.0, 1), (3.0, 2)]), "sum": 6.0, "n": 3}


def test_an_interrupt_goes_through() -> None:
    """Control-C while combining is raised when the reading is in; the window is right after it."""
    window, words = built(3)
    window.insert_many([0.0, 1.0, 2.0], results=False)
    words.raising["combine"] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        window.insert(3.0)
    words.raising["combine"] = None
    assert window.query() == {"words": text([(1.0, 1), (2.0, 2), (3.0, 3)]), "sum": 6.0, "n": 3}


def test_a_policy_meets_what_raises() -> None:
    """A policy that reads what cannot be combined is a PolicyError; the reading is in, later ones are evicted."""

    def longer(total: Any, old: Any) -> bool:
        return len(total["words"]) > 3

    words = Words()
    window = sg.Window({"words": sg.custom(words)}, policy=longer)
    window.insert_many([0.0, 1.0, 2.0], results=False)
    words.raising["combine"] = ValueError("not now")
    with pytest.raises(sg.errors.PolicyError, match="not now"):
        window.insert(3.0)
    assert len(window) == 4
    words.raising["combine"] = None
    window.query()
    window.insert(4.0)
    assert window.query()["words"] == text([(float(i), i) for i in (2, 3, 4)])


def test_an_aggregate_may_not_use_its_window() -> None:
    """Inserting or asking from within combine is refused, and the window is right after it."""

    class Meddler(Words):
        def combine(self, a: str, b: str) -> str:
            if self.refused == "now":
                window.insert(99.0)
            return a + b

    words = Meddler()
    window = sg.Window({"words": sg.custom(words)}, policy=sg.policies.count(3))
    words.refused = "now"
    window.insert(1.0)
    window.insert(2.0)
    with pytest.raises(sg.errors.AggregateError, match="BusyError"):
        window.query()
    words.refused = None
    assert window.query()["words"] == text([(1.0, 0), (2.0, 1)])


# what is refused


def test_objects_are_not_stored() -> None:
    """Nothing is ever unpickled: storage is refused with the reason and the aggregates' names."""
    window = sg.Window({"mine": sg.custom(Words()), "all": sg.collect(9)}, policy=sg.policies.count(3))
    window.insert(1.0)
    for call in (window.snapshot, window.state, window.changes, lambda: window.leaf(0)):
        with pytest.raises(sg.errors.ConfigurationError, match=r"\['mine', 'all'\].*unpickled"):
            call()


@pytest.mark.parametrize("aggregate", [sg.custom(Words()), sg.collect(3)])
def test_buckets_are_refused(aggregate: Any) -> None:
    """Histograms would keep less than the objects need; refused with the reason."""
    with pytest.raises(sg.errors.ConfigurationError, match="no certain interval"):
        sg.Window(aggregate, policy=sg.policies.count(9), histograms=[sg.Constrained(8)])


@pytest.mark.parametrize("make", [
    lambda: sg.custom(object()), lambda: sg.collect(0), lambda: sg.collect(65_537), lambda: sg.collect(True),
    lambda: sg.quantiles(k=7), lambda: sg.quantiles(k=5000), lambda: sg.custom(Words(), ["a", "a"]),
    lambda: sg.custom(type("Odd", (Words,), {"deduct": 3})()),
])  # fmt: skip
def test_what_makes_no_sense_is_refused(make: Any) -> None:
    """Bounded sizes and whole objects only."""
    with pytest.raises(sg.errors.ConfigurationError, match="expected"):
        make()


def test_nothing_is_certain_of_a_users_result() -> None:
    """With bounds, collected values are exact; of a user's result and a sketch neither low nor high is told."""
    window = sg.Window({"w": sg.custom(Words()), "c": sg.collect(3), "q": sg.quantiles()}, policy=sg.policies.count(3))
    window.insert(1.0)
    found = window.query(bounds=True)
    assert found["c"] == ([1.0], [1.0], [1.0], True)
    assert found["w"] == (["1@0"], None, None, False)
    assert found["q"][1:] == (None, None, False)


# laws and errors of the built-in ones

Lists = st.lists(st.floats(-1e9, 1e9), max_size=30).map(tuple)


@given(Lists, Lists, Lists, st.integers(1, 20))
def test_collecting_is_associative(
    a: tuple[float, ...], b: tuple[float, ...], c: tuple[float, ...], limit: int
) -> None:
    """And its neutral element is none."""
    monoid = Collect(limit)
    a, b, c = a[-limit:], b[-limit:], c[-limit:]
    combine = monoid.combine
    assert combine(combine(a, b), c) == combine(a, combine(b, c)) == (a + b + c)[-limit:]
    assert combine(monoid.neutral, a) == combine(a, monoid.neutral) == a


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-1e6, 1e6), max_size=300), st.integers(8, 40), st.randoms(use_true_random=False))
def test_any_merge_order_keeps_the_weights(values: list[float], k: int, rng: random.Random) -> None:
    """Merged in any order: count, least, greatest and room are kept; without compaction the values are."""
    monoid = Kll(k)
    parts = [monoid.lift(x, 0) for x in values] + [monoid.neutral]
    while len(parts) > 1:
        i = rng.randrange(len(parts) - 1)
        parts[i : i + 2] = [monoid.combine(parts[i], parts[i + 1])]
    (sketch,) = parts
    assert sketch.n == len(values) == sum(len(level) << height for height, level in enumerate(sketch.levels))
    assert all(list(level) == sorted(level) for level in sketch.levels)
    if values:
        assert (sketch.quantile(0.0), sketch.quantile(1.0)) == (min(values), max(values))
    if len(values) < k:
        assert sketch.levels in ((), (tuple(sorted(values)),))
        assert sketch.error == 0.0


def test_ranks_are_within_the_stated_error() -> None:
    """A sliding window of 1,500 readings: of 400 ranks at most 1 % are off by more than the error stated for 99 %."""
    rng, off, asked = random.Random(7), 0, 0
    window, values = sg.Window({"q": sg.quantiles(k=64)}, policy=sg.policies.count(1500)), list[float]()
    for i in range(4000):
        values.append(rng.gauss(i / 900, 1))
        window.insert(values[-1])
        if i > 500 and i % 175 == 0:
            inside, sketch = sorted(values[-1500:]), window.query()["q"]
            for rank in range(1, 20):
                x = inside[len(inside) * rank // 20]
                asked += 1
                off += abs(sketch.rank(x) - sum(y <= x for y in inside) / len(inside)) > sketch.error
            assert sketch.n == len(inside)
            assert len([x for level in sketch.levels for x in level]) < 4 * 64
    assert asked > 350
    assert off <= asked // 100


@pytest.mark.skipif(not DATA.exists(), reason="the real readings are not there")
def test_real_readings() -> None:
    """Machine temperatures: a median exact below k readings, and within the error over 600; collected as they came."""
    with (DATA / "machine_temperature.csv").open() as file:
        values = [float(row["value"]) for row in csv.DictReader(file)][:2500]
    aggregates = {"q": sg.quantiles(k=128), "newest": sg.collect(20)}
    short, long = (sg.Window(aggregates, policy=sg.policies.count(size)) for size in (100, 600))
    for i, x in enumerate(values):
        short.insert(x)
        long.insert(x)
        if i % 250 == 249:
            inside, wide = sorted(values[max(0, i - 99) : i + 1]), values[max(0, i - 599) : i + 1]
            assert short.query()["q"].quantile(0.5) == inside[(len(inside) + 1) // 2 - 1]
            assert short.query()["newest"] == values[i - 19 : i + 1]
            sketch = long.query()["q"]
            assert (sketch.low, sketch.high) == (min(wide), max(wide))
            assert abs(sum(y <= sketch.quantile(0.9) for y in wide) / len(wide) - 0.9) < 2 * sketch.error + 1 / 600


def test_errors_cancel() -> None:
    """Which half of a level survives is a coin's matter: the ranks of 60 sketches are right on average."""
    monoid, rng, off = Kll(8), random.Random(2), 0.0
    for _ in range(60):
        values = [rng.random() for _ in range(400)]
        sketch = monoid.neutral
        for x in values:
            sketch = monoid.combine(sketch, monoid.lift(x, 0))
        off += (sketch.rank(0.5) or 0.0) - sum(x <= 0.5 for x in values) / 400
    assert abs(off / 60) < 0.04


def test_a_rank_outside_is_refused() -> None:
    """Quantiles of no values are None; a rank is from 0 to 1."""
    empty = sg.Window({"q": sg.quantiles()}, policy=sg.policies.count(3)).query()["q"]
    assert (empty.n, empty.quantile(0.5), empty.rank(1.0)) == (0, None, None)
    with pytest.raises(ValueError, match="from 0 to 1"):
        empty.quantile(1.5)


@pytest.mark.parametrize("engine", sg.ENGINES)
def test_every_engine(engine: str) -> None:
    """The user's own in every engine, also by the one that subtracts; evicted by hand too."""
    window, _ = built(6, engine)
    for i in range(40):
        window.insert(float(i), time=i)
        held = 6 if i < 20 else 4
        if i >= 20 and len(window) > 4:
            window.evict(len(window) - 4)
        inside = [(float(k), k) for k in range(max(0, i - held + 1), i + 1)]
        assert window.query()["words"] == text(inside)
        window.verify()
    assert window.query() == {"words": text([(float(k), k) for k in range(36, 40)]), "sum": 150.0, "n": 4}
    assert [one["words"] for one in window.buckets()] == [[f"{k}@{k}"] for k in range(36, 40)]


def test_what_cannot_be_subtracted_is_refused_there() -> None:
    """Collected values have no inverse: soe says so."""
    with pytest.raises(sg.errors.ConfigurationError, match=r"soe.*'all'.*collect"):
        sg.Window({"all": sg.collect(3)}, policy=sg.policies.count(3), engine="soe")
