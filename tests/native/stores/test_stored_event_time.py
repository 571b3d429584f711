"""A window by time in a store: late readings, silence, and what its file says of them when it is opened again."""

from __future__ import annotations

from typing import Any

import pytest
from event_time_oracle import KINDS, EventTime, stream
from fault_stores import Failing
from test_event_time_buckets import ALL, outside
from thorough import number

import sluicegate as sg
from sluicegate.errors import ConfigurationError, InputError, StoreError
from sluicegate.stores import Memory, Plan

LENGTH = 40_000
SUMS = {"n": sg.count(), "sum": sg.sum(), "max": sg.max(), "last": sg.last()}
KEPT: dict[str, Any] = {
    "sums": lambda: [sg.SumLike(error=0.05)],
    "maxima": lambda: [sg.MaxLike(block=8)],
    "hop": lambda: [sg.SumLike(error=0.05), sg.Hop()],
}


@pytest.mark.parametrize("engine", ["amta", "log_mta"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("kept", KEPT)
def test_the_definitions_result_is_inside(kept: str, kind: str, engine: str) -> None:
    """Buckets in a store take late readings as those in memory do; so does the window that is opened again."""
    hop = LENGTH // 4 if kept == "hop" else 1
    given: dict[str, Any] = {"policy": sg.policies.time(LENGTH, hop=hop), "histograms": KEPT[kept](), "engine": engine}
    store = Memory(Plan(2, 4))
    window, plain, model = sg.Window(ALL, store=store, **given), sg.Window(ALL, **given), EventTime(LENGTH, hop)
    for i, (value, time) in enumerate(stream(kind, number(600, 300), LENGTH, 4)):
        for each in (window, plain, model):
            each.insert(value, time)
        if i % 150 == 149 and model.now is not None:
            now = model.now + LENGTH // 3
            for one in (window, plain, model):
                one.advance(now)
        if i % 100 == 99:
            window.close()
            again = Memory(store.plan)
            again.rows, store = store.rows, again
            window = sg.Window.open(store)
        if i % 7 == 0:
            found = window.query(bounds=True)
            assert not outside(found, model), (kept, kind, i)
            assert found == plain.query(bounds=True)
    assert (window.accepted, window.readings) == (plain.accepted, plain.readings)
    window.verify()


@pytest.mark.parametrize("engine", ["amta", "log_mta"])
def test_single_readings_are_needed_in_order(engine: str) -> None:
    """One that comes late into the window is refused, alone and before any of its batch; one out of it is counted."""
    window = sg.Window(SUMS, policy=sg.policies.time(10), engine=engine, store=Memory(Plan(2, 4)))
    plain = sg.Window(SUMS, policy=sg.policies.time(10))
    for each in (window, plain):
        each.insert_many([1.0, 5.0, 2.0], [100, 80, 107])
    batch = [1.0, 9.0], [110, 109]
    calls = (lambda: window.insert_many(*batch), lambda: window.insert_many(*batch, bounds=True))
    for late in (lambda: window.insert(9.0, 105), *calls):
        with pytest.raises(InputError, match="store: a window of single readings by time needs them in order"):
            late()
        assert window.query() == plain.query()
        assert (window.accepted, window.late) == (2, 1)
    for each in (window, plain):
        each.advance(112)
        each.insert_many([3.0, 7.0], [109, 101])  # after the last one, before now; and out of the window
        assert each.query() == {"n": 2, "sum": 5.0, "max": 3.0, "last": 3.0}
    assert window.late == plain.late == 2
    window.verify()


def test_time_goes_on_while_the_store_fails() -> None:
    """What `advance` could not let leave leaves later; no answer is given before that."""
    store = Failing(Plan(2, 4))
    window, plain = (sg.Window(SUMS, policy=sg.policies.time(10_000), **given) for given in ({"store": store}, {}))
    for i in range(3_000):
        for each in (window, plain):
            each.insert(float(i % 7), i)
    store.fails = {"get"}
    window.advance(11_500)
    plain.advance(11_500)
    with pytest.raises(StoreError, match="get fails"):
        window.query()
    store.fails = set()
    assert window.query() == plain.query()
    window.verify()


def test_a_window_by_count_has_no_time() -> None:
    """In a store as in memory."""
    window = sg.Window(SUMS, policy=sg.policies.count(3), store=Memory(Plan(2, 4)))
    with pytest.raises(ConfigurationError, match="only a window with policies"):
        window.advance(5)
