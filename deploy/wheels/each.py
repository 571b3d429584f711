"""A plugin of pytest that runs every EACH-th test of a file, from its first: a share of all suites in little time."""

from __future__ import annotations

import os
from itertools import groupby

import pytest


def shared(items: list[pytest.Item], each: int) -> list[pytest.Item]:
    """Every `each`-th of each file's tests, in their order."""
    return [item for _, of_file in groupby(items, lambda item: item.path) for item in list(of_file)[::each]]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the others out, and count them as deselected."""
    kept = shared(items, int(os.environ.get("EACH", "1")))
    left = set(items) - set(kept)
    config.hook.pytest_deselected(items=[item for item in items if item in left])
    items[:] = kept
