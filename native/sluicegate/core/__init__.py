"""The window's core, compiled: one layer above the other."""

from sluicegate import catalogue
from sluicegate.constants import KEPT_LEVELS, LARGEST, LATEST, NEVER
from sluicegate.core.checks import first_late, first_not_positive, first_refused, withhold
from sluicegate.core.core import Core
from sluicegate.records import Saved

ENGINES = catalogue.names()
"""The algorithms a window may be kept by; docs/reference/engines.md tells which to take."""

__all__ = [
    "ENGINES", "KEPT_LEVELS", "LARGEST", "LATEST", "NEVER", "Core", "Saved", "first_late",
    "first_not_positive", "first_refused", "withhold",
]  # fmt: skip
