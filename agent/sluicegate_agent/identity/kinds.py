"""By what a source's messages are known again: now, and as the state says of the last start."""

from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sluicegate_agent.config import Config, SourceConfig


def kind_of(source: SourceConfig) -> str:
    """By what its messages are known again."""
    return "sequence" if source.sequence is not None else "time" if source.time is not None else "bare"


def kinds_of(config: Config) -> dict[str, dict[str, str]]:
    """The same of each source whose messages may come again, by the topic as configured: for `changes.asked`."""
    posted = {source.subscribed: kind_of(source) for source in config.sources if source.input == "http"}
    return {"topics": {source.filter.subscription: kind_of(source) for source in config.subscribed}, "posted": posted}


def changed_kinds(before: dict[str, Any], config: Config) -> list[tuple[SourceConfig, str]]:
    """Sources that are known by something else than at the last start, as `asked_before` says, and by what then."""
    topics, posted = before["topics"], before.get("posted", {})
    was = [(each, topics.get(each.filter.subscription)) for each in config.subscribed]
    was += [(each, posted.get(each.subscribed)) for each in config.sources if each.input == "http"]
    return [(source, kind) for source, kind in was if kind not in (None, kind_of(source))]


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
