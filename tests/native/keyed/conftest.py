"""Runs the suites over the compiled core and its readable twin."""

from __future__ import annotations

import pytest
from twins import keyed

from sluicegate.keyed import windows
from sluicegate.keyed.core import KeyedCore


@pytest.fixture(params=["compiled", "pure"])
def core(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The promise holds for the compiled core and for its twin."""
    monkeypatch.setattr(windows, "KeyedCore", KeyedCore if request.param == "compiled" else keyed.KeyedCore)
    return str(request.param)
