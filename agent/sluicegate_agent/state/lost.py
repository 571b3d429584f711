"""What a damage took of streams is missing in their windows: how much nobody knows, so it is as much as it may be."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import TYPE_CHECKING

from sluicegate.format import chunk as chunks
from sluicegate_agent.backlog.rows import unpacked
from sluicegate_agent.identity.returned import Returned
from sluicegate_agent.streams import Stream
from sluicegate_agent.tables.streams import Row, next_number

if TYPE_CHECKING:
    from sluicegate_agent.config import Config


def begin_again(connection: sqlite3.Connection, config: Config, since: int) -> None:
    """Streams whose rows are lost begin anew, in the caller's transaction.

    The first reading of each says that those of an open bucket are lost, and all that its source's numbers tell: since
    its last row that is left, or since its incarnation. `since`: that of a stream of which nothing is left.
    """
    query = "SELECT name FROM stream WHERE retired = 0"
    known = {name for (name,) in connection.execute(query)}
    lost = {name: since for name in config.streams if name not in known}
    query = "SELECT stream, name, incarnation FROM origin WHERE stream NOT IN (SELECT id FROM stream) ORDER BY stream"
    for number, name, incarnation in connection.execute(query).fetchall():
        if name not in known and config.feeds(name):
            lost[name] = _last_of(connection, number, name, incarnation)
    for name, last in lost.items():
        stream = Stream(0, name, 1, 1)
        stream.without, stream.owed = Returned(last), max(1, config.bucket.readings - 1)
        # Without incarnation and key: it gets those of what is taken from now on.
        Row(next_number(connection), name, stream.pack(), "", "").write(connection)


def _last_of(connection: sqlite3.Connection, number: int, name: str, incarnation: str) -> int:
    """The time of the last reading that is left of a stream."""
    query = (
        "SELECT first, bucket FROM outbox JOIN stream ON stream.id = outbox.stream"
        " WHERE name = ? AND incarnation = ? ORDER BY first DESC LIMIT 1"
    )
    rows = [(first, unpacked(bucket).t_last) for first, bucket in connection.execute(query, (name, incarnation))]
    query = "SELECT first, document FROM chunk WHERE stream = ? ORDER BY first DESC LIMIT 1"
    for first, document in connection.execute(query, (number,)):
        rows.append((first, chunks.decode(document).buckets[-1].t_last))
    return max(rows)[1] if rows else int(incarnation, 16)


def forget_numbers(connection: sqlite3.Connection, config: Config, streams: Iterable[Stream]) -> None:
    """It may be lost which numbers were seen, in the caller's transaction: what was passed over before the next one
    nobody knows. So at least one is lost.
    """
    for stream in streams:
        if stream.builder is not None and config.is_numbered(stream.name):
            stream.owed = max(0, stream.owed) + 1
            stream.keep(connection)
