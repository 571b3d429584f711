"""What engines refuse, and how: each names what was wrong, what was expected and what to take, and changes nothing."""

from __future__ import annotations

from array import array
from typing import Any

import pytest
from engine_windows import LITE, OTHERS, WITH_LEAVES, Counted, aggregates, agree, whole_numbers, windows
from twins.factory import make

import sluicegate as sg
from sluicegate import errors
from sluicegate.catalogue import FACTS, FORMER

pytestmark = pytest.mark.usefixtures("implementation_of_window")
NOT_INVERTIBLE = ["max", "min", "argmin", "argmax", "first", "range", "min_count", "max_count"]


@pytest.mark.parametrize("name", sg.ENGINES)
def test_evicting_what_is_not_there(name: str) -> None:
    """From an empty window, more than it holds, a negative count, no count at all: refused; the window goes on."""
    oracle, window = windows(name, sg.policies.count(5))
    for count in (1, -1, 2**70, 1.5, "1", True):
        with pytest.raises(errors.InputError, match="expected 0 to 0, the readings"):
            window.evict(count)  # type: ignore[arg-type]
    window.evict(0)
    for each in (oracle, window):
        each.insert_many(whole_numbers(7))
    with pytest.raises(errors.InputError, match="expected 0 to 5"):
        window.evict(6)
    for each in (oracle, window):
        each.evict(4)
        each.insert(3.0)
    window.verify()
    agree(oracle.query(), window.query())


@pytest.mark.parametrize("name", OTHERS)
def test_twins_refuse_to_evict_from_nothing(name: str) -> None:
    """An engine by itself raises IndexError for an empty window, and takes readings after it."""
    engine = make(name, Counted())
    with pytest.raises(IndexError, match="empty"):
        engine.pop()
    engine.push([0, 1])
    assert engine.total() == [0, 1]


@pytest.mark.parametrize("kind", NOT_INVERTIBLE)
def test_soe_refuses_what_it_cannot_deduct(kind: str) -> None:
    """The aggregate, its kind, the reason and the other engines are named."""
    with pytest.raises(errors.ConfigurationError, match=rf"'soe'.*aggregates\['x'\] is a {kind}.*deducted.*recalc"):
        sg.Window({"x": getattr(sg, kind)()}, policy=sg.policies.count(4), engine="soe")


def test_soe_refuses_rules_that_ask_for_times() -> None:
    """A callable is given the total's least and greatest time, which cannot be deducted."""
    with pytest.raises(errors.ConfigurationError, match=r"'soe'.*policy reads.*t_first.*count or time policy"):
        sg.Window(sg.sum(), policy=lambda total, old: total.count > 3, engine="soe")


@pytest.mark.parametrize("name", [name for name in OTHERS if not FACTS[name].buckets])
@pytest.mark.parametrize("histogram", [sg.Constrained(8), sg.SumLike(error=0.01)])
def test_histograms_need_an_engine_that_joins(name: str, histogram: Any) -> None:
    """An engine that has aggregated its newest leaf already is refused, with those that can."""
    with pytest.raises(errors.ConfigurationError, match=rf"'{name}'.*histograms.*log_mta, amta"):
        sg.Window(sg.sum(), policy=sg.policies.count(100), engine=name, histograms=[histogram])


@pytest.mark.parametrize("name", [name for name in sg.ENGINES if FACTS[name].buckets])
def test_buckets_leave_by_their_policy(name: str) -> None:
    """Readings of a bucket cannot be evicted by themselves."""
    window = sg.Window(sg.sum(), policy=sg.policies.count(100), engine=name, histograms=[sg.Constrained(8)])
    window.insert(1.0)
    with pytest.raises(errors.ConfigurationError, match="buckets of many readings"):
        window.evict()


def test_engines_that_do_not_exist() -> None:
    """All that do are named."""
    with pytest.raises(errors.ConfigurationError, match=r"'abacus', expected one of recalc, soe.*amta"):
        sg.Window(sg.sum(), policy=sg.policies.count(4), engine="abacus")


@pytest.mark.parametrize(("former", "now"), FORMER.items())
def test_former_engines_are_taken(former: str, now: str) -> None:
    """A name that an older program or snapshot has gives the engine in its place, and goes on from what was stored."""
    kept = {"sum": sg.sum(), "max": sg.max()}
    pair = [sg.Window(kept, policy=sg.policies.count(9), engine=engine) for engine in (former, now)]
    for window in pair:
        window.insert_many(whole_numbers(30))
    again = sg.Window.restore(pair[0].snapshot(), kept, policy=sg.policies.count(9), engine=former)
    for value in whole_numbers(30, 30):
        assert again.slide(value) == pair[0].slide(value) == pair[1].slide(value)
    with pytest.raises(errors.ForeignSnapshotError):
        sg.Window.restore(pair[0].snapshot(), kept, policy=sg.policies.count(9), engine="amta")
    assert former not in sg.ENGINES


LEAFLESS: dict[str, Any] = {
    "buckets": lambda window: window.buckets(),
    "changes": lambda window: window.changes(),
    "leaf": lambda window: window.leaf(8),
    "snapshot": lambda window: window.snapshot(),
    "state": lambda window: window.state(),
    "bounds": lambda window: window.query(bounds=True),
}


@pytest.mark.parametrize("name", LITE)
@pytest.mark.parametrize("call", LEAFLESS)
@pytest.mark.parametrize("policy", [sg.policies.count(4), sg.policies.time(4)], ids=["count", "time"])
def test_lite_engines_keep_no_leaves(name: str, call: str, policy: Any) -> None:
    """What needs leaves is refused with the engines that have them; the window is as it was."""
    window = sg.Window({"sum": sg.sum()}, policy=policy, engine=name)
    window.insert_many(whole_numbers(9), array("q", range(9)))
    before = window.query()
    with pytest.raises(errors.ConfigurationError, match=rf"'{name}': keeps no leaves.*recalc.*amta"):
        LEAFLESS[call](window)
    assert window.query() == before
    window.verify()


@pytest.mark.parametrize("name", LITE)
def test_a_time_alone_is_no_leaf(name: str) -> None:
    """A count by time asks a leaf for nothing but its time; twin and compiled refuse a snapshot of it alike."""
    window = sg.Window({"n": sg.count()}, policy=sg.policies.time(4), engine=name)
    window.insert_many(whole_numbers(9), array("q", range(9)))
    with pytest.raises(errors.ConfigurationError, match=rf"'{name}': keeps no leaves"):
        window.snapshot()
    assert window.query() == {"n": 4}


@pytest.mark.parametrize("name", LITE)
def test_lite_engines_keep_leaves_where_a_rule_reads_them(name: str) -> None:
    """Under a callable policy the oldest leaf is asked for, so they are there for all other calls too."""
    rule = sg.policies.custom(lambda total, old: total.count > 3, label="three")
    pair = [sg.Window({"sum": sg.sum()}, policy=rule, engine=engine) for engine in ("recalc", name)]
    for window in pair:
        for x in range(9):
            window.insert(float(x))
    assert [b.results for b in pair[1].buckets()] == [b.results for b in pair[0].buckets()] != []
    again = sg.Window.restore(pair[1].snapshot(), {"sum": sg.sum()}, policy=rule, engine=name)
    assert again.query() == pair[0].query()
    assert pair[1].query(bounds=True) == pair[0].query(bounds=True)


@pytest.mark.parametrize("name", WITH_LEAVES)
@pytest.mark.parametrize("held", [0, 1, 2, 6, 7, 40])
def test_restored_windows_go_on(name: str, held: int) -> None:
    """A snapshot of a window that has slid restores to one that verifies, answers alike and goes on alike."""
    policy, kept = sg.policies.count(max(held, 1)), aggregates(name)
    window = sg.Window(kept, policy=policy, engine=name)
    window.insert_many(whole_numbers(3 * held))
    again = sg.Window.restore(window.snapshot(), kept, policy=policy, engine=name)
    for i in range(2 * held + 3):
        again.verify()
        agree(window.query(), again.query())
        for each in (window, again):
            each.insert(float(i % 11))


@pytest.mark.parametrize("name", [name for name in WITH_LEAVES if FACTS[name].exact])
def test_exact_engines_restore_to_the_bit(name: str) -> None:
    """Those that say so go on to the bit, rounding included."""
    policy = sg.policies.count(77)
    window = sg.Window(sg.sum(), policy=policy, engine=name)
    window.insert_many(array("d", [0.1 * i for i in range(200)]))
    again = sg.Window.restore(window.snapshot(), sg.sum(), policy=policy, engine=name)
    values = array("d", [0.7 / (i + 1) for i in range(200)])
    assert window.query() == again.query()
    assert window.insert_many(values) == again.insert_many(values)


@pytest.mark.parametrize("name", sg.ENGINES)
def test_memory_does_not_grow_while_a_window_slides(name: str, implementation_of_window: str) -> None:
    """Bytes after many turns are those after a few."""
    if name == "recalc":
        pytest.skip("takes 10,000 combines a result; its queue is every other engine's")
    if implementation_of_window == "pure":
        pytest.skip("the twin counts leaves, not bytes")
    kept = {"sum": sg.sum()}
    window = sg.Window(kept, policy=sg.policies.count(10_000), engine=name)
    values = whole_numbers(20_000)
    window.insert_many(values, results=False)
    after = window.footprint.bytes
    for _ in range(4):
        window.insert_many(values, results=False)
    assert window.footprint.bytes <= 1.1 * after
    window.evict(10_000)
    window.insert_many(values, results=False)
    assert window.footprint.bytes <= 1.1 * after
