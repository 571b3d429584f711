"""Runs the window suites over the compiled core and its readable twin; of many cases a spread, all in a whole run."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

import pytest
from thorough import COMBINED, WHOLE, spread
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


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of the twin's cases and of combinations some run, unless tests are named or the run is whole.

    What users get is the compiled code: of the twin's cases of one test the first and about every sixteenth run, and
    suites of their own hold the compiled code to the twin bit by bit. Of a test's combinations of two parameters or
    more each value of each runs, and about every twelfth besides.
    """
    if WHOLE or any("::" in each for each in config.args):
        return
    begun, kept, left = set[str](), list[pytest.Item](), list[pytest.Item]()
    combined = _combined(items)
    for item in items:
        test = item.nodeid.partition("[")[0]
        if _is_the_twins(item):
            chosen = test not in begun or zlib.crc32(item.nodeid.encode()) % 16 == 0
            begun.add(test)
        else:
            chosen = COMBINED or item.nodeid in combined
        (kept if chosen else left).append(item)
    config.hook.pytest_deselected(items=left)
    items[:] = kept


def _combined(items: list[pytest.Item]) -> set[str]:
    """Cases of the compiled code, of each test a spread."""
    tests = dict[str, list[tuple[str, Mapping[str, Any]]]]()
    for item in items:
        if not _is_the_twins(item):
            values = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
            tests.setdefault(item.nodeid.partition("[")[0], []).append((item.nodeid, values))
    return set().union(*(spread(cases) for cases in tests.values()))


def _is_the_twins(item: pytest.Item) -> bool:
    """Whether it runs one of two implementations, and that is the pure one."""
    said = item.callspec.id.split("-") if isinstance(item, pytest.Function) and hasattr(item, "callspec") else []
    return "pure" in said
