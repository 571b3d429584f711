"""A copied state parts from the original: a new incarnation and a new key, and what waited keeps the old ones.

Rows that were closed before the copy are the original's: sent under its incarnation and key, whoever sends them, they
count once. What is taken from now on has names that no original can have. The open bucket's readings are in doubt: the
original has them too and will close another bucket over them.

A state that went back and did not move (a card written anew from its image, a snapshot) looks like the original until
the target has other documents under its names. What waits is of before the image or of after it, and nothing tells
which: all of it goes on under the new names, in doubt.
"""

from __future__ import annotations

import json
import logging
import secrets
import sqlite3
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

from sluicegate.format.bucket import PACKED, Bucket, Builder
from sluicegate.format.late import LATE_NAME, NEVER
from sluicegate_agent import carried
from sluicegate_agent.backlog.rows import DELETE, insert_rows, rows_of
from sluicegate_agent.checksums import require_sound
from sluicegate_agent.identity.returned import Returned, said_since
from sluicegate_agent.outbox import rows_in, spread, waiting_of
from sluicegate_agent.state.home import differences
from sluicegate_agent.streams import Closed, Stream
from sluicegate_agent.tables.streams import Row, next_number, stored_rows, write_tags

_COPIED = (
    "%s was copied or moved here (%s): what is read from now on has a new incarnation and key, what waited keeps the "
    "old ones, and what was in open buckets is in doubt; agents on copies of one state need device ids of their own"
)
_OVERTAKEN = (
    "%s went back to an earlier time, or a copy of it runs: the target has other documents under its names; all that "
    "waits goes on under a new incarnation and key, in doubt"
)
#: Its row in `meta`, until the next start.
OVERTAKEN = "overtaken"
_AT_ONCE, _END = 256, 1 << 62
#: The fields of a bucket that are ordinals.
_ORDINALS = ("first", "low_o_first", "low_o_last", "high_o_first", "high_o_last")
log = logging.getLogger("sluicegate.state")


def new_key() -> str:
    """32 hex digits that no other place has."""
    return secrets.token_hex(16)


def part_if_copied(
    connection: sqlite3.Connection,
    path: Path,
    now: dict[str, Any],
    incarnation: Callable[[], str],
    carries: Callable[[str], tuple[str, ...]],
    *,
    is_apart: bool = False,
) -> list[str]:
    """In the caller's transaction: note where the state lives; where it was copied, part. Why it is thought a copy.

    `carries`: of a stream, what its buckets are to carry. `is_apart`: the record is of another time than the tables.
    """
    found = connection.execute("SELECT value FROM meta WHERE key = 'home'").fetchone()
    try:
        was = json.loads(found[0]) if found is not None else now
    except ValueError as error:
        raise sqlite3.DatabaseError(f"a malformed row in the table meta: home: {error}") from error
    why = differences(was, now) + is_apart * ["its record is of another time than its tables"]
    is_overtaken = connection.execute("DELETE FROM meta WHERE key = ?", (OVERTAKEN,)).rowcount > 0
    if found is None or was != now:
        connection.execute("INSERT OR REPLACE INTO meta VALUES ('home', ?)", (json.dumps(now),))
    if is_overtaken:
        _part(connection, incarnation(), new_key(), carries, _take_along)
        log.warning(_OVERTAKEN, path)
        return ["the target has other documents under its names"]
    if why:
        _part(connection, incarnation(), new_key(), carries, retire)
        log.warning(_COPIED, path, ", ".join(why))
    return why


def note_overtaken(connection: sqlite3.Connection) -> None:
    """The target has other documents under names of this state: the next start parts."""
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, 1)", (OVERTAKEN,))


def _part(
    connection: sqlite3.Connection,
    incarnation: str,
    key: str,
    carries: Callable[[str], tuple[str, ...]],
    part: Callable[[sqlite3.Connection, Stream, str, str], int],
) -> None:
    spread(connection)
    connection.execute("UPDATE meta SET value = ? WHERE key = 'incarnation'", (incarnation,))
    connection.execute("INSERT OR REPLACE INTO meta VALUES ('key', ?)", (key,))
    for row in stored_rows(connection, "retired = 0"):
        stream = Stream(row.number, row.name, 1, 1)
        stream.restore(row.row)
        stream.carries = carries(row.name)
        stream.incarnation, stream.key = row.incarnation, row.key
        if stream.builder is None:
            row._replace(incarnation=incarnation, key=key).write(connection)
        else:
            part(connection, stream, incarnation, key)


def _take_along(connection: sqlite3.Connection, stream: Stream, incarnation: str, key: str) -> int:
    """Have all that waits of a stream go on in one of its name, in doubt, with ordinals from 0; that one's number."""
    stream.close()
    insert_rows(connection, stream.number, stream.closed)
    for sealed, document in waiting_of(connection, stream.number):
        insert_rows(connection, stream.number, rows_in(document))
        connection.execute("DELETE FROM chunk WHERE number = ?", (sealed,))
    new = _following(stream)
    waiting = sum(each.n for each in rows_of(connection, stream.number, 0, _END))
    if waiting:
        new.builder = Builder(stream.builder.center if stream.builder else 0.0, waiting)
        new.without = Returned(former=stream.missing_seen)
    Row(stream.number, stream.name, stream.pack(), stream.incarnation, stream.key, 1).write(connection)
    number, following = go_on(connection, stream.number, new, incarnation, key), 0
    while some := [*islice(rows_of(connection, stream.number, 0, _END), _AT_ONCE)]:
        for each in some:  # between them may be what the target took
            moved = _in_doubt(each, following)
            moved = moved if following else _since(moved, int(stream.incarnation, 16))
            insert_rows(connection, number, [moved])
            following += each.n
        connection.executemany(DELETE, [(stream.number, each.first, each.first + each.n) for each in some])
    return number


def _in_doubt(closed: Closed, first: int) -> Closed:
    """A row whose readings may be at the target already, with another ordinal of its first one."""
    record, parts = carried.parted(closed.bucket)
    bucket = Bucket.unpack(record)
    places = {name: getattr(bucket, name) + first - closed.first for name in _ORDINALS}
    moved = bucket._replace(doubt=bucket.n, **places).pack()
    return closed._replace(first=first, bucket=carried.joined(moved, parts))


def _following(stream: Stream) -> Stream:
    """A stream of its name that goes on with what it knows of its source."""
    new = Stream(0, stream.name, 1, 1)
    new.missing_seen, new.told, new.owed, new.source = stream.missing_seen, stream.told, stream.owed, stream.source
    new.late, new.buckets = stream.late, stream.buckets
    go_on_from(new, stream)
    return new


def go_on_from(new: Stream, stream: Stream) -> None:
    """Have a new stream's first bucket say what is lost since the last reading of the one that it goes on from."""
    if stream.builder is not None:
        new.builder = Builder(stream.builder.center)
        newest, before = stream.builder.newest, stream.without.since if stream.without else NEVER
        new.without = Returned(before if newest is None else newest, stream.missing_seen)


def retire(connection: sqlite3.Connection, stream: Stream, incarnation: str, key: str) -> int:
    """Leave a stream's rows to be sent as they are, and go on in a stream of its name with ordinals from 0.

    The number of the new one. Its windows go on in it.
    """
    new = _following(stream)
    bucket, doubtful = stream.builder.bucket if stream.builder else None, None
    if stream.builder is not None and bucket is not None and bucket.n == len(stream.times):
        new.builder = doubted(stream, bucket.gap)
        new.without, again = Returned(former=stream.missing_seen - max(0, bucket.gap)), new.builder.close()
        stream.close()
        closed = stream.closed.pop()
        parts = carried.parted(closed.bucket)[1]
        parts.pop(LATE_NAME, None)
        said = carried.joined(again.pack(), parts)
        doubtful = _since(Closed(again.first, again.n, said, closed.readings), _before(connection, stream))
        new.buckets += 1
        stream.builder = Builder(stream.builder.center, bucket.first)
    else:
        stream.close()
        insert_rows(connection, stream.number, stream.closed)
    Row(stream.number, stream.name, stream.pack(), stream.incarnation, stream.key, 1).write(connection)
    number = go_on(connection, stream.number, new, incarnation, key)
    if doubtful is not None:
        insert_rows(connection, number, [doubtful])
    return number


def _before(connection: sqlite3.Connection, stream: Stream) -> int:
    """No reading lost before its open bucket is older than this: the last one that waits, else its incarnation."""
    found = connection.execute("SELECT max(first) FROM outbox WHERE stream = ?", (stream.number,)).fetchone()[0]
    last = next(rows_of(connection, stream.number, found, _END), None) if found is not None else None
    return int(stream.incarnation, 16) if last is None else Bucket.unpack(last.bucket[:PACKED]).t_last


def _since(closed: Closed, since: int) -> Closed:
    """A row that begins an incarnation, and says that what is lost before it was taken since then."""
    record, parts = carried.parted(closed.bucket)
    late = said_since(Bucket.unpack(record), closed.readings, parts.get(LATE_NAME), since)
    return closed if late is None else closed._replace(bucket=carried.joined(record, parts | {LATE_NAME: late}))


def go_on(connection: sqlite3.Connection, before: int, new: Stream, incarnation: str, key: str) -> int:
    """Write a stream that takes the place, windows and tags of the one of the number `before`; its own number."""
    number = next_number(connection)
    Row(number, new.name, new.pack(), incarnation, key).write(connection)
    connection.execute("UPDATE doubtful SET stream = ? WHERE stream = ?", (number, before))
    connection.execute("UPDATE window SET stream = ? WHERE stream = ?", (number, before))
    for tags, crc in connection.execute("SELECT tags, crc FROM tagged WHERE stream = ?", (before,)).fetchall():
        require_sound("tagged", crc, before, tags)
        write_tags(connection, number, tags)
    return number


def doubted(stream: Stream, gap: int) -> Builder:
    """A builder whose open bucket has the readings of the stream's, all of them in doubt."""
    builder = Builder(stream.values[0])
    for time, value in zip(stream.times, stream.values, strict=True):
        builder.add(value, time, gap, 1)
        gap = 0
    return builder


def forget_drained(connection: sqlite3.Connection) -> None:
    """Delete retired streams of which nothing waits any more."""
    waits = "SELECT 1 FROM {} AS held WHERE held.stream = stream.id"
    for table in ("origin", "tagged"):
        connection.execute(f"DELETE FROM {table} WHERE stream NOT IN (SELECT id FROM stream)")  # noqa: S608  our own
    connection.execute(
        f"DELETE FROM stream WHERE retired = 1 AND NOT EXISTS ({waits.format('outbox')}) "  # noqa: S608  our own names
        f"AND NOT EXISTS ({waits.format('chunk')}) AND NOT EXISTS ({waits.format('packed')})"
    )


__all__ = ["doubted", "forget_drained", "go_on", "new_key", "note_overtaken", "part_if_copied", "retire"]
