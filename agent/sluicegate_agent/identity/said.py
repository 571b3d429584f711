"""What a numbered message with a time said is known by its readings: once they are read otherwise, nothing is known.

The numbers stay seen. What has one of them is a repeat then, unless its time is newer than any before. Where the time
is what is read no more, nobody can know: it counts in doubt.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from hashlib import blake2b
from typing import TYPE_CHECKING

from sluicegate_agent.identity.epoch import TIMELESS, UNKNOWN
from sluicegate_agent.identity.epoch_rows import load, save
from sluicegate_agent.messages import Unreadable

if TYPE_CHECKING:
    from sluicegate_agent.config import Config, SourceConfig

#: Its row in `meta`: how each source's readings were read at the last start.
NAME = "said"


def forget_what_is_read_otherwise(
    connection: sqlite3.Connection, config: Config, horizon_of: Callable[[SourceConfig], int]
) -> None:
    """Where the configuration changed how readings are read or named: inside the caller's transaction."""
    both = [each for each in config.sources if each.sequence is not None and each.time is not None]
    now = {each.subscribed: _form(each) for each in both}
    found = connection.execute("SELECT value FROM meta WHERE key = ?", (NAME,)).fetchone()
    before = _read(found[0]) if found else now
    changed = {topic: UNKNOWN for topic, form in now.items() if before.get(topic) != form}
    numbers = [each.subscribed for each in config.sources if each.sequence is not None and each.time is None]
    changed |= {topic: TIMELESS for topic in numbers if topic in before}
    if changed:
        _forget(connection, config, changed, horizon_of)
    if not found or before != now:
        connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (NAME, json.dumps(now)))


def _read(row: object) -> dict[str, str]:
    """Of one that is damaged nothing: then all is read otherwise."""
    try:
        found = json.loads(str(row))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _form(source: SourceConfig) -> str:
    """All that the time and the readings of a message depend on, beside its payload."""
    told = source.topic, source.format, source.key, source.device, source.time, source.time_format
    return blake2b(repr((told, *source.streams.items())).encode(), digest_size=8).hexdigest()


def _forget(
    connection: sqlite3.Connection, config: Config, changed: dict[str, int], horizon_of: Callable[[SourceConfig], int]
) -> None:
    from sluicegate_agent.routing.routes import SENDER, Route, Routes

    routes = Routes(config)
    for (sender,) in connection.execute("SELECT DISTINCT source FROM sequence").fetchall():
        try:
            source = routes.find(sender.partition(SENDER)[0])
        except Unreadable:
            continue
        topic = source.origin if isinstance(source, Route) else source.subscribed if source else ""
        if source is None or topic not in changed:
            continue
        chains, carried = load(connection, sender, horizon_of(source))
        epochs = [(key, epoch) for key, chain in chains.items() for epoch in chain]
        for _, epoch in epochs:
            epoch.forget_contents(changed[topic])
        save(connection, sender, epochs, carried)
