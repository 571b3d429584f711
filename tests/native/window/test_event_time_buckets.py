"""Windows of buckets by time: the definition's result lies in every interval, and is it where that is called exact."""

from __future__ import annotations

import random
from typing import Any

import pytest
from event_time_oracle import KINDS, EventTime, agrees, stream
from thorough import number

import sluicegate as sg

pytestmark = pytest.mark.usefixtures("implementation_of_window")
LENGTH = 40_000
ASKED = ("count", "sum", "mean", "min", "max", "first", "last", "argmax", "std")
ALL = {name: getattr(sg, name)() for name in ASKED}
KEPT: dict[str, Any] = {
    "levels": lambda: [sg.Constrained(12)],
    "pairs": lambda: [sg.Constrained(12, merge="pairs")],
    "sums": lambda: [sg.SumLike(error=0.05), sg.Constrained(16)],
    "staircase": lambda: [sg.MaxLike(staircase=True), sg.Constrained(16, merge="pairs")],
    "hop": lambda: [sg.SumLike(error=0.05), sg.Hop(), sg.Constrained(16)],
}


def outside(found: dict[str, Any], model: EventTime) -> list[Any]:
    """The answers that are not what they say."""
    exact = model.answers()
    size = sum(abs(reading.value) for reading in model.inside()) + 1
    wrong = []
    for name, answer in found.items():
        true = exact[name]
        if true is None or answer.value is None:
            wrong += [] if true is answer.value is None else [(name, answer, true)]
            continue
        slack = 1e-9 * size if isinstance(true, float) else 0
        inside = answer.low - slack <= true <= answer.high + slack and answer.low <= answer.value <= answer.high
        if not inside or (answer.exact and not agrees(answer.value, true, 1e3 * size)):
            wrong.append((name, answer, true))
    return wrong


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("kept", KEPT)
def test_the_definitions_result_is_inside(kept: str, kind: str) -> None:
    """Reading by reading, with silences; what is late is counted."""
    for seed, hop in ((1, 1), (2, LENGTH // 4))[kept == "hop" :]:
        window = sg.Window(ALL, policy=sg.policies.time(LENGTH, hop=hop), histograms=KEPT[kept]())
        model = EventTime(LENGTH, hop)
        for i, (value, time) in enumerate(stream(kind, number(1500, 400), LENGTH, seed)):
            window.insert(value, time)
            model.insert(value, time)
            if i % 300 == 299 and model.now is not None:
                for each in (window, model):
                    each.advance(model.now + LENGTH // 3)
            if i % 7 == 0:
                assert not outside(window.query(bounds=True), model), (kept, kind, i)
        assert window.late == model.late
        window.verify()


@pytest.mark.parametrize("kind", ["late", "shuffled", "in order"])
def test_batches_are_single_readings(kind: str) -> None:
    """Answers after each reading of a batch, and the state after it."""
    rng = random.Random(8)
    whole, single = (
        sg.Window({"n": sg.count(), "mean": sg.mean(), "max": sg.max()}, policy=sg.policies.time(LENGTH),
                  histograms=[sg.Constrained(12)])
        for _ in "ab"
    )  # fmt: skip
    readings = list(stream(kind, 900, LENGTH, 6))
    while readings:
        size = rng.choice((1, 7, 60))
        batch, readings = readings[:size], readings[size:]
        columns = whole.insert_many([x for x, _ in batch], [t for _, t in batch], bounds=True)
        for i, (value, time) in enumerate(batch):
            single.insert(value, time)
            for name, found in single.query(bounds=True).items():
                row = [columns[name].value[i], columns[name].low[i], columns[name].high[i]]
                assert row == pytest.approx([found.value, found.low, found.high], rel=1e-9, abs=1e-9)
    assert whole.state() == single.state()


@pytest.mark.parametrize("kept", ["levels", "pairs"])
def test_it_reads_back(kept: str) -> None:
    """State and rows hold the late ones too."""
    given: dict[str, Any] = {"policy": sg.policies.time(LENGTH), "histograms": KEPT[kept]()}
    window, other = sg.Window(ALL, **given), sg.Window(ALL, **given)
    rows: dict[tuple[int, int], bytes] = {}
    for i, (value, time) in enumerate(stream("late", 900, LENGTH, 3)):
        window.insert(value, time)
        other.insert(value, time)
        if i % 60 == 59:
            changes = window.changes()
            rows.update({(changes.level, index): leaf for index, leaf in changes.closed})
            for first, end in changes.merged:
                rows = {key: leaf for key, leaf in rows.items() if not first < key[1] < end}
            leaves = [(level, index, leaf) for (level, index), leaf in rows.items()]
            window = sg.Window.rebuild(ALL, state=window.state(), leaves=leaves, **given)
            assert window.query(bounds=True) == other.query(bounds=True)
            again = sg.Window.restore(window.snapshot(), ALL, **given)
            assert again.query(bounds=True) == other.query(bounds=True)


def test_shorter_windows_over_the_same_buckets() -> None:
    """Late readings are in each of them that they belong to."""
    spans = {"short": LENGTH // 9, "middle": LENGTH // 2, "long": LENGTH}
    policies = {name: sg.policies.time(span) for name, span in spans.items()}
    windows = sg.Windows(ALL, policies=policies, histograms=[sg.Constrained(24)])
    models = {name: EventTime(span) for name, span in spans.items()}
    for i, (value, time) in enumerate(stream("late", number(3000, 1400), LENGTH, 5)):
        windows.insert(value, time)
        for model in models.values():
            model.insert(value, time)
        if i % 331 == 330 and models["long"].now is not None:  # a silence, after which the shorter ones are empty
            now = models["long"].now + (LENGTH // 8, 2 * LENGTH // 3)[i % 2]
            windows.longest.advance(now)
            for model in models.values():
                model.advance(now)
            assert windows.held("short") == 0
            assert not outside(windows.query(bounds=True)["short"], models["short"])
        if i % 11 == 0:
            for name, found in windows.query(bounds=True).items():
                assert not outside(found, models[name]), (name, i)
