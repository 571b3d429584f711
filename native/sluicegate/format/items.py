"""Columns of numbers out of parsed objects, and out of the text of an array of them."""

from sluicegate.format._items import columns, run_of
from sluicegate.format._json_columns import columns_of

__all__ = ["columns", "columns_of", "run_of"]
