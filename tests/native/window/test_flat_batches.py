"""A flat batch that compiled code takes as it is given: the same results and refusals as the long way round."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sluicegate as sg
from sluicegate.errors import InputError, PolicyError

np = pytest.importorskip("numpy", reason="batches are given as its arrays, too")
SIZE = 1_300  # looked at in parts of 512
Values = Any  # an array of float64
POLICIES = {"by count": sg.policies.count(100), "in hops": sg.policies.count(100, hop=7)}
KEPT: dict[str, list[Any]] = {"exact": [], "buckets": [sg.SumLike(0.01)]}


def numbers() -> Values:
    """Some of both signs."""
    return np.random.default_rng(5).uniform(-1.0, 9.0, SIZE)


def window(policy: Any = POLICIES["by count"], **options: Any) -> sg.Window:
    """One aggregate of one dimension."""
    return sg.Window({"x": sg.mean()}, policy=policy, **options)


#: Ways to give the same readings: the first three are taken as they lie.
GIVEN: dict[str, Callable[[Values], Any]] = {
    "numpy": lambda x: x,
    "array": lambda x: array("d", x),
    "memoryview": lambda x: memoryview(x),
    "one column": lambda x: x.reshape(-1, 1),
    "list": lambda x: x.tolist(),
    "read only": lambda x: memoryview(x.tobytes()).cast("d"),
}


@pytest.mark.parametrize("kept", KEPT)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("given", GIVEN)
def test_however_a_batch_is_given_its_results_are_those_of_single_readings(given: str, policy: str, kept: str) -> None:
    """And so is the window after it."""
    if policy == "in hops" and kept == "buckets":
        policy = "by count"
    batch, single = (window(POLICIES[policy], histograms=KEPT[kept]) for _ in range(2))
    found = batch.insert_many(GIVEN[given](numbers()))
    assert list(found) == ["x"]
    assert type(found["x"]) is array
    assert found["x"].tolist() == pytest.approx([single.slide(x) for x in numbers().tolist()], rel=1e-12)
    assert batch.snapshot() == single.snapshot()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 2.0**961])
@pytest.mark.parametrize("at", [0, 511, 512, 1_023, SIZE - 1])
def test_what_may_not_enter_is_named_and_nothing_does(at: int, bad: float) -> None:
    """Wherever it stands."""
    values, its = numbers(), window()
    values[at] = bad
    with pytest.raises(InputError, match=rf"values\[{at}\]"):
        its.insert_many(values)
    assert its.accepted == 0
    assert its.insert_many(numbers())["x"][-1] == its.query()["x"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (np.arange(9, dtype=np.float32), "expected float64"),
        (np.arange(9), "expected float64"),
        (np.arange(9.0).astype(">f8"), "expected float64"),
        (np.arange(18.0)[::2], "C-contiguous"),
        (np.zeros((3, 3)), "expected"),
        (b"12345678", "expected float64"),
        ("12345678", "no buffer"),
    ],
)
def test_another_buffer_is_refused_in_words(given: Any, said: str) -> None:
    """As ever."""
    its = window()
    with pytest.raises(InputError, match=said):
        its.insert_many(given)
    assert its.accepted == 0


#: The same of times: what is not plain integers in a list, or an array, goes the long way.
TIMES: dict[str, Callable[[Values], Any]] = {
    "numpy": lambda t: t,
    "array": lambda t: array("q", t.tolist()),
    "list": lambda t: t.tolist(),
    "list of its own integers": lambda t: list(t),
    "tuple": lambda t: tuple(t.tolist()),
}


@pytest.mark.parametrize("late", [False, True], ids=["in order", "some late"])
@pytest.mark.parametrize("times", TIMES)
@pytest.mark.parametrize("given", GIVEN)
def test_and_so_by_time_of_several_aggregates(given: str, times: str, late: bool) -> None:
    """With results and without, and none of them is looked at less closely."""
    when = np.arange(SIZE, dtype=np.int64) * 1_000 + np.random.default_rng(6).integers(0, 900, SIZE)
    if late:
        when[[100, 600, 601, 1_000]] -= [5_000, 90_000, 50_000, 1]
    aggregates = {"mean": sg.mean(), "n": sg.count(), "high": sg.max()}
    batch, silent, single = (sg.Window(aggregates, policy=sg.policies.time("100ms")) for _ in range(3))
    found = batch.insert_many(GIVEN[given](numbers()), TIMES[times](when))
    assert silent.insert_many(GIVEN[given](numbers()), TIMES[times](when), results=False) is None
    expected = [single.slide(x, t) for x, t in zip(numbers().tolist(), when.tolist(), strict=True)]
    assert list(found) == list(aggregates)
    for name in found:
        assert found[name].tolist() == pytest.approx([each[name] for each in expected], rel=1e-12)
    assert batch.snapshot() == silent.snapshot() == single.snapshot()


def test_several_dimensions_are_taken_in_rows() -> None:
    """Two aggregates over different ones; a column too few is refused."""
    rows = numbers().reshape(-1, 2)
    its = sg.Window({"a": sg.sum("x"), "b": sg.max("y")}, policy=POLICIES["by count"])
    found = its.insert_many(rows, range(len(rows)))
    assert found["b"][5] == rows[:6, 1].max()
    assert its.insert_many(rows, np.arange(len(rows)))["b"][-1] == rows[-100:, 1].max()
    with pytest.raises(InputError, match="of shape"):
        its.insert_many(numbers())


@pytest.mark.parametrize(
    ("times", "said"),
    [
        (None, "time: missing"),
        ([1, 2], "2 of them for 3"),
        ([1, 2, 2**61 + 1], r"times\[2\]"),
        ([1, 2, 2**64], "no buffer"),
        ([1, 2, 3.0], "no buffer"),
        (np.arange(3, dtype=np.int32), "expected int64"),
        (np.arange(6)[::2], "contiguous"),
        (np.arange(3).reshape(3, 1), "of shape"),
    ],
)
def test_times_that_do_not_fit_are_refused_in_words(times: Any, said: str) -> None:
    """And nothing enters."""
    its = window(sg.policies.time("1s"))
    for results in (False, True):
        with pytest.raises(InputError, match=said):
            its.insert_many([1.0, 2.0, 3.0], times, results=results)
    assert its.accepted == 0


def test_a_list_of_other_things_is_read_closely() -> None:
    """Whole numbers among floats are values, texts are none; a refused list leaves the window as it was."""
    its = window(sg.policies.time("1s"))
    assert its.insert_many([1.0, 2, True], [1, 2, 3])["x"].tolist() == [1.0, 1.5, 4 / 3]
    for bad in ([1.0, "2"], [1.0, None], [1.0, float("nan")]):
        with pytest.raises(InputError):
            its.insert_many(bad, [4, 5])
    assert its.accepted == 3


def test_an_empty_batch_has_an_empty_column() -> None:
    """And no reading enters."""
    its = window()
    assert its.insert_many(np.empty(0)) == {"x": array("d")}
    assert its.accepted == 0


def test_a_window_that_asks_for_more_is_asked_the_long_way() -> None:
    """Of values that must be positive, withheld ones, results that are no numbers, too many columns."""
    several = sg.Window({f"a{k}": sg.sum() for k in range(40)}, policy=POLICIES["by count"])
    assert list(several.insert_many(numbers())) == [f"a{k}" for k in range(40)]
    with pytest.raises(InputError, match="geometric"):
        sg.Window(sg.geometric_mean(), policy=POLICIES["by count"]).insert_many(numbers())
    withheld = window(histograms=[sg.SumLike(1e-6, withhold=True)])
    assert len(withheld.insert_many(numbers())["x"]) == SIZE
    told = sg.Window(sg.histogram([0.0, 5.0]), policy=POLICIES["by count"])
    assert told.insert_many(numbers()) == {}
    callable_policy = sg.Window(sg.sum(), policy=lambda total, old: total["sum"] - old["sum"] > 50.0)
    assert len(callable_policy.insert_many(np.abs(numbers()))["sum"]) == SIZE


def test_a_stored_window_takes_batches_through_its_store(tmp_path: Path) -> None:
    """Its core is the store's."""
    memory, stored = window(), window(store=sg.stores.SQLite(tmp_path / "kept.db"))
    found = stored.insert_many(numbers())["x"]
    assert found.tolist() == pytest.approx(memory.insert_many(numbers())["x"].tolist(), rel=1e-12)
    assert stored.snapshot() == memory.snapshot()
    stored.close()


def test_a_window_that_is_busy_says_so() -> None:
    """A policy cannot bring readings into its own window."""
    asked: list[sg.Window] = []

    def policy(total: Any, old: Any) -> bool:
        asked[0].insert_many(numbers())
        return False

    its = sg.Window(sg.sum(), policy=policy)
    asked.append(its)
    with pytest.raises(PolicyError, match="busy"):
        its.insert_many(np.ones(3))
