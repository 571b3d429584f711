"""Runs the window suites over the compiled core and its readable twin."""

from __future__ import annotations

import pytest
from twins import checks as pure_checks
from twins import core as pure

import sluicegate.window.configure
from sluicegate.core import checks
from sluicegate.core import core as compiled
from sluicegate.window import batches


@pytest.fixture(params=["compiled", "pure"])
def implementation_of_window(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The promise holds for the compiled window and for its twin."""
    module = compiled if request.param == "compiled" else pure
    monkeypatch.setattr(sluicegate.window.configure, "Core", module.Core)
    for name in ("first_refused", "first_late", "first_not_positive"):
        monkeypatch.setattr(batches, name, getattr(checks if module is compiled else pure_checks, name))
    return str(request.param)
