"""A store in a Couchbase Lite database: a document a page, in a collection of its own; survives kill -9 and power cuts.

Each `put` and `delete` is one transaction that is on the device when it returns (`full_sync`), so `sync` has nothing
left to do. Reads go through a connection of their own and do not wait for a `put` that is under way. A lock beside
the database keeps a second process, or a second object, away. Other collections of the database are left alone.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from os import PathLike, fspath
from pathlib import Path

from sluicegate.cblite import Collection, CouchbaseLiteError, Database
from sluicegate.errors import ConfigurationError, StoreError
from sluicegate.stores.contract import DEFAULT, Key, Plan, Row, check_key, check_rows
from sluicegate.stores.sqlite import hold

COLLECTION = "pages"
FORMAT = 1
SUFFIX = ".cblite2"
_ABOUT = "about"  # the id of the one document that is no page
_VALUE = "v"


class CouchbaseLite:
    """A window's pages in the database `path` (`folder/name` or `folder/name.cblite2`), made where it is missing.

    Raises StoreError where it cannot be opened or another store object holds it, ConfigurationError for one that a
    newer Sluicegate wrote, LibraryMissing and LibraryUnsupported for the library.
    """

    ordered = True

    def __init__(self, path: str | PathLike[str], plan: Plan = DEFAULT) -> None:
        self.plan = plan.checked()
        self.path = Path(fspath(path))
        if self.path.suffix != SUFFIX:
            self.path = self.path.with_name(self.path.name + SUFFIX)
        self._lock = threading.Lock()  # of the reader
        self._writing = threading.Lock()  # of the writer: a call of its thread ends before `close` does
        self._closed = False
        self._held = hold(self.path)
        try:
            self._writer, self._pages = self._open()
            self._reader, self._read = self._open()
            self._check()
        except BaseException:
            self.close()
            raise

    def put(self, rows: Sequence[Row]) -> None:
        """One transaction, so all rows or none. Raises StoreError."""
        check_rows(self.path, rows)
        with self._writing, self._failures("write"), self._writer.transaction():
            for key, value in rows:
                self._pages.save_bytes(key.name, _VALUE, value)

    def get(self, keys: Sequence[Key]) -> list[bytes | None]:
        """The values; does not wait for a `put` that is under way. Raises StoreError."""
        names = [check_key(key).name for key in keys]
        with self._lock, self._failures("read"):
            return [self._read.get_bytes(name, _VALUE) for name in names]

    def delete(self, keys: Sequence[Key]) -> None:
        """One transaction; documents are purged, so nothing stays behind. Raises StoreError."""
        names = [check_key(key).name for key in keys]
        with self._writing, self._failures("delete"), self._writer.transaction():
            for name in names:
                self._pages.purge(name)

    def sync(self) -> None:
        """Every `put` is on the device already. Raises StoreError after `close`."""
        if self._closed:
            raise StoreError(f"{self.path}: closed; open it again")

    def close(self) -> None:
        """Close the database and let go of its lock, after the call that is under way; later ones raise StoreError."""
        with self._writing, self._lock:
            if self._closed:
                return
            self._closed = True
            try:
                with self._failures("close"):
                    for database in (getattr(self, "_reader", None), getattr(self, "_writer", None)):
                        if database is not None:
                            database.close()
            finally:
                self._held.close()

    def _open(self) -> tuple[Database, Collection]:
        with self._failures("open"):
            if not self.path.parent.is_dir():
                raise StoreError(f"{self.path}: there is no folder {self.path.parent}; make it")
            database = Database(self.path.name.removesuffix(SUFFIX), self.path.parent, full_sync=True)
            try:
                return database, database.collection(COLLECTION)
            except BaseException:
                database.close()
                raise

    def _check(self) -> None:
        """Note the format in a new store, refuse a newer one."""
        with self._failures("open"):
            about = self._pages.get(_ABOUT)
            if about is None:
                self._pages.save(_ABOUT, {"format": FORMAT})
                return
        found = about.get("format")
        if not isinstance(found, int) or found > FORMAT:
            raise ConfigurationError(f"{self.path}: of format {found}, this Sluicegate knows {FORMAT}; use a newer one")

    @contextmanager
    def _failures(self, what: str) -> Iterator[None]:
        try:
            yield
        except CouchbaseLiteError as error:
            raise StoreError(f"{self.path}: could not {what}: {error}; the next call tries again") from error
