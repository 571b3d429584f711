"""Any stream into windows by time: in order, late, at equal times, in batches, in silence, taken up again."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from event_time_oracle import EventTime
from hypothesis import given, settings
from hypothesis import strategies as st
from test_event_time_buckets import ALL, outside
from thorough import number

import sluicegate as sg

sys.path.append(str(Path(__file__).resolve().parents[3]))
import bench.event_time
from bench.event_time import ARRIVALS, Subject, attack

pytestmark = pytest.mark.usefixtures("implementation_of_window")
LENGTH = 40
KEPT: dict[str, Any] = {
    "fiba": {"engine": "fiba"},
    "amta": {"engine": "amta"},
    "two stacks": {"engine": "two_stacks"},
    "levels": {"histograms": [sg.Constrained(4)]},
    "pairs": {"histograms": [sg.Constrained(4, merge="pairs")]},
    "sums": {"histograms": [sg.SumLike(0.2), sg.Constrained(8)]},
}
Offsets = st.one_of(st.integers(-3, 6), st.integers(-3 * LENGTH, 2 * LENGTH))  # from now on
Steps = st.lists(
    st.one_of(
        st.tuples(st.just("insert"), Offsets),
        st.tuples(st.just("batch"), st.lists(Offsets, min_size=1, max_size=9)),
        st.tuples(st.just("advance"), st.integers(0, 2 * LENGTH)),
        st.tuples(st.just("again"), st.none()),
    ),
    max_size=40,
)


@settings(max_examples=number(150, 60), deadline=None)
@given(st.sampled_from(list(KEPT)), st.sampled_from([1, 10]), Steps)
def test_any_stream(kept: str, hop: int, steps: list[tuple[str, Any]]) -> None:
    """No answer outside its interval, none called exact that is not, and what is late is counted."""
    given: dict[str, Any] = {"policy": sg.policies.time(LENGTH, hop=hop), **KEPT[kept]}
    window, model = sg.Window(ALL, **given), EventTime(LENGTH, hop)
    for step, (what, asked) in enumerate(steps):
        now = model.now or 0
        if what == "again":
            window = sg.Window.restore(window.snapshot(), ALL, **given)
        elif what == "advance":
            window.advance(now + asked)
            model.advance(now + asked)
        else:
            times = [now + each for each in ([asked] if what == "insert" else asked)]
            values = [float((7 * step + 3 * i) % 11 - 5) for i in range(len(times))]
            if what == "insert":
                window.insert(values[0], times[0])
            else:
                window.insert_many(values, times, results=step % 2 == 0)
            for value, time in zip(values, times, strict=True):
                model.insert(value, time)
        assert not outside(window.query(bounds=True), model)
        assert window.late == model.late
        window.verify()


@pytest.fixture(autouse=True)
def _kinds_of_window(implementation_of_window: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A window in a store has compiled code alone."""
    if implementation_of_window == "pure":
        monkeypatch.setattr(bench.event_time, "KEPT", ("exact", "buckets", "shared"))


def test_streams_of_every_kind(implementation_of_window: str) -> None:
    """A part of what `python -m bench.event_time` does."""
    asked, outside, dishonest = attack(30_000 if implementation_of_window == "compiled" else 3_000, 7)
    assert len(asked) == len(ARRIVALS) or implementation_of_window == "pure"
    assert (outside.total(), dishonest.total()) == (0, 0)


def test_what_is_wrong_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A window whose time does not go on in silence."""

    def forgets(subject: Subject, by: int) -> None:
        for truth in subject.truths.values():
            truth.advance(truth.now + by)

    monkeypatch.setattr(Subject, "advance", forgets)
    assert attack(number(20_000, 8_000), 7)[1].total() > 0
