"""What a stranger does to a window: copies, threads, forks, texts, an absurd first reading. Right, or refused."""

from __future__ import annotations

import copy
import os
import pickle
import statistics
import threading
import time
from array import array
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from engine_windows import LITE

import sluicegate as sg
from sluicegate import errors, policies, stores

FAR = [-3.4028234663852886e38, 2.0**960, 1e155, 2.0**63, 4294967296.0]
"""First readings that mean "none" to some sensor, or are a slip."""


def own() -> sg.Monoid:
    """A sum in Python."""

    class Total:
        def lift(self, value: float, time: int) -> float:
            return value

        def combine(self, a: float, b: float) -> float:
            return a + b

        def lower(self, partial: float) -> float:
            return partial

    return sg.custom(Total())


@pytest.mark.usefixtures("implementation_of_window")
@pytest.mark.parametrize("engine", sg.ENGINES)
@pytest.mark.parametrize("far", FAR)
def test_a_far_first_reading_leaves_no_trace(engine: str, far: float) -> None:
    """Once it has left, deviations are those of the readings inside, one by one and in a batch."""
    readings = [20.0 + (i * 7919 % 101) / 101 for i in range(40)]
    single, batch = (sg.Window(sg.std(), policy=policies.count(12), engine=engine) for _ in range(2))
    for x in [far, *readings]:
        single.insert(x)
    batch.insert_many(array("d", [far, *readings]))
    for window in (single, batch):
        assert window.query()["std"] == pytest.approx(statistics.pstdev(readings[-12:]), rel=1e-9)


@pytest.mark.usefixtures("implementation_of_window")
def test_deviations_around_a_first_reading_too_far_for_squares_have_an_interval() -> None:
    """Buckets are taken around the first reading, however far; the interval then says that nothing is known."""
    window = sg.Window(sg.std(), policy=policies.count(20), histograms=[sg.Constrained(16)])
    found = window.insert_many([2.0**960, *(1.0 + i % 3 for i in range(60))], bounds=True)["std"]
    assert all(low <= 0.9 and high >= 0.7 for low, high in zip(found.low[30:], found.high[30:], strict=True))


def test_a_rate_below_the_normal_numbers_is_inside_its_interval() -> None:
    """A quotient that float64 has hardly any digits for is multiplied afterwards."""
    window = sg.Window(sg.rate(), policy=policies.count(5))
    window.insert(5e-324, 0)
    window.insert(0.0, 3)
    found = window.query(bounds=True)["rate"]
    assert Fraction(found.low) <= -Fraction(5e-324) / 3 * 10**6 <= Fraction(found.high)


@pytest.mark.usefixtures("implementation_of_window")
@pytest.mark.parametrize("engine", LITE)
def test_bounds_that_an_engine_cannot_give_are_refused_before_a_batch_enters(engine: str) -> None:
    """A sum's bounds need the leaves; of what is not rounded the same engines answer."""
    window = sg.Window({"sum": sg.sum()}, policy=policies.count(3), engine=engine)
    with pytest.raises(errors.ConfigurationError, match="keeps no leaves"):
        window.insert_many([1.0, 2.0], bounds=True)
    assert (window.accepted, len(window)) == (0, 0)
    extreme = sg.Window(sg.max(), policy=policies.count(3), engine=engine)
    assert extreme.insert_many([1.0, 2.0], bounds=True)["max"].low.tolist() == [1.0, 2.0]


@pytest.mark.usefixtures("implementation_of_window")
@pytest.mark.parametrize("text", ["21.5", b"21.5", bytearray(b"1")])
def test_a_text_is_no_reading(text: Any) -> None:
    """Not one by one either, where float would have read it."""
    window = sg.Window(sg.mean("t"), policy=policies.count(3))
    calls: list[Callable[[], Any]] = [
        lambda: window.insert(text), lambda: window.slide(text), lambda: window.insert({"t": text}),
        lambda: window.insert([text]), lambda: window.insert_many([text]),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(errors.InputError):
            call()
    assert window.accepted == 0


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_window_is_neither_copied_nor_pickled(again: Callable[[Any], Any]) -> None:
    """A shallow copy would be the same window by another name; the error names the way there is."""
    window = sg.Window(sg.sum(), policy=policies.count(3))
    stored = sg.Window(sg.sum(), policy=policies.count(3), store=stores.Memory())
    shared = sg.Windows(sg.sum(), policies={"a": policies.count(9)}, histograms=[sg.Constrained(4)])
    for each in (window, stored, shared, sg.Window(own(), policy=policies.count(3))):
        with pytest.raises(TypeError, match="snapshot"):
            again(each)
    stored.close()


# threads


def beside(window: sg.Window, asked: Callable[[], Any], goes_on: threading.Event) -> Any:
    """What another thread is told that asks while this one's policy is being asked."""
    told: list[Any] = []

    def ask() -> None:
        try:
            told.append(asked())
        except errors.BusyError as error:
            told.append(error)
        goes_on.set()

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join(120)
    assert told, "it waits for the first thread"
    return told[0]


@pytest.mark.parametrize("kept", ["compiled", "object", "stored"])
@pytest.mark.parametrize(
    "call", ["insert", "insert_many", "slide", "query", "bounds", "buckets", "snapshot", "changes", "evict", "verify"]
)
def test_a_second_thread_is_refused_while_the_first_evicts(kept: str, call: str) -> None:
    """It gets BusyError and has changed nothing; the policy itself, in the first, may look at its window."""
    goes_on, told, seen = threading.Event(), list[Any](), list[Any]()
    calls: dict[str, Callable[[], Any]] = {
        "insert": lambda: window.insert(9.0), "insert_many": lambda: window.insert_many([9.0]),
        "slide": lambda: window.slide(9.0), "query": lambda: window.query(),
        "bounds": lambda: window.query(bounds=True), "buckets": lambda: window.buckets(),
        "snapshot": lambda: window.snapshot(), "changes": lambda: window.changes(), "evict": lambda: window.evict(1),
        "verify": lambda: window.verify(),
    }  # fmt: skip

    def rule(total: Any, old: Any) -> bool:
        if total.count == 6:
            told.append(beside(window, calls[call], goes_on))
            seen.append(window.query())
        return bool(total.count - old.count >= 5)

    if call in {"object": ("snapshot", "changes"), "stored": ("evict",)}.get(kept, ()):
        pytest.skip("refused in any thread")
    aggregates = {"sum": own() if kept == "object" else sg.sum()}
    options: dict[str, Any] = {"store": stores.Memory()} if kept == "stored" else {}
    window = sg.Window(aggregates, policy=policies.custom(rule, label="slow"), **options)
    for i in range(6):
        window.insert(float(i))
    assert goes_on.is_set()
    assert isinstance(told[0], errors.BusyError), told
    assert seen[0] == {"sum": 15.0}
    assert (window.accepted, window.query()) == (6, {"sum": 15.0})
    window.verify()


def test_a_walk_over_leaves_that_another_thread_moves_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not an index that is not there, nor an interval of readings that never stood together."""
    window = sg.Window(sg.sum(), policy=policies.count(4))
    window.insert_many([1.0, 2.0, 3.0, 4.0])
    leaves = window._slot_of_leaves

    def late(slot: int) -> Any:
        window.insert(5.0)
        return leaves(slot)

    monkeypatch.setattr(window, "_slot_of_leaves", late)
    with pytest.raises(errors.BusyError, match="one thread a window"):
        window.query(bounds=True)
    monkeypatch.undo()
    assert window.query(bounds=True)["sum"].value == 14.0


class Stuck(stores.Memory):
    """A store that writes once it is let."""

    def __init__(self, plan: stores.Plan) -> None:
        super().__init__(plan)
        self.let = threading.Event()
        self.let.set()

    def put(self, rows: Any) -> None:
        """Wait, then write."""
        self.let.wait()
        super().put(rows)


def test_a_second_thread_is_refused_while_the_first_waits_for_the_store() -> None:
    """An insertion that waits lets go of the interpreter's lock: the reading is half in."""
    store = Stuck(stores.Plan(1, 1))
    window = sg.Window(sg.sum(), policy=policies.count(10**6), store=store)
    store.let.clear()
    wrote = threading.Thread(target=lambda: [window.insert(1.0) for _ in range(3000)])
    pages, end = window._core._pager._pages, time.monotonic() + 120
    wrote.start()
    while len(pages) < 505 and time.monotonic() < end:  # from 512 on it waits until it is let
        time.sleep(0.01)
    refused = 0
    while not refused and time.monotonic() < end:
        time.sleep(0.01)
        try:
            window.query()
        except errors.BusyError:
            refused += 1
    store.let.set()
    wrote.join(120)
    assert refused
    assert window.query() == {"sum": 3000.0}
    window.verify()
    window.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_is_refused_its_parents_stored_window(tmp_path: Path) -> None:
    """The writing thread is not in the child, which would wait for ever; the parent goes on."""
    window = sg.Window(sg.sum(), policy=policies.count(500), store=stores.SQLite(tmp_path / "w.db"))
    plain = sg.Window(sg.sum(), policy=policies.count(500))
    window.insert_many(array("d", range(2000)), results=False)
    child = os.fork()
    if child == 0:
        refused = 0
        calls: list[Callable[[], Any]] = [
            lambda: window.insert(1.0), lambda: window.insert_many([1.0]), lambda: window.query(),
            lambda: window.flush(), lambda: window.close(), lambda: window.verify(),
        ]  # fmt: skip
        for call in calls:
            try:
                call()
            except errors.StoreError as error:
                refused += "forked" in str(error)
        plain.insert(1.0)
        os._exit(0 if (refused, plain.accepted) == (6, 1) else 1)
    assert os.waitpid(child, 0)[1] == 0
    window.insert_many(array("d", range(2000)), results=False)
    window.flush()
    window.verify()
    assert window.query() == {"sum": float(sum(range(1500, 2000)))}
    window.close()
