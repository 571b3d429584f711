"""One agent a state directory: advisory locks that the system takes back when their holder dies, however it dies.

Two are held: one of the directory itself, which nobody can delete while it is in use, and one of the file `lock` in it,
which names the holder. Where a file system has no locks of directories (some network shares) the file alone is held.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import time
from pathlib import Path
from stat import S_ISDIR
from types import TracebackType
from typing import Self

from sluicegate_agent.errors import EnvironmentRefused

log = logging.getLogger("sluicegate.state")
NAME = "lock"
_LONGEST = 64
#: `status` holds a lock for an instant to see whether an agent runs: a start that meets it tries again.
_TRIES, _PAUSE = 3, 0.05


class Locked(EnvironmentRefused):
    """Raised when another process holds the state directory; refuse to start. `holder` is its process id, if known."""

    def __init__(self, folder: Path, holder: int | None) -> None:
        self.folder, self.holder = folder, holder
        who = f"process {holder}" if holder else "another process"
        super().__init__(
            f"{folder}: {who} is already running an agent on this state; stop it first, or give this one another "
            "[state] path: two agents on one state would count readings twice"
        )


class StateGone(EnvironmentRefused):
    """Raised while running when the state's files were deleted, moved or replaced: nothing more is acknowledged."""


class Lock:
    """Held from construction until `close()`. Raises Locked, and OSError where the directory cannot be written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._file = -1
        self._folder = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            if not _taken(self._folder):
                raise Locked(folder, _written_in(folder))
            self._file = self._made()
        except BaseException:
            self.close()
            raise

    def _made(self) -> int:
        """The file `lock`, made where it is missing, locked, with our process id in it."""
        file = os.open(self.folder / NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if not _taken(file):
                raise Locked(self.folder, _pid(file))
            os.ftruncate(file, 0)
            os.pwrite(file, f"{os.getpid()}\n".encode(), 0)
        except BaseException:
            os.close(file)  # else this process could not take it again, once the disk has room
            raise
        return file

    def check(self) -> None:
        """Make the file anew where somebody deleted it; two `stat` where all is well.

        Raises StateGone where the directory is another one by now, or where another agent has the file.
        """
        if place(self.folder) != _place_of(self._folder):
            raise StateGone(f"{self.folder}: the state directory was moved, deleted or replaced under the agent")
        if place(self.folder / NAME) == _place_of(self._file):
            return
        try:
            file = self._made()
        except (Locked, OSError) as error:
            raise StateGone(f"{self.folder / NAME}: deleted or replaced under the running agent: {error}") from error
        os.close(self._file)
        self._file = file
        log.warning("%s: deleted or replaced under the running agent; made anew", self.folder / NAME)

    def close(self) -> None:
        """Let the directory go; again is harmless. The file stays: removing it would race with the next holder."""
        for held in (self._file, self._folder):
            if held >= 0:
                os.close(held)
        self._file = self._folder = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def place(path: Path) -> tuple[int, int] | None:
    """Device and inode of what stands at a path now; None where nothing does."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _place_of(file: int) -> tuple[int, int]:
    found = os.fstat(file)
    return found.st_dev, found.st_ino


def _taken(file: int) -> bool:
    """Whether the lock is ours now; where the file system has none for such a file, as if it were."""
    for _ in range(_TRIES):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_PAUSE)
        except OSError:
            if S_ISDIR(os.fstat(file).st_mode):
                return True
            raise
        else:
            return True
    return False


def holder(folder: Path) -> int | None:
    """The process id that holds the directory now, 0 where it is not known, None where nobody does: for `status`."""
    for path, flags in ((folder / NAME, os.O_RDONLY), (folder, os.O_RDONLY | os.O_DIRECTORY)):
        with contextlib.suppress(FileNotFoundError):
            file = os.open(path, flags | os.O_CLOEXEC)
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return _written_in(folder) or 0
            except OSError:
                continue  # no locks of directories here
            finally:
                os.close(file)
    return None


def _written_in(folder: Path) -> int | None:
    with contextlib.suppress(OSError):
        file = os.open(folder / NAME, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return _pid(file)
        finally:
            os.close(file)
    return None


def _pid(file: int) -> int | None:
    written = os.pread(file, _LONGEST, 0).strip()
    return int(written) if written.isdigit() else None
