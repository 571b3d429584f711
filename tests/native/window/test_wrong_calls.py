"""Calls that make no sense are refused by a documented error that names place and value, and says what was expected."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import sluicegate as sg
from sluicegate import errors, policies

HELD = policies.count(3)
BUCKETS = [sg.Constrained(5)]
CALLS: dict[str, tuple[Callable[[], Any], str]] = {
    "aggregates in a list": (lambda: sg.Window([sg.mean()], policy=HELD), r"aggregates: \[Monoid.*expected one"),
    "an aggregate's name": (lambda: sg.Window("mean", policy=HELD), "aggregates: 'mean', expected one"),
    "no aggregates": (lambda: sg.Window(None, policy=HELD), "aggregates: None, expected one"),
    "a number for a name": (lambda: sg.Window({1: sg.mean()}, policy=HELD), "aggregates: {1: .*expected one"),
    "a number for a dimension": (lambda: sg.Window(sg.mean(5), policy=HELD), "dimension 5, expected its name"),
    "two dimensions of a mean": (
        lambda: sg.Window(sg.mean(("a", "b")), policy=HELD), r"dimension \('a', 'b'\), expected its name",
    ),
    "a length as policy": (lambda: sg.Window(sg.mean(), policy="24h"), r"policy: '24h', expected.*time\('24h'\)"),
    "one histogram": (
        lambda: sg.Window(sg.mean(), policy=HELD, histograms=sg.Constrained(5)), "histograms: Constrained.*a list",
    ),
    "a text of histograms": (
        lambda: sg.Window(sg.mean(), policy=HELD, histograms="sum"), "histograms: 'sum', expected a list",
    ),
    "a center that is a truth": (
        lambda: sg.Window(sg.mean(), policy=HELD, center=True), "center: True, expected a finite number",
    ),
    "a path for a store": (
        lambda: sg.Window(sg.mean(), policy=HELD, store="x.db"), "store: 'x.db' has no plan; expected a store, as",
    ),
    "a path to open": (lambda: sg.Window.open("x.db"), "store: 'x.db' has no plan; expected a store, as"),
    "a list of engines": (lambda: sg.Window(sg.mean(), policy=HELD, engine=[]), r"engine: \[\], expected one of rec"),
    "no edges": (lambda: sg.histogram(None), "histogram: edges None, expected increasing"),
    "policies in a list": (
        lambda: sg.Windows(sg.mean(), policies=[HELD], histograms=BUCKETS), "windows: policies .*expected names",
    ),
    "a text to restore": (
        lambda: sg.Window.restore("junk", sg.mean(), policy=HELD), "window snapshot: str, expected the bytes",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", CALLS)
def test_a_wrong_call_is_refused(what: str) -> None:
    """By a ConfigurationError, or a SnapshotError for stored bytes, whose words name it."""
    call, words = CALLS[what]
    with pytest.raises((errors.ConfigurationError, errors.SnapshotError), match=words):
        call()


def test_an_unknown_shared_window_is_told_those_there_are() -> None:
    """A KeyError, as of a mapping, with the names."""
    windows = sg.Windows(sg.mean(), policies={"long": policies.count(9)}, histograms=BUCKETS)
    with pytest.raises(KeyError, match=r"'short', expected one of \['long'\]"):
        windows.answer("short")
