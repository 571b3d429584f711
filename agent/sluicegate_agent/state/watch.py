"""Notices that the state's files were deleted, moved or replaced under a running agent, and saves what it can."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Iterable
from pathlib import Path

from sluicegate_agent import private
from sluicegate_agent.lock import place

_PROC = Path("/proc")


class Watch:
    """Device and inode of some files as they were; `changed` says which are gone, moved or replaced."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self.places = {path: found for path in paths if (found := place(path))}

    def changed(self) -> list[Path]:
        """The paths at which something else stands by now, or nothing."""
        return [path for path, was in self.places.items() if place(path) != was]


def rescued(connection: sqlite3.Connection, path: Path, watch: Watch) -> str:
    """Save what an open database holds although its file was deleted or replaced; in words, what became of it.

    Nothing acknowledged is lost: a deleted file is still whole for the connection that has it open. It is put back
    where nothing stands in its place, else beside it. One that was moved is left where it is now.
    """
    try:
        was = watch.places.get(path)
        if was is None:  # its tables stand in memory
            return _copied(connection, path, put_back=False)
        if place(path) == was:  # only its log is gone from the folder: the open one goes into the database
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            return f"all of it is in {path}: start again"
        links = _links(was)
        if links:
            return "it was moved and stands elsewhere: put it back and start again"
        return _copied(connection, path, put_back=links == 0 and not path.exists())
    except (sqlite3.Error, OSError) as error:
        return f"and could not be saved ({error}): what was not sent is lost with it"


def _copied(connection: sqlite3.Connection, path: Path, *, put_back: bool) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    spare = path.with_name(f"rescued-{time.time_ns() // 1000:016x}.db")
    private.touch(spare)
    with contextlib.closing(sqlite3.connect(spare)) as copy:
        connection.backup(copy)
        copy.execute("DELETE FROM meta WHERE key = 'home'")  # it is no copy of another's, wherever it is put
        copy.commit()
    for name in (spare, path.parent):
        handle = os.open(name, os.O_RDONLY)
        os.fsync(handle)
        os.close(handle)
    if not put_back:
        return f"what it held is in {spare}"
    for suffix in ("-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    os.link(spare, path)  # never replaces
    spare.unlink()
    return f"what it held was put back as {path}: start again"


def _links(was: tuple[int, int]) -> int | None:
    """How many names the open file of that place still has; None where the system does not say."""
    with contextlib.suppress(OSError):
        for entry in (_PROC / "self/fd").iterdir():
            with contextlib.suppress(OSError):
                found = entry.stat()
                if (found.st_dev, found.st_ino) == was:
                    return found.st_nlink
    return None


def others_with(path: Path) -> str:
    """The processes besides this one that have a file open, as far as the system tells us: "1234 (sqlite3)"."""
    wanted, found = place(path), []
    with contextlib.suppress(OSError):
        for process in _PROC.iterdir():
            if process.name.isdigit() and int(process.name) != os.getpid() and _has_open(process, wanted):
                found.append(f"{process.name} ({_name(process)})")
    return ", ".join(found) or "unknown to us"


def _has_open(process: Path, wanted: tuple[int, int] | None) -> bool:
    with contextlib.suppress(OSError):
        return any(place(entry) == wanted for entry in (process / "fd").iterdir())
    return False


def _name(process: Path) -> str:
    with contextlib.suppress(OSError):
        return (process / "comm").read_text(errors="replace").strip()
    return "?"
