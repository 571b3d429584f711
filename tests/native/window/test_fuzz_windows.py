"""Random windows against the plain readings: a few of each kind here, as many as one likes by `make fuzz`."""

from __future__ import annotations

from array import array
from typing import Any

import fuzz_windows
import pytest
from thorough import number

import sluicegate as sg
from sluicegate import core as engines

pytestmark = pytest.mark.skipif(engines.Core.__module__ != "sluicegate.core.core", reason="of the compiled core")


@pytest.mark.parametrize("kind", fuzz_windows.GAPS)
def test_windows_of_each_kind(kind: str) -> None:
    """None differs from the plain readings, nor AMTA's state from that of single readings."""
    windows, readings = fuzz_windows.fuzz(5, 60, kind, rounds=number(25, 6))
    assert windows > 5
    assert readings > number(5_000, 2_500)


@pytest.mark.parametrize("wrong", ["result", "length", "state"])
def test_what_is_wrong_is_found_and_named(monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    """One result in a batch, one reading too few, a state of other bits: each ends it with the seed."""
    taken = sg.Window.insert_many

    def faulty(window: sg.Window, values: Any, times: Any, *, results: bool) -> Any:
        found = taken(window, values, times, results=results)
        if wrong == "result" and found:
            for column in found.values():
                column[-1] += 1
        if wrong == "length" and len(window) > 3:
            window.evict(1)
        return found

    if wrong == "state":
        monkeypatch.setattr(sg.Window, "snapshot", lambda window: array("q", [id(window)]).tobytes())
    else:
        monkeypatch.setattr(sg.Window, "insert_many", faulty)
    expected = {"result": "expected", "length": "readings, .* expected", "state": "another state"}[wrong]
    with pytest.raises(AssertionError, match=f"seed 5:.*{expected}"):
        fuzz_windows.fuzz(5, 60, "jitter", rounds=25)
