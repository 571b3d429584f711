"""Engines: the algorithms that keep a window, by name; compiled, or the readable twins where SLUICEGATE_PURE=1."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from sluicegate.engines import catalogue
from sluicegate.reference.core import KEPT_LEVELS, LARGEST, LATEST, NEVER, Saved

if TYPE_CHECKING or os.environ.get("SLUICEGATE_PURE") != "1":
    from sluicegate.engines.checks import even_step, first_late, first_not_positive, first_refused, new_column, withhold
    from sluicegate.engines.core import Core
else:
    from sluicegate.reference.core import (
        Core,
        even_step,
        first_late,
        first_not_positive,
        first_refused,
        new_column,
        withhold,
    )

ENGINES = catalogue.names()
"""The algorithms a window may be kept by; docs/engines.md tells which to take."""

__all__ = [
    "ENGINES",
    "KEPT_LEVELS",
    "LARGEST",
    "LATEST",
    "NEVER",
    "Core",
    "Saved",
    "even_step",
    "first_late",
    "first_not_positive",
    "first_refused",
    "new_column",
    "withhold",
]
