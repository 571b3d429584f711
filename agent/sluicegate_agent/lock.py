"""One agent a state directory: an advisory lock that the system takes back when its holder dies, however it dies."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import Self

from sluicegate_agent.errors import EnvironmentRefused

NAME = "lock"
_LONGEST = 64


class Locked(EnvironmentRefused):
    """Raised when another process holds the state directory; refuse to start. `holder` is its process id, if known."""

    def __init__(self, folder: Path, holder: int | None) -> None:
        self.folder, self.holder = folder, holder
        who = f"process {holder}" if holder else "another process"
        super().__init__(
            f"{folder}: {who} is already running an agent on this state; stop it first, or give this one another "
            "[state] path: two agents on one state would count readings twice"
        )


class Lock:
    """Held from construction until `close()`. Raises Locked, and OSError where the directory cannot be written."""

    def __init__(self, folder: Path) -> None:
        self._file = os.open(folder / NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _pid(self._file)
            os.close(self._file)
            raise Locked(folder, holder) from None
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)

    def close(self) -> None:
        """Let the directory go; again is harmless. The file stays: removing it would race with the next holder."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def holder(folder: Path) -> int | None:
    """The process id that holds the directory now, or None: what `status` asks without disturbing anyone."""
    try:
        file = os.open(folder / NAME, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _pid(file)
    finally:
        os.close(file)
    return None


def _pid(file: int) -> int | None:
    written = os.pread(file, _LONGEST, 0).strip()
    return int(written) if written.isdigit() else None
