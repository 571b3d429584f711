"""Stores of a window's partials: one small contract, one module for each."""

from __future__ import annotations

from sluicegate.stores.contract import Key, Plan, Store
from sluicegate.stores.couchbase import Couchbase
from sluicegate.stores.memory import Memory
from sluicegate.stores.sqlite import SQLite

__all__ = ["Couchbase", "Key", "Memory", "Plan", "SQLite", "Store"]
