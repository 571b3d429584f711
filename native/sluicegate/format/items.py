"""Columns of numbers out of parsed objects."""

from sluicegate.format._items import columns, run_of

__all__ = ["columns", "run_of"]
