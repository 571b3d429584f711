"""A store in one SQLite file: a row a page, write-ahead log, reads beside the writer; survives kill -9 and power cuts.

Commits are not forced to the device one by one (synchronous=NORMAL): a power cut leaves a prefix of them. `sync` forces
them. A lock on `<file>.lock` keeps a second process, or a second object, away.
"""

from __future__ import annotations

import fcntl
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from os import PathLike, fspath
from pathlib import Path
from typing import IO

from sluicegate.errors import ConfigurationError, StoreError
from sluicegate.stores.contract import DEFAULT, Key, Plan, Row, check_rows, runs

APPLICATION = 0x53474B56  # "SGKV", in the file's header
FORMAT = 1
CACHE_KIB = 1024  # of each of two connections
_SELECT = "SELECT id, CAST(value AS BLOB) FROM page WHERE id BETWEEN ? AND ?"
_SCHEMA = "CREATE TABLE IF NOT EXISTS page (id INTEGER PRIMARY KEY, value BLOB NOT NULL)"


class SQLite:
    """A window's pages in the file `path`, made where it is missing.

    Raises StoreError where the file cannot be opened or another store object holds it, ConfigurationError for a file
    that is not such a store.
    """

    ordered = True
    atomic = True  # a row is there whole or not at all, so a damaged one is damage, and not what a crash left

    def __init__(self, path: str | PathLike[str], plan: Plan = DEFAULT) -> None:
        self.plan = plan.checked()
        self.path = Path(fspath(path))
        self._lock = threading.Lock()  # of the reader
        self._writing = threading.Lock()  # of the writer: a call of its thread ends before `close` does
        self._held = hold(self.path)
        self._closed = False
        try:
            self._writer, self._reader = self._open(), self._open()
        except BaseException:
            self._held.close()
            raise

    def put(self, rows: Sequence[Row]) -> None:
        """One transaction, so all rows or none. Raises StoreError."""
        check_rows(self.path, rows)
        with self._transaction() as writer:
            writer.executemany(
                "INSERT OR REPLACE INTO page (id, value) VALUES (?, ?)",
                [(key.number, value) for key, value in rows],
            )

    def get(self, keys: Sequence[Key]) -> list[bytes | None]:
        """The values; does not wait for a `put` that is under way. Raises StoreError."""
        with self._lock, self._failures("read"):
            found: dict[int, bytes] = {}
            for run in runs(keys):
                found.update(self._reader.execute(_SELECT, run))
            return [found.get(key.number) for key in keys]

    def delete(self, keys: Sequence[Key]) -> None:
        """One transaction. Raises StoreError."""
        with self._transaction() as writer:
            writer.executemany("DELETE FROM page WHERE id BETWEEN ? AND ?", runs(keys))

    def sync(self) -> None:
        """Force the log to the device: all of it goes with a commit of its own, of one small row. Raises StoreError."""
        with self._writing, self._failures("sync"):
            self._writer.execute("PRAGMA synchronous = FULL")
            try:
                self._writer.execute("INSERT OR REPLACE INTO page (id, value) VALUES (-1, x'00')")
            finally:
                self._writer.execute("PRAGMA synchronous = NORMAL")

    def close(self) -> None:
        """Close the file and let go of its lock, after the call that is under way; later ones raise StoreError."""
        with self._writing, self._lock:
            if self._closed:
                return
            self._closed = True
            try:
                self._reader.close()
                self._writer.close()
            except sqlite3.Error as error:
                raise StoreError(f"{self.path}: could not be closed: {error}") from error
            finally:
                self._held.close()

    def _open(self) -> sqlite3.Connection:
        with self._failures("open"):
            connection = sqlite3.connect(self.path, timeout=10, isolation_level=None, check_same_thread=False)
            try:
                self._prepare(connection)
            except BaseException:
                connection.close()
                raise
            return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        (owner,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if owner != APPLICATION and (owner or tables):
            raise ConfigurationError(f"{self.path}: an SQLite file of something else; expected a new file or a store")
        if version > FORMAT:
            raise ConfigurationError(
                f"{self.path}: of format {version}, this Sluicegate knows {FORMAT}; use a newer one"
            )
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA secure_delete = OFF")  # else what is deleted is read, zeroed and written twice
        connection.execute(f"PRAGMA cache_size = -{CACHE_KIB:d}")
        if not tables:
            connection.execute(f"PRAGMA application_id = {APPLICATION:d}")
            connection.execute(f"PRAGMA user_version = {FORMAT:d}")
            connection.execute(_SCHEMA)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._writing, self._failures("write"):
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield self._writer
                self._writer.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    self._writer.execute("ROLLBACK")
                raise

    @contextmanager
    def _failures(self, what: str) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter where the schema's text is damaged
            raise StoreError(f"{self.path}: could not {what}: {error}; the next call tries again") from error


def hold(path: Path) -> IO[bytes]:
    """An exclusive lock that ends with the process."""
    name = path.with_name(path.name + ".lock")
    try:
        held = name.open("ab")
    except OSError as error:
        raise StoreError(f"{name}: {error.strerror}; expected a folder that may be written") from error
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        held.close()
        raise StoreError(f"{path}: in use by another window or process; close that first") from None
    return held
