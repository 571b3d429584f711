"""Runs the window suites over the compiled core and its readable twin."""

from __future__ import annotations

import intervals_twin
import pytest

import sluicegate.window.configure
from sluicegate.core import checks
from sluicegate.core import core as compiled
from sluicegate.reference import checks as pure_checks
from sluicegate.reference import core as pure
from sluicegate.window import batches

pure.Core._bounded = intervals_twin.by_definition  # type: ignore[method-assign]  # else it asks the compiled algebra


@pytest.fixture(params=["compiled", "pure"])
def implementation_of_window(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The promise holds for the compiled window and for its twin."""
    module = compiled if request.param == "compiled" else pure
    monkeypatch.setattr(sluicegate.window.configure, "Core", module.Core)
    for name in ("first_refused", "first_late", "first_not_positive"):
        monkeypatch.setattr(batches, name, getattr(checks if module is compiled else pure_checks, name))
    return str(request.param)
