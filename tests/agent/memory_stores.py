"""Stores of the agent's state that the tests begin with."""

from __future__ import annotations

import sqlite3

from sluicegate_agent.state import schema


def empty() -> sqlite3.Connection:
    """An empty store in memory."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    schema.create(connection)
    return connection
