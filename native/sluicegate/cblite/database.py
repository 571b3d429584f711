"""A database: a folder with documents in collections, opened once, closed last; transactions; maintenance."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from enum import IntEnum
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from sluicegate.cblite import fleece
from sluicegate.cblite.collection import Collection
from sluicegate.cblite.errors import CouchbaseLiteError, NotFound, fail
from sluicegate.cblite.handle import Handle
from sluicegate.cblite.loading import library
from sluicegate.cblite.query import Query

DEFAULT = "_default"


class Maintenance(IntEnum):
    """What `Database.maintain` does."""

    COMPACT = 0
    REINDEX = 1
    CHECK = 2
    OPTIMIZE = 3
    FULL_OPTIMIZE = 4


class Database(Handle):
    """The database `name` in `folder`, made where it is missing.

    `full_sync`: a transaction is on the device when it ends (else a power cut may undo the last ones, whole).
    `mmap`: read through a memory map where the library can (3.2.1 to 3.x can be told not to).
    Raises Refused, Damaged, Busy, LibraryMissing, LibraryUnsupported.
    """

    def __init__(self, name: str, folder: str | PathLike[str], *, full_sync: bool = False, mmap: bool = False) -> None:
        self.name, self.folder = name, Path(fspath(folder))
        ffi, lib = library()[:2]
        config = ffi.new("CBLDatabaseConfiguration *")
        config[0] = lib.CBLDatabaseConfiguration_Default()
        where = str(self.folder).encode()
        config.directory = fleece.sliced(ffi, where)
        config.fullSync, config.mmapDisabled = full_sync, not mmap
        error = ffi.new("CBLError *")
        opened = lib.CBLDatabase_Open(fleece.sliced(ffi, name.encode()), config, error)
        if opened == ffi.NULL:
            raise fail(ffi, lib, error, f"{self.folder}/{name}.cblite2: not opened")
        super().__init__(opened)
        self._depth = 0

    @property
    def path(self) -> Path:
        """The folder that is the database."""
        return Path((fleece.taken(self._library, self._library.lib.CBLDatabase_Path(self._pointer)) or b"").decode())

    # collections

    def collection(self, name: str = DEFAULT, scope: str = DEFAULT, *, create: bool = True) -> Collection:
        """A collection, made where it is missing unless `create` is false. Raises NotFound, InvalidArgument."""
        ffi, lib = self._library[:2]
        made = lib.CBLDatabase_CreateCollection if create and name != DEFAULT else lib.CBLDatabase_Collection
        error = ffi.new("CBLError *")
        names = fleece.sliced(ffi, name.encode()), fleece.sliced(ffi, scope.encode())
        found = made(self._pointer, *names, error)
        if found == ffi.NULL:
            if error.code:
                raise fail(ffi, lib, error, f"{self.name}: collection {scope}.{name}")
            raise NotFound(f"{self.name}: there is no collection {scope}.{name}; create it, or check the name")
        return Collection(self, found, name, scope)

    # transactions

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """All changes inside the block or none of them; may be nested, and then ends with the outermost.

        Raises Busy, Refused and Damaged where it cannot be begun or ended: then nothing of it is there.
        """
        lib = self._library.lib
        self._call(f"{self.name}: begin a transaction", lib.CBLDatabase_BeginTransaction)
        self._depth += 1
        try:
            yield
        except BaseException:
            self._depth -= 1
            with contextlib.suppress(CouchbaseLiteError):
                self._call(f"{self.name}: undo a transaction", lib.CBLDatabase_EndTransaction, False)
            raise
        self._depth -= 1
        self._call(f"{self.name}: end a transaction", lib.CBLDatabase_EndTransaction, True)

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open here."""
        return self._depth > 0

    # the rest

    def query(self, text: str) -> Query:
        """A compiled SQL++ query. Raises InvalidArgument with the place of a mistake."""
        return Query(self, text)

    def maintain(self, what: Maintenance = Maintenance.COMPACT) -> None:
        """Compact, check or optimise. Not inside a transaction."""
        self._call(
            f"{self.name}: maintenance {what.name.lower()}", self._library.lib.CBLDatabase_PerformMaintenance, int(what)
        )

    def delete(self) -> None:
        """Close the database and delete its folder."""
        self._close_parts()
        self._call(f"{self.name}: delete", self._library.lib.CBLDatabase_Delete)
        held, self._held = self._held, None
        self._library.lib.CBL_Release(held)

    def close(self) -> None:
        """Close parts that are still open, then the database. Raises what the library reports, closed all the same."""
        if self._held is not None and self._depth:
            raise CouchbaseLiteError(f"{self.name}: a transaction is open; end it before closing")
        super().close()

    def _release(self, held: Any) -> None:
        ffi, lib = self._library[:2]
        error = ffi.new("CBLError *")
        closed = lib.CBLDatabase_Close(held, error)
        failure = None if closed else fail(ffi, lib, error, f"{self.name}: close")
        lib.CBL_Release(held)
        if failure is not None:
            raise failure


def instances() -> int:
    """Objects of the library that are alive in this process: 0 when everything was closed."""
    return int(library().lib.CBL_InstanceCount())
