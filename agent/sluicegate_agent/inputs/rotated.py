"""What was written after a file that was rotated: by which files were there before, by numbers, then by times.

A clock may be set back between two rotations, so a later file may have the earlier time. Which files were read, or were
there before the file itself was begun, is kept; a file that is neither, and of which neither its time nor its number
says where it belongs, is not read: it may be an old one that somebody unpacked. That is told.
"""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from sluicegate_agent.identity.place import Known, read_known
from sluicegate_agent.state.home import identity_of

#: Files of the folder that are looked at.
MOST = 1024
PACKED = (".gz", ".xz", ".bz2", ".zst")
_NUMBER = re.compile(r"[._-](\d{1,3})(?!\d)")
#: The size of a file that was there before, and is not watched.
_ANY = -1
#: Device and inode.
Identity = tuple[int, int]


class Other(NamedTuple):
    """A file beside the one that is configured: `key` tells it from any other one, whatever it is called."""

    path: Path
    identity: Identity
    key: str
    changed: int
    size: int


class Rotated:
    """The files that a file was renamed or copied to."""

    def __init__(self, connection: sqlite3.Connection, file: Path, topic: str) -> None:
        """Raises sqlite3.DatabaseError for a row that is not as it was written."""
        self._file, self._row = file, f"tailed {topic}"
        found = connection.execute("SELECT value FROM meta WHERE key = ?", (self._row,)).fetchone()
        #: Where it `is_whole`, a file that is not in it came later.
        self._known, self._is_whole = (read_known(self._row, found[0]), True) if found is not None else ({}, False)
        self._due: set[str] = set()
        self.changed = False

    # what is known

    def begun(self) -> None:
        """The file itself is read: all others are from before."""
        self._know({each.key: self._known.get(each.key, _ANY) for each in self._others()})
        self._is_whole = True
        self._due.clear()

    def ended(self, handle: int) -> None:
        """An open file was read to its end."""
        status = os.fstat(handle)
        self._know(self._known | {_key(handle, status): status.st_size})

    def _know(self, known: dict[str, int]) -> None:
        self.changed |= known != self._known or not self._is_whole
        self._known = known

    def forget(self) -> None:
        """The folder is another one, such as a copy on another card: times alone tell which files are older."""
        self._known, self._is_whole = {}, False

    # what comes after

    def after(self, ended: Identity | None, changed: int) -> tuple[list[Path], list[str]]:
        """The files that came after one that was rotated, the oldest first; and why lines may be lost.

        `changed`: when that one was changed last, ns.
        """
        others = self._others()
        mine = next((each for each in others if each.identity == ended), None)
        now = place_of(self._file)
        new = [each for each in others if each.key not in self._known and each.identity not in (ended, now)]
        older = [each for each in others if each.key in self._known and each.identity != ended]
        between = self._numbers_between(mine, older)
        following = [
            each
            for each in new
            if each.key in self._due or each.changed >= changed or (self._is_whole and between(each.path))
        ]
        self._due |= {each.key for each in (*following, _looked_at(self._file)) if each}
        if following and all(between(each.path) for each in following):
            following.sort(key=lambda each: -(self._number(each.path) or 0))
        else:
            following.sort(key=lambda each: each.changed)
        return [each.path for each in following], [*self._doubts(mine, new, following, older)]

    def _doubts(
        self, mine: Other | None, new: list[Other], following: list[Other], older: list[Other]
    ) -> Iterator[str]:
        if not self._is_whole:
            return
        number = self._number(mine.path) if mine else None
        for each in new:
            if each not in following and not (number and (self._number(each.path) or 0) > number):
                yield f"may have been rotated to {each.path.name}, whose time is an earlier one: it is not read"
                self._know(self._known | {each.key: _ANY})
        for each in older:
            if _ANY < self._known[each.key] < each.size:
                yield f"was rotated to {each.path.name}, which was written to after it had been read"
                self._know(self._known | {each.key: each.size})

    def _numbers_between(self, mine: Other | None, older: list[Other]) -> Callable[[Path], bool]:
        """Whether a file stands between one and the file itself: greater numbers are older, as logrotate has it."""
        number = self._number(mine.path) if mine else None
        counted = [found for each in older if (found := self._number(each.path)) is not None]
        if number is None or any(found < number for found in counted):
            return lambda path: False
        return lambda path: (found := self._number(path)) is not None and found < number

    def _number(self, path: Path) -> int | None:
        found = _NUMBER.fullmatch(path.name.removeprefix(self._file.name))
        return int(found[1]) if found else None

    # the folder

    def _others(self) -> list[Other]:
        return [found for path in beside(self._file)[:MOST] if (found := _looked_at(path)) is not None]

    # commits

    def save(self, connection: sqlite3.Connection) -> None:
        """Write what is known, inside the caller's transaction."""
        if self.changed and self._is_whole:
            row = self._row, Known(self._known).pack(self._row)
            connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", row)


def _looked_at(path: Path) -> Other | None:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        status = os.fstat(handle)
        return Other(path, (status.st_dev, status.st_ino), _key(handle, status), status.st_mtime_ns, status.st_size)
    finally:
        os.close(handle)


def beside(file: Path, *, packed: bool = False) -> list[Path]:
    """Files that it may have been renamed to, the newest first; those that are packed cannot be read on."""
    try:
        found = [each for each in file.parent.iterdir() if each.name.startswith(file.name) and each != file]
    except OSError:
        return []
    asked = [each for each in found if (each.suffix in PACKED) == packed and each.is_file()]
    return sorted(asked, key=changed_at, reverse=True)


def changed_at(path: Path) -> int:
    """When it was changed last, ns; 0 where there is none."""
    with contextlib.suppress(OSError):
        return path.stat().st_mtime_ns
    return 0


def place_of(path: Path) -> Identity | None:
    """What stands at a path now."""
    with contextlib.suppress(OSError):
        status = path.stat()
        return status.st_dev, status.st_ino
    return None


def _key(handle: int, status: os.stat_result) -> str:
    """Where a file system does not number the uses of an inode, the time of change tells them."""
    found = identity_of(handle)
    return found if ":" in found else f"{found}@{status.st_mtime_ns}"
