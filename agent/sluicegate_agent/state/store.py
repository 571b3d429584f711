"""The one SQLite file: opened or made, migrated, set aside when it is damaged; every change is one durable transaction.

WAL with synchronous=FULL: COMMIT returns after the write-ahead log is on the medium, so what was committed survives a
power cut. One writer, no memory mapping, a small cache, the log reused below a fixed size.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

from sluicegate_agent import faults, private
from sluicegate_agent.checksums import is_hexadecimal
from sluicegate_agent.errors import EnvironmentRefused
from sluicegate_agent.lock import StateGone
from sluicegate_agent.record import file as record
from sluicegate_agent.state import provenance, schema
from sluicegate_agent.state.provenance import sync_file, sync_folder
from sluicegate_agent.state.watch import Watch, others_with, rescued

log = logging.getLogger("sluicegate.state")
DATABASE = "state.db"
RECORD = record.NAME
CONDEMNED = "damaged"
SALVAGED = "salvaged.db"
SET_ASIDE_KEPT = 2
CACHE_KIB = 512
#: Bytes of the log beyond which it is cut; SQLite folds it into the database before, and the first time with the commit
#: by which it has the last of these MiB.
WAL_LIMIT = 2 << 20
#: Beyond the limit by so much the log is not let grow while another process reads: nothing is committed until it ended.
WAL_MORE = 1 << 20
#: Seconds that a statement waits for another process: an agent that waits takes no readings.
PATIENCE = 1.0
_PAGE, _PIECE = 4096, 65536
_CHECKPOINT_EVERY, _CHECKPOINT_PATIENCE_MS = 1.0, 100
_SIDE_FILES = ("", "-wal", "-shm")
#: Couchbase Lite's databases: the state's, and the one that the target "couchbase-lite" pushes from.
BESIDE = ("state.cblite2", "sync.cblite2")


class StoreDamaged(EnvironmentRefused):
    """Raised while running when SQLite finds its file damaged; start again: opening sets the file aside."""


class Guarded(Protocol):
    """An open file beside the database."""

    def rescue(self) -> None:
        """Put back what it holds where it was deleted or replaced. Raises OSError."""

    def close(self) -> None:
        """Let it go; again is harmless."""


class Store:
    """The open database. `incarnation` names it; `set_aside` counts the damaged stores this directory has seen."""

    #: Its files, the database first.
    files = tuple(DATABASE + suffix for suffix in _SIDE_FILES)
    #: Those that must stay where they are while it is open.
    watched = (*files, RECORD)

    def __init__(self, folder: Path) -> None:
        """Open, or make. A damaged store is renamed and a new one started.

        Raises NewerStore for one of a newer version, OSError and sqlite3.OperationalError where the directory refuses.
        """
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.set_aside = 0
        self.moved: Path | None = None
        self._next_checkpoint, self._reader_told = 0.0, False
        self._log_limit = WAL_LIMIT
        self._guarded: list[Guarded] = []
        if (folder / CONDEMNED).exists():
            self._move((folder / CONDEMNED).read_text(errors="replace").strip() or "condemned")
        try:
            self.connection = self._open()
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            if not is_damage(error):
                raise
            self._move(str(error))
            self.connection = self._open()
        self.watch()

    @property
    def path(self) -> Path:
        """The database's file."""
        return self.folder / self.files[0]

    def _open(self) -> sqlite3.Connection:
        private.touch(self.path)  # its log and index take its rights
        _write_again(self.folder / self.files[1])
        connection = connect(self.path)
        try:
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        found = schema.version(connection)
        if found is not None and found > schema.VERSION:
            schema.migrate(connection, found)
        verify(connection)
        _configure(connection)
        connection.execute("BEGIN IMMEDIATE")
        if found is None:
            schema.create(connection)
            self._name(connection)
        else:
            schema.migrate(connection, found)
            schema.verify(connection)
        faults.step("store: before opening commits")
        connection.execute("COMMIT")
        incarnation, set_aside = meta(connection, "incarnation"), meta(connection, "set_aside") or 0
        if not isinstance(set_aside, int) or not is_hexadecimal(incarnation, 16):
            raise sqlite3.DatabaseError(f"a malformed row in the table meta: incarnation {incarnation!r}")
        self.incarnation, self.set_aside = str(incarnation), set_aside

    def _name(self, connection: sqlite3.Connection) -> None:
        """Give the store an incarnation later than any this directory has had, even if the clock went back."""
        incarnation = self.next_incarnation()
        connection.execute("INSERT INTO meta VALUES ('incarnation', ?)", (incarnation,))
        connection.execute("INSERT INTO meta VALUES ('key', ?)", (secrets.token_hex(16),))
        connection.execute("INSERT INTO meta VALUES ('set_aside', ?)", (provenance.read(self.folder)["set_aside"],))

    def next_incarnation(self) -> str:
        """One later than any that this directory has had, even if the clock went back."""
        before = provenance.read(self.folder)
        least = 1 + max(before["last"], int(getattr(self, "incarnation", "0"), 16))
        incarnation = f"{max(time.time_ns() // 1000, least):016x}"
        provenance.write(self.folder, before | {"last": int(incarnation, 16)})
        return incarnation

    @property
    def lost_since(self) -> int | None:
        """When the store began of which something is lost (µs), until what follows from that is durable, too."""
        return provenance.read(self.folder).get("lost")

    def loss_is_told(self) -> None:
        """What follows from a loss is durable."""
        provenance.write(self.folder, {k: v for k, v in provenance.read(self.folder).items() if k != "lost"})

    def condemn(self, reason: str) -> None:
        """Have the store set aside when it is next opened: its pages are whole and what they say is not."""
        with contextlib.suppress(OSError):
            private.write(self.folder / CONDEMNED, f"{reason}\n".encode())
            sync_folder(self.folder)

    def _move(self, reason: str) -> None:
        """Rename the damaged store; at most SET_ASIDE_KEPT of them stay, so that damage cannot fill the disk.

        Condemned first: a process that ends between two renames must not open the database without its log.
        """
        self.condemn(reason)
        stamp = f"{time.time_ns() // 1000:016x}"
        before = provenance.read(self.folder)
        before["set_aside"] += 1
        before.setdefault("lost", before["last"])
        provenance.write(self.folder, before)
        salvaged = self._salvage(before["set_aside"], reason)
        for name in self.files[1:] + self.files[:1]:
            self.moved = self.folder / f"damaged-{stamp}{name.removeprefix('state')}"
            with contextlib.suppress(FileNotFoundError):
                (self.folder / name).rename(self.moved)
        if salvaged.exists():
            salvaged.rename(self.path)
            sync_folder(self.folder)
        private.write(self.folder / f"damaged-{stamp}.txt", f"{reason}\n".encode())
        (self.folder / CONDEMNED).unlink(missing_ok=True)
        for stale in sorted({p.name[:24] for p in self.folder.glob("damaged-*")})[:-SET_ASIDE_KEPT]:
            for path in self.folder.glob(f"{stale}*"):
                _remove(path)

    def watch(self) -> None:
        """From now on these files have to stay where they are."""
        self._watch = Watch(self.folder / name for name in self.watched)

    def check(self) -> None:
        """See that what is open is still what stands at its paths: a `stat` each.

        Raises StateGone where it was deleted, moved or replaced, after what it holds was saved.
        """
        gone = self._watch.changed()
        if gone:
            raise StateGone(f"{gone[0]}: deleted, moved or replaced under the running agent; {self._saved()}")

    def guard(self, file: Guarded) -> None:
        """A further file stays where it is from now on, and is closed with the store."""
        self._guarded.append(file)
        self.watch()

    def _saved(self) -> str:
        said = rescued(self.connection, self.path, self._watch)
        for file in self._guarded:
            with contextlib.suppress(OSError):
                file.rescue()
        return said

    def limit_log(self, limit: int) -> None:
        """Let the log grow to about so many bytes: what is written again until then goes to the database once."""
        self._log_limit = limit
        _limit_log(self.connection, limit)

    def _bound_log(self) -> None:
        """Fold the log into the database where it has grown; it cannot be while another process reads an older state.

        Raises sqlite3.OperationalError where it may not grow any more.
        """
        size, most = log_bytes(self.folder), self._log_limit + WAL_MORE
        now = time.monotonic()
        if size <= self._log_limit or (size < most and now < self._next_checkpoint):
            return
        self._next_checkpoint = now + _CHECKPOINT_EVERY
        self.connection.execute(f"PRAGMA busy_timeout = {_CHECKPOINT_PATIENCE_MS}").fetchall()
        is_busy = self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        self.connection.execute(f"PRAGMA busy_timeout = {int(PATIENCE * 1000)}").fetchall()
        if not is_busy:
            self._reader_told = False
            return
        reason = (
            f"another process reads {self.path} and keeps its log from shrinking ({size} bytes, at most {most}): "
            f"end process {others_with(self.path)}"
        )
        if not self._reader_told:
            self._reader_told = True
            log.warning("%s", reason)
        if size >= most:
            raise sqlite3.OperationalError(reason)

    def _salvage(self, set_aside: int, reason: str) -> Path:
        """Where a new store of what is whole in the damaged one stands, if there is anything: complete, or not there.

        Made again where a process ended in the middle; kept where the damaged file is set aside already.
        """
        salvaged = self.folder / SALVAGED
        if not self.path.is_file():
            return salvaged
        from sluicegate_agent.state.salvage import salvage  # needed once in a card's life

        partial = salvaged.with_suffix(".new")
        salvaged.unlink(missing_ok=True)
        try:
            if salvage(self.path, partial, self.next_incarnation, set_aside, reason):
                partial.chmod(0o600)
                sync_file(partial)
                partial.rename(salvaged)
                sync_folder(self.folder)
        except (OSError, sqlite3.Error) as error:
            log.error("%s: nothing could be salvaged of it: %s", self.path, error)
        partial.unlink(missing_ok=True)
        return salvaged

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """One durable change: all of it when the block ends, nothing if it raises.

        Raises StoreDamaged, and sqlite3.Error (a full disk among them): then the store is as it was before.
        """
        connection = self.connection
        self.check()
        try:
            self._bound_log()
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            faults.step("transaction: before commit")
            self._commit(connection)
            faults.step("transaction: after commit")
        except BaseException as error:
            with contextlib.suppress(sqlite3.Error):
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
            self._tell_damage(error)
            if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY:
                reason = f"{error}: process {others_with(self.path)} is writing to {self.path}"
                raise sqlite3.OperationalError(reason) from error
            raise
        # Whoever acknowledges what was committed may rely on its file being there.
        self.check()

    @contextlib.contextmanager
    def noticing_damage(self) -> Iterator[None]:
        """Rows are read outside of a transaction. Raises StoreDamaged where one is not as it was written."""
        try:
            yield
        except BaseException as error:
            self._tell_damage(error)
            raise

    def _tell_damage(self, error: BaseException) -> None:
        """Have the store set aside at the next start, where it is that. Raises StoreDamaged then."""
        if isinstance(error, sqlite3.DatabaseError | UnicodeDecodeError) and is_damage(error):
            self.condemn(str(error))
            raise StoreDamaged(f"{self.path}: {error}; start again: the file will be set aside") from error

    def _commit(self, connection: sqlite3.Connection) -> None:
        connection.execute("COMMIT")

    def close(self) -> None:
        """Fold the log into the database and let it go; again is harmless."""
        self.connection.close()
        for file in self._guarded:
            file.close()


def connect(path: Path) -> sqlite3.Connection:
    """A connection in which transactions are begun and ended by hand."""
    return sqlite3.connect(path, isolation_level=None, timeout=PATIENCE, cached_statements=64, check_same_thread=False)


def bytes_on_disk(folder: Path) -> int:
    """Bytes of the databases and their logs in a state directory."""
    sizes = 0
    for name in (*Store.files[:2], RECORD, *BESIDE):
        for path in ((folder / name), *(folder / name).glob("db.sqlite3*")):
            with contextlib.suppress(FileNotFoundError):
                sizes += path.stat().st_size if path.is_file() else 0
    return sizes


def log_bytes(folder: Path) -> int:
    """Bytes of the write-ahead log of a state directory; 0 where there is none."""
    try:
        return (folder / Store.files[1]).stat().st_size
    except OSError:
        return 0


def disk_free(folder: Path) -> int:
    """Bytes that an ordinary user may still write on the disk of a state directory."""
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


def _remove(path: Path) -> None:
    """Delete a file, or a database that is a folder."""
    if not path.is_dir():
        path.unlink()
        return
    import shutil

    shutil.rmtree(path)


#: What SQLite says of our own statements where the file's head or a table's definition was damaged.
_NOT_OURS = ("no such table", "no such column", "has no column", "unsupported file format", "NOT NULL constraint")


def is_damage(error: sqlite3.DatabaseError | UnicodeDecodeError) -> bool:
    """Whether SQLite says the file is damaged or no database, rather than that the system refused.

    Text that is no UTF-8, in a row or in an error's own message, is damage that Python finds; a column is
    NULL where a row is gone that every version wrote.
    """
    code, text = getattr(error, "sqlite_errorcode", None), str(error)
    if isinstance(error, UnicodeDecodeError) or any(sign in text for sign in _NOT_OURS):
        return True
    if code is None:
        return any(sign in text for sign in ("malformed", "schema version", "Could not decode to UTF-8"))
    return code & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def verify(connection: sqlite3.Connection) -> None:
    """See that pages are whole, and indexes: a row that its index does not have is there and never found.

    Raises sqlite3.DatabaseError.
    """
    found = [row[0] for row in connection.execute("PRAGMA integrity_check(1)")]
    if found != ["ok"]:
        raise sqlite3.DatabaseError(f"database disk image is malformed: {found[0] if found else 'unreadable'}")


def _configure(connection: sqlite3.Connection) -> None:
    for setting in (
        "journal_mode = WAL",
        "synchronous = FULL",
        "mmap_size = 0",
        f"cache_size = -{CACHE_KIB}",
        "temp_store = MEMORY",
        "secure_delete = ON",  # a row that was deleted is never salvaged; systems differ in their default
        "foreign_keys = OFF",
    ):
        connection.execute(f"PRAGMA {setting}").fetchall()
    _limit_log(connection, WAL_LIMIT)


def _limit_log(connection: sqlite3.Connection, limit: int) -> None:
    for setting in (f"wal_autocheckpoint = {(limit - WAL_MORE) // _PAGE}", f"journal_size_limit = {limit}"):
        connection.execute(f"PRAGMA {setting}").fetchall()


def meta(connection: sqlite3.Connection, key: str) -> Any:
    """A value of the table meta; None where there is none."""
    found = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return found[0] if found else None


def _write_again(path: Path) -> None:
    """Have what is read of a log be on the medium: after an error of `fsync` the system may hold it for written.

    Else commits would follow one that a power cut takes away, and all of them with it.
    """
    with contextlib.suppress(FileNotFoundError), path.open("r+b", buffering=0) as file:
        handle, at = file.fileno(), 0
        while piece := os.pread(handle, _PIECE, at):  # a log that a reader held may be larger than memory has room for
            at += os.pwrite(handle, piece, at)
        os.fsync(handle)
