"""The tables of the agent's store, their version, and how an older one becomes this one.

Integers and little-endian records only, so a store can be read on any board. What a row is, and how many there are:

- `meta`, `counter`: schema version, incarnation, link, the newest time of a source; a named total. Tens.
- `stream`: name, open bucket, cursors, incarnation, key; retired where only what waits is left of it. One a stream.
- `origin`: a second copy of what a stream's buckets rest on: name, incarnation, key, center. One a stream.
- `outbox`: a closed base bucket (256 bytes; 248 or 168 of older versions), its readings or NULL. `outbox.rows`.
- `packed`, `handed`: buckets of a stream, deflated together; up to which ordinal its buckets left the record.
- `chunk`: a sealed document, waiting or refused. 4 + 8.
- `window`, `window_leaf`, `window_run`: definition and state; a closed leaf; four or more of them, deflated together.
- `sequence`, `identity`: an epoch, or 64 of its contents; the digests of a commit. 4 epochs a source and those on
  their way; `identity.horizon` digests a source.
- `tagged`, `departed`: the tags of a stream; a sender that was put away. One a stream; `keys.most`.
- `doubtful`: the newest readings in doubt of a stream. One a stream that has any.
- `replay`: a file: topic, bytes taken, their digest, lines. 1,024.
- `retained`: a bare topic: what was counted last, and what was retained. One a bare topic.
- `held`: a message that waits to be judged, whole. `held.rows`.
- `dead_letter`: topic, reason, first bytes. `dead_letters.rows`.
"""

from __future__ import annotations

import contextlib
import secrets
import sqlite3
from collections.abc import Callable

from sluicegate_agent.errors import EnvironmentRefused

VERSION = 10
#: A number that no Sluicegate will reach is damage.
_NO_VERSION = 1000

TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL, crc INTEGER) WITHOUT ROWID;
CREATE TABLE stream (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL, row BLOB NOT NULL, incarnation TEXT NOT NULL, key TEXT NOT NULL,
    retired INTEGER NOT NULL DEFAULT 0, crc INTEGER
);
CREATE TABLE origin (
    stream INTEGER PRIMARY KEY, name TEXT NOT NULL, incarnation TEXT NOT NULL, key TEXT NOT NULL, center REAL NOT NULL,
    crc INTEGER
);
CREATE TABLE outbox (
    stream INTEGER NOT NULL, first INTEGER NOT NULL, bucket BLOB NOT NULL, readings BLOB, crc INTEGER,
    PRIMARY KEY (stream, first)
) WITHOUT ROWID;
CREATE TABLE chunk (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, stream INTEGER NOT NULL, first INTEGER NOT NULL,
    readings INTEGER NOT NULL, state INTEGER NOT NULL, reason TEXT, document BLOB NOT NULL, crc INTEGER
);
CREATE TABLE window (
    id INTEGER PRIMARY KEY, stream INTEGER NOT NULL, name TEXT NOT NULL, definition TEXT NOT NULL, state BLOB NOT NULL,
    crc INTEGER, UNIQUE (stream, name)
);
CREATE TABLE window_leaf (
    window INTEGER NOT NULL, level INTEGER NOT NULL, number INTEGER NOT NULL, leaf BLOB NOT NULL, crc INTEGER,
    PRIMARY KEY (window, level, number)
) WITHOUT ROWID;
CREATE TABLE window_run (
    number INTEGER PRIMARY KEY, window INTEGER NOT NULL, level INTEGER NOT NULL, first INTEGER NOT NULL,
    last INTEGER NOT NULL, leaves BLOB NOT NULL, crc INTEGER
);
CREATE INDEX window_runs ON window_run (window);
CREATE TABLE sequence (
    source TEXT NOT NULL, epoch BLOB NOT NULL, row BLOB NOT NULL, crc INTEGER, PRIMARY KEY (source, epoch)
) WITHOUT ROWID;
CREATE TABLE identity (
    source TEXT NOT NULL, last INTEGER NOT NULL, entries BLOB NOT NULL, crc INTEGER, PRIMARY KEY (source, last)
) WITHOUT ROWID;
CREATE TABLE retained (
    topic TEXT PRIMARY KEY, counted BLOB NOT NULL, kept BLOB NOT NULL, crc INTEGER
) WITHOUT ROWID;
CREATE TABLE doubtful (stream INTEGER PRIMARY KEY, row BLOB NOT NULL);
CREATE TABLE replay (
    id INTEGER PRIMARY KEY, topic TEXT NOT NULL, bytes INTEGER NOT NULL, digest BLOB NOT NULL, lines INTEGER NOT NULL,
    done INTEGER NOT NULL, crc INTEGER
);
CREATE TABLE held (
    number INTEGER PRIMARY KEY, why TEXT NOT NULL, doubt INTEGER NOT NULL, arrival_us INTEGER NOT NULL,
    counted_to INTEGER NOT NULL, topic TEXT NOT NULL, payload BLOB NOT NULL, crc INTEGER
);
CREATE TABLE tagged (stream INTEGER PRIMARY KEY, tags TEXT NOT NULL, crc INTEGER);
CREATE TABLE packed (number INTEGER PRIMARY KEY, stream INTEGER NOT NULL, buckets BLOB NOT NULL, crc INTEGER);
CREATE TABLE handed (stream INTEGER PRIMARY KEY, before INTEGER NOT NULL, crc INTEGER);
CREATE TABLE departed (number INTEGER PRIMARY KEY, sender TEXT NOT NULL UNIQUE, crc INTEGER);
CREATE TABLE dead_letter (
    number INTEGER PRIMARY KEY, at_us INTEGER NOT NULL, topic TEXT NOT NULL, reason TEXT NOT NULL,
    size INTEGER NOT NULL, payload BLOB NOT NULL, crc INTEGER
);
"""

#: Last columns that rows of an older version lack, and what they are then.
LATER: dict[str, list[str | int | None]] = {
    "stream": ["", "", 0, None],
    **{table: [None] for table in ("outbox", "chunk", "window", "window_leaf", "sequence", "identity")},
    **{table: [None] for table in ("origin", "retained", "tagged", "handed")},
    **{table: [None] for table in ("counter", "departed", "replay", "dead_letter")},
}

_CHUNK_2 = """CREATE TABLE chunk (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, stream INTEGER NOT NULL, first INTEGER NOT NULL,
    readings INTEGER NOT NULL, state INTEGER NOT NULL, reason TEXT, document BLOB NOT NULL
)"""


class NewerStore(EnvironmentRefused):
    """Raised for a store that a newer Sluicegate wrote: this one must not touch it. Update, or give another path."""


def create(connection: sqlite3.Connection) -> None:
    """Make every table in an empty database, inside the caller's transaction."""
    for statement in TABLES.split(";"):
        if statement.strip():
            connection.execute(statement)
    connection.execute("INSERT INTO meta VALUES ('schema', ?)", (VERSION,))


def version(connection: sqlite3.Connection) -> int | None:
    """The store's schema version; None for an empty database."""
    if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
        return None
    found = connection.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone()
    if found is None or not isinstance(found[0], int) or not 0 < found[0] < _NO_VERSION:
        raise sqlite3.DatabaseError("the table meta has no schema version")
    return int(found[0])


def fold(connection: sqlite3.Connection) -> int | None:
    """Which frames of the record follow what the tables hold; None where there are none."""
    if version(connection) is None:
        return None
    found = connection.execute("SELECT value FROM meta WHERE key = 'record'").fetchone()
    return found[0] if found is not None and isinstance(found[0], int) else None


def migrate(connection: sqlite3.Connection, found: int) -> None:
    """Bring an older store to VERSION, inside the caller's transaction: all of it or nothing.

    Raises NewerStore.
    """
    if found > VERSION:
        raise NewerStore(
            f"the store has schema version {found}, this Sluicegate knows up to {VERSION}: update Sluicegate, or give "
            "another [state] path"
        )
    for step in range(found, VERSION):
        _STEPS[step](connection)
        connection.execute("UPDATE meta SET value = ? WHERE key = 'schema'", (step + 1,))


def verify(connection: sqlite3.Connection) -> None:
    """See that the definitions of tables and indexes are ours: a flipped bit in one changes what its rows mean.

    Raises sqlite3.DatabaseError.
    """
    with contextlib.closing(sqlite3.connect(":memory:")) as ours:
        create(ours)
        if _defined(connection) != _defined(ours):
            raise sqlite3.DatabaseError("the database is malformed: its tables are defined otherwise")


def _defined(connection: sqlite3.Connection) -> list[tuple[object, ...]]:
    tables = """SELECT t.name, c.* FROM sqlite_master AS t, pragma_table_info(t.name) AS c WHERE t.type = 'table'
        ORDER BY t.name, c.cid"""
    indexes = """SELECT t.name, i."unique", i.origin, c.* FROM sqlite_master AS t, pragma_index_list(t.name) AS i,
        pragma_index_info(i.name) AS c WHERE t.type = 'table' ORDER BY t.name, i.name, c.seqno"""
    return [row for query in (tables, indexes) for row in connection.execute(query)]


def _from_1(connection: sqlite3.Connection) -> None:
    """Version 1 kept no single readings beside a bucket, and dropped a chunk that the target refused."""
    connection.execute("ALTER TABLE outbox ADD COLUMN readings BLOB")
    connection.execute("ALTER TABLE chunk RENAME TO chunk_1")
    connection.execute(_CHUNK_2)
    connection.execute(
        "INSERT INTO chunk SELECT number, id, stream, first, readings, 0, NULL, document FROM chunk_1 ORDER BY number"
    )
    connection.execute("DROP TABLE chunk_1")


def _from_2(connection: sqlite3.Connection) -> None:
    """Version 2 knew records of 168 bytes alone: they stay and are read; an older program cannot read ours."""


def _from_3(connection: sqlite3.Connection) -> None:
    """Version 3 knew neither doubt nor keys, one incarnation for all streams, and no checksums of rows; nothing waited.

    Of a delivery it kept no topic: nothing is told by that of these.
    """
    rows = connection.execute("SELECT last, entries FROM identity WHERE source = ''").fetchall()
    for newest, entries in rows:
        longer = b"".join(entries[at : at + 18] + bytes(4) for at in range(0, len(entries), 18))
        connection.execute("UPDATE identity SET entries = ? WHERE source = '' AND last = ?", (longer, newest))
    for new in ("TABLE retained (", "TABLE doubtful (", "TABLE replay (", "TABLE held ("):
        connection.execute(next(s for s in TABLES.split(";") if new in s))
    for table in ("outbox", "chunk", "window", "window_leaf", "sequence", "identity"):
        connection.execute(f"ALTER TABLE {table} ADD COLUMN crc INTEGER")
    connection.execute("ALTER TABLE stream RENAME TO stream_3")
    for statement in TABLES.split(";"):
        if "TABLE stream (" in statement or "TABLE origin (" in statement:
            connection.execute(statement)
    key = secrets.token_hex(16)
    connection.execute("INSERT OR REPLACE INTO meta VALUES ('key', ?)", (key,))
    incarnation = "(SELECT value FROM meta WHERE key = 'incarnation')"
    connection.execute(f"INSERT INTO stream SELECT id, name, row, {incarnation}, ?, 0, NULL FROM stream_3", (key,))  # noqa: S608
    connection.execute("DROP TABLE stream_3")


def _from_4(connection: sqlite3.Connection) -> None:
    """Version 4 knew the streams of the configuration alone: none by key, none with tags."""
    for new in ("TABLE tagged (", "TABLE departed ("):
        connection.execute(next(s for s in TABLES.split(";") if new in s))


def _from_5(connection: sqlite3.Connection) -> None:
    """Version 5 had no record: each commit wrote the tables, and a row for each bucket that waits."""
    for new in ("TABLE packed (", "TABLE handed ("):
        connection.execute(next(s for s in TABLES.split(";") if new in s))


def _from_6(connection: sqlite3.Connection) -> None:
    """Version 6 had a row for each closed leaf."""
    for new in ("TABLE window_run (", "INDEX window_runs "):
        connection.execute(next(s for s in TABLES.split(";") if new in s))


def _from_7(connection: sqlite3.Connection) -> None:
    """Version 7 packed buckets as they are: these rows stay and are read; an older program cannot read ours."""


def _from_8(connection: sqlite3.Connection) -> None:
    """Version 8 had no checksums in these."""
    _check(connection, "origin", "retained", "tagged", "handed")


def _from_9(connection: sqlite3.Connection) -> None:
    """Version 9 had no checksums in these."""
    _check(connection, "counter", "departed", "replay", "dead_letter")


def _check(connection: sqlite3.Connection, *tables: str) -> None:
    """Give them a checksum, NULL in the rows there are; one that an earlier step made has it."""
    for table in tables:
        if "crc" not in {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}:
            connection.execute(f"ALTER TABLE {table} ADD COLUMN crc INTEGER")


_STEPS: dict[int, Callable[[sqlite3.Connection], None]] = {
    1: _from_1,
    2: _from_2,
    3: _from_3,
    4: _from_4,
    5: _from_5,
    6: _from_6,
    7: _from_7,
    8: _from_8,
    9: _from_9,
}
