"""The window's own promises: what it answers, what it refuses and stays whole after, batches as readings one by one."""

from __future__ import annotations

import random
import threading
from array import array
from typing import Any

import pytest
from exact_windows import ALL, SHAPES, readings

import sluicegate as sg
from sluicegate import errors

pytestmark = pytest.mark.usefixtures("implementation_of_window")


def test_the_first_steps_of_a_new_user() -> None:
    """What the package's page shows works as shown."""
    window = sg.Window({"mean": sg.mean(), "peak": sg.max()}, policy=sg.policies.count(3))
    for x in (1.0, 5.0, 3.0, 4.0):
        window.insert(x)
    assert window.query() == {"mean": 4.0, "peak": 5.0}
    bounded = window.query(bounds=True)["mean"]
    assert bounded.low <= 4.0 <= bounded.high
    assert bounded.exact
    assert bounded.high - bounded.low < 1e-12
    assert len(window) == 3
    assert window.accepted == 4


def test_a_single_aggregate_is_named_by_its_kind() -> None:
    """One aggregate instead of a mapping."""
    window = sg.Window(sg.sum(), policy=sg.policies.count(2))
    window.insert(2)
    assert window.query() == {"sum": 2.0}


def test_an_empty_window_answers() -> None:
    """Nothing inside: count 0, sum 0.0, None for the others; in a batch's results NaN."""
    for histograms in ([], [sg.Constrained(4)]):
        window = sg.Window(ALL, policy=sg.policies.count(2), histograms=histograms)
        expected = {name: {"count": 0, "sum": 0.0}.get(name) for name in ALL}
        assert window.query() == expected
        assert {name: answer.value for name, answer in window.query(bounds=True).items()} == expected
        assert window.buckets() == []


def test_no_values_are_a_number_of_values() -> None:
    """The interval of distinct values is of whole numbers, also before the first reading."""
    windows = sg.Windows(sg.distinct_count(), policies={"few": sg.policies.count(2)}, histograms=[sg.Constrained(4)])
    for found in (sg.Window(sg.distinct_count(), policy=sg.policies.count(2)).query(bounds=True),
                  windows.query(bounds=True)["few"]):  # fmt: skip
        assert found["distinct_count"][1:] == (0, 0, True)


def test_a_late_reading_changes_no_answer() -> None:
    """A reading older than the window's span is counted as late and never inside, in a batch too."""
    window = sg.Window({"sum": sg.sum(), "max": sg.max()}, policy=sg.policies.time(10))
    window.insert(1.0, 100)
    assert window.insert_many(array("d", [2.0, 3.0]), array("q", [50, 200]))["sum"].tolist() == [1.0, 3.0]
    assert window.query() == {"sum": 3.0, "max": 3.0}
    assert (len(window), window.late) == (1, 1)


def test_the_edge_of_a_time_window_is_open() -> None:
    """A window of length s holds time > newest − s."""
    window = sg.Window(sg.count(), policy=sg.policies.time(10))
    window.insert_many(array("d", [0, 0, 0]), array("q", [0, 1, 10]), results=False)
    assert window.query() == {"count": 2}


@pytest.mark.parametrize("limit", [0, 4, 9])
@pytest.mark.parametrize("policy", [sg.policies.count(20), sg.policies.time(60)], ids=["count", "time"])
def test_a_batch_is_its_readings_one_by_one(limit: int, policy: Any) -> None:
    """insert_many gives after each reading what insert and query give, and leaves the same window."""
    histograms = [sg.Constrained(limit)] if limit else []
    for seed, shape in enumerate(SHAPES):
        stream = list(readings(random.Random(seed), shape, "going back", 150))
        batch, single = (sg.Window(ALL, policy=policy, histograms=histograms) for _ in range(2))
        results = batch.insert_many(array("d", [x for x, _ in stream]), array("q", [t for _, t in stream]))
        for i, (x, t) in enumerate(stream):
            single.insert(x, t)
            expected = {name: float("nan") if v is None else float(v) for name, v in single.query().items()}
            assert {name: column[i] for name, column in results.items()} == pytest.approx(
                expected, rel=0, abs=0, nan_ok=True
            )
        assert batch.snapshot() == single.snapshot()


def test_a_callable_policy_takes_batches_too() -> None:
    """The documented fall-back: asked for each reading, the same results."""
    rule = sg.policies.custom(lambda total, old: total.count - old.count >= 5, monotone=True, remaining=True)
    window, plain = (sg.Window(sg.mean(), policy=policy) for policy in (rule, sg.policies.count(5)))
    values = array("d", [i * i for i in range(40)])
    assert window.insert_many(values) == plain.insert_many(values)


def test_a_policy_sees_counts_times_and_results() -> None:
    """Both arguments tell count, times and the aggregates by name; an unknown one says which exist."""
    seen: list[Any] = []

    def rule(total: Any, old: Any) -> bool:
        seen.append((total.count, total.t_first, total.t_last, total["peak"], old.count, old.peak))
        with pytest.raises(AttributeError, match="peak"):
            _ = old.valley
        return False

    window = sg.Window({"peak": sg.max()}, policy=rule)
    window.insert(3.0, 10)
    window.insert(4.0, 20)
    assert seen == [(1, 10, 10, 3.0, 1, 3.0), (2, 10, 20, 4.0, 1, 3.0)]


def test_a_policy_that_raises_leaves_the_window_right() -> None:
    """The reading is in, the window goes on, and the policy's own error is told."""
    failing = [False]

    def rule(total: Any, old: Any) -> bool:
        if failing[0]:
            raise ZeroDivisionError("of the user's")
        return bool(total.count - old.count >= 3)

    for monotone in (True, False):
        failing[0] = False
        window = sg.Window(sg.sum(), policy=sg.policies.custom(rule, monotone=monotone, label="mine"))
        for x in range(5):
            window.insert(x)
        failing[0] = True
        with pytest.raises(errors.PolicyError, match=r"mine.*ZeroDivisionError"):
            window.insert(5)
        window.verify()
        assert window.query() == {"sum": 2 + 3 + 4 + 5.0}
        failing[0] = False
        window.insert(6)
        window.verify()
        assert window.query() == {"sum": 4 + 5 + 6.0}


class FailsLate:
    """Raises in the middle of a bulk eviction."""

    def __init__(self) -> None:
        self.calls = 0
        self.armed = False

    def __call__(self, total: Any, old: Any) -> bool:
        """Everything leaves, until the tenth question."""
        self.calls += 1
        if self.armed and self.calls == 10:
            raise RuntimeError("late")
        return self.armed


def test_a_policy_that_raises_within_a_bulk_eviction() -> None:
    """What left before stays out, nothing else leaves, the structure is whole."""
    rule = FailsLate()
    window = sg.Window(sg.count(), policy=sg.policies.custom(rule, monotone=True))
    for _ in range(64):
        window.insert(1.0)
    rule.armed, rule.calls = True, 0
    with pytest.raises(errors.PolicyError):
        window.insert(1.0)
    window.verify()
    assert window.query()["count"] == len(window) > 50


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf"), 1e300])
def test_what_is_not_finite_is_refused_before_anything_enters(bad: float) -> None:
    """The message names the index, the window is as it was and goes on."""
    window = sg.Window({"sum": sg.sum(), "max": sg.max()}, policy=sg.policies.count(4), histograms=[sg.Constrained(4)])
    window.insert_many(array("d", [1, 2, 3]))
    before = window.snapshot()
    with pytest.raises(errors.InputError, match=r"values\[2\].*nothing was inserted"):
        window.insert_many(array("d", [1, 2, bad, 4]))
    with pytest.raises(errors.InputError, match="finite"):
        window.insert(bad)
    assert window.snapshot() == before
    window.insert(4.0)
    assert window.query()["sum"] == 10.0


@pytest.mark.parametrize(
    ("values", "times", "message"),
    [
        (array("f", [1, 2]), None, "expected float64"),
        (array("q", [1, 2]), None, "expected float64"),
        ("abc", None, "sequence of numbers"),
        (object(), None, "no buffer"),
        (memoryview(array("d", range(4)))[::2], None, "contiguous"),
        (memoryview(array("d", range(4))).cast("B").cast("d", (2, 2)), None, r"expected \(n, 1\)"),
        (array("d", [1, 2]), array("i", [1, 2]), "expected int64"),
        (array("d", [1, 2]), array("d", [1, 2]), "expected int64"),
        (array("d", [1, 2]), array("q", [1]), "1 of them for 2 readings"),
        (array("d", [1, 2]), array("q", [1, 2**62]), r"times\[1\]"),
        (array("d", [1, 2]), [0.5, 1], "no buffer of int64"),
    ],
)  # fmt: skip
def test_batches_that_do_not_fit(values: Any, times: Any, message: str) -> None:
    """Types, shapes, lengths and ranges: each refused with what was expected, nothing inserted."""
    window = sg.Window(sg.mean(), policy=sg.policies.count(4))
    with pytest.raises(errors.InputError, match=message):
        window.insert_many(values, times)
    assert window.accepted == 0


@pytest.mark.parametrize("reading", ["x", None, {"b": 1.0}, (1.0,), (1.0, 2.0, 3.0), {"a": 1.0, "b": "x"}, 3.0])
def test_readings_that_do_not_fit(reading: Any) -> None:
    """Missing dimensions, texts, too many: refused with the dimensions' names."""
    window = sg.Window({"a": sg.mean("a"), "b": sg.max("b")}, policy=sg.policies.count(4))
    with pytest.raises(errors.InputError, match="a"):
        window.insert(reading)
    assert window.accepted == 0
    window.insert({"a": 1, "b": 2, "c": 3})
    window.insert((3.0, 1.0))
    assert window.query() == {"a": 2.0, "b": 2.0}


@pytest.mark.parametrize("time", [1.5, "12", 2**62, True])
def test_times_that_do_not_fit(time: Any) -> None:
    """A time is an int of microseconds in range."""
    window = sg.Window(sg.mean(), policy=sg.policies.time("1s"))
    with pytest.raises(errors.InputError, match="microseconds"):
        window.insert(1.0, time)
    with pytest.raises(errors.InputError, match="missing"):
        window.insert(1.0)
    with pytest.raises(errors.InputError, match="missing"):
        window.insert_many(array("d", [1.0]))


@pytest.mark.parametrize(
    "build",
    [
        lambda: sg.policies.count(0),
        lambda: sg.policies.count(-3),
        lambda: sg.policies.count(2.5),  # type: ignore[arg-type]
        lambda: sg.policies.time(0),
        lambda: sg.policies.time(-1),
        lambda: sg.policies.time("1 fortnight"),
        lambda: sg.policies.custom(3),  # type: ignore[arg-type]
        lambda: sg.Constrained(3),
        lambda: sg.Constrained(-1),
        lambda: sg.Window({}, policy=sg.policies.count(1)),
        lambda: sg.Window({"x": 3}, policy=sg.policies.count(1)),  # type: ignore[dict-item]
        lambda: sg.Window(sg.sum(), policy=7),
        lambda: sg.Window(sg.sum(), policy=sg.policies.count(1), engine="abacus"),
        lambda: sg.Window(sg.sum(), policy=sg.policies.count(1), histograms=[sg.Constrained(4), sg.Constrained(5)]),
        lambda: sg.Window({"a": sg.sum("x"), "b": sg.sum()}, policy=sg.policies.count(1)),
        lambda: sg.Window(sg.sum(), policy=sg.policies.count(1), center=float("nan")),
        lambda: sg.Window({"a": sg.sum("x")}, policy=sg.policies.count(1), center={"y": 1.0}),
    ],
)  # fmt: skip
def test_configurations_that_make_no_sense(build: Any) -> None:
    """Each is refused when the window is made, by name."""
    with pytest.raises(errors.ConfigurationError):
        build()


def test_lengths_of_time_as_text() -> None:
    """Units from µs to weeks."""
    hour = 3_600_000_000
    lengths = {"24h": 24 * hour, "7d": 168 * hour, "15min": hour // 4, "90s": hour // 40, "500ms": 500_000, "10us": 10}
    assert {text: sg.policies.time(text).span for text in lengths} == lengths


def test_the_footprint_never_exceeds_its_limit() -> None:
    """Whatever the stream does, also when every reading's time goes back: never more buckets, and bytes stay put."""
    for limit in (4, 5, 8, 31):
        window = sg.Window(sg.mean(), policy=sg.policies.count(5000), histograms=[sg.Constrained(limit)])
        rng, sizes = random.Random(limit), []
        for i in range(4000):
            window.insert(rng.random(), -i if i % 2000 < 500 else i)
            assert len(window) <= limit
            sizes.append(window.footprint.bytes)
        window.verify()
        assert max(sizes[2000:]) <= max(sizes[:2000]) * 1.25
        assert sum(bucket.count for bucket in window.buckets()) == 4000


def test_bucket_sizes_follow_the_count() -> None:
    """After the first level eviction buckets take ⌈count / (limit − 2)⌉, so a steady window evicts no more levels."""
    window = sg.Window(sg.sum(), policy=sg.policies.count(1000), histograms=[sg.Constrained(12)])
    window.insert_many(array("d", range(3000)), results=False)
    levels = window.changes().level
    window.insert_many(array("d", range(20_000)), results=False)
    assert window.changes().level <= levels + 1
    assert max(bucket.count for bucket in window.buckets()) <= 2 * -(-1100 // 10)


def test_bounds_are_refused_where_none_are_certain() -> None:
    """Buckets under a policy that declares nothing: an estimate, but no interval."""
    window = sg.Window(sg.sum(), policy=lambda total, old: total.count > 9, histograms=[sg.Constrained(4)])
    for x in range(30):
        window.insert(x)
    assert window.query()["sum"] > 0
    with pytest.raises(errors.BoundsError, match="monotone"):
        window.query(bounds=True)


def test_bounds_under_a_declared_policy() -> None:
    """A callable that depends only on what remains has certain bounds, as the count policy that it is."""
    rule = sg.policies.custom(lambda total, old: total.count - old.count >= 25, monotone=True, remaining=True)
    window = sg.Window({"sum": sg.sum(), "count": sg.count()}, policy=rule, histograms=[sg.Constrained(5)])
    for x in range(200):
        window.insert(float(x))
        inside = list(range(max(0, x - 24), x + 1))
        for name, true in (("sum", sum(inside)), ("count", len(inside))):
            answer = window.query(bounds=True)[name]
            assert answer.low <= true <= answer.high


def test_integers_of_any_kind_are_times() -> None:
    """What has __index__ is a time: numpy's integers, for example."""

    class Tick:
        def __index__(self) -> int:
            return 5

    window = sg.Window({"argmax": sg.argmax()}, policy=sg.policies.time(10))
    window.insert(1.0, Tick())  # type: ignore[arg-type]
    assert window.query() == {"argmax": 5}


def test_a_policy_may_not_change_its_own_window() -> None:
    """Inserting from within a policy is refused by name, and the window is whole after it."""
    windows: list[sg.Window] = []

    def rule(total: Any, old: Any) -> bool:
        windows[0].insert(1.0)
        return False

    windows.append(sg.Window(sg.sum(), policy=rule))
    with pytest.raises(errors.PolicyError, match="busy"):
        windows[0].insert(2.0)
    windows[0].verify()
    assert windows[0].query() == {"sum": 2.0}


def test_other_threads_run_beside_a_batch(implementation_of_window: str) -> None:
    """A compiled batch gives up the GIL: another thread goes on, but not in the same window."""
    if implementation_of_window == "pure":
        pytest.skip("the readable twin holds the GIL")
    window, values = sg.Window(sg.std(), policy=sg.policies.count(1000)), array("d", bytes(8 * 2_000_000))
    seen, batches = threading.Event(), 0

    def insert() -> None:
        nonlocal batches
        while batches < 400 and not seen.is_set():  # each over in some milliseconds: so long a thread may keep the GIL
            window.insert_many(values)
            batches += 1

    thread = threading.Thread(target=insert)
    beside = refused = 0
    thread.start()
    while thread.is_alive():
        beside += 1
        try:
            window.query()
        except errors.BusyError:
            refused += 1
        if beside > 100 and refused:
            seen.set()
    thread.join()
    assert beside > 100
    assert refused > 0
    assert window.accepted == batches * 2_000_000


@pytest.mark.parametrize("limit", [0, 5])
@pytest.mark.parametrize("policy", [sg.policies.count(9), sg.policies.time(30), lambda total, old: total.count > 9])
@pytest.mark.parametrize("aggregates", [sg.mean(), sg.count(), sg.argmax(), sg.std(ddof=1), ALL])
def test_slide_is_insert_and_query(aggregates: Any, policy: Any, limit: int) -> None:
    """One call takes a reading and gives what the two give: the only result, or all by name."""
    histograms = [sg.Constrained(limit)] if limit else []
    sliding, single = (sg.Window(aggregates, policy=policy, histograms=histograms) for _ in range(2))
    for x, t in readings(random.Random(2), SHAPES[4], "going back", 90):
        single.insert(x, t)
        expected = single.query()
        assert sliding.slide(x, t) == (expected if len(expected) > 1 else next(iter(expected.values())))
    assert sliding.snapshot() == single.snapshot()


def test_slide_reads_what_insert_reads() -> None:
    """Whole numbers, mappings, sequences, ordinals for times."""
    window = sg.Window(sg.sum(), policy=sg.policies.count(4))
    assert [window.slide(x) for x in (1, 2.5, True, 3)] == [1.0, 3.5, 4.5, 7.5]
    pairs = sg.Window({"a": sg.mean("a"), "b": sg.max("b")}, policy=sg.policies.time(10))
    assert pairs.slide({"a": 1, "b": 2}, 5) == {"a": 1.0, "b": 2.0}
    assert pairs.slide((3.0, 1.0), time=7) == {"a": 2.0, "b": 2.0}
    assert pairs.slide((8.0, 0.0), time=27) == {"a": 8.0, "b": 0.0}


@pytest.mark.parametrize(
    ("value", "time"),
    [(float("nan"), 1), (1e300, 1), ("x", 1), (0.0, 1), (-1.0, 1), (1.0, None), (1.0, 2**62), (1.0, 1.5), (1.0, 2**80)],
)
def test_slide_refuses_what_insert_refuses(value: Any, time: Any) -> None:
    """The same words, and nothing is in."""
    window = sg.Window(sg.geometric_mean(), policy=sg.policies.time(10))
    with pytest.raises(errors.InputError) as told:
        window.slide(value, time)
    with pytest.raises(errors.InputError) as expected:
        window.insert(value, time)
    assert str(told.value) == str(expected.value)
    assert window.accepted == 0
    assert window.slide(4.0, 3) == pytest.approx(4.0)
