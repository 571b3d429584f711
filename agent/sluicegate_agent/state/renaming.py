"""A device that gets another name: what it has taken is sent under the old one, and its streams begin anew.

In the cloud both are devices. So each reading counts once, under the name that it was taken with, and neither device
misses what the other has.
"""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Callable

from sluicegate_agent.backlog.rows import insert_rows
from sluicegate_agent.naming.names import device_of, full_name
from sluicegate_agent.outbox import spread
from sluicegate_agent.state.parting import go_on, go_on_from
from sluicegate_agent.streams import Stream
from sluicegate_agent.tables.streams import Row, stored_rows

log = logging.getLogger("sluicegate.state")


def part_if_renamed(
    connection: sqlite3.Connection,
    device: str,
    incarnation: Callable[[], str],
    carries: Callable[[str], tuple[str, ...]],
) -> bool:
    """In the caller's transaction: where the last start had another `device.id`, part from what it has taken.

    Whether it had, so that the incarnation is a new one. `carries`: of a stream, what its buckets are to carry. Raises
    sqlite3.DatabaseError for a row that is not as it was written.
    """
    found = connection.execute("SELECT value FROM meta WHERE key = 'asked'").fetchone()
    try:
        was = str(json.loads(found[0]).get("device", device)) if found else device
    except (ValueError, AttributeError) as error:
        raise sqlite3.DatabaseError(f"a malformed row in the table meta: asked: {error}") from error
    if was == device:
        return False
    spread(connection)
    new = incarnation()
    connection.execute("UPDATE meta SET value = ? WHERE key = 'incarnation'", (new,))
    for row in stored_rows(connection):
        if not device_of(row.name):
            _part(connection, row, was, new, carries(row.name))
    log.warning('device.id was "%s": what was read before is sent under that name', was)
    return True


def _part(connection: sqlite3.Connection, row: Row, was: str, incarnation: str, carries: tuple[str, ...]) -> None:
    stream = Stream(row.number, full_name(was, row.name, ""), 1, 1)
    stream.carries = carries
    stream.restore(row.row)
    if stream.builder is None and not row.retired:
        row._replace(incarnation=incarnation).write(connection)
        return
    stream.incarnation, stream.key, stream.is_retired = row.incarnation, row.key, True
    stream.close()
    insert_rows(connection, stream.number, stream.closed)
    stream.keep(connection)
    if not row.retired:
        new = Stream(0, row.name, 1, 1)
        new.missing_seen, new.owed, new.source = stream.missing_seen, stream.owed, stream.source
        new.late, new.buckets = stream.late, stream.buckets
        go_on_from(new, stream)
        go_on(connection, stream.number, new, incarnation, row.key)
