"""Stores of a window's partials: one small contract, one module for each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sluicegate.stores.contract import Key, Plan, Store
from sluicegate.stores.couchbase import Couchbase
from sluicegate.stores.memory import Memory
from sluicegate.stores.sqlite import SQLite

if TYPE_CHECKING:
    from sluicegate.stores.couchbase_lite import CouchbaseLite

__all__ = ["Couchbase", "CouchbaseLite", "Key", "Memory", "Plan", "SQLite", "Store"]


def __getattr__(name: str) -> Any:
    """What needs an extra is imported when it is first named."""
    if name == "CouchbaseLite":
        from sluicegate.stores.couchbase_lite import CouchbaseLite

        return CouchbaseLite
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
