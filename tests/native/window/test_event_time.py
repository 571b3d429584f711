"""Exact windows by time hold what their definition says, whatever order readings come in, with every engine."""

from __future__ import annotations

import random
from typing import Any

import pytest
from engine_windows import LITE
from event_time_oracle import KINDS, EventTime, agrees, stream
from thorough import number

import sluicegate as sg
from sluicegate import errors

pytestmark = pytest.mark.usefixtures("implementation_of_window")
LENGTH = 4000
ALL = {name: getattr(sg, name)() for name in ("count", "sum", "mean", "min", "max", "first", "last", "argmax", "std")}
ENGINES = [name for name in sg.ENGINES if name not in LITE and name != "soe"]


def compare(window: sg.Window, model: EventTime, what: object) -> None:
    """Every answer is the definition's, and so is what is late."""
    found, exact = window.query(), model.answers()
    magnitude = sum(abs(reading.value) for reading in model.inside())
    for name in found:
        assert agrees(found[name], exact[name], magnitude), (what, name, found[name], exact[name])
    assert window.late == model.late


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("engine", ENGINES)
def test_answers_are_the_definitions(engine: str, kind: str) -> None:
    """Reading by reading, with silences in which only time goes on."""
    hop = 1 if engine != "recalc" else LENGTH // 5
    window = sg.Window(ALL, policy=sg.policies.time(LENGTH, hop=hop), engine=engine)
    model = EventTime(LENGTH, hop)
    for i, (value, time) in enumerate(stream(kind, number(400, 200), LENGTH, seed=len(engine))):
        window.insert(value, time)
        model.insert(value, time)
        if i % 50 == 49 and model.now is not None:
            for each in (window, model):
                each.advance(model.now + LENGTH // 3)
        compare(window, model, (i, time))
        if i % 16 == 0:
            window.verify()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("engine", ["fiba", "amta", "two_stacks"])
def test_batches_are_single_readings(engine: str, kind: str) -> None:
    """However a stream is cut into batches, each row is the answer after its reading."""
    window = sg.Window(ALL, policy=sg.policies.time(LENGTH), engine=engine)
    model, rng = EventTime(LENGTH), random.Random(5)
    readings = list(stream(kind, 700, LENGTH, seed=2))
    while readings:
        size = rng.choice((1, 5, 40, 200))
        batch, readings = readings[:size], readings[size:]
        columns = window.insert_many([value for value, _ in batch], [time for _, time in batch])
        for i, (value, time) in enumerate(batch):
            model.insert(value, time)
            exact = model.answers()
            for name in ("count", "sum", "max", "first"):
                if exact[name] is not None:
                    assert agrees(columns[name][i], float(exact[name]), 100.0 * len(model.all)), (name, i)
        compare(window, model, "batch")


def test_what_depends_on_order_goes_by_time() -> None:
    """A longest run is one of readings in order of time."""
    window, model = sg.Window(sg.longest_run(), policy=sg.policies.time(LENGTH), engine="fiba"), EventTime(LENGTH)
    for value, time in stream("late", 500, LENGTH):
        window.insert(value, time)
        model.insert(value, time)
        found: Any = window.query()["longest_run"]
        assert found.length == model.longest_run()


@pytest.mark.parametrize("engine", ["fiba", "amta"])
@pytest.mark.parametrize("way", ["snapshot", "rows"])
def test_it_reads_back(engine: str, way: str) -> None:
    """A restored window goes on as the one that was never interrupted; its rows are replaced as late ones move them."""
    kinds: dict[str, Any] = {"policy": sg.policies.time(LENGTH), "engine": engine}
    window, model = sg.Window(ALL, **kinds), EventTime(LENGTH)
    rows: dict[int, bytes] = {}
    for i, (value, time) in enumerate(stream("late", 500, LENGTH, seed=9)):
        window.insert(value, time)
        model.insert(value, time)
        if i % 7 == 3:
            rows.update(window.changes().closed)
            if way == "rows":
                window = sg.Window.rebuild(
                    ALL, state=window.state(), leaves=[(0, index, leaf) for index, leaf in rows.items()], **kinds
                )
            else:
                window = sg.Window.restore(window.snapshot(), ALL, **kinds)
            window.verify()
        compare(window, model, i)


def test_a_late_reading_up_to_the_maximum() -> None:
    """A window that keeps only what may become the maximum answers as the whole window."""
    window, model = sg.Window(sg.max(), policy=sg.policies.time(LENGTH, up_to="max")), EventTime(LENGTH)
    for value, time in stream("late", 500, LENGTH, seed=4):
        window.insert(value, time)
        model.insert(value, time)
        assert window.query()["max"] == model.answers()["max"]


@pytest.mark.parametrize("engine", LITE)
def test_an_engine_without_leaves_needs_order(engine: str) -> None:
    """It refuses a late reading that belongs, one by one and before any of a batch; one that does not is counted."""
    window = sg.Window(sg.sum(), policy=sg.policies.time(10), engine=engine)
    window.insert(1.0, 100)
    window.insert(2.0, 80)
    with pytest.raises(errors.InputError, match="needs readings in order of time"):
        window.insert(2.0, 95)
    with pytest.raises(errors.InputError, match="needs readings in order of time"):
        window.insert_many([1.0, 1.0], [101, 99])
    kept = sg.Window({"max": sg.max(), "n": sg.count()}, policy=sg.policies.time(10), engine=engine)
    kept.insert(1.0, 100)
    with pytest.raises(errors.InputError, match="needs readings in order of time"):
        kept.insert_many([1.0, 1.0], [101, 99], bounds=True)
    assert (window.query()["sum"], window.late, window.accepted, kept.accepted) == (1.0, 1, 1, 1)


def test_only_a_window_by_time_advances() -> None:
    """A count window has no time of its own."""
    with pytest.raises(errors.ConfigurationError, match="only a window with policies"):
        sg.Window(sg.sum(), policy=sg.policies.count(3)).advance(5)
