"""Each policy keeps what it promises, one by one and in batches, compiled and pure, and refuses what cannot work."""

from __future__ import annotations

import ctypes
import random
import subprocess
import sysconfig
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from plain_windows import Plain, answer, from_longest_run, from_maximum, near, summing_to

import sluicegate as sg
from sluicegate import errors, policies
from sluicegate.catalogue import FACTS

pytestmark = pytest.mark.usefixtures("implementation_of_window")
SLOTS = ctypes.POINTER(ctypes.c_double)
RULE = ctypes.CFUNCTYPE(ctypes.c_int, SLOTS, SLOTS, ctypes.c_void_p)
ENGINES = [name for name in sg.ENGINES if not FACTS[name].deducts]  # for aggregates of any kind
CALM, JUMPY = "calm", "jumpy"


def stream(seed: int, n: int, least: int = 0) -> Iterator[float]:
    """Whole numbers, so that sums are exact: level stretches, drifts and jumps."""
    rng, x = random.Random(seed), 0
    for _ in range(n):
        x = rng.choice([x, x + 1, x - 1, rng.randrange(-20, 21), rng.randrange(-400, 401)])
        yield float(max(x, least)) if least >= 0 else float(x)


def agree(window: sg.Window, plain: Plain, dimension: str | None = None) -> None:
    """The same readings inside, and the same answers."""
    window.verify()
    column = plain.column(dimension)
    assert len(window) == len(column)
    assert window.query() == {name: answer(name, column) for name in window.query()}


RULES = [
    pytest.param(policies.delta(None, 12), near(None, 12), -1, id="delta"),
    pytest.param(policies.delta(None, 0), near(None, 0), -1, id="delta of 0"),
    pytest.param(policies.delta(None, 300), near(None, 300), -1, id="wide delta"),
    pytest.param(policies.total(None, 10), summing_to(None, 10), 0, id="total"),
    pytest.param(policies.total(None, 5000), summing_to(None, 5000), 0, id="large total"),
    pytest.param(policies.total(None, 40), summing_to(None, 40), -1, id="total of both signs"),
    pytest.param(policies.total(None, -3), summing_to(None, -3), -1, id="negative total"),
    pytest.param(policies.newer_than_maximum(limit=30), from_maximum(None, 30), -1, id="newer than the maximum"),
    pytest.param(policies.newer_than_maximum(), from_maximum(None, 10**9), -1, id="newer than the maximum of all"),
    pytest.param(policies.newer_than_longest_run(limit=30), from_longest_run(None, 30), -1, id="newer than the run"),
    pytest.param(policies.newer_than_longest_run(), from_longest_run(None, 10**9), -1, id="newer than the run of all"),
]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("policy", "leaving", "least"), RULES)
def test_a_window_holds_what_the_policy_says(policy: Any, leaving: Any, least: int, engine: str) -> None:
    """After each reading the window is the plain list, also when snapshots carry it on and batches feed it."""
    aggregates = {"sum": sg.sum(), "max": sg.max(), "count": sg.count(), "first": sg.first()}
    for seed in range(2 if engine == "amta" else 1):
        window, plain = sg.Window(aggregates, policy=policy, engine=engine), Plain(leaving)
        batch = sg.Window(aggregates, policy=policy, engine=engine)
        values = array("d", stream(seed, 250 if engine == "amta" else 150, least))
        columns = batch.insert_many(values)
        for i, x in enumerate(values):
            window.insert(x, i)
            plain.insert({None: x}, i)
            agree(window, plain)
            assert columns["sum"][i] == window.query()["sum"]
            if i % 41 == 0:
                window = sg.Window.restore(window.snapshot(), aggregates, policy=policy, engine=engine)
        assert batch.snapshot() == window.snapshot()


def test_amtas_running_example() -> None:
    """[2, 2, 3, 3] under "the sum stays ≤ 10" takes a 4: the two oldest leave (paper AMTA, 3.2)."""
    window = sg.Window({"max": sg.max(), "sum": sg.sum()}, policy=policies.total(None, 10))
    for x in (2, 2, 3, 3):
        window.insert(x)
    assert window.query() == {"max": 3.0, "sum": 10.0}
    window.insert(4)
    assert window.query() == {"max": 4.0, "sum": 10.0}
    assert [bucket["max"] for bucket in window.buckets()] == [3.0, 3.0, 4.0]
    window.insert(11)
    assert window.query() == {"max": None, "sum": 0.0}
    window.insert(1)
    assert window.query() == {"max": 1.0, "sum": 1.0}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_total_stops_at_the_first_sum_that_fits(engine: str) -> None:
    """With a negative value inside a longer prefix would exceed the limit again: it is not searched for in bulk."""
    window = sg.Window({"sum": sg.sum(), "n": sg.count()}, policy=policies.total(None, 100), engine=engine)
    window.insert_many(array("d", [1] * 20 + [-50] + [1] * 43), results=False)
    window.insert(100 + 12 - 13)
    assert window.query() == {"sum": 100.0, "n": 65 - 12}


def test_a_total_of_fractions_is_never_above_its_limit() -> None:
    """Rounding decides no differently in bulk than one by one: what is kept fits, and one reading more would not."""
    rng = random.Random(3)
    for _ in range(20):
        window, kept = sg.Window(sg.sum(), policy=policies.total(None, 1.0)), list[float]()
        for i in range(400):
            x = rng.random() ** 3 * (40.0 if i % 97 == 96 else 0.02)
            window.insert(x)
            kept.append(x)
            assert window.query()["sum"] <= 1.0
            more = sum(kept[len(kept) - len(window) - 1 :])
            assert len(window) == len(kept) or more > 1.0 - 1e-12


def test_delta_over_a_dimension_no_aggregate_reads() -> None:
    """The attribute is a value of each reading besides those the aggregates read; a reset lets what came before go."""
    window = sg.Window({"load": sg.mean("load")}, policy=policies.delta("km", 100))
    plain = Plain(near("km", 100))
    assert window.dimensions == ("load", "km")
    for i, km in enumerate([0, 40, 99, 100, 101, 150, 5000, 5010, 5, 20, 120, 125, 5000]):
        window.insert({"load": i, "km": km}, i)
        plain.insert({"load": float(i), "km": float(km)}, i)
        assert len(window) == len(plain.kept)
    with pytest.raises(errors.InputError, match="km"):
        window.insert({"load": 1.0})
    with pytest.raises(errors.ConfigurationError, match="name a dimension in each"):
        sg.Window(sg.mean("load"), policy=policies.delta(None, 1))


def test_a_growing_attribute_that_falls_is_refused() -> None:
    """Nothing of a batch with a fall enters, the message says where, and the window goes on."""
    window = sg.Window({"n": sg.count()}, policy=policies.delta("km", 10, growing=True))
    window.insert_many(array("d", [1, 5, 11, 12]))
    before = window.snapshot()
    with pytest.raises(errors.InputError, match=r"km 13\.0 after 14\.0"):
        window.insert_many(array("d", [13, 14, 13]))
    with pytest.raises(errors.InputError, match=r"km 3\.0 after 12\.0"):
        window.insert(3)
    assert window.snapshot() == before
    window.insert(12)
    assert window.query() == {"n": 4}


@pytest.mark.parametrize("histograms", [[sg.Constrained(6)], [sg.SumLike(0.05)], [sg.SumLike(0.05), sg.Hop()]])
def test_a_growing_attribute_gives_buckets_with_certain_bounds(histograms: list[Any]) -> None:
    """Over buckets the exact result always lies inside the interval."""
    rng, aggregates = random.Random(5), {"sum": sg.sum("load"), "max": sg.max("load"), "count": sg.count()}
    policy = policies.delta("km", 50, growing=True)
    window = sg.Window(aggregates, policy=policy, histograms=histograms)
    plain, km = Plain(near("km", 50)), 0.0
    for i in range(600):
        km += rng.choice([0.0, 0.5, 1.0, 1.0, 30.0 if i % 50 == 49 else 0.25])
        load = 20 + rng.random()
        window.insert({"load": load, "km": km}, i)
        plain.insert({"load": load, "km": km}, i)
        window.verify()
        for name, bounded in window.query(bounds=True).items():
            true = answer(name, plain.column("load"))
            assert bounded.low <= true <= bounded.high
    assert len(window) < len(plain.kept)


def test_newer_than_the_maximum_answers_as_the_whole_window() -> None:
    """Maximum, its time and how often it occurs are those of the newest 64 readings, from fewer of them."""
    aggregates = {"max": sg.max(), "argmax": sg.argmax(), "max_count": sg.max_count()}
    slim = sg.Window(aggregates, policy=policies.newer_than_maximum(limit=64))
    full = sg.Window(aggregates, policy=policies.count(64))
    held = []
    for i, x in enumerate(stream(11, 1500, -1)):
        slim.insert(x // 40, i)
        full.insert(x // 40, i)
        assert slim.query() == full.query()
        held.append(len(slim))
    assert sum(held) < 0.6 * 64 * len(held)


def test_newer_than_the_longest_run_answers_as_the_whole_window() -> None:
    """The longest run is that of the newest 64 readings, from fewer of them, also when readings rise by the dozen."""
    slim, full = (
        sg.Window(sg.longest_run(), policy=policy)
        for policy in (policies.newer_than_longest_run(limit=64), policies.count(64))
    )
    held, rng = [], random.Random(13)
    for i in range(1500):
        x = i % rng.choice([9, 23, 31]) if i // 200 % 2 else rng.randrange(50)
        slim.insert(x, 10 * i)
        full.insert(x, 10 * i)
        assert slim.query() == full.query()
        held.append(len(slim))
    assert sum(held) < 0.8 * 64 * len(held)


EXACT_ONLY = [
    policies.total(None, 5), policies.newer_than_maximum(), policies.newer_than_longest_run(), policies.delta(None, 5),
]  # fmt: skip


@pytest.mark.parametrize("policy", EXACT_ONLY)
def test_histograms_are_refused_where_a_bucket_does_not_know_enough(policy: Any) -> None:
    """By name and with the reason."""
    with pytest.raises(errors.ConfigurationError, match=f"(?s)histograms.*{policy.name}.*bucket"):
        sg.Window(sg.sum(), policy=policy, histograms=[sg.Constrained(8)])


@pytest.mark.parametrize(
    "build",
    [
        lambda: policies.delta(None, -1),
        lambda: policies.delta(None, float("nan")),
        lambda: policies.delta(None, float("inf")),
        lambda: policies.delta(3, 1),  # type: ignore[arg-type]
        lambda: policies.delta(None, "1h"),  # type: ignore[arg-type]
        lambda: policies.total(None, float("nan")),
        lambda: policies.total(None, True),
        lambda: policies.newer_than_maximum(limit=0),
        lambda: policies.newer_than_maximum(limit=-4),
        lambda: policies.newer_than_maximum(limit=2.5),  # type: ignore[arg-type]
        lambda: policies.newer_than_longest_run(limit=0),
        lambda: policies.compiled(0, label="x"),
        lambda: policies.compiled(-8, label="x"),
        lambda: policies.compiled("f", label="x"),  # type: ignore[arg-type]
        lambda: policies.compiled(4096, label=""),
        lambda: policies.compiled(4096, label="x", context=-1),
        lambda: policies.count(-1),
        lambda: policies.count(10, hop=-2),
    ],
)  # fmt: skip
def test_settings_that_make_no_sense(build: Any) -> None:
    """Negative counts and widths, what is no number, addresses of nothing: refused when the policy is made."""
    with pytest.raises(errors.ConfigurationError, match="policies"):
        build()


def test_a_stored_window_knows_its_policy() -> None:
    """Another width, limit or label is another window."""
    kinds = [
        policies.delta(None, 3), policies.delta(None, 4), policies.delta(None, 3, growing=True),
        policies.total(None, 3), policies.newer_than_maximum(), policies.newer_than_maximum(limit=3),
        policies.newer_than_longest_run(), policies.newer_than_longest_run(limit=3), policies.count(3),
    ]  # fmt: skip
    assert len({policy.name for policy in kinds}) == len(kinds)
    for policy in kinds:
        window = sg.Window(sg.max(), policy=policy)
        window.insert(1.0, 0)
        for other in kinds:
            if other is policy:
                assert sg.Window.restore(window.snapshot(), sg.max(), policy=other).query() == {"max": 1.0}
                continue
            with pytest.raises(errors.ForeignSnapshotError):
                sg.Window.restore(window.snapshot(), sg.max(), policy=other)


def test_every_policy_states_what_it_promises() -> None:
    """Monotone or not, dependent on what remains or not, each by its definition."""
    promises = {
        policies.count(1): (True, True), policies.time(1): (True, True), policies.delta(None, 1): (True, False),
        policies.delta(None, 1, growing=True): (True, True), policies.total(None, 1): (False, True),
        policies.newer_than_maximum(): (True, True), policies.newer_than_maximum(limit=1): (True, False),
        policies.newer_than_longest_run(): (True, True), policies.newer_than_longest_run(limit=1): (True, False),
        policies.custom(max): (False, False), policies.compiled(8, label="x"): (False, False),
    }  # fmt: skip
    assert {policy: (policy.monotone, policy.remaining) for policy in promises} == promises


# compiled rules


def keeping(count: int) -> Any:
    """A C function that keeps the newest `count`: slot 0 is the number of readings."""

    def rule(total: Any, old: Any, context: int | None) -> int:
        seen = [ctypes.cast(partial, ctypes.POINTER(ctypes.c_int64))[0] for partial in (total, old)]
        return int(seen[0] - seen[1] >= count)

    return RULE(rule)


def address(function: Any) -> int:
    """Where a ctypes callback is."""
    found = ctypes.cast(function, ctypes.c_void_p).value
    assert found is not None
    return found


@pytest.mark.parametrize("monotone", [True, False], ids=["bulk", "one by one"])
@pytest.mark.parametrize("engine", ENGINES)
def test_a_compiled_rule(engine: str, monotone: bool) -> None:
    """Given by its address it evicts as the policy that it is, in batches and over snapshots too."""
    function = keeping(7)
    rule = policies.compiled(address(function), label="newest 7", monotone=monotone, remaining=True, keep=function)
    aggregates = {"sum": sg.sum(), "argmax": sg.argmax()}
    window, plain = (sg.Window(aggregates, policy=policy, engine=engine) for policy in (rule, policies.count(7)))
    values = array("d", stream(1, 120, -1))
    assert window.insert_many(values) == plain.insert_many(values)
    window = sg.Window.restore(window.snapshot(), aggregates, policy=rule, engine=engine)
    for x in values:
        window.insert(x)
        plain.insert(x)
        window.verify()
        assert window.query() == plain.query()


def test_a_compiled_rule_over_buckets_has_bounds_where_it_declares_them() -> None:
    """As a declared callable: the exact result lies inside."""
    function = keeping(25)
    rule = policies.compiled(address(function), label="25", monotone=True, remaining=True, keep=function)
    window = sg.Window({"sum": sg.sum()}, policy=rule, histograms=[sg.Constrained(5)])
    for x in range(200):
        window.insert(float(x))
        answer = window.query(bounds=True)["sum"]
        assert answer.low <= sum(range(max(0, x - 24), x + 1)) <= answer.high


def test_a_compiled_rule_that_fails_leaves_the_window_right() -> None:
    """A negative result is told by name, alone and in the middle of a batch; the readings up to there are in."""
    failing = [0]

    def rule(total: Any, old: Any, context: int | None) -> int:
        return -failing[0] if failing[0] and total[5] > 9 else int(total[5] > 9)

    function = RULE(rule)
    policy = policies.compiled(address(function), label="mine", keep=function)
    window = sg.Window(sg.sum(), policy=policy)
    window.insert_many(array("d", [4, 5, 3]), results=False)
    assert window.query() == {"sum": 8.0}
    failing[0] = 3
    with pytest.raises(errors.PolicyError, match=r"mine: returned -3"):
        window.insert(2)
    window.verify()
    assert window.query() == {"sum": 10.0}
    failing[0] = 0
    window.insert(0)
    assert window.query() == {"sum": 5.0}
    failing[0] = 1
    with pytest.raises(errors.PolicyError, match=r"returned -1"):
        window.insert_many(array("d", [1, 1, 9, 7]))
    assert window.accepted == 8
    failing[0] = 0
    window.insert(0)
    window.verify()
    assert window.query() == {"sum": 9.0}


def test_a_compiled_rule_may_not_enter_its_own_window() -> None:
    """What it tries is refused as busy, and the window is whole after it."""
    windows, refused = list[sg.Window](), list[str]()

    def rule(total: Any, old: Any, context: int | None) -> int:
        try:
            windows[0].insert(1.0)
        except errors.BusyError as error:
            refused.append(str(error))
        return 0

    function = RULE(rule)
    windows.append(sg.Window(sg.sum(), policy=policies.compiled(address(function), label="x", keep=function)))
    windows[0].insert(2.0)
    assert "busy" in refused[0]
    windows[0].verify()
    assert windows[0].query() == {"sum": 2.0}


def test_the_fields_of_a_partial() -> None:
    """What a compiled rule finds where: the header first, then each component with its dimension."""
    function = keeping(3)
    rule = policies.compiled(address(function), label="x", keep=function)
    window = sg.Window({"a": sg.sum("load"), "b": sg.argmax("temp")}, policy=rule)
    assert list(window.fields) == ["count", "t_first", "t_last", "o_first", "ordered", "sum[load]", "argmax[temp]"]
    assert window.fields["count"] == (0, "q")
    assert window.fields["sum[load]"] == (5, "d")
    assert window.fields["argmax[temp]"] == (6, "dq")
    assert list(sg.Window(sg.sum(), policy=policies.count(3)).fields) == ["sum"]


SOURCE = """
#include <stdint.h>
typedef union { double f; int64_t i; } slot;
/* The sum of what remains behind `old` stays at least the context's: slot 5 is the sum. */
int leave(const slot *total, const slot *old, void *context) {
    return total[5].f - old[5].f >= *(const double *)context;
}
"""


def test_a_rule_from_a_c_compiler(tmp_path: Path) -> None:
    """The documented declaration, compiled, with its context: without Python in between."""
    source, library = tmp_path / "rule.c", tmp_path / "rule.so"
    source.write_text(SOURCE)
    compiler = (sysconfig.get_config_var("CC") or "cc").split()[0]
    subprocess.run([compiler, "-shared", "-fPIC", "-O2", "-o", library, source], check=True)
    context = ctypes.c_double(20.0)
    loaded = ctypes.CDLL(str(library))
    rule = policies.compiled(
        address(loaded.leave), label="at least 20", context=ctypes.addressof(context), monotone=True, remaining=True,
        keep=(loaded, context),
    )  # fmt: skip
    window, kept = sg.Window({"sum": sg.sum()}, policy=rule), list[float]()
    for x in stream(4, 400, 0):
        window.insert(x)
        kept.append(x)
        while sum(kept[1:]) >= 20.0:
            del kept[0]
        window.verify()
        assert (len(window), window.query()["sum"]) == (len(kept), sum(kept))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", ["max", "min"])
@pytest.mark.parametrize("hop", [1, 7])
def test_every_engine_evicts_up_to_an_extreme(engine: str, kind: str, hop: int) -> None:
    """By count and by time, late readings too: the answer is the whole window's, also of engines without leaves."""
    rng, extreme = random.Random(hop), {"max": max, "min": min}[kind]
    readings = [(float(rng.randint(-9, 9)), i - (rng.randint(0, 30) if i % 5 == 4 else 0)) for i in range(300)]
    for policy in (policies.count(20, hop=hop, up_to=kind), policies.time(20, hop=hop, up_to=kind)):
        window = sg.Window(getattr(sg, kind)(), policy=policy, engine=engine)
        batch = sg.Window(getattr(sg, kind)(), policy=policy, engine=engine)
        columns, kept, newest = list[float](), list[tuple[int, float, int]](), -(10**9)
        for i, (x, time) in enumerate(readings):
            window.insert(x, time)
            newest = max(newest, time)
            kept.append((i, x, time))
            last = newest if isinstance(policy, policies.Time) else i + 1
            cutoff = last // hop * hop - 20
            if isinstance(policy, policies.Time):
                kept = [each for each in kept if each[2] > cutoff]
            while kept[0][0] < cutoff and isinstance(policy, policies.Count):
                del kept[0]
            columns.append(extreme(x for _, x, _ in kept))
            assert window.query() == {kind: columns[-1]}
        window.verify()
        values, times = array("d", (x for x, _ in readings)), array("q", (time for _, time in readings))
        assert batch.insert_many(values, times)[kind].tolist() == columns
