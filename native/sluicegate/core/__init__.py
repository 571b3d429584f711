"""The window's core: compiled, one layer above the other, or the readable twin where SLUICEGATE_PURE=1."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from sluicegate import catalogue
from sluicegate.constants import KEPT_LEVELS, LARGEST, LATEST, NEVER
from sluicegate.records import Saved

if TYPE_CHECKING or os.environ.get("SLUICEGATE_PURE") != "1":
    from sluicegate.core.checks import even_step, first_late, first_not_positive, first_refused, withhold
    from sluicegate.core.core import Core
else:
    from sluicegate.core.core import Core as _Compiled
    from sluicegate.reference.checks import even_step, first_late, first_not_positive, first_refused, withhold
    from sluicegate.reference.core import Core

    Core.algebra = _Compiled

ENGINES = catalogue.names()
"""The algorithms a window may be kept by; docs/reference/engines.md tells which to take."""

__all__ = [
    "ENGINES", "KEPT_LEVELS", "LARGEST", "LATEST", "NEVER", "Core", "Saved", "even_step", "first_late",
    "first_not_positive", "first_refused", "withhold",
]  # fmt: skip
