"""The agent's store in Couchbase Lite: each row a document, each transaction one transaction of the library.

The tables stand in memory, where all of the agent's work is done on them. Triggers note the keys of rows that change;
a commit writes these rows as documents and purges those that are gone, in one Couchbase Lite transaction that is on
the device when it ends (`full_sync`), before the one in memory. Opening reads all documents back. So what the database
holds is exactly the rows as of a commit, and everything above sees the same store as with SQLite.
"""

from __future__ import annotations

import contextlib
import re
import sqlite3
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from sluicegate.cblite import (
    Collection,
    CouchbaseLiteError,
    Damaged,
    Database,
    LibraryMissing,
    LibraryUnsupported,
    Maintenance,
    library,
)
from sluicegate_agent import faults
from sluicegate_agent.errors import EnvironmentRefused
from sluicegate_agent.state import schema
from sluicegate_agent.state.store import BESIDE, DATABASE, Store, StoreDamaged, connect
from sluicegate_agent.state.watch import rescued

NAME = "state"
#: Rows read at once when the store is opened.
PAGE = 256
_ROW = "r"
_SAFE = re.compile(r"[a-z0-9_.]{1,64}")


class Kept(NamedTuple):
    """One table: its columns, which of them are its key, and the collection of its documents."""

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]


class CouchbaseLiteStore(Store):
    """The open store; `connection` is to the tables in memory."""

    files = BESIDE[:1]
    watched = (*BESIDE[:1], f"{BESIDE[0]}/db.sqlite3")

    def __init__(self, folder: Path) -> None:
        """Open, or make. A damaged database is renamed and a new one started.

        Raises NewerStore, EnvironmentRefused where the library is missing or not supported, and as Store does.
        """
        _supported()
        super().__init__(folder)

    def _open(self) -> sqlite3.Connection:
        with _as_sqlite():
            self._database = Database(NAME, self.folder, full_sync=True)
        try:
            connection = connect(Path(":memory:"))
            self._fill(connection)
            return connection
        except BaseException:
            self._database.close()
            raise

    def _fill(self, connection: sqlite3.Connection) -> None:
        """The tables as of the last commit, or new ones."""
        with _as_sqlite():
            self._database.maintain(Maintenance.CHECK)
        schema.create(connection)
        self._tables = [*_tables(connection)]
        with _as_sqlite():
            self._collections = {table.name: self._database.collection(table.name) for table in self._tables}
            is_new = not len(self._collections["meta"])
            for table in self._tables:
                load(self._database, connection, table)
        self._prepare_tables(connection, is_new)

    def _prepare_tables(self, connection: sqlite3.Connection, is_new: bool) -> None:
        found = schema.version(connection)
        if found is not None and found > schema.VERSION:
            schema.migrate(connection, found)
        _watch(connection, self._tables)
        if is_new:
            connection.execute("BEGIN")
            connection.execute("UPDATE meta SET value = value")
            self._name(connection)
            faults.step("store: before opening commits")
            self._commit(connection)
        elif found is not None and found < schema.VERSION:
            connection.execute("UPDATE meta SET value = ? WHERE key = 'schema'", (schema.VERSION,))
        meta = dict(connection.execute("SELECT key, value FROM meta"))
        if "incarnation" not in meta:
            raise sqlite3.DatabaseError("database disk image is malformed: no incarnation")
        self.incarnation, self.set_aside = str(meta["incarnation"]), int(meta.get("set_aside") or 0)

    def _commit(self, connection: sqlite3.Connection) -> None:
        """Documents first: where that fails the memory is rolled back, as the database was."""
        with _as_sqlite(), self._database.transaction():
            for table in self._tables:
                self._write(connection, table, self._collections[table.name])
            faults.step("documents: before their commit")
        faults.step("documents: committed")
        # Durable: memory has to follow, or this process must end.
        for statement in ("DELETE FROM changed", "COMMIT"):
            try:
                connection.execute(statement)
            except sqlite3.Error:
                self._insist(connection, statement)

    def _insist(self, connection: sqlite3.Connection, statement: str) -> None:
        try:
            connection.execute(statement)
        except sqlite3.Error as error:
            raise StoreDamaged(f"{self.path}: committed, but not in memory: {error}; start again") from error

    def _write(self, connection: sqlite3.Connection, table: Kept, collection: Collection) -> None:
        """Save the rows of a table that changed, purge those that are gone."""
        keys = connection.execute("SELECT k1, k2, k3 FROM changed WHERE name = ?", (table.name,)).fetchall()
        where = " AND ".join(f"{column} = ?" for column in table.key)
        query = f'SELECT {", ".join(table.columns)} FROM "{table.name}" WHERE {where}'  # noqa: S608  our own names
        for row in keys:
            key = row[: len(table.key)]
            found = connection.execute(query, key).fetchone()
            if found is None:
                collection.purge(identity(key))
            else:
                collection.save(identity(key), {_ROW: list(found)})

    def _bound_log(self) -> None:
        """The library bounds its own."""

    def _saved(self) -> str:
        """The tables in memory are as of the last commit: a SQLite file beside has them all."""
        return rescued(self.connection, self.folder / DATABASE, self._watch)

    def close(self) -> None:
        """Let the database go; again is harmless."""
        super().close()
        with contextlib.suppress(CouchbaseLiteError):
            self._database.close()


def snapshot(folder: Path) -> sqlite3.Connection:
    """The tables of a store as of one commit, in memory, beside the agent that has it open; nothing is changed.

    Raises sqlite3.Error, EnvironmentRefused where the library is missing or not supported.
    """
    _supported()
    connection = connect(Path(":memory:"))
    schema.create(connection)
    tables = [*_tables(connection)]
    with _as_sqlite(), Database(NAME, folder) as database, database.transaction():
        for table in tables:
            load(database, connection, table)
    return connection


def load(database: Database, connection: sqlite3.Connection, table: Kept) -> None:
    """Fill one table from its documents, a page at a time."""
    places = ", ".join("?" for _ in table.columns)
    names = ", ".join(table.columns)
    insert = f'INSERT OR REPLACE INTO "{table.name}" ({names}) VALUES ({places})'  # noqa: S608  our own names
    later = schema.LATER.get(table.name, [])
    fewest = len(table.columns) - len(later)
    text = f"SELECT META(t).id, t.{_ROW} FROM `{table.name}` AS t WHERE META(t).id > $last"  # noqa: S608
    with database.query(f"{text} ORDER BY META(t).id LIMIT {PAGE}") as query:
        last = ""
        while page := list(query.rows(last=last)):
            if any(not isinstance(row, list) or not fewest <= len(row) <= len(table.columns) for _, row in page):
                raise sqlite3.DatabaseError(f"database disk image is malformed: a document of {table.name}")
            connection.executemany(insert, [row + later[len(row) - fewest :] for _, row in page])
            last = str(page[-1][0])


def identity(key: tuple[object, ...]) -> str:
    """A row's document id: numbers in full, so that they sort; short names as they are; anything else as a digest."""
    return ":".join(_part(part) for part in key)


def _part(part: object) -> str:
    if isinstance(part, int):
        return f"{part:020d}"
    if isinstance(part, str) and _SAFE.fullmatch(part):
        return part
    data = part if isinstance(part, bytes) else str(part).encode()
    return f"#{blake2b(data, digest_size=16, person=type(part).__name__.encode()).hexdigest()}"


def _tables(connection: sqlite3.Connection) -> Iterator[Kept]:
    names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
    for (name,) in names:
        info = connection.execute(f'PRAGMA table_info("{name}")').fetchall()
        key = sorted((row[5], row[1]) for row in info if row[5])
        yield Kept(name, tuple(row[1] for row in info), tuple(column for _, column in key))


def _watch(connection: sqlite3.Connection, tables: list[Kept]) -> None:
    """Have every change of a row note the row's key."""
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute("CREATE TEMP TABLE changed (name, k1, k2, k3)")
    connection.execute("CREATE INDEX temp.changed_keys ON changed (name, k1, k2, k3)")
    for table in tables:
        for event, rows in (("INSERT", ("NEW",)), ("UPDATE", ("OLD", "NEW")), ("DELETE", ("OLD",))):
            noted = " ".join(_noted(row, table) for row in rows)
            connection.execute(
                f'CREATE TEMP TRIGGER "{table.name}_{event}" AFTER {event} ON main."{table.name}" BEGIN {noted} END'
            )


def _noted(row: str, table: Kept) -> str:
    """The key of a row, once: asked for, because a trigger's own ON CONFLICT gives way to the outer statement's."""
    parts = [f"{row}.{column}" for column in table.key] + ["''"] * (3 - len(table.key))
    there = " AND ".join(f"k{number + 1} = {part}" for number, part in enumerate(parts))
    there = f"SELECT 1 FROM changed WHERE name = '{table.name}' AND {there}"  # noqa: S608  our own names
    return f"INSERT INTO changed SELECT '{table.name}', {', '.join(parts)} WHERE NOT EXISTS ({there});"


def _supported() -> None:
    try:
        library()
    except (LibraryMissing, LibraryUnsupported) as error:
        raise EnvironmentRefused(f'state.store = "couchbase-lite": {error}') from None


@contextlib.contextmanager
def _as_sqlite() -> Iterator[None]:
    """The library's errors as the agent knows them: damaged, or refused for now (PEP 249's names)."""
    try:
        yield
    except Damaged as error:
        raise sqlite3.DatabaseError(f"database disk image is malformed: {error}") from error
    except CouchbaseLiteError as error:
        raise sqlite3.OperationalError(str(error)) from error
