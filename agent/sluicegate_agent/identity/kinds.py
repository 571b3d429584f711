"""By what a source's messages are known again: now, and as the state says of the last start."""

from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sluicegate_agent.config import SourceConfig


def kind_of(source: SourceConfig) -> str:
    """By what its messages are known again."""
    return "sequence" if source.sequence is not None else "time" if source.time is not None else "bare"


def asked_before(connection: sqlite3.Connection) -> dict[str, Any]:
    """What `changes.asked` gave at the last start; of a state that is older than that, the topics it knows of."""
    found = connection.execute("SELECT value FROM meta WHERE key = 'asked'").fetchone()
    if found is not None:
        kept: dict[str, Any] = json.loads(found[0])
        return kept
    topics = {name: "sequence" for (name,) in connection.execute("SELECT DISTINCT source FROM sequence")}
    topics |= {
        name: "time" for (name,) in connection.execute("SELECT DISTINCT source FROM identity WHERE source != ''")
    }
    return {"topics": topics, "retired": []}
