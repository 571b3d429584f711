"""Thousands of windows of one configuration: what is derived from it is there once, and a silent one has no core."""

from __future__ import annotations

from typing import Any

import pytest

import sluicegate as sg


def window(histogram: Any, kind: type[sg.Window] = sg.Window) -> sg.Window:
    """One by time, made of arguments of its own."""
    return kind({"mean": sg.mean()}, policy=sg.policies.time("1h"), histograms=[histogram])


def has_core(window: sg.Window) -> bool:
    """Whether its core has been made; asked without making it."""
    try:
        object.__getattribute__(window, "_core")
    except AttributeError:
        return False
    return True


def test_windows_of_one_configuration_share_what_is_derived_from_it() -> None:
    """Equal arguments, though they are other objects."""
    one, two = window(sg.Constrained(16)), window(sg.Constrained(16))
    assert one._histograms is two._histograms
    assert one._layout is two._layout
    assert one._reader is two._reader
    assert window(sg.Constrained(17))._histograms is not one._histograms


def test_numbers_that_are_equal_and_written_otherwise_are_not_shared() -> None:
    """A stored window is known by what was written: 1 is not 1.0."""
    states = [window(sg.SumLike(atol=atol)).state() for atol in (1, 1.0, 1)]
    assert states[0] == states[2] != states[1]


def test_a_silent_window_has_no_core_whatever_is_stored_of_it() -> None:
    """`state` makes one and lets go of it; what comes afterwards is as in a window that was never asked."""
    asked, other = window(sg.Constrained(16)), window(sg.Constrained(16))
    assert asked.state() == asked.state()
    assert not has_core(asked)
    for each in (asked, other):
        each.insert(4.0, 7)
        each.insert_many([1.0, 3.0], [8, 9])
    assert has_core(asked)
    assert asked.snapshot() == other.snapshot()
    assert asked.query() == {"mean": pytest.approx(8 / 3)}


def test_a_subclass_is_asked_for_its_own_calls() -> None:
    """By `slide`, too, and its own `slide` may go on to the one that it replaces."""

    class Doubling(sg.Window):
        def insert(self, value: Any, time: int | None = None) -> None:
            super().insert(2.0 * value, time)

    class Shifting(sg.Window):
        def slide(self, value: Any, time: int | None = None) -> Any:
            return super().slide(value + 1.0, time)

    assert window(sg.Constrained(16), Doubling).slide(2.0, 1) == 4.0
    assert window(sg.Constrained(16), Shifting).slide(2.0, 1) == 3.0
