"""Columns of numbers out of parsed objects, compiled or the readable twin where SLUICEGATE_PURE=1."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING or os.environ.get("SLUICEGATE_PURE") != "1":
    from sluicegate.format._items import columns, run_of
    from sluicegate.format._json_columns import columns_of
else:
    from sluicegate.reference.items import columns, columns_of, run_of

__all__ = ["columns", "columns_of", "run_of"]
